-- Calls of a conversation that stand on its map
-- In the conversation :session, or in one :subagent of it: calls that failed, changed files or
-- spawned a subagent. :limit ends after so many.
select
    substr(t.name, 1, 200) as name,
    t.action,
    substr(t.target, 1, 500) as target,
    iif(length(t.paths) <= 100000, t.paths, null) as paths,
    t.status,
    exists (select 1 from subagents a where a.spawned_by = t.id) as spawned,
    t.file_id,
    t.byte_offset,
    t.block,
    t.tool_use_id,
    t.id
from tool_calls t
where t.session_id = :session
  and t.subagent_id is nullif(:subagent, '')
  and t.call_id is not null
  and (t.status = 'error' or t.action in ('edit', 'spawn') or spawned)
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

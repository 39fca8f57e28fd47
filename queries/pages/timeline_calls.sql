-- When the calls of a conversation ran
-- Calls of the conversation :session and its subagents, with the time that each took. Those that
-- repeat a call of another file are left out, as in the counts of a session. :limit ends after so
-- many.
select
    substr(t.name, 1, 100) as name,
    t.action,
    t.status,
    t.started_at,
    t.ended_at,
    t.duration_ms,
    t.subagent_id,
    t.file_id,
    t.byte_offset,
    t.block,
    t.id
from tool_calls t
left join messages m on m.id = t.call_id
where t.session_id = :session
  and t.name is not null
  and m.copy_of is null
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

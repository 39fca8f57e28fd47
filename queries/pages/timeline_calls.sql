-- When the calls of a conversation ran
-- Calls of the main conversation :session, with the time that each took. :limit ends after so many.
select
    substr(t.name, 1, 100) as name,
    t.status,
    t.started_at,
    t.ended_at,
    t.duration_ms,
    t.file_id,
    t.byte_offset,
    t.block,
    t.id
from tool_calls t
where t.session_id = :session
  and t.subagent_id is null
  and t.call_id is not null
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

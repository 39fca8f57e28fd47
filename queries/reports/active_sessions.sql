-- Active conversations
-- Conversations according to their hook events: which are active, and how many subagents each is
-- running.
-- Group: open
select
    a.status,
    a.is_active,
    a.running_subagents,
    s.title,
    a.cwd,
    a.model,
    a.session_key
from active_sessions a
left join sessions s on s.id = a.session_id
order by a.is_active desc, a.status, a.session_key
limit cast(coalesce(nullif(:limit, ''), '9223372036854775807') as integer)

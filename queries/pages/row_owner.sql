-- The conversation of a row
-- The keys of the session and of the subagent with these ids, null where there is none; the session
-- of the subagent if no session is named.
select
    a.agent_key,
    s.session_key,
    s.title
from (select 1)
left join subagents a on a.id = :subagent
left join sessions s on s.id = coalesce(:session, a.session_id)

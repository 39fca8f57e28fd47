-- Whose a file is
-- The key of the subagent or the session that a file belongs to.
select a.agent_key, s.session_key
from files f
left join subagents a on a.id = f.subagent_id
left join sessions s on s.id = f.session_id
where f.id = :file

-- Subagents whose key begins with :prefix
-- The subagents that a prefix can mean, the one of this very key first, then those with more
-- messages; an agent of two homes gives two rows.
select
    a.agent_type,
    a.description,
    a.message_count,
    s.title,
    s.session_key,
    a.agent_key,
    a.session_id,
    a.id
from subagents a
join sessions s on s.id = a.session_id
where a.agent_key >= :prefix
  and a.agent_key < :prefix || char(1114111)
order by a.agent_key <> :prefix, a.message_count desc, a.agent_key, a.id
limit 200

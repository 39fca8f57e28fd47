-- Sessions whose key begins with :prefix
-- The sessions that a prefix can mean, newest first; one conversation in two homes gives two rows.
select
    s.title,
    p.name as project,
    s.ended_at,
    s.message_count,
    s.session_key,
    s.id
from sessions s
left join projects p on p.id = s.project_id
where s.session_key >= :prefix
  and s.session_key < :prefix || char(1114111)
order by s.ended_at desc, s.message_count desc, s.id

-- Todo items
-- Items of todo lists, in the order of their list. Without :all those that are done are left out.
select
    i.status,
    i.content,
    i.priority,
    s.title as session,
    p.name as project,
    i.session_key,
    i.agent_key
from todos i
join files f on f.id = i.file_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where (coalesce(:all, '') <> '' or coalesce(i.status, '') <> 'completed')
  and (
    coalesce(:project, '') = ''
    or p.key = lower(:project)
    or lower(p.name) = lower(:project)
    or instr(lower(p.path), lower(:project))
  )
order by s.ended_at desc, f.path, i.position
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

-- Links
-- Pull requests, frames and worktrees of sessions, newest first.
select
    i.kind,
    i.url,
    i.title,
    i.timestamp,
    s.title as session,
    p.name as project,
    s.session_key
from links i
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where true
  and (
    coalesce(:project, '') = ''
    or p.key = lower(:project)
    or lower(p.name) = lower(:project)
    or instr(lower(p.path), lower(:project))
  )
order by i.timestamp desc, i.id
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

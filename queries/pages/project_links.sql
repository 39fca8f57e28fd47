-- Links of one project
-- Pull requests, frames and worktrees of its sessions, each once, the newest first. Those are left
-- out that only a list stated, and no longer states.
select
    i.kind,
    i.url,
    max(i.title) as title,
    max(i.timestamp) as timestamp
from sessions s
join links i on i.session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and i.kind <> 'plan'
  and i.gone_at is null
group by i.kind, i.url
order by timestamp desc, i.url
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

-- Tasks of one project
-- Tasks of its sessions and of teams that they lead: what is in progress, then pending, then done.
select
    i.subject,
    i.description,
    i.status,
    i.owner,
    i.task_key,
    s.title as session,
    s.session_key,
    i.id
from sessions s
join tasks i on i.session_id = s.id
where s.project_id = :project
  and i.gone_at is null
  and coalesce(i.status, '') <> 'deleted'
order by
    case i.status when 'in_progress' then 0 when 'pending' then 1 else 2 end,
    s.ended_at desc,
    length(i.task_key),
    i.task_key
limit cast(coalesce(nullif(:limit, ''), 50) as integer)

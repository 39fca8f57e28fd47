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
from (
    select t.id, s.id as session_id
    from sessions s
    join tasks t on t.session_id = s.id
    where s.project_id in (select value from json_each(nullif(:project, '')))
    union
    select t.id, s.id
    from sessions s
    join teams c on c.lead_session_id = s.id
    join tasks t on t.team_id = c.id
    where s.project_id in (select value from json_each(nullif(:project, '')))
) o
join tasks i on i.id = o.id
join sessions s on s.id = o.session_id
where i.gone_at is null
  and coalesce(i.status, '') <> 'deleted'
order by
    case i.status when 'in_progress' then 0 when 'pending' then 1 else 2 end,
    s.ended_at desc,
    i.list_key,
    i.task_number is null,
    i.task_number,
    i.task_key
limit cast(coalesce(nullif(:limit, ''), 50) as integer)

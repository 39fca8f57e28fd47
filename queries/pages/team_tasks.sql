-- Tasks of one team
-- In the order of their numbers, each with what it waits for.
select
    i.subject,
    i.description,
    i.status,
    i.owner,
    (
        select group_concat(d.blocker_key, ', ')
        from task_dependencies d
        where d.task_id = i.id
    ) as blockers,
    i.task_key,
    i.id
from tasks i
where i.team_id = :team
  and i.gone_at is null
  and coalesce(i.status, '') <> 'deleted'
order by i.task_number is null, i.task_number, i.task_key
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- Tasks, todos and plans of one session
-- Tasks in the order of their numbers, todos in that of their lists. What is gone or deleted is left
-- out.
select
    w.what,
    w.title,
    w.status,
    w.owner,
    w.id
from (
    select
        1 as rank,
        'task' as what,
        coalesce(t.subject, '#' || t.task_key) as title,
        t.status,
        t.owner,
        t.task_key glob '*[^0-9]*' as is_named,
        t.task_number as place,
        t.task_key as name,
        t.id
    from tasks t
    where t.session_id = :session
      and t.gone_at is null
      and coalesce(t.status, '') <> 'deleted'
    union all
    select 2, 'todo', i.content, i.status, null, i.agent_key <> i.session_key, i.position, i.agent_key, i.id
    from todos i
    where i.session_id = :session
      and i.gone_at is null
    union all
    select 3, 'plan', p.title, p.status, null, 0, null, p.modified_at, p.id
    from plans p
    where p.session_id = :session
) w
order by w.rank, w.is_named, iif(w.what = 'todo', w.name, null), w.place, w.name, w.id
limit 100

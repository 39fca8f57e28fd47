-- Open tasks
-- Tasks that are not done, deleted or gone, by list; blocked_by names the tasks that block them.
-- Group: open
select
    t.subject,
    t.status,
    t.owner,
    (
        select group_concat(distinct d.blocker_key)
        from task_dependencies d
        join tasks b on b.id = d.blocker_id
        where d.task_id = t.id
          and b.status <> 'completed'
          and b.gone_at is null
    ) as blocked_by,
    coalesce(m.name, s.title, t.list_key) as list,
    t.task_key,
    t.id
from tasks t
left join teams m on m.id = t.team_id
left join sessions s on s.id = t.session_id
where t.status in ('pending', 'in_progress')
  and t.gone_at is null
order by t.list_key, t.task_number is null, t.task_number, t.task_key

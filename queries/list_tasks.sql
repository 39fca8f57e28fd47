-- Tasks
-- Tasks of agents by list, with what each waits for. Without :all those are left out that the
-- agent has deleted or a sync found missing.
select
    t.task_key as task,
    t.subject,
    t.status,
    t.owner,
    (
        -- Both tasks of an edge state it.
        select group_concat(d.blocker_key, ', ')
        from (select distinct blocker_key from task_dependencies where task_id = t.id) d
    ) as waits_for,
    s.title as session,
    p.name as project,
    t.gone_at,
    t.description,
    t.list_key
from tasks t
left join teams e on e.id = t.team_id
left join sessions s on s.id = coalesce(t.session_id, e.lead_session_id)
left join projects p on p.id = s.project_id
where (coalesce(:all, '') <> '' or (t.gone_at is null and coalesce(t.status, '') <> 'deleted'))
  and (
    coalesce(:project, '') = ''
    or p.key = lower(:project)
    or lower(p.name) = lower(:project)
    or instr(lower(p.path), lower(:project))
  )
order by s.ended_at desc, t.list_key, cast(t.task_key as integer), t.task_key
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

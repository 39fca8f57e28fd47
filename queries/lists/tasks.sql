-- Tasks
-- Agents' tasks by list, with the tasks that block them. Tasks without a file have the channel
-- transcript. Deleted tasks are shown only with :all, missing ones only with :gone.
select
    t.task_key as task,
    t.subject,
    t.status,
    t.owner,
    (
        select group_concat(d.blocker_key, ', ')
        from (
            select blocker_key
            from task_dependencies
            where task_id = t.id
            order by trim(blocker_key, '0123456789') <> '', length(ltrim(blocker_key, '0')), blocker_key
        ) d
    ) as waits_for,
    s.title as session,
    p.name as project,
    t.channel,
    t.gone_at,
    t.description,
    t.list_key
from tasks t
left join teams e on e.id = t.team_id
left join sessions s on s.id = coalesce(t.session_id, e.lead_session_id)
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or (t.gone_at is null and coalesce(t.status, '') <> 'deleted')
    or (coalesce(:gone, '') <> '' and t.gone_at is not null)
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:source, '') = ''
    or t.source_id in (select r.id from sources r where r.kind = :source)
  )
  and (coalesce(:status, '') = '' or t.status like '%' || :status || '%')
order by
    s.ended_at desc,
    t.list_key,
    t.task_number is null,
    t.task_number,
    t.task_key,
    t.channel
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

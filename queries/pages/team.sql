-- One team

-- name: team
-- One team
-- What is known of a team, by :id or by the text :name, which is its name or its key.
select
    t.name,
    t.description,
    t.created_at,
    t.gone_at,
    s.title as session,
    s.session_key,
    p.name as project,
    r.root,
    t.key,
    s.project_id,
    t.id
from teams t
join sources r on r.id = t.source_id
left join sessions s on s.id = t.lead_session_id
left join projects p on p.id = s.project_id
where t.id = :id
   or (coalesce(:id, '') = '' and (lower(t.name) = lower(:name) or t.key = lower(:name)))
order by t.created_at desc, t.id

-- name: team_members
-- Members of one team
-- In the order in which they joined. Those that it no longer names are left out.
select
    m.name,
    m.agent_type,
    m.model,
    m.cwd,
    m.joined_at,
    m.is_active,
    m.prompt,
    m.id
from team_members m
where m.team_id = :team
  and m.gone_at is null
order by m.joined_at, m.name, m.id

-- name: team_tasks
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

-- name: team_inbox
-- Messages within one team
-- The newest :limit of them, those that repeat one of an inbox left out.
select
    i.timestamp,
    i.sender,
    i.recipient,
    i.kind,
    i.summary,
    i.text,
    i.is_read,
    i.gone_at,
    i.id
from inbox_items i
where i.team_id = :team
  and i.copy_of is null
order by i.timestamp desc, i.id desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- name: team_gone
-- What is gone of one team
-- How many members its configuration no longer names, and how many tasks are missing.
select 'member' as what, count(*) as gone
from team_members m
where m.team_id = :team
  and m.gone_at is not null
union all
select 'task', count(*)
from tasks i
where i.team_id = :team
  and i.gone_at is not null

-- One project

-- name: project
-- One project
-- What is known of a project, by :id or by the text :name, which is its name or its key.
select
    p.name,
    p.path,
    p.key,
    coalesce(p.head_branch, p.git_branch) as git_branch,
    p.is_worktree,
    p.on_disk,
    p.session_count,
    p.last_activity_at,
    o.name as parent,
    r.kind as source,
    r.root,
    p.parent_id,
    p.id
from projects p
join sources r on r.id = p.source_id
left join projects o on o.id = p.parent_id
where p.id = :id
   or (
    coalesce(:id, '') = ''
    and p.same_as is null
    and exists (
        select 1
        from projects s
        where (s.id = p.id or s.same_as = p.id)
          and (lower(s.name) = lower(:name) or s.key in (:name, lower(:name)))
    )
   )
order by p.last_activity_at desc, p.id

-- name: project_names
-- Projects as they can be named
-- What :project of other queries is chosen from: an id, a path, a name, or the name of the directory
-- under projects/. The newest activity comes first.
select
    name,
    path,
    key,
    id,
    parent_id,
    same_as,
    coalesce(repository_key, path, key) as repository_key,
    coalesce(repository_name, name, key) as repository,
    (select r.kind from sources r where r.id = projects.source_id) as source
from projects
order by last_activity_at desc, id

-- name: same_projects
-- Projects of one directory
-- Several agents or homes may know the directory of the project :id: theirs, and its own. The one
-- that stands for all comes first.
select o.id, coalesce(r.label, r.kind) as agent
from projects p
join projects o on coalesce(o.same_as, o.id) = coalesce(p.same_as, p.id)
join sources r on r.id = o.source_id
where p.id = :id
order by o.same_as is not null, agent, o.id

-- name: project_sessions
-- Sessions of one project
-- The newest first, :limit of them after the first :offset. Those are left out that only a list
-- named, and no longer names.
select
    s.title,
    s.ended_at,
    s.prompt_count,
    s.message_count,
    s.tool_call_count,
    s.output_tokens,
    s.kind,
    s.git_branch,
    coalesce(r.label, r.kind) as agent,
    s.session_key,
    s.id
from sessions s
join sources r on r.id = s.source_id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and s.gone_at is null
order by s.ended_at desc, s.id desc
limit cast(coalesce(nullif(:limit, ''), 50) as integer)
offset cast(coalesce(nullif(:offset, ''), 0) as integer)

-- name: project_usage
-- Usage of one project and its worktrees
-- Sessions and cost of the project, and of each worktree of it; each response counts once.
select
    p.session_count,
    sum(c.cost_microusd) / 1000000.0 as cost_usd,
    count(c.session_id) as responses,
    count(c.session_id) - count(c.cost_microusd) as unpriced,
    coalesce(sum(c.partial), 0) as partial,
    p.id
from projects p
left join sessions s on s.project_id = p.id
left join response_costs c on c.session_id = s.id
where p.id in (select value from json_each(nullif(:project, '')))
   or p.parent_id in (select value from json_each(nullif(:project, '')))
group by p.id, p.session_count
order by p.id

-- name: project_related
-- Worktrees and teams of one project
-- Projects that are worktrees of it, and teams that one of its sessions leads.
select 'worktree' as kind, p.name, p.path, p.key, p.on_disk, p.id
from projects p
where p.parent_id in (select value from json_each(nullif(:project, '')))
  and p.gone_at is null
union all
select 'team', t.name, t.description, t.key, null, t.id
from sessions s
join teams t on t.lead_session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
order by 1, 2

-- name: project_links
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

-- name: project_texts
-- Plans and documents of one project
-- Plans of its sessions, and notes, memories, summaries and tickets, newest first. Tickets that are
-- gone are left out.
select coalesce(i.status || ' ', '') || 'plan' as kind, i.title, i.modified_at, i.text, s.title as session, s.session_key, i.id
from sessions s
join plans i on i.session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
union all
select i.kind, i.title, i.modified_at, i.text, s.title, s.session_key, i.id
from documents i
left join sessions s on s.id = i.session_id
where i.project_id in (select value from json_each(nullif(:project, '')))
  and i.gone_at is null
order by 3 desc, 1, 7
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

-- name: project_tasks
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

-- name: project_gone
-- What is gone of one project
-- How many sessions, worktrees, tasks, tickets and links its lists no longer name.
select 'session' as what, count(*) as gone
from sessions s
where s.project_id in (select value from json_each(nullif(:project, '')))
  and s.gone_at is not null
union all
select 'worktree', count(*)
from projects p
where p.parent_id in (select value from json_each(nullif(:project, '')))
  and p.gone_at is not null
union all
select 'task', count(distinct i.id)
from sessions s
left join teams c on c.lead_session_id = s.id
join tasks i on i.session_id = s.id or i.team_id = c.id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and i.gone_at is not null
union all
select 'ticket', count(*)
from documents d
where d.project_id in (select value from json_each(nullif(:project, '')))
  and d.gone_at is not null
union all
select 'link', count(*)
from sessions s
join links l on l.session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and l.kind <> 'plan'
  and l.gone_at is not null

-- What an agent is told at its hooks

-- name: recall_projects
-- The projects of a directory
-- Those at the longest path that is :directory or above it, as agents and homes know it, and all
-- clones and worktrees of their repository.
with above as (
    select p.id, p.repository_key
    from projects p
    where :directory = p.path
       or (p.path <> '' and substr(:directory, 1, length(p.path) + 1) = p.path || '/')
    order by length(p.path) desc
    limit 1
)
select p.id, p.path
from above a
join projects p on p.id = a.id or p.repository_key = a.repository_key
order by length(p.path) desc, p.id

-- name: recall_calls
-- What a conversation changed and ran
-- Each file that calls of the session :session edited, subagents included, and each command that its
-- main agent ran: how often, and where last; the newest first, at most :limit of each.
with calls as (
    select
        t.action,
        coalesce(e.value, t.target) as target,
        t.status,
        t.exit_code,
        t.file_id,
        t.byte_offset,
        t.started_at,
        t.id
    from tool_calls t
    cross join messages m on m.id = t.call_id
    left join json_each(case when t.action = 'edit' then t.paths end) e on true
    where t.session_id = :session
      and (t.action = 'edit' and t.status not in ('declined', 'error')
        or t.action = 'run' and t.subagent_id is null and t.status <> 'declined')
      and m.copy_of is null
),
last as (
    select
        c.*,
        count(*) over (partition by c.action, c.target) as times,
        row_number() over (partition by c.action, c.target order by c.started_at desc, c.id desc) as place
    from calls c
    where c.target is not null
),
numbered as (
    select l.*, row_number() over (partition by l.action order by l.started_at desc, l.id desc) as number
    from last l
    where l.place = 1
)
select n.action, n.target, n.times, n.status, n.exit_code, n.file_id, n.byte_offset
from numbered n
where n.number <= cast(coalesce(nullif(:limit, ''), 20) as integer)
order by n.action, n.number

-- name: recall_edits
-- Who edited a file
-- In the last conversations of the projects :in_projects, a JSON array, the last edit of the file that has
-- one of the paths :paths, and what the agent had said before it; at most :limit, the newest first,
-- without the conversation with the key :session.
with found as (
    select
        t.file_id,
        t.byte_offset,
        t.subagent_id,
        t.session_id,
        t.started_at,
        count(*) over (partition by t.session_id) as times,
        row_number() over (partition by t.session_id order by t.started_at desc, t.id desc) as place
    from (
        select s.id
        from sessions s
        where s.project_id in (select value from json_each(nullif(:in_projects, '')))
          and s.session_key <> coalesce(:session, '')
          and not exists (select 1 from sessions l where l.id = s.linked_session_id and l.message_count > 0)
        order by s.ended_at desc
        limit 100
    ) s
    cross join tool_calls t on t.session_id = s.id
    cross join messages m on m.id = t.call_id
    where t.action = 'edit'
      and m.copy_of is null
      and t.status not in ('declined', 'error')
      and exists (
        select 1
        from json_each(coalesce(t.paths, json_array(t.target))) p
        where replace(p.value, '\', '/') in (select value from json_each(nullif(:paths, '')))
      )
)
select
    f.file_id,
    f.byte_offset,
    f.started_at,
    f.times,
    s.title,
    (
        select substr(m.text, 1, 4000)
        from messages m
        where m.file_id = f.file_id
          and m.byte_offset <= f.byte_offset
          and m.kind in ('text', 'prompt')
          and m.subagent_id is f.subagent_id
        order by m.byte_offset desc, m.block desc
        limit 1
    ) as said
from found f
join sessions s on s.id = f.session_id
where f.place = 1
order by f.started_at desc
limit cast(coalesce(nullif(:limit, ''), 3) as integer)

-- name: recall_failures
-- Commands that failed
-- In the last conversations of the projects :in_projects, a JSON array, the commands that failed and hold
-- the text :words, at most :limit, the newest first, without the conversation with the key :session.
select
    t.id,
    t.name as tool,
    t.action,
    t.target,
    t.status,
    t.exit_code,
    t.started_at as timestamp,
    t.call_id,
    t.result_id,
    t.file_id,
    t.byte_offset,
    t.session_id,
    t.subagent_id,
    r.byte_offset as result_offset
from (
    select s.id
    from sessions s
    where s.project_id in (select value from json_each(nullif(:in_projects, '')))
      and s.session_key <> coalesce(:session, '')
      and not exists (select 1 from sessions l where l.id = s.linked_session_id and l.message_count > 0)
    order by s.ended_at desc
    limit 100
) s
cross join tool_calls t on t.session_id = s.id
cross join messages r on r.id = t.result_id
where t.action = 'run'
  and t.status = 'error'
  and instr(t.target, :words) > 0
  and r.copy_of is null
order by t.started_at desc, t.id desc
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- name: recall_runs
-- Commands that worked
-- In the last conversations of the projects :in_projects, a JSON array, the commands that worked and hold
-- the text :words, at most :limit, the newest first.
select
    t.target,
    t.file_id,
    t.byte_offset
from (
    select s.id
    from sessions s
    where s.project_id in (select value from json_each(nullif(:in_projects, '')))
      and not exists (select 1 from sessions l where l.id = s.linked_session_id and l.message_count > 0)
    order by s.ended_at desc
    limit 100
) s
cross join tool_calls t on t.session_id = s.id
cross join messages m on m.id = t.call_id
where t.action = 'run'
  and t.status = 'ok'
  and instr(t.target, :words) > 0
  and m.copy_of is null
order by t.started_at desc, t.id desc
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- name: recall_decisions
-- What a person decided
-- In the conversations of the projects :in_projects, a JSON array, the calls after :since that a person
-- answered: questions, and plans that were approved; at most :limit, the newest first, without the
-- conversation with the key :session.
select
    t.name as tool,
    t.file_id,
    r.byte_offset,
    substr(c.tool_text, 1, 20000) as asked,
    substr(r.tool_text, 1, 20000) as answered
from sessions s
cross join tool_calls t on t.session_id = s.id
cross join messages c on c.id = t.call_id
cross join messages r on r.id = t.result_id
where s.project_id in (select value from json_each(nullif(:in_projects, '')))
  and s.ended_at >= :since
  and s.session_key <> coalesce(:session, '')
  and not exists (select 1 from sessions l where l.id = s.linked_session_id and l.message_count > 0)
  and t.action = 'ask'
  and t.status = 'ok'
  and r.timestamp >= :since
  and r.copy_of is null
order by r.timestamp desc, r.id desc
limit cast(coalesce(nullif(:limit, ''), 3) as integer)

-- name: recall_linked
-- Conversations that another program recorded, too
-- Of the sessions with the keys :keys, a JSON array, those that stand for the conversation of another.
select s.session_key
from sessions s
join sessions l on l.id = s.linked_session_id
where s.session_key in (select value from json_each(nullif(:keys, '')))
  and l.message_count > 0

-- What an agent is told at its hooks

-- name: recall_projects
-- The projects of a directory
-- Those at the longest path that is :directory or above it, as agents and homes know it, and the
-- repository and the worktrees that belong to them.
with above as (
    select p.id, coalesce(p.parent_id, p.id) as repository
    from projects p
    where :directory = p.path
       or (p.path <> '' and substr(:directory, 1, length(p.path) + 1) = p.path || '/')
    order by length(p.path) desc
    limit 1
)
select distinct p.id, p.name
from above a
join projects o on o.id = a.id or o.id = a.repository or o.parent_id = a.repository
join projects p on coalesce(p.same_as, p.id) = coalesce(o.same_as, o.id)
order by p.id

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

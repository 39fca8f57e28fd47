-- Most edited files
-- The :limit files (default 30) that agents changed most often, in :project or anywhere; errors are
-- the attempts that failed. A path is relative to its repository, and a file in several clones or
-- worktrees is one. session_key is the conversation that changed it last.
-- Group: activity
with edits as materialized (
    select
        iif(coalesce(e.value, t.target) like '/%', coalesce(e.value, t.target),
            replace(coalesce(e.value, t.target), '\', '/')) as path,
        s.project_id,
        s.session_key,
        t.session_id,
        sum(t.status <> 'error') as edits,
        sum(t.status = 'error') as errors,
        max(t.started_at) as last_edited
    from tool_calls t
    cross join messages m on m.id = t.call_id
    left join json_each(t.paths) e on true
    left join sessions s on s.id = t.session_id
    where t.action = 'edit'
      and coalesce(e.value, t.target) is not null
      and m.copy_of is null
      and t.status <> 'declined'
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
    group by coalesce(e.value, t.target), s.project_id, s.session_key, t.session_id
),
inside as materialized (
    select
        x.path,
        x.project_id,
        coalesce(p.repository_key, p.path, p.key) as repository_key,
        coalesce(p.repository_name, p.name) as repository,
        (
            -- in the innermost worktree that has it, else in the outermost directory
            select substr(x.path, length(q.path) + 2)
            from projects q
            where q.repository_key = p.repository_key
              and lower(substr(x.path, 1, length(q.path) + 1)) = lower(q.path || '/')
            order by
                q.repository is null and q.parent_id is null,
                iif(q.repository is null and q.parent_id is null, length(q.path), -length(q.path))
            limit 1
        ) as inner_path
    from (select distinct path, project_id from edits) x
    left join projects p on p.id = x.project_id
),
located as materialized (
    select
        path,
        project_id,
        repository_key,
        repository,
        case -- a worktree in which no conversation began
            when inner_path like '.worktrees/%/%'
            then substr(inner_path, 12 + instr(substr(inner_path, 12), '/'))
            when inner_path like '.claude/worktrees/%/%'
            then substr(inner_path, 19 + instr(substr(inner_path, 19), '/'))
            else coalesce(inner_path, path)
        end as file
    from inside
)
select
    f.file,
    max(f.repository) as repository,
    sum(e.edits) as edits,
    count(distinct e.session_id) as sessions,
    sum(e.errors) as errors,
    max(e.last_edited) as last_edited,
    substr(max(e.last_edited || ' ' || e.session_key), 26) as session_key
from edits e
join located f on f.path = e.path and coalesce(f.project_id, 0) = coalesce(e.project_id, 0)
group by f.file, f.repository_key
order by edits desc, last_edited desc, f.file
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

-- Search todo lists
-- Items of todo lists that match an FTS5 expression, best first.
select
    'todo' as what,
    i.status as kind,
    i.content as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    f.mtime as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    0 as byte_offset,
    i.id,
    todos_fts.rank
from todos_fts
cross join todos i on i.id = todos_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where todos_fts match coalesce(nullif(:match, ''), '""')
  and coalesce(:kind, '') in ('', 'todo')
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or f.mtime >= :since)
  and (coalesce(:until, '') = '' or f.mtime < :until)
  and (
    coalesce(:project, '') = ''
    or p.key = lower(:project)
    or lower(p.name) = lower(:project)
    or instr(lower(p.path), lower(:project))
  )
order by todos_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

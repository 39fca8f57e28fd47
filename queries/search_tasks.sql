-- Search tasks
-- Tasks, deleted ones too, that match an FTS5 expression, best first.
select
    'task' as what,
    i.status as kind,
    trim(coalesce(i.subject, '') || char(10) || coalesce(i.description, ''), char(10)) as text,
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
    tasks_fts.rank
from tasks_fts
cross join tasks i on i.id = tasks_fts.rowid
left join files f on f.id = i.file_id
left join sources r on r.id = i.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where tasks_fts match coalesce(nullif(:match, ''), '""')
  and coalesce(:kind, '') in ('', 'task')
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
order by tasks_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- Search tasks
-- Tasks, deleted ones too, that match an FTS5 expression, best first. One whose file is gone is
-- left out where a transcript tells of it.
select
    'task' as what,
    i.status as kind,
    substr(trim(coalesce(i.subject, '') || char(10) || coalesce(i.description, ''), char(10)), 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    coalesce(i.stated_at, f.mtime) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(trim(coalesce(i.subject, '') || char(10) || coalesce(i.description, ''), char(10))), :literal) > 0) as verbatim,
    i.id,
    tasks_fts.rank
from tasks_fts
cross join tasks i on i.id = tasks_fts.rowid
left join files f on f.id = i.file_id
left join sources r on r.id = i.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where tasks_fts match coalesce(nullif(:match, ''), '""')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('task'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and not (
    i.gone_at is not null
    and exists (
        select 1
        from tasks o
        where o.source_id = i.source_id
          and o.list_key = i.list_key
          and o.task_key = i.task_key
          and o.channel = 'transcript'
    )
  )
  and (coalesce(:since, '') = '' or coalesce(i.stated_at, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(i.stated_at, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by tasks_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

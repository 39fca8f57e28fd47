-- Search plans
-- Plans that match an FTS5 expression, best first.
select
    'plan' as what,
    i.status as kind,
    substr(i.text, 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    coalesce(i.modified_at, f.mtime) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(i.text), :literal) > 0) as verbatim,
    i.id,
    plans_fts.rank
from plans_fts
cross join plans i on i.id = plans_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where plans_fts match coalesce(nullif(:match, ''), '""')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('plan'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or coalesce(i.modified_at, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(i.modified_at, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by plans_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- Search todo lists
-- Items of todo lists that match an FTS5 expression, best first. One that its list no longer has
-- is left out where a transcript tells of it.
select
    'todo' as what,
    i.status as kind,
    substr(i.content, 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    coalesce(i.stated_at, f.mtime) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(i.content), :literal) > 0) as verbatim,
    i.id,
    todos_fts.rank
from todos_fts
cross join todos i on i.id = todos_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where todos_fts match coalesce(nullif(:match, ''), '""')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('todo'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and not (
    i.gone_at is not null
    and exists (
        select 1
        from todos o
        where o.session_key = i.session_key
          and o.agent_key is i.agent_key
          and o.content is i.content
          and o.channel = 'transcript'
    )
  )
  and (coalesce(:since, '') = '' or coalesce(i.stated_at, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(i.stated_at, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by todos_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

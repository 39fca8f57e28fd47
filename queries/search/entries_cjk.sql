-- Search what is no message for Chinese, Japanese or Korean letters
-- Entries of all stores that match all LIKE patterns of the JSON array :patterns, newest first; :scope
-- is said, or tools for large tool outputs alone. What is found elsewhere is left out.
select
    e.what,
    e.kind,
    substr(e.words, 1, 4000) as text,
    e.session,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    null as subagent,
    null as tool,
    coalesce(e.timestamp, s.started_at, f.mtime) as timestamp,
    e.source,
    e.session_key,
    iif(e.what = 'note', e.facts, r.root || '/' || f.path) as file,
    e.byte_offset,
    iif(:literal is null, 0, instr(lower(e.words), :literal) > 0) as verbatim,
    e.id,
    null as rank
from searchable e
left join files f on f.id = e.file_id
left join sources r on r.id = e.source_id
left join sessions s on s.id = e.session_id
left join projects p on p.id = e.project_id
where (e.what = 'tool_result_file') = (coalesce(:scope, 'said') = 'tools')
  and e.is_repeated = 0
  and (
    coalesce(:kind, '') = ''
    or exists (
        select 1
        from json_each(:kind) k
        where k.value = e.what
           or (e.what in ('inbox', 'document') and k.value = e.kind)
    )
  )
  and coalesce(:session, '') in ('', e.session_key)
  and coalesce(:source, '') in ('', e.source)
  and (coalesce(:since, '') = '' or coalesce(e.timestamp, s.started_at, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(e.timestamp, s.started_at, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:without, ''), '[]')) l
    where e.words like l.value escape '~'
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:patterns, ''), '[]')) l
    where coalesce(e.words, '') not like l.value escape '~'
  )
order by timestamp desc, e.what, e.id
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

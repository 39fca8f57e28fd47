-- Search large tool outputs
-- Outputs that were too large for their transcript and match an FTS5 expression, best first.
select
    'tool_result_file' as what,
    i.media_type as kind,
    null as text, -- it may be long: only what is shown is read
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    f.mtime as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    0 as byte_offset,
    iif(:literal is null, 0, instr(lower(i.text), :literal) > 0) as verbatim,
    i.id,
    tool_result_files_fts.rank
from tool_result_files_fts
cross join tool_result_files i on i.id = tool_result_files_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where tool_result_files_fts match coalesce(nullif(:match, ''), '""')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('tool_result_file'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or f.mtime >= :since)
  and (coalesce(:until, '') = '' or f.mtime < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:tool, '') = ''
    or exists (
        select 1
        from tool_calls t
        where t.tool_use_id = i.tool_use_id and lower(t.name) = lower(:tool)
    )
  )
order by tool_result_files_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

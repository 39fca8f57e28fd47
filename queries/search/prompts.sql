-- Search the prompt history
-- Prompts of the global history that match an FTS5 expression, best first; without those whose
-- conversation is indexed, where they are found.
select
    'prompt' as what,
    null as kind,
    substr(trim(i.text || char(10) || coalesce(i.pasted, ''), char(10)), 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    i.timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(trim(i.text || char(10) || coalesce(i.pasted, ''), char(10))), :literal) > 0) as verbatim,
    i.id,
    prompts_fts.rank
from prompts_fts
cross join prompts i on i.id = prompts_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = coalesce(i.project_id, s.project_id)
where prompts_fts match coalesce(nullif(:match, ''), '""')
  and coalesce(s.message_count, 0) = 0
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('prompt'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or i.timestamp >= :since)
  and (coalesce(:until, '') = '' or i.timestamp < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by prompts_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

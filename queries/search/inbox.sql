-- Search messages between agents
-- Items of agents' inboxes that match an FTS5 expression, best first. Those that stand in a
-- transcript are found there.
select
    'inbox' as what,
    i.kind,
    substr(trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10)), 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    i.timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10))), :literal) > 0) as verbatim,
    i.id,
    inbox_items_fts.rank
from inbox_items_fts
cross join inbox_items i on i.id = inbox_items_fts.rowid
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join teams t on t.id = i.team_id
left join sessions s on s.id = coalesce(i.session_id, t.lead_session_id)
left join projects p on p.id = s.project_id
where inbox_items_fts match coalesce(nullif(:match, ''), '""')
  and i.channel = 'inbox'
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('inbox', i.kind))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or i.timestamp >= :since)
  and (coalesce(:until, '') = '' or i.timestamp < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by inbox_items_fts.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

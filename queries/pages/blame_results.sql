-- Calls by what they gave
-- Calls whose result an FTS5 expression finds, the first read first, at most :limit. Begin the
-- expression with {tool_text joined_tool_text} :.
select
    t.name as tool,
    t.action,
    t.target,
    m.timestamp,
    t.started_at,
    t.call_id,
    t.result_id,
    m.file_id,
    m.byte_offset,
    t.session_id,
    t.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.result_id = messages_fts.rowid
cross join messages m on m.id = t.result_id
cross join sessions s on s.id = t.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and m.copy_of is null
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid
limit cast(coalesce(nullif(:limit, ''), 1000) as integer)

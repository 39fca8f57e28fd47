-- Calls by what they were given
-- Calls whose input an FTS5 expression finds, of the JSON array :actions, the last read first, at most
-- :limit. Begin the expression with {tool_text joined_tool_text} : for what tools were given.
select
    t.name as tool,
    t.action,
    t.target,
    t.paths,
    t.started_at as timestamp,
    t.ended_at,
    t.call_id,
    t.result_id,
    s.cwd,
    t.file_id,
    t.byte_offset,
    t.session_id,
    t.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.call_id = messages_fts.rowid
cross join messages m on m.id = t.call_id
cross join sessions s on s.id = t.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and t.action in (select value from json_each(coalesce(nullif(:actions, ''), '[]')))
  and t.status not in ('declined', 'error')
  and m.copy_of is null
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 1000) as integer)

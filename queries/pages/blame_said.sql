-- What was said with these words
-- Messages of people and agents that an FTS5 expression finds, the last read first, at most :limit.
-- Begin the expression with {text joined_text} :.
select
    m.id,
    m.kind,
    m.timestamp,
    m.file_id,
    m.byte_offset,
    m.session_id,
    m.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, else every message would be visited.
cross join messages m on m.id = messages_fts.rowid
cross join sessions s on s.id = m.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and m.copy_of is null
  and m.kind in (
      'prompt', 'queued_prompt', 'text', 'thinking', 'command', 'agent_prompt', 'agent_message',
      'compact_summary'
  )
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

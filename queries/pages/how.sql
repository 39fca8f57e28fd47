-- How a command is run here

-- name: how_calls
-- Calls that ran a command with these words
-- Calls whose input an FTS5 expression finds, if they ran a command that ended, the last read first,
-- at most :limit.
select
    t.target,
    t.status,
    coalesce(t.started_at, t.ended_at) as timestamp,
    t.call_id,
    t.result_id,
    t.file_id,
    t.byte_offset,
    t.session_id,
    t.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.call_id = messages_fts.rowid
cross join messages m on m.id = t.call_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and m.copy_of is null
  and t.action = 'run'
  and t.status in ('ok', 'error')
  and (
    coalesce(:project, '') = ''
    or t.session_id in (
        select id
        from sessions
        where project_id in (select value from json_each(:project))
    )
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 2000) as integer)

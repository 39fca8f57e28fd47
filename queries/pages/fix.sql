-- How an error was fixed before

-- name: fix_count
-- How many outputs have these words
-- Results of calls that an FTS5 expression finds, counted up to :limit.
select count(*)
from (
    select 1
    from messages_fts
    -- A cross join is never reordered: the index comes first.
    cross join tool_calls t on t.result_id = messages_fts.rowid
    cross join messages r on r.id = t.result_id
    where messages_fts match coalesce(nullif(:match, ''), '""')
      and r.copy_of is null
      and (
        coalesce(:project, '') = ''
        or t.session_id in (
            select id
            from sessions
            where project_id in (select value from json_each(:project))
        )
      )
    limit cast(coalesce(nullif(:limit, ''), 50) as integer)
)

-- name: fix_errors
-- Calls that gave an error with these words
-- Calls whose result an FTS5 expression finds, the last read first, at most :limit: those that failed,
-- and those of the JSON array :actions, whose output may tell of an error nevertheless.
select
    t.id,
    t.name as tool,
    t.action,
    t.target,
    t.status,
    t.started_at as timestamp,
    t.call_id,
    t.result_id,
    t.file_id,
    t.byte_offset,
    t.session_id,
    t.subagent_id,
    r.byte_offset as result_offset
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.result_id = messages_fts.rowid
cross join messages r on r.id = t.result_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and r.copy_of is null
  and (
    t.status = 'error'
    or (
        t.status = 'ok'
        and t.action in (select value from json_each(coalesce(nullif(:actions, ''), '[]')))
    )
  )
  and (
    coalesce(:project, '') = ''
    or t.session_id in (
        select id
        from sessions
        where project_id in (select value from json_each(:project))
    )
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 300) as integer)

-- name: fix_calls
-- The calls that came after one
-- Calls in the file :file behind the byte :byte_offset, of the same subagent or of none, at most :limit.
select
    t.id,
    t.name as tool,
    t.action,
    t.target,
    t.paths,
    t.status,
    t.started_at as timestamp,
    t.call_id,
    t.result_id,
    t.file_id,
    t.byte_offset
from tool_calls t
where t.file_id = :file
  and t.byte_offset > :byte_offset
  and t.subagent_id is :subagent
  and t.name is not null
order by t.byte_offset, t.block
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

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

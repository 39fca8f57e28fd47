-- Failed tool calls and the call that then succeeded
-- Failed tool calls, newest first, each with the next successful call of the same tool in the same
-- conversation, which shows what was done differently. :tool limits the list to one tool.
-- Group: activity
with failed as ( -- the calls of the answer first: only after these the next one is looked for
    select e.*
    from tool_calls e
    join messages c on c.id = e.call_id and c.copy_of is null
    where e.status = 'error'
      and (coalesce(:tool, '') = '' or e.name = :tool)
    order by e.started_at desc, e.id desc
    limit cast(coalesce(nullif(:limit, ''), '50') as integer)
),
later as (
    select
        e.id as failed_id,
        o.target,
        row_number() over (partition by e.id order by o.byte_offset, o.block) as place
    from failed e
    join tool_calls o on o.file_id = e.file_id
      and o.name = e.name
      and o.status = 'ok'
      and o.byte_offset > e.byte_offset
)
select
    e.name as tool,
    e.target as failed,
    n.target as then_worked,
    (
        select substr(m.tool_text, 1, 200)
        from messages m
        where m.id = e.result_id
    ) as error,
    e.started_at,
    s.title as session,
    s.session_key
from failed e
left join sessions s on s.id = e.session_id
left join later n on n.failed_id = e.id and n.place = 1
order by e.started_at desc, e.id desc

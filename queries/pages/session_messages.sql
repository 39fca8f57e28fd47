-- Messages of the main conversation in one file
-- In the order of the file; a call with what is known of it, a result with the call it answers; or
-- those of one :subagent in the file. What another file of the session shows is left out; is_repeat
-- marks a line that the same file repeats. :after_offset and :after_block begin behind a
-- block, :limit ends after so many. :kinds, a JSON array, :tool and :errors leave out others.
select
    m.kind,
    m.text,
    m.tool_text,
    m.role,
    m.timestamp,
    m.model,
    m.uuid,
    m.parent_uuid,
    m.is_meta,
    m.is_error,
    m.is_cut,
    m.is_superseded,
    m.copy_of,
    c.file_id is not null and (
        c.file_id = m.file_id
        -- A text of the queue in a fork: its delivery is in this file, the original in another.
        or m.uuid is null and exists (
            select 1
            from messages o
            where o.copy_of = m.copy_of and o.file_id = m.file_id and o.uuid is not null
        )
    ) as is_repeat,
    t.id as tool_call_id,
    t.name as tool,
    t.target,
    t.action,
    t.status,
    t.duration_ms,
    t.exit_code,
    t.output_file,
    t.result_id,
    a.call_id as answers,
    f.path as file,
    m.file_id,
    m.byte_offset,
    m.byte_length,
    m.block,
    m.id
from messages m
join files f on f.id = m.file_id
left join messages c on c.id = m.copy_of
left join tool_calls t on t.call_id = m.id
left join tool_calls a on a.result_id = m.id
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  -- A session may have several transcripts that repeat each other: each line is shown once.
  and not (
    m.subagent_id is null
    and c.file_id is not null
    and c.file_id <> m.file_id
    and c.session_id = m.session_id
    and c.subagent_id is null
  )
  and (m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
  and (
    coalesce(:kinds, '') = ''
    or m.kind in (select value from json_each(:kinds))
    or t.name = :tool
    or (coalesce(:errors, '') <> '' and (m.kind = 'error' or t.status = 'error'))
  )
order by m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

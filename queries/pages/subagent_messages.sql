-- Messages of one subagent
-- In the order of its file; a call with what is known of it, a result with the call it answers.
-- :after_file, :after_offset and :after_block begin behind a block, :limit ends after so many.
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
    c.file_id is not null and c.file_id = m.file_id as is_repeat,
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
where m.subagent_id = :subagent
  and (m.file_id, m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_file, ''), -1) as integer),
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
order by m.file_id, m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

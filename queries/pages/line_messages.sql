-- The messages of a line
-- All blocks from the place of a line in a file up to that of the next, :end_offset: a broken file
-- may have several records in a line. Of a result also the call that it answers, of a copy also
-- where the original is.
select
    m.kind,
    m.timestamp,
    m.byte_offset,
    m.block,
    t.name as tool,
    a.call_id as answers,
    c.byte_offset as call_offset,
    c.block as call_block,
    c.file_id as call_file_id,
    o.byte_offset as original_offset,
    o.file_id as original_file_id,
    o.session_id is m.session_id and o.subagent_id is null and m.subagent_id is null
        and o.file_id <> m.file_id as is_elsewhere,
    m.session_id,
    m.subagent_id,
    m.id
from messages m
left join tool_calls a on a.result_id = m.id
left join tool_calls t on t.call_id = m.id or t.id = a.id
left join messages c on c.id = a.call_id
left join messages o on o.id = m.copy_of
where m.file_id = :file
  and m.byte_offset >= :byte_offset
  and m.byte_offset < coalesce(nullif(:end_offset, ''), 9223372036854775807)
order by m.byte_offset, m.block

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

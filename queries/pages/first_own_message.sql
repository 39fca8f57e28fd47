-- Where a fork becomes new
-- The first message of the main conversation in a file that was said, typed or called and is no
-- copy.
select
    m.kind,
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is null
  and m.copy_of is null
  and m.kind in ('prompt', 'command', 'bash_input', 'memory_input', 'text', 'thinking', 'tool_use')
order by m.byte_offset, m.block
limit 1

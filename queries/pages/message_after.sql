-- Places in a file after a message
-- The :limit messages of the main conversation, or of one :subagent, behind a place, nearest first.
select
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  and (m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
order by m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- Places in a file before a message
-- The :limit messages of the main conversation, or of one :subagent, before a place, nearest first;
-- those of :kinds, a JSON array, where not all are wanted.
select
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  and (m.byte_offset, m.block) < (
    cast(coalesce(nullif(:before_offset, ''), 9223372036854775807) as integer),
    cast(coalesce(nullif(:before_block, ''), 0) as integer)
  )
  and (
    coalesce(:kinds, '') = ''
    or m.kind in (select value from json_each(:kinds))
  )
order by m.byte_offset desc, m.block desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

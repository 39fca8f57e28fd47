-- The message at a place
-- The block of a line, by where it stands in its file.
select m.kind, m.timestamp, m.id
from messages m
where m.file_id = :file
  and m.byte_offset = :byte_offset
  and m.block = :block

-- A prompt of the history by its place
-- The id of the prompt that begins at :byte_offset in the history :file, or of the first one behind it.
select id
from prompts
where file_id = :file
  and byte_offset >= :byte_offset
order by byte_offset
limit 1

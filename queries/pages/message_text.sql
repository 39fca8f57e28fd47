-- The text of one message
-- Whole, whichever of the two columns holds it, and the line that it comes from.
select
    coalesce(m.text, m.tool_text) as text,
    f.path,
    m.is_cut,
    m.byte_offset,
    m.byte_length,
    m.block,
    m.file_id
from messages m
join files f on f.id = m.file_id
where m.id = :id

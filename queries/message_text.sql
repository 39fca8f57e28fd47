-- The text of one message
-- Whole, whichever of the two columns holds it.
select coalesce(text, tool_text) as text
from messages
where id = :id

-- Texts of a few messages
-- The messages :ids, a JSON array.
select
    m.id,
    coalesce(m.text, m.tool_text) as text
from messages m
where m.id in (select value from json_each(coalesce(nullif(:ids, ''), '[]')))

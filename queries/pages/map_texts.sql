-- How messages begin
-- The beginnings of the texts of the messages :ids, a JSON array.
select
    m.kind,
    substr(coalesce(m.text, m.tool_text), 1, 500) as text,
    m.timestamp,
    m.id
from messages m
where m.id in (select value from json_each(nullif(:ids, '')))

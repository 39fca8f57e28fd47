-- Where messages stand
-- The places of the messages :ids, a JSON array, and of a copy the place of the original.
select
    m.id,
    m.file_id,
    m.byte_offset,
    m.block,
    m.role in ('user', 'assistant') and m.kind <> 'queued_prompt' as is_message,
    o.file_id as original_file_id,
    o.byte_offset as original_offset,
    o.block as original_block,
    s.session_key as original_session,
    s.title as original_title
from messages m
left join messages o on o.id = m.copy_of
left join sessions s on s.id = o.session_id
where m.id in (select value from json_each(nullif(:ids, '')))

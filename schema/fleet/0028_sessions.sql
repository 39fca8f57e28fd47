-- What a conversation used and did, by the id that the views give to a session: assoc_read.id,
-- written out, because its function is made anew with each version.
create index responses_session on assoc.responses (
    hashtextextended(source_no::text || '/' || session_key, origin_id)
);
create index tool_calls_session_id on assoc.tool_calls (
    hashtextextended(source_no::text || '/' || session_key, origin_id)
);

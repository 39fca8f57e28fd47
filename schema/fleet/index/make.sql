-- The text index costs more than all others, so it is created after the first push. Outside of a
-- transaction, so that pushes can go on meanwhile.
create index concurrently messages_words on assoc.messages
    using gin (assoc.words(coalesce(text, tool_text)))
    with (gin_pending_list_limit = 4096)
    where is_copy = 0;

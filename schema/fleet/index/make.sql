-- The text index: by far the most expensive of all, so it is made last after a first push. No
-- transaction, so that pushes go on meanwhile.
create index concurrently messages_words on assoc.messages
    using gin (assoc.words(coalesce(text, tool_text)))
    with (gin_pending_list_limit = 4096)
    where is_copy = 0;

-- Indexes for the views, which are in code.sql now.
create index sessions_key on assoc.sessions (session_key);
create index tool_calls_searches on assoc.tool_calls (response_key) where search_count is not null;
create index files_session on assoc.files (origin_id, session_key);

-- What Datasette counts beside a table is read from an index, else from every row. None of these
-- begins with status or event: SQLite would take it for narrower than it is, and go through all
-- calls that are ok where it now goes through those of one file.
drop index tool_calls_session;
create index tool_calls_session on tool_calls (session_id, name, status);
drop index hook_events_session_key;
create index hook_events_session_key on hook_events (session_key, event);
create index inbox_items_kind on inbox_items (kind);

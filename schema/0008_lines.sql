-- Where each line was said, and what a search of the web cost.

create table contexts ( -- Branch, version and permission mode of the lines of a file, where they change
    id integer primary key,
    name text not null,                 -- git_branch, agent_version or permission_mode
    value text not null,                -- its value from here on; '': none, as outside of a repository
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the first line that states it
    unique (file_id, name, byte_offset)
) strict;

alter table tool_calls add column search_count integer /* web searches that the call made as its result states them */;
alter table tool_calls add column response_key text /* response that called, where the call's searches are charged: see responses */;
create index tool_calls_searches on tool_calls (response_key, tool_use_id, search_count) where search_count is not null;

-- Sums over sessions count what stands in several of them once.
alter table transcripts add column repeated_count integer not null default 0 /* user and assistant lines that repeat others in this file or another */;
alter table transcripts add column copied_count integer not null default 0 /* those of them that repeat lines of another session */;
alter table transcripts add column repeated_call_count integer not null default 0 /* tool calls that repeat others */;
alter table sessions add column copied_message_count integer not null default 0 /* user and assistant lines that repeat those of another session and are not in message_count */;

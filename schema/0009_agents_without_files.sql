-- Subagents that left no file of their own: what the transcript that called them says of them.

create table agent_lines ( -- A line that repeats a message of a subagent which has no file of its own
    id integer primary key,
    agent_key text not null,            -- the subagent whose message it is
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line; its messages have the same
    unique (file_id, byte_offset)
) strict;
create index agent_lines_agent on agent_lines (agent_key);

create table agent_totals ( -- What the result of a call states about the run of the subagent that it spawned
    id integer primary key,
    agent_key text not null,            -- the subagent
    agent_type text,                    -- Explore, general-purpose, ...
    tokens integer,                     -- tokens of the run
    duration_ms integer,                -- how long it took
    tool_call_count integer,            -- calls that it made
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line
    unique (file_id, agent_key, byte_offset)
) strict;
create index agent_totals_agent on agent_totals (agent_key);

alter table subagents add column tool_call_count integer /* calls as the result of its call states them; null where it has a file of its own */;

create index files_agent on files (source_id, agent_key) where agent_key is not null;

-- What the applications beside Claude Code keep: their agents, and all that they state which has no
-- column of its own; and two facts of Claude Code's transcripts.

create table agents ( -- A named agent of an application: conversations are held with it
    id integer primary key,
    name text not null,                 -- name; its key where no configuration names it
    type text,                          -- type, where one is stated
    description text,                   -- what it is for, where that is stated
    path text,                          -- file that describes it; null for a general one
    is_general integer,                 -- 1: the application's own agent, which no file describes
    extra text,                         -- JSON object: what else the configuration states of it
    agent_key text not null,            -- id that the application gives it
    project_key text not null,          -- workspace that it belongs to, case-folded
    gone_at text,                       -- when a sync found it missing from the configuration
    project_id integer references projects (id) on delete set null, -- the workspace that it belongs to
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null, -- configuration that names it; null: only paths of conversations do
    unique (source_id, project_key, agent_key)
) strict;
create index agents_project on agents (project_id) where project_id is not null;
create index agents_file on agents (file_id) where file_id is not null;

alter table sessions add column agent_id integer references agents (id) on delete set null /* the application's agent with whom the conversation is held */;
create index sessions_agent on sessions (agent_id) where agent_id is not null;

alter table session_entries add column agent_key text /* the application's agent with whom the conversation is held */;
alter table session_entries add column extra text /* JSON object: what else the list, registry or sidecar states of it */;
create index session_entries_agent on session_entries (agent_key) where agent_key is not null;
alter table project_entries add column extra text /* JSON object: what else the list states of it */;
alter table team_members add column extra text /* JSON object: what else the configuration states of it */;
alter table documents add column extra text /* JSON object: what else its file states of it */;

alter table transcripts add column user_type text /* who runs the agent, as its lines state it: external */;
alter table usage add column stop_reason text /* why the model stopped, as the line that counts states it */;
alter table responses add column stop_reason text /* why the model stopped: end_turn, tool_use, max_tokens ...; null where the line that counts does not say */;

create table line_extras ( -- What a line or a document states beside what has a row or a column
    id integer primary key,
    type text not null,                 -- type of the line, '' where it has none
    timestamp text,
    extra text not null,                -- JSON object: long values end after 4,096 characters, the archive has the rest
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset)
) strict;
create index line_extras_session on line_extras (session_id) where session_id is not null;

create table unmatched_results ( -- A tool result that does not say which call it answers; it is taken for that of the last open call
    id integer primary key,
    name text,                          -- tool that it names; null: any
    is_error integer not null,          -- 1: it reports an error
    timestamp text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    block integer not null,
    unique (file_id, byte_offset, block)
) strict;

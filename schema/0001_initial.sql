-- The tables that a Claude Code home fills.
--
-- Readable columns stand first, ids and provenance last: Datasette shows them in this order.
-- Times are UTC text with milliseconds; a column that ends in _at and is not about an agent's own
-- clock (first_seen_at, last_synced_at, gone_at ...) is the time of a sync. Booleans are 0 or 1.
-- A reference is kept as the text key that the file gives (session_key, agent_key, ...) beside an
-- _id that is filled when the other side is there.
--
-- Columns that mean the same in every table:
--   id           number of the row; a sync from scratch may give another
--   source_id    root that it was read from
--   file_id      file that it was read from
--   byte_offset  first byte of its line in that file
--   byte_length  bytes of that line, without its line break
--   block        position of the content block in that line
--   timestamp    when it was written, by the agent's clock
--   session_key  session that its path or its lines name
--   session_id   the session, once it is there
--   subagent_id  the subagent; null in the main conversation
--   project_id   the project, once it is known
--   team_id      the team, once it is there

create table sources ( -- A root directory that was indexed
    id integer primary key,
    kind text not null,                 -- the system: claude, associate, chorus, cortex, ccinsights
    root text not null,                 -- absolute path of the root directory, symlinks resolved
    first_synced_at text not null,      -- when a sync first read this root
    last_synced_at text not null,       -- when a sync last read this root
    gone_at text,                       -- since when the root is missing; its rows stay
    cleanup_period_days integer,        -- days after which the agent deletes transcripts, as its settings say; null: its default, 30
    unique (kind, root)
) strict;

create table projects ( -- A project directory or a worktree, as an agent keeps it
    id integer primary key,
    name text,                          -- last component of the path, else the directory's name
    path text,                          -- real path of the project, from its sessions; never decoded from the key
    key text not null,                  -- directory name under projects/, case-folded
    is_worktree integer,                -- 1: <path>/.git is a file; null if the path is not on this disk
    on_disk integer,                    -- 1: the path exists on this machine
    git_branch text,                    -- branch that git says is checked out, else that of the newest session
    is_dirty integer,                   -- 1: git says that something differs from the last commit; only with sync --git
    head_branch text,                   -- branch that git said is checked out; only with sync --git
    session_count integer not null default 0, -- sessions, without those that only hold sidechains
    last_activity_at text,              -- newest time in any of its sessions
    parent_id integer references projects (id) on delete set null, -- the project this is a worktree of
    source_id integer not null references sources (id) on delete cascade,
    unique (source_id, key)
) strict;
create index projects_parent on projects (parent_id) where parent_id is not null;

create table sessions ( -- A conversation
    id integer primary key,
    title text,                         -- best title known, see title_source
    title_source text,                  -- custom-title, ai-title, agent-name, index, summary, prompt, history, slug, id, or list: its program's own list
    project_id integer references projects (id) on delete set null,
    started_at text,                    -- earliest time in its main transcript
    ended_at text,                      -- latest time in its main transcript
    message_count integer not null default 0, -- user and assistant lines of the main transcript, copies included
    prompt_count integer not null default 0,  -- what a person typed, copies included
    tool_call_count integer not null default 0, -- tool invocations, subagents included
    input_tokens integer,               -- sums over its responses, subagents included
    output_tokens integer,              -- as input_tokens
    cache_read_tokens integer,          -- as input_tokens
    cache_write_tokens integer,         -- as input_tokens, five-minute and one-hour writes together
    stated_cost_usd real,               -- cost as an application stated it, never computed here
    models text,                        -- JSON array of the models of its responses
    git_branch text,                    -- last branch that the transcript states
    cwd text,                           -- first working directory
    agent_version text,                 -- last version of the agent that wrote it
    kind text not null default 'main',  -- main, background, sidechain (only sidechain lines), side_files (no transcript), listed (only a list names it)
    status text,                        -- what a live registry or a job last said: busy, idle, working, done ...
    is_listed integer,                  -- 0: its program's own list of conversations lacks it; null where there is no such list
    context_tokens integer,             -- tokens in the context, as an application stated them
    context_window integer,             -- size of the context, as an application stated it
    permission_mode text,               -- last permission mode
    ts_zone text,                       -- local: its times were written without a zone, and are read as this machine's local time
    slug text,                          -- word-triple name, stem of its plan file
    forked_from integer references sessions (id) on delete set null, -- the session whose chain this one begins with
    linked_session_id integer references sessions (id) on delete set null, -- the conversation that another system's entry stands for
    session_key text not null,          -- uuid or stem of the transcript
    source_id integer not null references sources (id) on delete cascade,
    unique (source_id, session_key)
) strict;
create index sessions_key on sessions (session_key);
create index sessions_project on sessions (project_id, ended_at);
create index sessions_slug on sessions (slug) where slug is not null;
create index sessions_ended on sessions (ended_at);
create index sessions_forked on sessions (forked_from) where forked_from is not null;
create index sessions_linked on sessions (linked_session_id) where linked_session_id is not null;

create table subagents ( -- A run of a subagent
    id integer primary key,
    agent_type text,                    -- Explore, general-purpose, ...
    description text,                   -- what it was asked, in a few words
    kind text not null,                 -- task, warmup, compact, prompt_suggestion, side_question, sidechain, workflow
    session_id integer references sessions (id) on delete set null,
    parent_id integer references subagents (id) on delete set null, -- the subagent whose call spawned this one
    spawned_by integer references tool_calls (id) on delete set null, -- the call that spawned it
    link_method text,                   -- how spawned_by was found: meta, result, progress, result-text, notification, prompt, workflow, skill
    workflow text,                      -- run of the workflow it belongs to
    name text,                          -- its name in a team
    model text,                         -- model it was asked to use
    started_at text,                    -- earliest time in its transcript
    ended_at text,                      -- latest time in its transcript
    message_count integer not null default 0, -- user and assistant lines of its transcript
    tokens integer,                     -- input, output and cache tokens of its responses
    agent_key text not null,            -- id of the agent; of a sidechain in a main file: uuid of its root
    session_key text,                   -- session that its path or its lines name
    source_id integer not null references sources (id) on delete cascade
) strict;
create unique index subagents_key on subagents (source_id, coalesce(session_key, ''), agent_key);
create index subagents_session on subagents (session_id);
create index subagents_agent on subagents (agent_key);
create index subagents_parent on subagents (parent_id) where parent_id is not null;
create index subagents_call on subagents (spawned_by) where spawned_by is not null;

create table files ( -- A file that was ever indexed, and how far it was read
    id integer primary key,
    path text not null,                 -- relative to the root, with forward slashes
    kind text not null,                 -- transcript, agent, side_agent, agent_meta, workflow, foreign, ...
    size integer not null,              -- bytes, when it was last looked at
    offset integer not null,            -- bytes read: always the end of a complete line
    line_count integer not null,        -- pieces: decoded objects and quarantined stretches; no blank lines
    issue_count integer not null,       -- rows of issues
    mtime text,                         -- modification time of the file
    first_seen_at text not null,        -- when a sync first saw it
    last_synced_at text not null,       -- when a sync last read it
    gone_at text,                       -- when a sync found it missing; its rows stay
    session_key text,                   -- session that its path or its lines name
    agent_key text,                     -- subagent that its path names
    team_key text,                      -- team directory, lower-cased and hyphenated
    project_key text,                   -- project directory, case-folded
    workflow text,                      -- workflow run that its path names
    own_since text,                     -- time of its first chain line that no other file has: who copied from whom
    generation integer not null,        -- 0, and one more each time a path came back with other content after it was gone
    inode integer not null,             -- identity of the file when last read, a hint only
    device integer not null,            -- see inode
    mtime_ns integer not null,          -- stat of the last look: an unchanged one is not opened
    ctime_ns integer not null,          -- see mtime_ns
    head_hash blob,                     -- BLAKE2b of the first 1 KiB of what was read
    tail_hash blob,                     -- BLAKE2b of the last 1 KiB of what was read
    prefix_crc integer not null,        -- CRC-32 of all that was read
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    team_id integer references teams (id) on delete set null, -- team that its path names
    source_id integer not null references sources (id) on delete cascade,
    unique (source_id, path, generation)
) strict;
create index files_session on files (session_id);
create index files_subagent on files (subagent_id) where subagent_id is not null;
create index files_project on files (project_id);
create index files_team on files (team_id) where team_id is not null;
create index files_kind on files (kind);

create table messages ( -- A content block of a line: what was said, thought, called and answered
    id integer primary key,
    kind text not null,                 -- for people's and injected text prompt, command, command_output, bash_input, bash_output, task_notification, agent_message, agent_prompt, memory_input, interrupt, compact_summary, queued_prompt, meta; for the agent text, thinking, tool_use, tool_result, image, error; else system, attachment, hook
    text text,                          -- what people and agents said
    tool_text text,                     -- what tools and the program gave; exactly one of the two is not null
    role text,                          -- user, assistant or system
    timestamp text,                     -- when the agent wrote the line
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null, -- null in the main conversation
    model text,                         -- model that answered
    uuid text,                          -- the line's own id; forks copy it, so it is not unique
    parent_uuid text,                   -- uuid of the line before
    is_meta integer not null,           -- 1: injected by the program
    is_sidechain integer not null,      -- 1: the line says that it belongs to a subagent
    is_error integer not null,          -- 1: a tool result that reports an error
    is_cut integer not null,            -- 1: text ends at 256 KiB, the archive has the rest
    has_cjk integer not null,           -- 1: holds Chinese, Japanese or Korean, see messages_cjk
    copy_of integer references messages (id) on delete set null, -- the canonical occurrence of this block; null: this is it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line
    byte_length integer not null,       -- bytes of the line, without its line break
    block integer not null,             -- position of the content block in the line
    unique (file_id, byte_offset, block)
) strict;
create index messages_session on messages (session_id, kind);
-- These two make the counts of a session cost what it has of them, not what it has of messages.
create index messages_prompts on messages (session_id, file_id, subagent_id, uuid, copy_of, byte_offset, kind)
    where kind in ('prompt', 'command', 'bash_input', 'queued_prompt');
create index messages_copied on messages (session_id, kind) where copy_of is not null;
create index messages_subagent on messages (subagent_id) where subagent_id is not null;
create index messages_uuid on messages (uuid, file_id) where uuid is not null;
create index messages_copy on messages (copy_of) where copy_of is not null;
create index messages_queued on messages (file_id) where kind in ('queued_prompt', 'task_notification') and uuid is null;

create virtual table messages_fts using fts5 (
    text, tool_text,
    content="messages", content_rowid="id",
    tokenize="unicode61 remove_diacritics 2"
);
-- Rows enter the index in bulk, in the transaction that wrote them: an insert trigger would double
-- the cost of indexing. The triggers below keep the rare paths right.
create trigger messages_fts_delete after delete on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text)
    values ('delete', old.id, old.text, old.tool_text);
end;
create trigger messages_fts_update after update of text, tool_text on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text)
    values ('delete', old.id, old.text, old.tool_text);
    insert into messages_fts (rowid, text, tool_text)
    values (new.id, new.text, new.tool_text);
end;

-- unicode61 finds no substring inside a run of Chinese or Japanese; trigrams do. Only rows that
-- need it are in this second index: over all rows it would be larger than the source.
create view messages_cjk as -- Messages that hold Chinese, Japanese or Korean: what messages_cjk_fts indexes
select id, text, tool_text
from messages
where has_cjk = 1;
create index messages_has_cjk on messages (id) where has_cjk = 1;
create virtual table messages_cjk_fts using fts5 (
    text, tool_text,
    content="messages_cjk", content_rowid="id",
    tokenize="trigram"
);
create trigger messages_cjk_fts_delete after delete on messages when old.has_cjk = 1 begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text)
    values ('delete', old.id, old.text, old.tool_text);
end;
create trigger messages_cjk_fts_update after update of text, tool_text, has_cjk on messages begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text)
    select 'delete', old.id, old.text, old.tool_text where old.has_cjk = 1;
    insert into messages_cjk_fts (rowid, text, tool_text)
    select new.id, new.text, new.tool_text where new.has_cjk = 1;
end;

create table tool_calls ( -- A tool invocation, with its result as soon as it is there
    id integer primary key,
    name text,                          -- Bash, Read, Edit, ...; null: only the result is in this file
    target text,                        -- what it was applied to: path, command, pattern, query
    status text not null,               -- ok, error, or pending: no result yet
    started_at text,                    -- time of the call
    ended_at text,                      -- time of the result
    duration_ms integer,                -- as the tool states it, else from call to result
    exit_code integer,                  -- of a command, where stated
    output_file text,                   -- name under tool-results/ when the output was too large for the transcript
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    tool_use_id text,                   -- id that the API gave; a copied call has a row of its own
    call_id integer references messages (id) on delete set null,   -- the block that called
    result_id integer references messages (id) on delete set null, -- the block that answered
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    block integer not null,
    unique (file_id, tool_use_id)
) strict;
create index tool_calls_use on tool_calls (tool_use_id) where tool_use_id is not null;
create index tool_calls_session on tool_calls (session_id, name);
create index tool_calls_subagent on tool_calls (subagent_id) where subagent_id is not null;
create index tool_calls_call on tool_calls (call_id) where call_id is not null;
create index tool_calls_result on tool_calls (result_id) where result_id is not null;

create table usage ( -- Token counts of an API response as one file states them; responses has each once
    id integer primary key,
    response_key text not null,         -- message.id, else the line's uuid, else its place
    api_message_id text,                -- message.id
    request_id text,                    -- requestId of any of its lines
    stated_session_key text,            -- sessionId on the line
    model text,                         -- model that answered
    timestamp text,                     -- of the line that counts
    input_tokens integer not null,      -- of the line with the most output tokens, as a whole
    output_tokens integer not null,     -- of the same line, as all counts
    cache_read_tokens integer not null, -- tokens read from the cache
    cache_write_5m_tokens integer not null, -- written to the cache for five minutes; all writes where the split is unknown
    cache_write_1h_tokens integer not null, -- written to the cache for an hour
    web_searches integer not null,      -- web searches that the server made
    partial integer not null,           -- 1: the final count was never written
    stated_cost_usd real,               -- cost as an application stated it
    line_count integer not null,        -- lines of this response in the file
    all_input_tokens integer not null,  -- sum over those lines: what a program counts that adds them all up
    all_output_tokens integer not null, -- as all_input_tokens
    all_cache_read_tokens integer not null, -- as all_input_tokens
    all_cache_write_tokens integer not null, -- as all_input_tokens
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, response_key)
) strict;
create index usage_response on usage (response_key);

create table responses ( -- An API response, its tokens counted once however many lines and files repeat it
    id integer primary key,
    model text,                         -- model that answered; never <synthetic>
    timestamp text,                     -- of the line that counts
    input_tokens integer not null,      -- tokens that were not cached
    output_tokens integer not null,     -- tokens that the model wrote, thinking included
    cache_read_tokens integer not null, -- tokens read from the cache
    cache_write_5m_tokens integer not null, -- written to the cache for five minutes; all writes where the split is unknown
    cache_write_1h_tokens integer not null, -- written to the cache for an hour
    web_searches integer not null,      -- web searches that the server made
    partial integer not null,           -- 1: the final count was never written
    stated_cost_usd real,               -- cost as an application stated it
    session_id integer references sessions (id) on delete set null, -- of the canonical occurrence
    subagent_id integer references subagents (id) on delete set null,
    api_message_id text,                -- message.id
    request_id text,                    -- requestId
    response_key text not null unique,  -- what makes two lines the same response
    file_id integer not null references files (id) on delete cascade, -- of the line that counts
    byte_offset integer not null,
    byte_length integer not null
) strict;
-- Holds all that a session sums up, so that the sums do not read the rows.
create index responses_session on responses (
    session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, stated_cost_usd
);
create index responses_subagent on responses (subagent_id) where subagent_id is not null;
create index responses_file on responses (file_id);
create index responses_model on responses (model, timestamp);

create table transcripts ( -- What one transcript states about its session or subagent
    id integer primary key,
    stated_session_key text,            -- first sessionId that its lines state
    started_at text,                    -- earliest time
    ended_at text,                      -- latest time
    message_count integer not null,     -- user and assistant lines
    sidechain_count integer not null,   -- those of them that say isSidechain
    first_prompt text,                  -- first text that a person typed
    first_cwd text,                     -- first working directory
    custom_title text,                  -- last value, as for all below
    ai_title text,                      -- title that the agent made
    agent_name text,                    -- name of the agent, which titles what it does
    git_branch text,                    -- branch
    agent_version text,                 -- version of the agent
    slug text,                          -- word-triple name
    permission_mode text,               -- default, plan, acceptEdits ...
    mode text,                          -- as the line type "mode" states it
    agent_setting text,                 -- as the line type "agent-setting" states it
    session_kind text,                  -- bg: a fork that runs in the background
    entrypoint text,                    -- cli, claude-desktop, claude-vscode, sdk-ts, sdk-cli
    team_name text,                     -- team in which it took part
    last_prompt text,                   -- as the line type "last-prompt" states it
    forked_from_key text,               -- session that a forked agent came from
    time_zone text,                     -- local: its times were written without a zone
    file_id integer not null unique references files (id) on delete cascade
) strict;

create table session_entries ( -- What a list, a registry or a sidecar states about a session
    id integer primary key,
    kind text not null,                 -- index, registry, job, conversation, chat or meta: which list states it
    title text,                         -- title
    summary text,                       -- summary
    first_prompt text,                  -- first thing a person typed
    started_at text,                    -- when it began
    ended_at text,                      -- when it was last active
    message_count integer,              -- messages, as the list counts them
    git_branch text,                    -- branch
    cwd text,                           -- working directory
    model text,                         -- model
    permission_mode text,               -- permission mode
    status text,                        -- busy, idle, working, done ...
    is_sidechain integer,               -- 1: the list says that it only holds sidechains
    input_tokens integer,               -- total, as the application states it; so are those below
    output_tokens integer,              -- total
    cache_read_tokens integer,          -- total
    cache_write_tokens integer,         -- total
    cost_usd real,                      -- total cost
    context_tokens integer,             -- tokens in the context
    context_window integer,             -- size of the context
    session_key text not null,          -- the session it is about
    linked_session_key text,            -- the conversation of another system that it stands for
    project_key text,                   -- the project it belongs to
    session_id integer references sessions (id) on delete set null, -- the session it is about
    linked_session_id integer references sessions (id) on delete set null, -- the conversation it stands for, once it is there
    project_id integer references projects (id) on delete set null, -- the project it belongs to
    file_id integer not null references files (id) on delete cascade, -- file it comes from
    byte_offset integer not null,       -- first byte of its line; 0 in a document
    unique (file_id, session_key, kind)
) strict;
create index session_entries_session on session_entries (session_id);
create index session_entries_linked on session_entries (linked_session_key) where linked_session_key is not null;
create index session_entries_linked_id on session_entries (linked_session_id) where linked_session_id is not null;
create index session_entries_project on session_entries (project_id) where project_id is not null;

create table project_entries ( -- A project or worktree that a program's own list names
    id integer primary key,
    name text,                          -- name
    path text,                          -- directory
    key text not null,                  -- the project it is about
    parent_key text,                    -- the project that this is a worktree of
    is_worktree integer,                -- 1: a worktree
    git_branch text,                    -- branch
    project_id integer references projects (id) on delete set null, -- the project it is about
    file_id integer not null references files (id) on delete cascade, -- file it comes from
    unique (file_id, key)
) strict;
create index project_entries_project on project_entries (project_id);

create table working_directories ( -- A directory in which the session of a transcript worked
    id integer primary key,
    path text not null,                 -- the directory
    encoded text not null,              -- name that the project directory of this path has, folded; ends after 201 characters
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the first line that states it
    unique (file_id, path)
) strict;

create table summaries ( -- A title line; the conversation it is for often lies in another file
    id integer primary key,
    title text not null,                -- title for the session that owns leaf_uuid
    leaf_uuid text not null,            -- uuid of the last line of that conversation
    session_id integer references sessions (id) on delete set null, -- the session that owns leaf_uuid
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
create index summaries_session on summaries (session_id);

create table agent_metas ( -- The sidecar file of a subagent
    id integer primary key,
    agent_type text,                    -- Explore, general-purpose, ...
    description text,                   -- what it was asked, in a few words
    name text,                          -- name of a teammate
    model text,                         -- model it was asked to use
    spawn_depth integer,                -- 1: spawned by the main conversation
    worktree_path text,                 -- worktree in which it works
    is_fork integer,                    -- 1: it began with a copy of the conversation
    file_id integer not null unique references files (id) on delete cascade
) strict;

create table agent_links ( -- Evidence that a tool call spawned a subagent
    id integer primary key,
    agent_key text not null,            -- the subagent
    tool_use_id text not null,          -- the call that this line says spawned it
    method integer not null,            -- 1 meta, 2 result, 3 progress, 4 result-text, 5 notification: smaller is trusted more
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key, tool_use_id, method)
) strict;
create index agent_links_agent on agent_links (agent_key);

create table workflow_links ( -- Evidence that a workflow run belongs to a tool call or a background task
    id integer primary key,
    run text,                           -- the workflow run
    task_key text,                      -- the background task that it runs as
    tool_use_id text,                   -- the call that started it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;

create table workflow_agents ( -- A subagent that the journal or the snapshot of a workflow run names
    id integer primary key,
    agent_key text not null,            -- the subagent
    label text,                         -- what it is for
    phase text,                         -- phase of the workflow
    state text,                         -- as the journal or the snapshot states it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key)
) strict;

create table teams ( -- A team of agents
    id integer primary key,
    name text not null,                 -- name
    description text,                   -- what it is for
    created_at text,                    -- when the agent created it
    gone_at text,                       -- since when its directory is missing
    lead_agent_key text,                -- agent that leads it, often name@team
    lead_session_key text,              -- session that leads it
    lead_session_id integer references sessions (id) on delete set null, -- the same, once it is there
    key text not null,                  -- directory name, lower-cased and hyphenated
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null,
    unique (source_id, key)
) strict;
create index teams_lead on teams (lead_session_id) where lead_session_id is not null;
create index teams_file on teams (file_id) where file_id is not null;

create table team_members ( -- A member of a team
    id integer primary key,
    name text,                          -- name in the team
    agent_type text,                    -- general-purpose, ...
    model text,                         -- model it uses
    cwd text,                           -- working directory
    color text,                         -- colour of its name
    joined_at text,                     -- when it joined, by the agent's clock
    prompt text,                        -- what it was told at first
    subscriptions text,                 -- JSON array
    backend_type text,                  -- in-process, tmux, ...
    plan_mode_required integer,         -- 1: it has to plan first
    is_active integer,                  -- 1: it runs
    agent_id text,                      -- opaque id that the agent gives, often name@team
    team_id integer not null references teams (id) on delete cascade,
    file_id integer not null references files (id) on delete cascade
) strict;
create index team_members_team on team_members (team_id);
create index team_members_file on team_members (file_id);

create table tasks ( -- A task of a task list
    id integer primary key,
    subject text,                       -- what is to be done, in a few words
    description text,                   -- what is to be done
    status text,                        -- pending, in_progress, completed, deleted
    owner text,                         -- agent that does it
    active_form text,                   -- what is shown while it runs
    metadata text,                      -- JSON object
    task_key text not null,             -- number or name within its list
    list_key text not null,             -- session, team or name that the list belongs to
    session_id integer references sessions (id) on delete set null,
    team_id integer references teams (id) on delete set null,
    gone_at text,                       -- when a sync found it missing
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null,
    unique (source_id, list_key, task_key)
) strict;
create index tasks_list on tasks (list_key);
create index tasks_session on tasks (session_id) where session_id is not null;
create index tasks_team on tasks (team_id) where team_id is not null;
create index tasks_status on tasks (status);
create index tasks_file on tasks (file_id) where file_id is not null;

create table task_links ( -- An edge as one file states it; both tasks state theirs, task_dependencies has each once
    id integer primary key,
    task_key text not null,             -- the task that waits
    blocker_key text not null,          -- the task that it waits for
    list_key text not null,             -- list that both belong to
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, task_key, blocker_key)
) strict;

create table task_dependencies ( -- An edge: task_key is blocked by blocker_key
    id integer primary key,
    task_key text not null,             -- the task that waits
    blocker_key text not null,          -- the task that it waits for
    task_id integer references tasks (id) on delete set null, -- the same, once it is there
    blocker_id integer references tasks (id) on delete set null, -- the same, once it is there
    list_key text not null,             -- list that both belong to
    source_id integer not null references sources (id) on delete cascade,
    file_id integer not null references files (id) on delete cascade, -- the first file that states it
    unique (source_id, list_key, task_key, blocker_key)
) strict;
create index task_dependencies_file on task_dependencies (file_id);
create index task_dependencies_task on task_dependencies (task_id) where task_id is not null;
create index task_dependencies_blocker on task_dependencies (blocker_id) where blocker_id is not null;

create table task_changes ( -- A change of a task: seen between two syncs, or stated by a file
    id integer primary key,
    field text not null,                -- column of tasks that changed
    old_value text,                     -- before
    new_value text,                     -- after
    timestamp text,                     -- when it happened, where a file states it
    seen_at text,                       -- time of the sync that saw it; null: a file states it
    task_key text,                      -- the task, where a file states it
    list_key text,                      -- its list
    task_id integer references tasks (id) on delete cascade, -- the task
    file_id integer references files (id) on delete cascade, -- the file that states it
    byte_offset integer                 -- first byte of its line
) strict;
create index task_changes_file on task_changes (file_id) where file_id is not null;
create index task_changes_task on task_changes (task_id);

create table todos ( -- An item of a todo list
    id integer primary key,
    content text,                       -- what is to be done
    status text,                        -- pending, in_progress, completed
    priority text,                      -- high, medium, low; old versions only
    active_form text,                   -- what is shown while it runs
    position integer not null,          -- place in its list
    session_key text,
    agent_key text,                     -- the session's own id for the main agent
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, position)
) strict;
create index todos_session_key on todos (session_key) where session_key is not null;
create index todos_session on todos (session_id) where session_id is not null;
create index todos_subagent on todos (subagent_id) where subagent_id is not null;
create index todos_status on todos (status);

create table inbox_items ( -- A message from one agent to another
    id integer primary key,
    text text,                          -- the message
    sender text,                        -- agent that wrote it
    recipient text,                     -- agent that gets it
    kind text not null,                 -- message, or the type of the inner JSON
    summary text,                       -- the message in a few words
    timestamp text,
    is_read integer,                    -- 1: the recipient has read it
    color text,                         -- colour of the sender
    payload text,                       -- JSON of an inner message
    channel text not null,              -- inbox, or transcript
    team_id integer references teams (id) on delete set null,
    session_id integer references sessions (id) on delete set null,
    copy_of integer references inbox_items (id) on delete set null, -- the inbox row that this occurrence in a transcript repeats
    gone_at text,                       -- when a sync found it missing from its inbox
    team_name text,                     -- team, where the path does not tell it
    message_key text,                   -- msg_id where the writer gives one
    text_hash text,                     -- SHA-256 of the text without white space around it: part of the identity in an inbox
    tool_use_id text,                   -- the call of SendMessage that sent it
    ordinal integer not null default 0, -- among equals
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of its line; 0 in an inbox
    byte_length integer not null        -- bytes of its line; 0 in an inbox, where it is a part of the document
) strict;
create unique index inbox_items_key on inbox_items (
    file_id, byte_offset, coalesce(timestamp, ''), coalesce(sender, ''), coalesce(text_hash, ''), ordinal
);
create unique index inbox_items_use on inbox_items (file_id, tool_use_id) where tool_use_id is not null;
create index inbox_items_hash on inbox_items (text_hash);
create index inbox_items_message on inbox_items (message_key) where message_key is not null;
create index inbox_items_team on inbox_items (team_id) where team_id is not null;
create index inbox_items_session on inbox_items (session_id) where session_id is not null;
create index inbox_items_copy on inbox_items (copy_of) where copy_of is not null;

create table plans ( -- A plan file
    id integer primary key,
    title text,                         -- first heading, else (untitled)
    text text not null,                 -- the plan, Markdown
    name text not null,                 -- file name without extension
    modified_at text,                   -- modification time of the file
    session_id integer references sessions (id) on delete set null,
    file_id integer not null unique references files (id) on delete cascade
) strict;
create index plans_session on plans (session_id) where session_id is not null;

create table plan_lines ( -- A line of a plan, classified
    id integer primary key,
    kind text not null,                 -- heading, code_fence, code_block, normal
    text text not null,                 -- the line
    number integer not null,            -- from 1
    plan_id integer references plans (id) on delete cascade, -- the plan
    file_id integer not null references files (id) on delete cascade, -- file it comes from
    unique (file_id, number)
) strict;
create index plan_lines_plan on plan_lines (plan_id);

create table documents ( -- A note, memory, summary or ticket
    id integer primary key,
    kind text not null,                 -- note, memory, summary, ticket
    title text,                         -- first heading, or the file name
    text text not null,                 -- the document
    path text not null,                 -- relative to the root
    session_key text,
    project_path text,                  -- the project that it names
    project_key text,                   -- TheAssociate's directory for the project, folded
    session_id integer references sessions (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    modified_at text,                   -- modification time
    file_id integer not null references files (id) on delete cascade,
    ordinal integer not null default 0, -- among the documents of one file
    unique (file_id, ordinal)
) strict;
create index documents_project_key on documents (project_key) where project_key is not null;
create index documents_session_key on documents (session_key) where session_key is not null;
create index documents_session on documents (session_id) where session_id is not null;
create index documents_project on documents (project_id) where project_id is not null;

create table prompts ( -- A line of the global prompt history
    id integer primary key,
    text text not null,                 -- the prompt as it was typed
    timestamp text,
    project_path text,                  -- project as the line names it
    pasted text,                        -- texts that were pasted into it
    paste_hashes text,                  -- JSON array of all pasted parts where one is kept as a file: its hash, or {"text"} of one that is not
    project_key text,                   -- directory under projects/ that the project would have, folded
    session_key text,
    session_id integer references sessions (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset)
) strict;
create index prompts_project_key on prompts (project_key) where project_key is not null;
create index prompts_session_key on prompts (session_key) where session_key is not null;
create index prompts_session on prompts (session_id) where session_id is not null;
create index prompts_project on prompts (project_id) where project_id is not null;

create table pastes ( -- A pasted text that prompts refer to by its hash
    id integer primary key,
    text text not null,                 -- the text
    hash text not null,                 -- first 16 hex digits of its SHA-256
    file_id integer not null unique references files (id) on delete cascade -- file it comes from
) strict;
create index pastes_hash on pastes (hash);

create table hook_events ( -- A hook event, in file order
    id integer primary key,
    event text,                         -- SessionStart, Stop, SubagentStart ...
    cwd text,                           -- working directory
    model text,                         -- of SessionStart
    source text,                        -- of SessionStart: startup, resume, clear, compact
    reason text,                        -- of SessionEnd
    tool_name text,                     -- of events about tools
    agent_type text,                    -- of events about subagents
    payload text not null,              -- the whole event as JSON
    session_key text,                   -- session_id of the event
    agent_key text,                     -- agent_id of the event
    session_id integer references sessions (id) on delete set null, -- the session, once it is there
    subagent_id integer references subagents (id) on delete set null, -- the subagent, once it is there
    file_id integer not null references files (id) on delete cascade, -- file it comes from
    byte_offset integer not null,       -- first byte of the line: the order of events, which have no time
    byte_length integer not null,       -- bytes of the line
    unique (file_id, byte_offset)
) strict;
create index hook_events_session_key on hook_events (session_key) where session_key is not null;
create index hook_events_session on hook_events (session_id) where session_id is not null;
create index hook_events_subagent on hook_events (subagent_id) where subagent_id is not null;

create table links ( -- A pull request, frame or worktree of a session
    id integer primary key,
    kind text not null,                 -- pull_request, frame, worktree, plan
    url text not null,                  -- of a worktree: its path; of a plan: its file
    title text,                         -- title, where one is stated
    timestamp text,
    session_key text,                   -- session, where the path of the file does not name it
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
create unique index links_key on links (file_id, kind, url, coalesce(session_key, ''));
create index links_session_key on links (session_key) where session_key is not null;
create index links_session on links (session_id) where session_id is not null;

create table file_snapshots ( -- A file that the agent tracked in a snapshot
    id integer primary key,
    path text not null,                 -- relative to the working directory, or absolute
    version integer,                    -- 1, 2, 3 ... of the file
    backup_at text,                     -- when the agent made the copy
    backup_name text,                   -- name under file-history/; null: no copy
    message_uuid text,                  -- the line that the snapshot belongs to
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
create unique index file_snapshots_key on file_snapshots (file_id, path, coalesce(version, -1));
create index file_snapshots_session on file_snapshots (session_id) where session_id is not null;

create table tool_result_files ( -- A tool output that was too large for its transcript
    id integer primary key,
    name text not null,                 -- path under tool-results/
    size integer not null,              -- bytes
    media_type text,                    -- text/plain, image/png, ...
    text text,                          -- up to a limit; null for binaries
    session_key text,
    tool_use_id text,                   -- the stem, where it is one
    session_id integer references sessions (id) on delete set null,
    file_id integer not null unique references files (id) on delete cascade
) strict;
create index tool_result_files_session_key on tool_result_files (session_key) where session_key is not null;
create index tool_result_files_session on tool_result_files (session_id) where session_id is not null;
create index tool_result_files_use on tool_result_files (tool_use_id) where tool_use_id is not null;

create table issues ( -- Something that could not be read, or only with loss
    id integer primary key,
    reason text not null,               -- what is wrong, in words
    quarantined integer not null,       -- 1: the piece became no record; 0: a record with loss
    sample text,                        -- its first 4 KB
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
create index issues_file on issues (file_id);

create table line_types ( -- A type of line in a file, and how often it stands there
    id integer primary key,
    type text not null,                 -- value of "type"; '' where an object has none
    subtype text not null,              -- of system, attachment, progress, queue-operation; else ''
    count integer not null,             -- decoded objects
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, type, subtype)
) strict;

create table sync_runs ( -- A run of sync
    id integer primary key,
    started_at text not null,           -- when it began
    finished_at text,                   -- when it ended
    files_read integer not null,        -- files that were opened because they had changed
    bytes_read integer not null,        -- bytes of them that were new
    rows integer not null,              -- rows written to messages
    issues integer not null,            -- rows written to issues
    error text                          -- why it ended early
) strict;

create table archive ( -- A stretch of a file's original bytes, compressed
    id integer primary key,
    file_id integer not null references files (id) on delete cascade,
    start integer not null,             -- first byte of the stretch
    "end" integer not null,             -- byte after its last
    codec text not null,                -- zstd
    data blob not null,                 -- the compressed bytes
    unique (file_id, start)
) strict;

-- The smaller stores: their rows are few, so triggers may keep their index.
create virtual table inbox_items_fts using fts5 (text, summary, content="inbox_items", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger inbox_items_fts_insert after insert on inbox_items begin
    insert into inbox_items_fts (rowid, text, summary) values (new.id, new.text, new.summary);
end;
create trigger inbox_items_fts_delete after delete on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary) values ('delete', old.id, old.text, old.summary);
end;
create trigger inbox_items_fts_update after update of text, summary on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary) values ('delete', old.id, old.text, old.summary);
    insert into inbox_items_fts (rowid, text, summary) values (new.id, new.text, new.summary);
end;

create virtual table tasks_fts using fts5 (subject, description, content="tasks", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger tasks_fts_insert after insert on tasks begin
    insert into tasks_fts (rowid, subject, description) values (new.id, new.subject, new.description);
end;
create trigger tasks_fts_delete after delete on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description) values ('delete', old.id, old.subject, old.description);
end;
create trigger tasks_fts_update after update of subject, description on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description) values ('delete', old.id, old.subject, old.description);
    insert into tasks_fts (rowid, subject, description) values (new.id, new.subject, new.description);
end;

create virtual table todos_fts using fts5 (content, content="todos", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger todos_fts_insert after insert on todos begin
    insert into todos_fts (rowid, content) values (new.id, new.content);
end;
create trigger todos_fts_delete after delete on todos begin
    insert into todos_fts (todos_fts, rowid, content) values ('delete', old.id, old.content);
end;
create trigger todos_fts_update after update of content on todos begin
    insert into todos_fts (todos_fts, rowid, content) values ('delete', old.id, old.content);
    insert into todos_fts (rowid, content) values (new.id, new.content);
end;

create virtual table plans_fts using fts5 (title, text, content="plans", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger plans_fts_insert after insert on plans begin
    insert into plans_fts (rowid, title, text) values (new.id, new.title, new.text);
end;
create trigger plans_fts_delete after delete on plans begin
    insert into plans_fts (plans_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
end;
create trigger plans_fts_update after update of title, text on plans begin
    insert into plans_fts (plans_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
    insert into plans_fts (rowid, title, text) values (new.id, new.title, new.text);
end;

create virtual table documents_fts using fts5 (title, text, content="documents", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger documents_fts_insert after insert on documents begin
    insert into documents_fts (rowid, title, text) values (new.id, new.title, new.text);
end;
create trigger documents_fts_delete after delete on documents begin
    insert into documents_fts (documents_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
end;
create trigger documents_fts_update after update of title, text on documents begin
    insert into documents_fts (documents_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
    insert into documents_fts (rowid, title, text) values (new.id, new.title, new.text);
end;

create virtual table prompts_fts using fts5 (text, pasted, content="prompts", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger prompts_fts_insert after insert on prompts begin
    insert into prompts_fts (rowid, text, pasted) values (new.id, new.text, new.pasted);
end;
create trigger prompts_fts_delete after delete on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted) values ('delete', old.id, old.text, old.pasted);
end;
create trigger prompts_fts_update after update of text, pasted on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted) values ('delete', old.id, old.text, old.pasted);
    insert into prompts_fts (rowid, text, pasted) values (new.id, new.text, new.pasted);
end;

create virtual table tool_result_files_fts using fts5 (text, content="tool_result_files", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger tool_result_files_fts_insert after insert on tool_result_files begin
    insert into tool_result_files_fts (rowid, text) values (new.id, new.text);
end;
create trigger tool_result_files_fts_delete after delete on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text) values ('delete', old.id, old.text);
end;
create trigger tool_result_files_fts_update after update of text on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text) values ('delete', old.id, old.text);
    insert into tool_result_files_fts (rowid, text) values (new.id, new.text);
end;

-- What the migrations add up to: new databases are made from it. Written by: make schema
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE TABLE sources ( -- A root directory that was indexed
    id integer primary key,
    kind text not null,                 -- the system: claude, associate, chorus, cortex, ccinsights
    root text not null,                 -- absolute path of the root directory, symlinks resolved
    first_synced_at text not null,      -- when a sync first read this root
    last_synced_at text not null,       -- when a sync last read this root
    gone_at text,                       -- since when the root is missing; its rows stay
    cleanup_period_days integer, label text /* how the system is called: Claude Code, Chorus, ... */, is_agent integer not null default 0 /* 1: the transcripts of the agent itself; 0: of a program around it, which may repeat them */, lists_sessions integer not null default 0 /* 1: a list of its own says which conversations there are */, retention_days integer /* days after which the system deletes its files, unless its settings say otherwise; null: it deletes nothing */,        -- days after which the agent deletes transcripts, as its settings say; null: its default, 30
    unique (kind, root)
) strict;
CREATE TABLE projects ( -- A project directory or a worktree, as an agent keeps it
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
    source_id integer not null references sources (id) on delete cascade, gone_at text /* since when nothing names it: only lists ever did, and none does any more */, git_seen_at text /* when git last answered for its directory */, change_count integer /* entries that git listed as changed then; git_changes has at most 1,000 of them */, repository text /* directory of the repository that it is a worktree of, as its path, a link or git says */, git_repository text /* the same, as git said; only with sync --git */, same_as integer references projects (id) on delete set null /* the project that stands for this directory, where several agents or homes know it; null for that one */, directory text /* name of its directory in the agent's home, if that was empty at the last sync */, remote text /* remote origin of its repository as conversations state it: host/owner/name */, git_remote text /* the same, as git said; only with sync --git */, first_commit text /* first commit of its repository, as an agent states it */, git_first_commit text /* the same, as git said, where there is no remote; only with sync --git */, repository_key text /* the same in all clones and worktrees of a repository: its remote, else its first commit and name, else its directory */, repository_name text /* what the repository is called: owner/name of the remote, else the name of its directory; the whole address or path if another one is called so */,
    unique (source_id, key)
) strict;
CREATE INDEX projects_parent on projects (parent_id) where parent_id is not null;
CREATE TABLE sessions ( -- A conversation
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
    source_id integer not null references sources (id) on delete cascade, gone_at text /* since when nothing names it: only lists ever did, and none does any more */, agent_id integer references agents (id) on delete set null /* the application's agent with whom the conversation is held */, copied_message_count integer not null default 0 /* user and assistant lines that repeat those of another session and are not in message_count */,
    unique (source_id, session_key)
) strict;
CREATE INDEX sessions_key on sessions (session_key);
CREATE INDEX sessions_project on sessions (project_id, ended_at);
CREATE INDEX sessions_slug on sessions (slug) where slug is not null;
CREATE INDEX sessions_ended on sessions (ended_at);
CREATE INDEX sessions_forked on sessions (forked_from) where forked_from is not null;
CREATE INDEX sessions_linked on sessions (linked_session_id) where linked_session_id is not null;
CREATE TABLE subagents ( -- A run of a subagent
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
, tool_call_count integer /* calls as the result of its call states them; null where it has a file of its own */) strict;
CREATE UNIQUE INDEX subagents_key on subagents (source_id, coalesce(session_key, ''), agent_key);
CREATE INDEX subagents_session on subagents (session_id);
CREATE INDEX subagents_agent on subagents (agent_key);
CREATE INDEX subagents_parent on subagents (parent_id) where parent_id is not null;
CREATE INDEX subagents_call on subagents (spawned_by) where spawned_by is not null;
CREATE TABLE files ( -- A file that was ever indexed, and how far it was read
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
    source_id integer not null references sources (id) on delete cascade, context text /* JSON that the lines before the offset leave to those behind it; null: nothing */, file_key blob /* 16 random bytes that name the file for life, whatever its path and generation become */,
    unique (source_id, path, generation)
) strict;
CREATE INDEX files_session on files (session_id);
CREATE INDEX files_subagent on files (subagent_id) where subagent_id is not null;
CREATE INDEX files_project on files (project_id);
CREATE INDEX files_team on files (team_id) where team_id is not null;
CREATE INDEX files_kind on files (kind);
CREATE TABLE messages ( -- A content block of a line: what was said, thought, called and answered
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
    block integer not null, has_invisible integer not null default 0 /* 1: holds letters that nobody sees, see joined_text */, joined_text text
    generated always as (iif(has_invisible,
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    , null)) virtual /* text without invisible letters, so that the words are whole that they take apart; null where it has none */, joined_tool_text text
    generated always as (iif(has_invisible,
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        tool_text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    , null)) virtual /* the same of tool_text */, is_superseded integer not null default 0 /* 1: taken back, and so no longer part of the conversation; see superseded */,             -- position of the content block in the line
    unique (file_id, byte_offset, block)
) strict;
CREATE INDEX messages_session on messages (session_id, kind);
CREATE INDEX messages_copied on messages (session_id, kind) where copy_of is not null;
CREATE INDEX messages_subagent on messages (subagent_id) where subagent_id is not null;
CREATE INDEX messages_uuid on messages (uuid, file_id) where uuid is not null;
CREATE INDEX messages_copy on messages (copy_of) where copy_of is not null;
CREATE INDEX messages_queued on messages (file_id) where kind in ('queued_prompt', 'task_notification') and uuid is null;
CREATE INDEX messages_has_cjk on messages (id) where has_cjk = 1;
CREATE TABLE tool_calls ( -- A tool invocation, with its result as soon as it is there
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
    block integer not null, search_count integer /* web searches that the call made as its result states them */, response_key text /* response that called, where the call's searches are charged: see responses */, action text /* run, read, edit, search, plan, spawn, ask or other, as its source says; null: only the result is in this file */, paths text /* JSON list of the files that it was applied to, where target is not all of them */,
    unique (file_id, tool_use_id)
) strict;
CREATE INDEX tool_calls_use on tool_calls (tool_use_id) where tool_use_id is not null;
CREATE INDEX tool_calls_subagent on tool_calls (subagent_id) where subagent_id is not null;
CREATE INDEX tool_calls_call on tool_calls (call_id) where call_id is not null;
CREATE INDEX tool_calls_result on tool_calls (result_id) where result_id is not null;
CREATE TABLE usage ( -- Token counts of an API response as one file states them; responses has each once
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
    byte_length integer not null, stop_reason text /* why the model stopped, as the line that counts states it */, written_bytes integer /* length of what the response wrote in this file, where a reader measures it: see docs/costs.md */,
    unique (file_id, response_key)
) strict;
CREATE INDEX usage_response on usage (response_key);
CREATE TABLE responses ( -- An API response, its tokens counted once however many lines and files repeat it
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
, stop_reason text /* why the model stopped: end_turn, tool_use, max_tokens ...; null where the line that counts does not say */, written_bytes integer /* length of what it wrote, as its file has it; null: not known. An estimate of output_tokens where partial is 1: see docs/costs.md */) strict;
CREATE INDEX responses_session on responses (
    session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, stated_cost_usd
);
CREATE INDEX responses_subagent on responses (subagent_id) where subagent_id is not null;
CREATE INDEX responses_file on responses (file_id);
CREATE INDEX responses_model on responses (model, timestamp);
CREATE TABLE transcripts ( -- What one transcript states about its session or subagent
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
, user_type text /* who runs the agent, as its lines state it: external */, repeated_count integer not null default 0 /* user and assistant lines that repeat others in this file or another */, copied_count integer not null default 0 /* those of them that repeat lines of another session */, repeated_call_count integer not null default 0 /* tool calls that repeat others */, tag text /* label that a person gave it; empty: taken back */, agent_color text /* color that a person gave it */, forked_from_uuid text /* last line that a branch has of the session that it comes from */) strict;
CREATE TABLE session_entries ( -- What a list, a registry or a sidecar states about a session
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
    byte_offset integer not null, gone_at text /* when a sync found it missing from its list */, agent_key text /* the application's agent with whom the conversation is held */, extra text /* JSON object: what else the list, registry or sidecar states of it */,       -- first byte of its line; 0 in a document
    unique (file_id, session_key, kind)
) strict;
CREATE INDEX session_entries_session on session_entries (session_id);
CREATE INDEX session_entries_linked on session_entries (linked_session_key) where linked_session_key is not null;
CREATE INDEX session_entries_linked_id on session_entries (linked_session_id) where linked_session_id is not null;
CREATE INDEX session_entries_project on session_entries (project_id) where project_id is not null;
CREATE TABLE project_entries ( -- A project or worktree that a program's own list names
    id integer primary key,
    name text,                          -- name
    path text,                          -- directory
    key text not null,                  -- the project it is about
    parent_key text,                    -- the project that this is a worktree of
    is_worktree integer,                -- 1: a worktree
    git_branch text,                    -- branch
    project_id integer references projects (id) on delete set null, -- the project it is about
    file_id integer not null references files (id) on delete cascade, gone_at text /* when a sync found it missing from its list */, extra text /* JSON object: what else the list states of it */, -- file it comes from
    unique (file_id, key)
) strict;
CREATE INDEX project_entries_project on project_entries (project_id);
CREATE TABLE working_directories ( -- A directory in which the session of a transcript worked
    id integer primary key,
    path text not null,                 -- the directory
    encoded text not null,              -- name that the project directory of this path has, folded; ends after 201 characters
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the first line that states it
    unique (file_id, path)
) strict;
CREATE TABLE summaries ( -- A title line; the conversation it is for often lies in another file
    id integer primary key,
    title text not null,                -- title for the session that owns leaf_uuid
    leaf_uuid text not null,            -- uuid of the last line of that conversation
    session_id integer references sessions (id) on delete set null, -- the session that owns leaf_uuid
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE INDEX summaries_session on summaries (session_id);
CREATE TABLE agent_metas ( -- The sidecar file of a subagent
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
CREATE TABLE agent_links ( -- Evidence that a tool call spawned a subagent
    id integer primary key,
    agent_key text not null,            -- the subagent
    tool_use_id text not null,          -- the call that this line says spawned it
    method integer not null,            -- 1 meta, 2 result, 3 progress, 4 result-text, 5 notification: smaller is trusted more
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key, tool_use_id, method)
) strict;
CREATE INDEX agent_links_agent on agent_links (agent_key);
CREATE TABLE workflow_links ( -- Evidence that a workflow run belongs to a tool call or a background task
    id integer primary key,
    run text,                           -- the workflow run
    task_key text,                      -- the background task that it runs as
    tool_use_id text,                   -- the call that started it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE workflow_agents ( -- A subagent that the journal or the snapshot of a workflow run names
    id integer primary key,
    agent_key text not null,            -- the subagent
    label text,                         -- what it is for
    phase text,                         -- phase of the workflow
    state text,                         -- as the journal or the snapshot states it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key)
) strict;
CREATE TABLE teams ( -- A team of agents
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
CREATE INDEX teams_lead on teams (lead_session_id) where lead_session_id is not null;
CREATE INDEX teams_file on teams (file_id) where file_id is not null;
CREATE TABLE team_members ( -- A member of a team
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
, gone_at text /* when a sync found it missing from its team */, ordinal integer not null default 0 /* among equals */, extra text /* JSON object: what else the configuration states of it */) strict;
CREATE INDEX team_members_team on team_members (team_id);
CREATE INDEX team_members_file on team_members (file_id);
CREATE TABLE task_links ( -- An edge as one file states it; both tasks state theirs, task_dependencies has each once
    id integer primary key,
    task_key text not null,             -- the task that waits
    blocker_key text not null,          -- the task that it waits for
    list_key text not null,             -- list that both belong to
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, task_key, blocker_key)
) strict;
CREATE TABLE task_dependencies ( -- An edge: task_key is blocked by blocker_key
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
CREATE INDEX task_dependencies_file on task_dependencies (file_id);
CREATE INDEX task_dependencies_task on task_dependencies (task_id) where task_id is not null;
CREATE INDEX task_dependencies_blocker on task_dependencies (blocker_id) where blocker_id is not null;
CREATE TABLE task_changes ( -- A change of a task: seen between two syncs, or stated by a file
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
CREATE INDEX task_changes_file on task_changes (file_id) where file_id is not null;
CREATE INDEX task_changes_task on task_changes (task_id);
CREATE TABLE inbox_items ( -- A message from one agent to another
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
, joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(summary, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob)) then null
        when not (instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'c2ad')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'cd8f')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'd89c')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e1a08e')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'efbbbf')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e280')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(summary, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(text, '') || char(10) || coalesce(summary, ''))
    end) virtual /* text and summary without invisible letters; null where they have none */) strict;
CREATE UNIQUE INDEX inbox_items_key on inbox_items (
    file_id, byte_offset, coalesce(timestamp, ''), coalesce(sender, ''), coalesce(text_hash, ''), ordinal
);
CREATE UNIQUE INDEX inbox_items_use on inbox_items (file_id, tool_use_id) where tool_use_id is not null;
CREATE INDEX inbox_items_hash on inbox_items (text_hash);
CREATE INDEX inbox_items_message on inbox_items (message_key) where message_key is not null;
CREATE INDEX inbox_items_team on inbox_items (team_id) where team_id is not null;
CREATE INDEX inbox_items_session on inbox_items (session_id) where session_id is not null;
CREATE INDEX inbox_items_copy on inbox_items (copy_of) where copy_of is not null;
CREATE TABLE plan_lines ( -- A line of a plan, classified
    id integer primary key,
    kind text not null,                 -- heading, code_fence, code_block, normal
    text text not null,                 -- the line
    number integer not null,            -- from 1
    plan_id integer references plans (id) on delete cascade, -- the plan
    file_id integer not null references files (id) on delete cascade, -- file it comes from
    unique (file_id, number)
) strict;
CREATE INDEX plan_lines_plan on plan_lines (plan_id);
CREATE TABLE documents ( -- A note, memory, summary or ticket
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
    ordinal integer not null default 0, gone_at text /* of a ticket: when a sync found it missing from its list */, extra text /* JSON object: what else its file states of it */, joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || coalesce(text, '')) = length(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob)) then null
        when not (instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'c2ad')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'cd8f')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'd89c')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e1a08e')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'efbbbf')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e280')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || coalesce(text, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(title, '') || char(10) || coalesce(text, ''))
    end) virtual /* title and text without invisible letters; null where they have none */, -- among the documents of one file
    unique (file_id, ordinal)
) strict;
CREATE INDEX documents_project_key on documents (project_key) where project_key is not null;
CREATE INDEX documents_session_key on documents (session_key) where session_key is not null;
CREATE INDEX documents_session on documents (session_id) where session_id is not null;
CREATE INDEX documents_project on documents (project_id) where project_id is not null;
CREATE TABLE prompts ( -- A line of the global prompt history
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
    byte_length integer not null, joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(pasted, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob)) then null
        when not (instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'c2ad')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'cd8f')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'd89c')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e1a08e')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'efbbbf')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e280')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(pasted, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(text, '') || char(10) || coalesce(pasted, ''))
    end) virtual /* text and pasted without invisible letters; null where they have none */,
    unique (file_id, byte_offset)
) strict;
CREATE INDEX prompts_project_key on prompts (project_key) where project_key is not null;
CREATE INDEX prompts_session_key on prompts (session_key) where session_key is not null;
CREATE INDEX prompts_session on prompts (session_id) where session_id is not null;
CREATE INDEX prompts_project on prompts (project_id) where project_id is not null;
CREATE TABLE pastes ( -- A pasted text that prompts refer to by its hash
    id integer primary key,
    text text not null,                 -- the text
    hash text not null,                 -- first 16 hex digits of its SHA-256
    file_id integer not null unique references files (id) on delete cascade -- file it comes from
) strict;
CREATE INDEX pastes_hash on pastes (hash);
CREATE TABLE hook_events ( -- A hook event, in file order
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
CREATE INDEX hook_events_session on hook_events (session_id) where session_id is not null;
CREATE INDEX hook_events_subagent on hook_events (subagent_id) where subagent_id is not null;
CREATE TABLE links ( -- A pull request, frame or worktree of a session
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
, gone_at text /* when a sync found it missing from the list that stated it */, origin text /* of a worktree: the directory from which it was made */) strict;
CREATE UNIQUE INDEX links_key on links (file_id, kind, url, coalesce(session_key, ''));
CREATE INDEX links_session_key on links (session_key) where session_key is not null;
CREATE INDEX links_session on links (session_id) where session_id is not null;
CREATE TABLE file_snapshots ( -- A file that the agent tracked in a snapshot
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
CREATE UNIQUE INDEX file_snapshots_key on file_snapshots (file_id, path, coalesce(version, -1));
CREATE INDEX file_snapshots_session on file_snapshots (session_id) where session_id is not null;
CREATE TABLE tool_result_files ( -- A tool output that was too large for its transcript
    id integer primary key,
    name text not null,                 -- path under tool-results/
    size integer not null,              -- bytes
    media_type text,                    -- text/plain, image/png, ...
    text text,                          -- up to a limit; null for binaries
    session_key text,
    tool_use_id text,                   -- the stem, where it is one
    session_id integer references sessions (id) on delete set null,
    file_id integer not null unique references files (id) on delete cascade
, joined text
    generated always as (case
        when length(text) = length(cast(text as blob)) then null
        when not (instr(cast(text as blob), x'c2ad') or instr(cast(text as blob), x'cd8f') or instr(cast(text as blob), x'd89c')
            or instr(cast(text as blob), x'e1a08e') or instr(cast(text as blob), x'efbbbf') or instr(cast(text as blob), x'e280')
            or instr(cast(text as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        text)
    end) virtual /* text without invisible letters; null where it has none */) strict;
CREATE INDEX tool_result_files_session_key on tool_result_files (session_key) where session_key is not null;
CREATE INDEX tool_result_files_session on tool_result_files (session_id) where session_id is not null;
CREATE INDEX tool_result_files_use on tool_result_files (tool_use_id) where tool_use_id is not null;
CREATE TABLE issues ( -- Something that could not be read, or only with loss
    id integer primary key,
    reason text not null,               -- what is wrong, in words
    quarantined integer not null,       -- 1: the piece became no record; 0: a record with loss
    sample text,                        -- its first 4 KB
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
CREATE INDEX issues_file on issues (file_id);
CREATE TABLE line_types ( -- A type of line in a file, and how often it stands there
    id integer primary key,
    type text not null,                 -- value of "type"; '' where an object has none
    subtype text not null,              -- of system, attachment, progress, queue-operation; else ''
    count integer not null,             -- decoded objects
    file_id integer not null references files (id) on delete cascade, first_offset integer /* first byte of the first such line that the system itself wrote, if that is known */,
    unique (file_id, type, subtype)
) strict;
CREATE TABLE sync_runs ( -- A run of sync
    id integer primary key,
    started_at text not null,           -- when it began
    finished_at text,                   -- when it ended
    files_read integer not null,        -- files that were opened because they had changed
    bytes_read integer not null,        -- bytes of them that were new
    rows integer not null,              -- rows written to messages
    issues integer not null,            -- rows written to issues
    error text                          -- why it ended early
) strict;
CREATE TABLE archive ( -- A stretch of a file's original bytes, compressed
    id integer primary key,
    file_id integer not null references files (id) on delete cascade,
    start integer not null,             -- first byte of the stretch
    "end" integer not null,             -- byte after its last
    codec text not null,                -- zstd
    data blob not null, line_count integer /* line breaks in the stretch; null: not counted when it was written */,                 -- the compressed bytes
    unique (file_id, start)
) strict;
CREATE TABLE prices ( -- Price of a model from a day on; one you change or add is never overwritten
    id integer primary key,
    model text not null,                -- model, as responses name it
    valid_from text not null default '', -- first day (UTC, YYYY-MM-DD) of this price; '': always was
    above_tokens integer not null default 0, -- the price of requests with more input than this, cached input included; 0: of all
    input integer,                      -- millionths of a dollar for a million tokens, as all below
    output integer,                     -- output
    cache_read integer,                 -- input read from the cache
    cache_write_5m integer,             -- input written to the cache for five minutes
    cache_write_1h integer,             -- input written to the cache for an hour
    web_search integer,                 -- millionths of a dollar for a thousand searches
    origin text not null default 'user', -- user, or the version of genai-prices that it was taken from
    unique (model, valid_from, above_tokens)
) strict;
CREATE TRIGGER prices_edited after update of model, valid_from, above_tokens, input, output,
    cache_read, cache_write_5m, cache_write_1h, web_search on prices
when new.origin = old.origin and new.origin <> 'user' begin
    update prices set origin = 'user' where id = new.id;
end;
CREATE TABLE forgotten ( -- A conversation, file or directory that `forget` removed, and that no sync reads
    id integer primary key,
    session_key text,                   -- the conversation; beside a path: the one that it was forgotten with
    path text,                          -- the file or directory, relative to the root; null: all that names the conversation
    root text,                          -- root in which it is forgotten; null: every root
    forgotten_at text not null,         -- when it was forgotten
    is_pending integer not null, content_hash blob /* fingerprint of the file that was forgotten, 16 bytes: of its length, its first and last KiB and its checksum */, content_length integer /* bytes that the fingerprint is of; a copy has as many, and a log begins with them */,        -- 1: pages with its text may still be on the disk, until `compact` has run
    check (session_key is not null or path is not null)
) strict;
CREATE UNIQUE INDEX team_members_key on team_members (file_id, coalesce(agent_id, name, ''), ordinal);
CREATE TABLE todos ( -- An item of a todo list
    id integer primary key,
    content text,                       -- what is to be done
    status text,                        -- pending, in_progress, completed
    priority text,                      -- high, medium, low; old versions only
    active_form text,                   -- what is shown while it runs
    position integer not null,          -- place in its list; of one that is gone, its last one
    gone_at text,                       -- when a sync found it missing from its list
    session_key text,
    agent_key text,                     -- the session's own id for the main agent
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    ordinal integer not null default 0, -- among equals
    file_id integer not null references files (id) on delete cascade
, channel text not null default 'file' /* file; transcript: its list has no file that names anything, so the last call tells of it */, stated_at text /* of a transcript: time of that call */, tool_use_id text /* of a transcript: that call */, byte_offset integer not null default 0 /* of a transcript: first byte of its line */, joined text
    generated always as (case
        when length(content) = length(cast(content as blob)) then null
        when not (instr(cast(content as blob), x'c2ad') or instr(cast(content as blob), x'cd8f') or instr(cast(content as blob), x'd89c')
            or instr(cast(content as blob), x'e1a08e') or instr(cast(content as blob), x'efbbbf') or instr(cast(content as blob), x'e280')
            or instr(cast(content as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        content
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        content)
    end) virtual /* content without invisible letters; null where it has none */) strict;
CREATE INDEX todos_session_key on todos (session_key) where session_key is not null;
CREATE INDEX todos_session on todos (session_id) where session_id is not null;
CREATE INDEX todos_subagent on todos (subagent_id) where subagent_id is not null;
CREATE INDEX todos_status on todos (status);
CREATE UNIQUE INDEX forgotten_key on forgotten (
    coalesce(session_key, ''), coalesce(path, ''), coalesce(root, ''), coalesce(content_hash, x'')
);
CREATE TABLE agents ( -- A named agent of an application: conversations are held with it
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
CREATE INDEX agents_project on agents (project_id) where project_id is not null;
CREATE INDEX agents_file on agents (file_id) where file_id is not null;
CREATE INDEX sessions_agent on sessions (agent_id) where agent_id is not null;
CREATE INDEX session_entries_agent on session_entries (agent_key) where agent_key is not null;
CREATE TABLE line_extras ( -- What a line or a document states beside what has a row or a column
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
CREATE INDEX line_extras_session on line_extras (session_id) where session_id is not null;
CREATE TABLE unmatched_results ( -- A tool result that does not say which call it answers; it is taken for that of the last open call
    id integer primary key,
    name text,                          -- tool that it names; null: any
    is_error integer not null,          -- 1: it reports an error
    timestamp text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    block integer not null,
    unique (file_id, byte_offset, block)
) strict;
CREATE TABLE git_changes ( -- A changed file of a project, as git listed it at the last sync --git
    id integer primary key,
    path text not null,                 -- relative to the top of the repository; a directory that is untracked as a whole ends in /; bytes that are no text are escaped like \xff
    status text not null,               -- staged, unstaged or untracked
    letter text not null,               -- M modified, A added, D deleted, R renamed, C copied, T type changed, U unmerged, ? untracked
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null, is_diff_cut integer /* 1: git_diff_lines has only a part of its diff, or nothing of it; 0: all; null for an untracked file, which has none */,              -- when git was asked
    unique (project_id, path, status)
) strict;
CREATE TABLE git_branches ( -- A branch of a project's repository, as git listed it at the last sync --git
    id integer primary key,
    name text not null,                 -- name of the branch
    is_current integer not null,        -- 1: checked out in the project's directory
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, name)
) strict;
CREATE TABLE contexts ( -- Branch, version and permission mode of the lines of a file, where they change
    id integer primary key,
    name text not null,                 -- git_branch, agent_version or permission_mode
    value text not null,                -- its value from here on; '': none, as outside of a repository
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the first line that states it
    unique (file_id, name, byte_offset)
) strict;
CREATE INDEX tool_calls_searches on tool_calls (response_key, tool_use_id, search_count) where search_count is not null;
CREATE TABLE agent_lines ( -- A line that repeats a message of a subagent which has no file of its own
    id integer primary key,
    agent_key text not null,            -- the subagent whose message it is
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line; its messages have the same
    unique (file_id, byte_offset)
) strict;
CREATE INDEX agent_lines_agent on agent_lines (agent_key);
CREATE TABLE agent_totals ( -- What the result of a call states about the run of the subagent that it spawned
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
CREATE INDEX agent_totals_agent on agent_totals (agent_key);
CREATE INDEX files_agent on files (source_id, agent_key) where agent_key is not null;
CREATE INDEX tool_calls_session on tool_calls (session_id, name, status);
CREATE INDEX hook_events_session_key on hook_events (session_key, event);
CREATE INDEX inbox_items_kind on inbox_items (kind);
CREATE INDEX links_worktree on links (url) where kind = 'worktree';
CREATE INDEX projects_place on projects (source_id, lower(path));
CREATE INDEX projects_repository on projects (source_id, lower(repository)) where repository is not null;
CREATE TABLE statements ( -- What a line of a transcript states about tasks, todos or a plan; tasks, todos and plans have what follows
    id integer primary key,
    kind text not null,                 -- task, todos, plan
    list_key text not null,             -- list of the task: the team's or the session's; session of the todos; name of the plan, else its session
    task_key text,                      -- the task; of one that was made, its result tells
    stated text,                        -- JSON object: what the call, or the line, states; null: only the result is in this file
    answered text,                      -- JSON object: what the result adds
    timestamp text,                     -- of the line that states it
    tool_use_id text,                   -- the call, if it is one
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    block integer not null
) strict;
CREATE UNIQUE INDEX statements_call on statements (file_id, tool_use_id) where tool_use_id is not null;
CREATE UNIQUE INDEX statements_place on statements (file_id, byte_offset, block);
CREATE INDEX statements_list on statements (list_key, kind);
CREATE TABLE tasks ( -- A task of a task list
    id integer primary key,
    subject text,                       -- what is to be done, in a few words
    description text,                   -- what is to be done
    status text,                        -- pending, in_progress, completed, deleted
    owner text,                         -- agent that does it
    active_form text,                   -- what is shown while it runs
    metadata text,                      -- JSON object
    task_number integer,                -- task_key, where that is a number: to sort by
    task_key text not null,             -- number or name within its list
    list_key text not null,             -- session, team or name that the list belongs to
    session_id integer references sessions (id) on delete set null,
    team_id integer references teams (id) on delete set null,
    gone_at text,                       -- when a sync found it missing
    channel text not null default 'file', -- file; transcript: no file of it is there, so calls tell of it
    stated_at text,                     -- of a transcript: time of the last call that counts
    blocked_by text,                    -- of a transcript: JSON array of the tasks that it waits for, see task_dependencies
    tool_use_id text,                   -- of a transcript: the last call that counts
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null, -- the file; or the transcript with the last call that counts
    byte_offset integer not null default 0 -- first byte of the line of that call
, joined text
    generated always as (case
        when length(coalesce(subject, '') || char(10) || coalesce(description, '')) = length(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob)) then null
        when not (instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'c2ad')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'cd8f')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'd89c')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e1a08e')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'efbbbf')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e280')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(subject, '') || char(10) || coalesce(description, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(subject, '') || char(10) || coalesce(description, ''))
    end) virtual /* subject and description without invisible letters; null where they have none */) strict;
CREATE UNIQUE INDEX tasks_key on tasks (source_id, list_key, task_key, channel);
CREATE INDEX tasks_list on tasks (list_key);
CREATE INDEX tasks_session on tasks (session_id) where session_id is not null;
CREATE INDEX tasks_team on tasks (team_id) where team_id is not null;
CREATE INDEX tasks_status on tasks (status);
CREATE INDEX tasks_file on tasks (file_id) where file_id is not null;
CREATE TABLE plans ( -- A plan: a file, or what only a transcript tells of
    id integer primary key,
    title text,                         -- first heading, else (untitled)
    text text not null,                 -- the plan, Markdown
    name text not null,                 -- file name without extension; '' of one that never had a file
    status text,                        -- as the last call that proposed it ended: accepted, rejected, or proposed (no answer yet); null: no call did
    modified_at text,                   -- modification time of the file; of a transcript, time of the line
    session_id integer references sessions (id) on delete set null,
    channel text not null default 'file', -- file; transcript: no file of it is there, so calls and attachments tell of it
    tool_use_id text,                   -- of a transcript: the call that proposed it
    file_id integer not null references files (id) on delete cascade, -- the file; or the transcript that has its text
    byte_offset integer not null default 0 -- first byte of that line
, joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || text) = length(cast(coalesce(title, '') || char(10) || text as blob)) then null
        when not (instr(cast(coalesce(title, '') || char(10) || text as blob), x'c2ad')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'cd8f')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'd89c')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e1a08e')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'efbbbf')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e280')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || text
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(title, '') || char(10) || text)
    end) virtual /* title and text without invisible letters; null where they have none */) strict;
CREATE UNIQUE INDEX plans_key on plans (file_id, byte_offset, name);
CREATE INDEX plans_name on plans (name);
CREATE INDEX plans_session on plans (session_id) where session_id is not null;
CREATE UNIQUE INDEX todos_key on todos (file_id, coalesce(content, ''), ordinal, coalesce(tool_use_id, ''));
CREATE VIRTUAL TABLE messages_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages", content_rowid="id",
    tokenize="unicode61 remove_diacritics 2"
);
CREATE TRIGGER messages_fts_delete after delete on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
end;
CREATE TRIGGER messages_fts_update after update of text, tool_text, has_invisible, joined_text, joined_tool_text on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
    insert into messages_fts (rowid, text, tool_text, joined_text, joined_tool_text)
    values (new.id, new.text, new.tool_text, new.joined_text, new.joined_tool_text);
end;
CREATE VIEW messages_cjk as -- Messages that hold Chinese, Japanese or Korean: what messages_cjk_fts indexes
select id, text, tool_text, joined_text, joined_tool_text
from messages
where has_cjk = 1;
CREATE VIRTUAL TABLE messages_cjk_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages_cjk", content_rowid="id",
    tokenize="trigram"
);
CREATE TRIGGER messages_cjk_fts_delete after delete on messages when old.has_cjk = 1 begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
end;
CREATE TRIGGER messages_cjk_fts_update after update of text, tool_text, has_cjk, has_invisible, joined_text, joined_tool_text on messages begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    select 'delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text where old.has_cjk = 1;
    insert into messages_cjk_fts (rowid, text, tool_text, joined_text, joined_tool_text)
    select new.id, new.text, new.tool_text, new.joined_text, new.joined_tool_text where new.has_cjk = 1;
end;
CREATE VIRTUAL TABLE inbox_items_fts using fts5 (text, summary, joined, content="inbox_items", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE tasks_fts using fts5 (subject, description, joined, content="tasks", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE todos_fts using fts5 (content, joined, content="todos", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE plans_fts using fts5 (title, text, joined, content="plans", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE documents_fts using fts5 (title, text, joined, content="documents", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE prompts_fts using fts5 (text, pasted, joined, content="prompts", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE tool_result_files_fts using fts5 (text, joined, content="tool_result_files", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE INDEX transcripts_forked_from on transcripts (forked_from_key) where forked_from_key is not null;
CREATE INDEX archive_lines on archive (file_id, start, "end", line_count);
CREATE TABLE forgotten_secrets ( -- A credential that `forget --secret` removed, and that no sync stores again
    id integer primary key,
    fingerprint text not null unique,   -- what reports name it by
    rule text not null,                 -- the rule that found it
    length integer not null,            -- letters that it has
    core_start integer,                 -- where in it the longest run of letters and digits begins; null: only the rule finds it again
    core_length integer,                -- letters of that run
    salt blob not null,                 -- random key of the hash, the same in all rows of a database
    hash blob not null,                 -- keyed hash of the credential, 16 bytes
    forgotten_at text not null,         -- when it was forgotten
    is_pending integer not null         -- 1: pages with it may still be on the disk, until `compact` has run
) strict;
CREATE TABLE superseded ( -- What a conversation took back: a rewind, a roll-back, a revert
    id integer primary key,
    timestamp text,                     -- when it was taken back
    first_uuid text,                    -- the first line that was taken back, if it is named; of an unknown one, the whole file was
    first_offset integer,               -- where the first line begins that was taken back, if that is known
    file_id integer not null references files (id),
    byte_offset integer not null,       -- the line that says so: everything between is taken back
    unique (file_id, byte_offset)
) strict;
CREATE INDEX projects_path on projects (lower(path));
CREATE INDEX projects_same_as on projects (same_as) where same_as is not null;
CREATE TABLE unpriced ( -- A model whose price the library does not know; asked again when the library is newer
    id integer primary key,
    model text not null unique,         -- model, as responses name it
    origin text not null                -- the version of genai-prices that was asked
) strict;
CREATE TABLE identity ( -- The name of this database: another one, made from the same files, has another
    id integer primary key,
    database_key blob not null          -- 16 random bytes
) strict;
CREATE UNIQUE INDEX files_file_key on files (file_key);
CREATE TABLE changes ( -- A transaction that changed rows; only the last ones are kept
    id integer primary key,
    mark integer not null               -- random: a database that was restored from a copy has other marks at the same ids
) strict;
CREATE TABLE changed_rows ( -- What a change touched
    id integer primary key,
    name text not null,                 -- table: files, or one of those whose rows outlive files
    row_id integer,                     -- the row; of files, the file whose rows or bytes changed; null: a row was removed
    start integer,                      -- of files: the first place in the file where anything changed; null: only its own row and its counts
    change_id integer not null references changes (id) on delete cascade -- the change
) strict;
CREATE INDEX changed_rows_change on changed_rows (change_id);
CREATE TABLE forgotten_files ( -- A file that was forgotten: what other records have of it has to go, too
    id integer primary key,
    file_key blob not null unique,      -- key that the file had
    change_id integer not null          -- the change that removed it
) strict;
CREATE TRIGGER inbox_items_fts_insert after insert on inbox_items begin
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;
CREATE TRIGGER inbox_items_fts_delete after delete on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
end;
CREATE TRIGGER inbox_items_fts_update after update of text, summary, joined on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;
CREATE TRIGGER tasks_fts_insert after insert on tasks begin
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;
CREATE TRIGGER tasks_fts_delete after delete on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
end;
CREATE TRIGGER tasks_fts_update after update of subject, description, joined on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;
CREATE TRIGGER todos_fts_insert after insert on todos begin
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;
CREATE TRIGGER todos_fts_delete after delete on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
end;
CREATE TRIGGER todos_fts_update after update of content, joined on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;
CREATE TRIGGER plans_fts_insert after insert on plans begin
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER plans_fts_delete after delete on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
CREATE TRIGGER plans_fts_update after update of title, text, joined on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER documents_fts_insert after insert on documents begin
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER documents_fts_delete after delete on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
CREATE TRIGGER documents_fts_update after update of title, text, joined on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER prompts_fts_insert after insert on prompts begin
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;
CREATE TRIGGER prompts_fts_delete after delete on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
end;
CREATE TRIGGER prompts_fts_update after update of text, pasted, joined on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;
CREATE TRIGGER tool_result_files_fts_insert after insert on tool_result_files begin
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
CREATE TRIGGER tool_result_files_fts_delete after delete on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
end;
CREATE TRIGGER tool_result_files_fts_update after update of text, joined on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
CREATE INDEX responses_complete on responses (model, output_tokens, written_bytes)
    where partial = 0 and written_bytes > 0;
CREATE INDEX responses_partial on responses (session_id) where partial = 1;
CREATE TABLE stated_usage ( -- What an agent states of its own use at a line: sums of its session so far
    id integer primary key,
    model text not null,                -- model as the agent names it; '': all models
    timestamp text,                     -- of the line
    input_tokens integer,               -- tokens that were not cached
    output_tokens integer,              -- output tokens
    cache_read_tokens integer,          -- tokens read from the cache
    cache_write_tokens integer,         -- tokens written to the cache
    cost_usd real,                      -- cost in dollars
    is_lower_bound integer not null,    -- 1: the agent knows no price for some of it
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset, model)
) strict;
CREATE INDEX links_lineage on links (url) where kind in ('continued_in', 'derived_from');
CREATE TABLE git_diff_lines ( -- A line of the diff of a staged or unstaged change, at the last sync --git; at most 512 KiB for the staged changes of a project and as much for the others, and 1,000 lines a file
    id integer primary key,
    path text not null,                 -- as in git_changes
    status text not null,               -- staged: against the last commit; unstaged: against what is staged
    position integer not null,          -- number of the line in the diff of its file, from 1
    kind text not null,                 -- header (what git says of the file), hunk (where the next lines stand), add, remove or context
    text text not null,                 -- the line, without its sign if it is added, removed or context; stars cover what looks like a credential
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, path, status, position)
) strict;
CREATE INDEX transcripts_of_no_session on transcripts (file_id) where stated_session_key is null;
CREATE INDEX messages_prompts on messages (session_id, file_id, subagent_id, uuid, copy_of, byte_offset, kind)
    where kind = 'prompt' or kind = 'command' or kind = 'bash_input' or kind = 'queued_prompt';
CREATE TABLE added_lines ( -- A line that an edit added to a file, without blanks around it; short lines, and those of an input that is cut, are left out
    id integer primary key,
    line_hash integer not null,         -- first 6 bytes of the BLAKE2b of the line, as a number
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line of the transcript
    block integer not null              -- with byte_offset the message with the call
) strict;
CREATE INDEX added_lines_hash on added_lines (line_hash);
CREATE INDEX added_lines_file on added_lines (file_id);
CREATE INDEX responses_stated on responses (session_id, stated_cost_usd)
    where stated_cost_usd is not null;
CREATE TABLE git_commits ( -- A file that a commit changed, as git listed it at the last sync --git: commits of what was checked out, since the first conversation, without merges; at most 1,000 commits per project
    id integer primary key,
    path text not null,                 -- relative to the directory of the project; of a renamed file there are both names
    hash text not null,                 -- of the commit
    authored_at text not null,          -- when it was written; an amended, rebased or picked commit keeps it
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, path, hash)
) strict;
CREATE INDEX projects_repository_key on projects (repository_key);
CREATE INDEX tool_calls_git on tool_calls (session_id) where action = 'run'
  and (target like '%git %origin%' or target like '%git remote -v%');
CREATE INDEX line_extras_git on line_extras (session_id) where type in (
    'session_meta', 'session.start', 'session.resume', 'session.context_changed', 'project'
);
CREATE TABLE notes ( -- What a user noted on a conversation, a line or a file
    id integer primary key,
    text text,                          -- the note
    verdict text,                       -- kept: a decision that held; rejected: one that was turned down
    title text,                         -- the user's own title of the conversation
    is_starred integer not null default 0, -- 1: it has a star
    noted_at text not null,             -- when it was last changed
    path text,                          -- the file, absolute, with forward slashes
    session_key text,                   -- the conversation, or that of the line
    line_key text,                      -- the line: its uuid, or without one PATH@OFFSET of its file; null: the conversation
    origin text, joined text
    generated always as (case
        when length(text) = length(cast(text as blob)) then null
        when not (instr(cast(text as blob), x'c2ad') or instr(cast(text as blob), x'cd8f') or instr(cast(text as blob), x'd89c')
            or instr(cast(text as blob), x'e1a08e') or instr(cast(text as blob), x'efbbbf') or instr(cast(text as blob), x'e280')
            or instr(cast(text as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        text)
    end) virtual /* text without invisible letters; null where it has none */,                        -- label of the machine that it was pulled from; null: it was written here
    check ((path is null) <> (session_key is null))
) strict;
CREATE UNIQUE INDEX notes_target on notes (
    coalesce(session_key, ''), coalesce(line_key, ''), coalesce(path, ''), coalesce(origin, '')
);
CREATE INDEX notes_session on notes (session_key) where session_key is not null;
CREATE VIRTUAL TABLE notes_fts using fts5 (text, joined, content="notes", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TRIGGER notes_fts_insert after insert on notes begin
    insert into notes_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
CREATE TRIGGER notes_fts_delete after delete on notes begin
    insert into notes_fts (notes_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
end;
CREATE TRIGGER notes_fts_update after update of text, joined on notes begin
    insert into notes_fts (notes_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
    insert into notes_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
insert into _sqlite_migrations (migration_set, name, applied_at) values
  ('assoc-ingest', '0001_initial', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0002_costs', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0003_forgotten', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0004_gone_entries', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0005_forgotten_content', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0006_applications', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0007_git_changes', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0008_lines', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0009_agents_without_files', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0010_views', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0011_worktrees', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0012_statements', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0013_invisible_letters', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0014_sources', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0015_actions', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0016_context', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0017_stated_forks', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0018_archive_lines', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0019_searchable', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0020_forgotten_secrets', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0021_superseded', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0022_same_projects', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0023_usage_by_source', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0024_unpriced', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0025_changes', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0026_invisible_letters_sooner', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0027_partial', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0028_stated_usage', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0029_lineage', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0030_branches', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0031_usage_views', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0032_git_diffs', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0033_directories', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0034_stated_usage_exactly', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0035_prompts_index', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0036_added_lines', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0037_stated_costs', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0038_git_commits', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0039_repositories', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now')),
  ('assoc-ingest', '0040_notes', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'));

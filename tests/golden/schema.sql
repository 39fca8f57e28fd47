CREATE INDEX agent_lines_agent on agent_lines (agent_key);
CREATE INDEX agent_links_agent on agent_links (agent_key);
CREATE INDEX agent_totals_agent on agent_totals (agent_key);
CREATE INDEX agents_file on agents (file_id) where file_id is not null;
CREATE INDEX agents_project on agents (project_id) where project_id is not null;
CREATE INDEX archive_lines on archive (file_id, start, "end", line_count);
CREATE INDEX documents_project on documents (project_id) where project_id is not null;
CREATE INDEX documents_project_key on documents (project_key) where project_key is not null;
CREATE INDEX documents_session on documents (session_id) where session_id is not null;
CREATE INDEX documents_session_key on documents (session_key) where session_key is not null;
CREATE UNIQUE INDEX file_snapshots_key on file_snapshots (file_id, path, coalesce(version, -1));
CREATE INDEX file_snapshots_session on file_snapshots (session_id) where session_id is not null;
CREATE INDEX files_agent on files (source_id, agent_key) where agent_key is not null;
CREATE INDEX files_kind on files (kind);
CREATE INDEX files_project on files (project_id);
CREATE INDEX files_session on files (session_id);
CREATE INDEX files_subagent on files (subagent_id) where subagent_id is not null;
CREATE INDEX files_team on files (team_id) where team_id is not null;
CREATE UNIQUE INDEX forgotten_key on forgotten (
    coalesce(session_key, ''), coalesce(path, ''), coalesce(root, ''), coalesce(content_hash, x'')
);
CREATE INDEX hook_events_session on hook_events (session_id) where session_id is not null;
CREATE INDEX hook_events_session_key on hook_events (session_key, event);
CREATE INDEX hook_events_subagent on hook_events (subagent_id) where subagent_id is not null;
CREATE INDEX inbox_items_copy on inbox_items (copy_of) where copy_of is not null;
CREATE INDEX inbox_items_hash on inbox_items (text_hash);
CREATE UNIQUE INDEX inbox_items_key on inbox_items (
    file_id, byte_offset, coalesce(timestamp, ''), coalesce(sender, ''), coalesce(text_hash, ''), ordinal
);
CREATE INDEX inbox_items_kind on inbox_items (kind);
CREATE INDEX inbox_items_message on inbox_items (message_key) where message_key is not null;
CREATE INDEX inbox_items_session on inbox_items (session_id) where session_id is not null;
CREATE INDEX inbox_items_team on inbox_items (team_id) where team_id is not null;
CREATE UNIQUE INDEX inbox_items_use on inbox_items (file_id, tool_use_id) where tool_use_id is not null;
CREATE INDEX issues_file on issues (file_id);
CREATE INDEX line_extras_session on line_extras (session_id) where session_id is not null;
CREATE UNIQUE INDEX links_key on links (file_id, kind, url, coalesce(session_key, ''));
CREATE INDEX links_session on links (session_id) where session_id is not null;
CREATE INDEX links_session_key on links (session_key) where session_key is not null;
CREATE INDEX links_worktree on links (url) where kind = 'worktree';
CREATE INDEX messages_copied on messages (session_id, kind) where copy_of is not null;
CREATE INDEX messages_copy on messages (copy_of) where copy_of is not null;
CREATE INDEX messages_has_cjk on messages (id) where has_cjk = 1;
CREATE INDEX messages_prompts on messages (session_id, file_id, subagent_id, uuid, copy_of, byte_offset, kind)
    where kind in ('prompt', 'command', 'bash_input', 'queued_prompt');
CREATE INDEX messages_queued on messages (file_id) where kind in ('queued_prompt', 'task_notification') and uuid is null;
CREATE INDEX messages_session on messages (session_id, kind);
CREATE INDEX messages_subagent on messages (subagent_id) where subagent_id is not null;
CREATE INDEX messages_uuid on messages (uuid, file_id) where uuid is not null;
CREATE INDEX pastes_hash on pastes (hash);
CREATE INDEX plan_lines_plan on plan_lines (plan_id);
CREATE UNIQUE INDEX plans_key on plans (file_id, byte_offset, name);
CREATE INDEX plans_name on plans (name);
CREATE INDEX plans_session on plans (session_id) where session_id is not null;
CREATE INDEX project_entries_project on project_entries (project_id);
CREATE INDEX projects_parent on projects (parent_id) where parent_id is not null;
CREATE INDEX projects_path on projects (lower(path));
CREATE INDEX projects_place on projects (source_id, lower(path));
CREATE INDEX projects_repository on projects (source_id, lower(repository)) where repository is not null;
CREATE INDEX projects_same_as on projects (same_as) where same_as is not null;
CREATE INDEX prompts_project on prompts (project_id) where project_id is not null;
CREATE INDEX prompts_project_key on prompts (project_key) where project_key is not null;
CREATE INDEX prompts_session on prompts (session_id) where session_id is not null;
CREATE INDEX prompts_session_key on prompts (session_key) where session_key is not null;
CREATE INDEX responses_file on responses (file_id);
CREATE INDEX responses_model on responses (model, timestamp);
CREATE INDEX responses_session on responses (
    session_id, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, stated_cost_usd
);
CREATE INDEX responses_subagent on responses (subagent_id) where subagent_id is not null;
CREATE INDEX session_entries_agent on session_entries (agent_key) where agent_key is not null;
CREATE INDEX session_entries_linked on session_entries (linked_session_key) where linked_session_key is not null;
CREATE INDEX session_entries_linked_id on session_entries (linked_session_id) where linked_session_id is not null;
CREATE INDEX session_entries_project on session_entries (project_id) where project_id is not null;
CREATE INDEX session_entries_session on session_entries (session_id);
CREATE INDEX sessions_agent on sessions (agent_id) where agent_id is not null;
CREATE INDEX sessions_ended on sessions (ended_at);
CREATE INDEX sessions_forked on sessions (forked_from) where forked_from is not null;
CREATE INDEX sessions_key on sessions (session_key);
CREATE INDEX sessions_linked on sessions (linked_session_id) where linked_session_id is not null;
CREATE INDEX sessions_project on sessions (project_id, ended_at);
CREATE INDEX sessions_slug on sessions (slug) where slug is not null;
CREATE UNIQUE INDEX statements_call on statements (file_id, tool_use_id) where tool_use_id is not null;
CREATE INDEX statements_list on statements (list_key, kind);
CREATE UNIQUE INDEX statements_place on statements (file_id, byte_offset, block);
CREATE INDEX subagents_agent on subagents (agent_key);
CREATE INDEX subagents_call on subagents (spawned_by) where spawned_by is not null;
CREATE UNIQUE INDEX subagents_key on subagents (source_id, coalesce(session_key, ''), agent_key);
CREATE INDEX subagents_parent on subagents (parent_id) where parent_id is not null;
CREATE INDEX subagents_session on subagents (session_id);
CREATE INDEX summaries_session on summaries (session_id);
CREATE INDEX task_changes_file on task_changes (file_id) where file_id is not null;
CREATE INDEX task_changes_task on task_changes (task_id);
CREATE INDEX task_dependencies_blocker on task_dependencies (blocker_id) where blocker_id is not null;
CREATE INDEX task_dependencies_file on task_dependencies (file_id);
CREATE INDEX task_dependencies_task on task_dependencies (task_id) where task_id is not null;
CREATE INDEX tasks_file on tasks (file_id) where file_id is not null;
CREATE UNIQUE INDEX tasks_key on tasks (source_id, list_key, task_key, channel);
CREATE INDEX tasks_list on tasks (list_key);
CREATE INDEX tasks_session on tasks (session_id) where session_id is not null;
CREATE INDEX tasks_status on tasks (status);
CREATE INDEX tasks_team on tasks (team_id) where team_id is not null;
CREATE INDEX team_members_file on team_members (file_id);
CREATE UNIQUE INDEX team_members_key on team_members (file_id, coalesce(agent_id, name, ''), ordinal);
CREATE INDEX team_members_team on team_members (team_id);
CREATE INDEX teams_file on teams (file_id) where file_id is not null;
CREATE INDEX teams_lead on teams (lead_session_id) where lead_session_id is not null;
CREATE UNIQUE INDEX todos_key on todos (file_id, coalesce(content, ''), ordinal, coalesce(tool_use_id, ''));
CREATE INDEX todos_session on todos (session_id) where session_id is not null;
CREATE INDEX todos_session_key on todos (session_key) where session_key is not null;
CREATE INDEX todos_status on todos (status);
CREATE INDEX todos_subagent on todos (subagent_id) where subagent_id is not null;
CREATE INDEX tool_calls_call on tool_calls (call_id) where call_id is not null;
CREATE INDEX tool_calls_result on tool_calls (result_id) where result_id is not null;
CREATE INDEX tool_calls_searches on tool_calls (response_key, tool_use_id, search_count) where search_count is not null;
CREATE INDEX tool_calls_session on tool_calls (session_id, name, status);
CREATE INDEX tool_calls_subagent on tool_calls (subagent_id) where subagent_id is not null;
CREATE INDEX tool_calls_use on tool_calls (tool_use_id) where tool_use_id is not null;
CREATE INDEX tool_result_files_session on tool_result_files (session_id) where session_id is not null;
CREATE INDEX tool_result_files_session_key on tool_result_files (session_key) where session_key is not null;
CREATE INDEX tool_result_files_use on tool_result_files (tool_use_id) where tool_use_id is not null;
CREATE INDEX transcripts_forked_from on transcripts (forked_from_key) where forked_from_key is not null;
CREATE INDEX usage_response on usage (response_key);
CREATE TABLE agent_lines (
    id integer primary key,
    agent_key text not null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE agent_links (
    id integer primary key,
    agent_key text not null,
    tool_use_id text not null,
    method integer not null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key, tool_use_id, method)
) strict;
CREATE TABLE agent_metas (
    id integer primary key,
    agent_type text,
    description text,
    name text,
    model text,
    spawn_depth integer,
    worktree_path text,
    is_fork integer,
    file_id integer not null unique references files (id) on delete cascade
) strict;
CREATE TABLE agent_totals (
    id integer primary key,
    agent_key text not null,
    agent_type text,
    tokens integer,
    duration_ms integer,
    tool_call_count integer,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key, byte_offset)
) strict;
CREATE TABLE agents (
    id integer primary key,
    name text not null,
    type text,
    description text,
    path text,
    is_general integer,
    extra text,
    agent_key text not null,
    project_key text not null,
    gone_at text,
    project_id integer references projects (id) on delete set null,
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null,
    unique (source_id, project_key, agent_key)
) strict;
CREATE TABLE archive (
    id integer primary key,
    file_id integer not null references files (id) on delete cascade,
    start integer not null,
    "end" integer not null,
    codec text not null,
    data blob not null, line_count integer /* line breaks in the stretch; null: not counted when it was written */,
    unique (file_id, start)
) strict;
CREATE TABLE contexts (
    id integer primary key,
    name text not null,
    value text not null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, name, byte_offset)
) strict;
CREATE TABLE documents (
    id integer primary key,
    kind text not null,
    title text,
    text text not null,
    path text not null,
    session_key text,
    project_path text,
    project_key text,
    session_id integer references sessions (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    modified_at text,
    file_id integer not null references files (id) on delete cascade,
    ordinal integer not null default 0, gone_at text /* of a ticket: when a sync found it missing from its list */, extra text /* JSON object: what else its file states of it */, joined text
    generated always as (case
    when length(coalesce(title, '') || char(10) || coalesce(text, '')) = length(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob)) then null
    when coalesce(title, '') || char(10) || coalesce(text, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    coalesce(title, '') || char(10) || coalesce(text, '')
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* title and text without invisible letters; null where they have none */,
    unique (file_id, ordinal)
) strict;
CREATE VIRTUAL TABLE documents_fts using fts5 (title, text, joined, content="documents", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE file_snapshots (
    id integer primary key,
    path text not null,
    version integer,
    backup_at text,
    backup_name text,
    message_uuid text,
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
CREATE TABLE files (
    id integer primary key,
    path text not null,
    kind text not null,
    size integer not null,
    offset integer not null,
    line_count integer not null,
    issue_count integer not null,
    mtime text,
    first_seen_at text not null,
    last_synced_at text not null,
    gone_at text,
    session_key text,
    agent_key text,
    team_key text,
    project_key text,
    workflow text,
    own_since text,
    generation integer not null,
    inode integer not null,
    device integer not null,
    mtime_ns integer not null,
    ctime_ns integer not null,
    head_hash blob,
    tail_hash blob,
    prefix_crc integer not null,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    team_id integer references teams (id) on delete set null,
    source_id integer not null references sources (id) on delete cascade, context text /* JSON that the lines before the offset leave to those behind it; null: nothing */,
    unique (source_id, path, generation)
) strict;
CREATE TABLE forgotten (
    id integer primary key,
    session_key text,
    path text,
    root text,
    forgotten_at text not null,
    is_pending integer not null, content_hash blob /* fingerprint of the file that was forgotten, 16 bytes: of its length, its first and last KiB and its checksum */, content_length integer /* bytes that the fingerprint is of; a copy has as many, and a log begins with them */,
    check (session_key is not null or path is not null)
) strict;
CREATE TABLE forgotten_secrets (
    id integer primary key,
    fingerprint text not null unique,
    rule text not null,
    length integer not null,
    core_start integer,
    core_length integer,
    salt blob not null,
    hash blob not null,
    forgotten_at text not null,
    is_pending integer not null
) strict;
CREATE TABLE git_branches (
    id integer primary key,
    name text not null,
    is_current integer not null,
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,
    unique (project_id, name)
) strict;
CREATE TABLE git_changes (
    id integer primary key,
    path text not null,
    status text not null,
    letter text not null,
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,
    unique (project_id, path, status)
) strict;
CREATE TABLE hook_events (
    id integer primary key,
    event text,
    cwd text,
    model text,
    source text,
    reason text,
    tool_name text,
    agent_type text,
    payload text not null,
    session_key text,
    agent_key text,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE inbox_items (
    id integer primary key,
    text text,
    sender text,
    recipient text,
    kind text not null,
    summary text,
    timestamp text,
    is_read integer,
    color text,
    payload text,
    channel text not null,
    team_id integer references teams (id) on delete set null,
    session_id integer references sessions (id) on delete set null,
    copy_of integer references inbox_items (id) on delete set null,
    gone_at text,
    team_name text,
    message_key text,
    text_hash text,
    tool_use_id text,
    ordinal integer not null default 0,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
, joined text
    generated always as (case
    when length(coalesce(text, '') || char(10) || coalesce(summary, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob)) then null
    when coalesce(text, '') || char(10) || coalesce(summary, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    coalesce(text, '') || char(10) || coalesce(summary, '')
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text and summary without invisible letters; null where they have none */) strict;
CREATE VIRTUAL TABLE inbox_items_fts using fts5 (text, summary, joined, content="inbox_items", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE issues (
    id integer primary key,
    reason text not null,
    quarantined integer not null,
    sample text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
) strict;
CREATE TABLE line_extras (
    id integer primary key,
    type text not null,
    timestamp text,
    extra text not null,
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE line_types (
    id integer primary key,
    type text not null,
    subtype text not null,
    count integer not null,
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, type, subtype)
) strict;
CREATE TABLE links (
    id integer primary key,
    kind text not null,
    url text not null,
    title text,
    timestamp text,
    session_key text,
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
, gone_at text /* when a sync found it missing from the list that stated it */, origin text /* of a worktree: the directory from which it was made */) strict;
CREATE TABLE messages (
    id integer primary key,
    kind text not null,
    text text,
    tool_text text,
    role text,
    timestamp text,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    model text,
    uuid text,
    parent_uuid text,
    is_meta integer not null,
    is_sidechain integer not null,
    is_error integer not null,
    is_cut integer not null,
    has_cjk integer not null,
    copy_of integer references messages (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
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
    , null)) virtual /* the same of tool_text */, is_superseded integer not null default 0 /* 1: taken back, and so no longer part of the conversation; see superseded */,
    unique (file_id, byte_offset, block)
) strict;
CREATE VIRTUAL TABLE messages_cjk_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages_cjk", content_rowid="id",
    tokenize="trigram"
);
CREATE VIRTUAL TABLE messages_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages", content_rowid="id",
    tokenize="unicode61 remove_diacritics 2"
);
CREATE TABLE pastes (
    id integer primary key,
    text text not null,
    hash text not null,
    file_id integer not null unique references files (id) on delete cascade
) strict;
CREATE TABLE plan_lines (
    id integer primary key,
    kind text not null,
    text text not null,
    number integer not null,
    plan_id integer references plans (id) on delete cascade,
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, number)
) strict;
CREATE TABLE plans (
    id integer primary key,
    title text,
    text text not null,
    name text not null,
    status text,
    modified_at text,
    session_id integer references sessions (id) on delete set null,
    channel text not null default 'file',
    tool_use_id text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null default 0
, joined text
    generated always as (case
    when length(coalesce(title, '') || char(10) || text) = length(cast(coalesce(title, '') || char(10) || text as blob)) then null
    when coalesce(title, '') || char(10) || text not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    coalesce(title, '') || char(10) || text
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* title and text without invisible letters; null where they have none */) strict;
CREATE VIRTUAL TABLE plans_fts using fts5 (title, text, joined, content="plans", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE prices (
    id integer primary key,
    model text not null,
    valid_from text not null default '',
    above_tokens integer not null default 0,
    input integer,
    output integer,
    cache_read integer,
    cache_write_5m integer,
    cache_write_1h integer,
    web_search integer,
    origin text not null default 'user',
    unique (model, valid_from, above_tokens)
) strict;
CREATE TABLE project_entries (
    id integer primary key,
    name text,
    path text,
    key text not null,
    parent_key text,
    is_worktree integer,
    git_branch text,
    project_id integer references projects (id) on delete set null,
    file_id integer not null references files (id) on delete cascade, gone_at text /* when a sync found it missing from its list */, extra text /* JSON object: what else the list states of it */,
    unique (file_id, key)
) strict;
CREATE TABLE projects (
    id integer primary key,
    name text,
    path text,
    key text not null,
    is_worktree integer,
    on_disk integer,
    git_branch text,
    is_dirty integer,
    head_branch text,
    session_count integer not null default 0,
    last_activity_at text,
    parent_id integer references projects (id) on delete set null,
    source_id integer not null references sources (id) on delete cascade, gone_at text /* since when nothing names it: only lists ever did, and none does any more */, git_seen_at text /* when git last answered for its directory */, change_count integer /* entries that git listed as changed then; git_changes has at most 1,000 of them */, repository text /* directory of the repository that it is a worktree of, as its path, a link or git says */, git_repository text /* the same, as git said; only with sync
    unique (source_id, key)
) strict;
CREATE TABLE prompts (
    id integer primary key,
    text text not null,
    timestamp text,
    project_path text,
    pasted text,
    paste_hashes text,
    project_key text,
    session_key text,
    session_id integer references sessions (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null, joined text
    generated always as (case
    when length(coalesce(text, '') || char(10) || coalesce(pasted, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob)) then null
    when coalesce(text, '') || char(10) || coalesce(pasted, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    coalesce(text, '') || char(10) || coalesce(pasted, '')
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text and pasted without invisible letters; null where they have none */,
    unique (file_id, byte_offset)
) strict;
CREATE VIRTUAL TABLE prompts_fts using fts5 (text, pasted, joined, content="prompts", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE responses (
    id integer primary key,
    model text,
    timestamp text,
    input_tokens integer not null,
    output_tokens integer not null,
    cache_read_tokens integer not null,
    cache_write_5m_tokens integer not null,
    cache_write_1h_tokens integer not null,
    web_searches integer not null,
    partial integer not null,
    stated_cost_usd real,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    api_message_id text,
    request_id text,
    response_key text not null unique,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null
, stop_reason text /* why the model stopped: end_turn, tool_use, max_tokens ...; null where the line that counts does not say */) strict;
CREATE TABLE session_entries (
    id integer primary key,
    kind text not null,
    title text,
    summary text,
    first_prompt text,
    started_at text,
    ended_at text,
    message_count integer,
    git_branch text,
    cwd text,
    model text,
    permission_mode text,
    status text,
    is_sidechain integer,
    input_tokens integer,
    output_tokens integer,
    cache_read_tokens integer,
    cache_write_tokens integer,
    cost_usd real,
    context_tokens integer,
    context_window integer,
    session_key text not null,
    linked_session_key text,
    project_key text,
    session_id integer references sessions (id) on delete set null,
    linked_session_id integer references sessions (id) on delete set null,
    project_id integer references projects (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null, gone_at text /* when a sync found it missing from its list */, agent_key text /* the application's agent with whom the conversation is held */, extra text /* JSON object: what else the list, registry or sidecar states of it */,
    unique (file_id, session_key, kind)
) strict;
CREATE TABLE sessions (
    id integer primary key,
    title text,
    title_source text,
    project_id integer references projects (id) on delete set null,
    started_at text,
    ended_at text,
    message_count integer not null default 0,
    prompt_count integer not null default 0,
    tool_call_count integer not null default 0,
    input_tokens integer,
    output_tokens integer,
    cache_read_tokens integer,
    cache_write_tokens integer,
    stated_cost_usd real,
    models text,
    git_branch text,
    cwd text,
    agent_version text,
    kind text not null default 'main',
    status text,
    is_listed integer,
    context_tokens integer,
    context_window integer,
    permission_mode text,
    ts_zone text,
    slug text,
    forked_from integer references sessions (id) on delete set null,
    linked_session_id integer references sessions (id) on delete set null,
    session_key text not null,
    source_id integer not null references sources (id) on delete cascade, gone_at text /* since when nothing names it: only lists ever did, and none does any more */, agent_id integer references agents (id) on delete set null /* the application's agent with whom the conversation is held */, copied_message_count integer not null default 0 /* user and assistant lines that repeat those of another session and are not in message_count */,
    unique (source_id, session_key)
) strict;
CREATE TABLE sources (
    id integer primary key,
    kind text not null,
    root text not null,
    first_synced_at text not null,
    last_synced_at text not null,
    gone_at text,
    cleanup_period_days integer, label text /* how the system is called: Claude Code, Chorus, ... */, is_agent integer not null default 0 /* 1: the transcripts of the agent itself; 0: of a program around it, which may repeat them */, lists_sessions integer not null default 0 /* 1: a list of its own says which conversations there are */, retention_days integer /* days after which the system deletes its files, unless its settings say otherwise; null: it deletes nothing */,
    unique (kind, root)
) strict;
CREATE TABLE statements (
    id integer primary key,
    kind text not null,
    list_key text not null,
    task_key text,
    stated text,
    answered text,
    timestamp text,
    tool_use_id text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    block integer not null
) strict;
CREATE TABLE subagents (
    id integer primary key,
    agent_type text,
    description text,
    kind text not null,
    session_id integer references sessions (id) on delete set null,
    parent_id integer references subagents (id) on delete set null,
    spawned_by integer references tool_calls (id) on delete set null,
    link_method text,
    workflow text,
    name text,
    model text,
    started_at text,
    ended_at text,
    message_count integer not null default 0,
    tokens integer,
    agent_key text not null,
    session_key text,
    source_id integer not null references sources (id) on delete cascade
, tool_call_count integer /* calls as the result of its call states them; null where it has a file of its own */) strict;
CREATE TABLE summaries (
    id integer primary key,
    title text not null,
    leaf_uuid text not null,
    session_id integer references sessions (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE superseded (
    id integer primary key,
    timestamp text,
    first_uuid text,
    first_offset integer,
    file_id integer not null references files (id),
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE sync_runs (
    id integer primary key,
    started_at text not null,
    finished_at text,
    files_read integer not null,
    bytes_read integer not null,
    rows integer not null,
    issues integer not null,
    error text
) strict;
CREATE TABLE task_changes (
    id integer primary key,
    field text not null,
    old_value text,
    new_value text,
    timestamp text,
    seen_at text,
    task_key text,
    list_key text,
    task_id integer references tasks (id) on delete cascade,
    file_id integer references files (id) on delete cascade,
    byte_offset integer
) strict;
CREATE TABLE task_dependencies (
    id integer primary key,
    task_key text not null,
    blocker_key text not null,
    task_id integer references tasks (id) on delete set null,
    blocker_id integer references tasks (id) on delete set null,
    list_key text not null,
    source_id integer not null references sources (id) on delete cascade,
    file_id integer not null references files (id) on delete cascade,
    unique (source_id, list_key, task_key, blocker_key)
) strict;
CREATE TABLE task_links (
    id integer primary key,
    task_key text not null,
    blocker_key text not null,
    list_key text not null,
    file_id integer not null references files (id) on delete cascade,
    unique (file_id, task_key, blocker_key)
) strict;
CREATE TABLE tasks (
    id integer primary key,
    subject text,
    description text,
    status text,
    owner text,
    active_form text,
    metadata text,
    task_number integer,
    task_key text not null,
    list_key text not null,
    session_id integer references sessions (id) on delete set null,
    team_id integer references teams (id) on delete set null,
    gone_at text,
    channel text not null default 'file',
    stated_at text,
    blocked_by text,
    tool_use_id text,
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null,
    byte_offset integer not null default 0
, joined text
    generated always as (case
    when length(coalesce(subject, '') || char(10) || coalesce(description, '')) = length(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob)) then null
    when coalesce(subject, '') || char(10) || coalesce(description, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    coalesce(subject, '') || char(10) || coalesce(description, '')
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* subject and description without invisible letters; null where they have none */) strict;
CREATE VIRTUAL TABLE tasks_fts using fts5 (subject, description, joined, content="tasks", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE team_members (
    id integer primary key,
    name text,
    agent_type text,
    model text,
    cwd text,
    color text,
    joined_at text,
    prompt text,
    subscriptions text,
    backend_type text,
    plan_mode_required integer,
    is_active integer,
    agent_id text,
    team_id integer not null references teams (id) on delete cascade,
    file_id integer not null references files (id) on delete cascade
, gone_at text /* when a sync found it missing from its team */, ordinal integer not null default 0 /* among equals */, extra text /* JSON object: what else the configuration states of it */) strict;
CREATE TABLE teams (
    id integer primary key,
    name text not null,
    description text,
    created_at text,
    gone_at text,
    lead_agent_key text,
    lead_session_key text,
    lead_session_id integer references sessions (id) on delete set null,
    key text not null,
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null,
    unique (source_id, key)
) strict;
CREATE TABLE todos (
    id integer primary key,
    content text,
    status text,
    priority text,
    active_form text,
    position integer not null,
    gone_at text,
    session_key text,
    agent_key text,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    ordinal integer not null default 0,
    file_id integer not null references files (id) on delete cascade
, channel text not null default 'file' /* file; transcript: its list has no file that names anything, so the last call tells of it */, stated_at text /* of a transcript: time of that call */, tool_use_id text /* of a transcript: that call */, byte_offset integer not null default 0 /* of a transcript: first byte of its line */, joined text
    generated always as (case
    when length(content) = length(cast(content as blob)) then null
    when content not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    content
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* content without invisible letters; null where it has none */) strict;
CREATE VIRTUAL TABLE todos_fts using fts5 (content, joined, content="todos", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE tool_calls (
    id integer primary key,
    name text,
    target text,
    status text not null,
    started_at text,
    ended_at text,
    duration_ms integer,
    exit_code integer,
    output_file text,
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    tool_use_id text,
    call_id integer references messages (id) on delete set null,
    result_id integer references messages (id) on delete set null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    block integer not null, search_count integer /* web searches that the call made as its result states them */, response_key text /* response that called, where the call's searches are charged: see responses */, action text /* run, read, edit, search, plan, spawn, ask or other, as its source says; null: only the result is in this file */, paths text /* JSON list of the files that it was applied to, where target is not all of them */,
    unique (file_id, tool_use_id)
) strict;
CREATE TABLE tool_result_files (
    id integer primary key,
    name text not null,
    size integer not null,
    media_type text,
    text text,
    session_key text,
    tool_use_id text,
    session_id integer references sessions (id) on delete set null,
    file_id integer not null unique references files (id) on delete cascade
, joined text
    generated always as (case
    when length(text) = length(cast(text as blob)) then null
    when text not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
    else
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
    text
    , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
    , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
    , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
    , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text without invisible letters; null where it has none */) strict;
CREATE VIRTUAL TABLE tool_result_files_fts using fts5 (text, joined, content="tool_result_files", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
CREATE TABLE transcripts (
    id integer primary key,
    stated_session_key text,
    started_at text,
    ended_at text,
    message_count integer not null,
    sidechain_count integer not null,
    first_prompt text,
    first_cwd text,
    custom_title text,
    ai_title text,
    agent_name text,
    git_branch text,
    agent_version text,
    slug text,
    permission_mode text,
    mode text,
    agent_setting text,
    session_kind text,
    entrypoint text,
    team_name text,
    last_prompt text,
    forked_from_key text,
    time_zone text,
    file_id integer not null unique references files (id) on delete cascade
, user_type text /* who runs the agent, as its lines state it: external */, repeated_count integer not null default 0 /* user and assistant lines that repeat others in this file or another */, copied_count integer not null default 0 /* those of them that repeat lines of another session */, repeated_call_count integer not null default 0 /* tool calls that repeat others */) strict;
CREATE TABLE unmatched_results (
    id integer primary key,
    name text,
    is_error integer not null,
    timestamp text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    block integer not null,
    unique (file_id, byte_offset, block)
) strict;
CREATE TABLE unpriced (
    id integer primary key,
    model text not null unique,
    origin text not null
) strict;
CREATE TABLE usage (
    id integer primary key,
    response_key text not null,
    api_message_id text,
    request_id text,
    stated_session_key text,
    model text,
    timestamp text,
    input_tokens integer not null,
    output_tokens integer not null,
    cache_read_tokens integer not null,
    cache_write_5m_tokens integer not null,
    cache_write_1h_tokens integer not null,
    web_searches integer not null,
    partial integer not null,
    stated_cost_usd real,
    line_count integer not null,
    all_input_tokens integer not null,
    all_output_tokens integer not null,
    all_cache_read_tokens integer not null,
    all_cache_write_tokens integer not null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null, stop_reason text /* why the model stopped, as the line that counts states it */,
    unique (file_id, response_key)
) strict;
CREATE TABLE workflow_agents (
    id integer primary key,
    agent_key text not null,
    label text,
    phase text,
    state text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, agent_key)
) strict;
CREATE TABLE workflow_links (
    id integer primary key,
    run text,
    task_key text,
    tool_use_id text,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, byte_offset)
) strict;
CREATE TABLE working_directories (
    id integer primary key,
    path text not null,
    encoded text not null,
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    unique (file_id, path)
) strict;
CREATE TRIGGER documents_fts_delete after delete on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
CREATE TRIGGER documents_fts_insert after insert on documents begin
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER documents_fts_update after update of title, text, joined on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER inbox_items_fts_delete after delete on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
end;
CREATE TRIGGER inbox_items_fts_insert after insert on inbox_items begin
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;
CREATE TRIGGER inbox_items_fts_update after update of text, summary, joined on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;
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
CREATE TRIGGER plans_fts_delete after delete on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
CREATE TRIGGER plans_fts_insert after insert on plans begin
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER plans_fts_update after update of title, text, joined on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
CREATE TRIGGER prices_edited after update of model, valid_from, above_tokens, input, output,
    cache_read, cache_write_5m, cache_write_1h, web_search on prices
when new.origin = old.origin and new.origin <> 'user' begin
    update prices set origin = 'user' where id = new.id;
end;
CREATE TRIGGER prompts_fts_delete after delete on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
end;
CREATE TRIGGER prompts_fts_insert after insert on prompts begin
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;
CREATE TRIGGER prompts_fts_update after update of text, pasted, joined on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;
CREATE TRIGGER tasks_fts_delete after delete on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
end;
CREATE TRIGGER tasks_fts_insert after insert on tasks begin
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;
CREATE TRIGGER tasks_fts_update after update of subject, description, joined on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;
CREATE TRIGGER todos_fts_delete after delete on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
end;
CREATE TRIGGER todos_fts_insert after insert on todos begin
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;
CREATE TRIGGER todos_fts_update after update of content, joined on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;
CREATE TRIGGER tool_result_files_fts_delete after delete on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
end;
CREATE TRIGGER tool_result_files_fts_insert after insert on tool_result_files begin
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
CREATE TRIGGER tool_result_files_fts_update after update of text, joined on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
CREATE VIEW active_sessions as
with events as materialized (
    select
    f.source_id, h.session_key, h.session_id, h.event, h.agent_key, h.agent_type, h.cwd, h.model,
    row_number() over (
    partition by f.source_id, h.session_key
    order by f.path, f.generation, h.byte_offset
    ) as n
    from hook_events h
    join files f on f.id = h.file_id and f.gone_at is null
    where h.session_key is not null
    and (
    h.event in ('SessionStart', 'Stop', 'SessionEnd')
    or (h.event in ('SubagentStart', 'SubagentStop') and h.agent_key is not null)
    )
),
known as materialized (
    select
    *,
    min(iif(event in ('SessionStart', 'SubagentStart'), n, null))
    over (partition by source_id, session_key) as since,
    max(iif(event = 'SubagentStop', n, 0))
    over (partition by source_id, session_key, agent_key) as stopped
    from events
),
running as materialized (
    select source_id, session_key, agent_key, agent_type, min(n) as n
    from known
    where event = 'SubagentStart' and n > stopped
    group by source_id, session_key, agent_key
),
state as materialized (
    select
    source_id, session_key, max(session_id) as session_id, since,
    max(iif(event in ('SessionStart', 'Stop', 'SessionEnd'), n, null)) as changed,
    max(iif(event = 'SessionStart', n, null)) as started,
    max(iif(event = 'SessionStart' and model is not null, n, null)) as named
    from known
    where n >= since
    group by source_id, session_key
)
select
    s.title as session,
    case c.event
    when 'Stop' then 'idle'
    when 'SessionEnd' then 'completed'
    else 'active'
    end as status,
    iif(c.event in ('Stop', 'SessionEnd'), 0, 1) as is_active,
    w.cwd as cwd,
    m.model as model,
    (
    select count(*)
    from running r
    where r.source_id = t.source_id and r.session_key = t.session_key
    ) as running_subagents,
    (
    select json_group_array(json_object('agent_id', agent_key, 'agent_type', agent_type))
    from (
    select agent_key, agent_type
    from running r
    where r.source_id = t.source_id and r.session_key = t.session_key
    order by r.n
    )
    ) as subagents,
    s.started_at,
    s.ended_at,
    t.session_key,
    r.kind as source,
    t.session_id, t.source_id
from state t
join sources r on r.id = t.source_id
left join sessions s on s.id = t.session_id
left join known c on c.source_id = t.source_id and c.session_key = t.session_key and c.n = t.changed
left join known w on w.source_id = t.source_id and w.session_key = t.session_key
    and w.n = coalesce(t.started, t.since)
left join known m on m.source_id = t.source_id and m.session_key = t.session_key and m.n = t.named;
CREATE VIEW conversation as
select
    m.kind, m.text, m.tool_text, m.role, m.timestamp,
    s.title as session,
    p.name as project,
    g.name as agent,
    a.agent_type as subagent,
    m.model,
    nullif(coalesce((
    select c.value
    from contexts c
    where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
    order by c.byte_offset desc limit 1
    ), s.git_branch), '') as git_branch,
    (
    select c.value
    from contexts c
    where c.file_id = m.file_id and c.name = 'agent_version' and c.byte_offset <= m.byte_offset
    order by c.byte_offset desc limit 1
    ) as agent_version,
    (
    select c.value
    from contexts c
    where c.file_id = m.file_id and c.name = 'permission_mode' and c.byte_offset <= m.byte_offset
    order by c.byte_offset desc limit 1
    ) as permission_mode,
    s.session_key,
    (select r.kind from files f join sources r on r.id = f.source_id where f.id = m.file_id)
    as source,
    (select o.session_id from messages o where o.session_id = s.linked_session_id limit 1)
    as repeats_session_id,
    m.id, m.session_id, m.subagent_id, m.file_id, m.byte_offset, m.block
from messages m
left join sessions s on s.id = m.session_id
left join projects p on p.id = s.project_id
left join agents g on g.id = s.agent_id
left join subagents a on a.id = m.subagent_id
where m.copy_of is null;
CREATE VIEW coverage as
select
    l.type, l.subtype,
    sum(l.count) as lines,
    count(*) as files,
    r.kind as source
from line_types l
join files f on f.id = l.file_id
join sources r on r.id = f.source_id
group by r.kind, l.type, l.subtype;
CREATE VIEW messages_cjk as
select id, text, tool_text, joined_text, joined_tool_text
from messages
where has_cjk = 1;
CREATE VIEW orphaned_projects as
select
    p.name, p.path, p.last_activity_at, p.session_count,
    r.kind as source,
    p.id
from projects p
join sources r on r.id = p.source_id
where p.path is not null and p.on_disk = 0;
CREATE VIEW response_costs as
select
    r.model,
    r.timestamp,
    (
    select cast(
    (
    r.input_tokens * p.input
    + r.output_tokens * p.output
    + r.cache_read_tokens * coalesce(p.cache_read, p.input)
    + r.cache_write_5m_tokens * coalesce(p.cache_write_5m, p.input)
    + r.cache_write_1h_tokens * coalesce(p.cache_write_1h, p.cache_write_5m, p.input)
    + (
    r.web_searches
    + coalesce((
    select sum(searches)
    from (
    select max(c.search_count) as searches
    from tool_calls c
    where c.response_key = r.response_key and c.search_count is not null
    group by c.tool_use_id
    )
    ), 0)
    ) * coalesce(p.web_search, 0) * 1000
    + 500000
    ) / 1000000 as integer
    )
    from prices p
    where p.model = r.model
    and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
    and (
    p.above_tokens = 0
    or p.above_tokens < r.input_tokens + r.cache_read_tokens
    + r.cache_write_5m_tokens + r.cache_write_1h_tokens
    )
    order by p.valid_from desc, p.above_tokens desc
    limit 1
    ) as cost_microusd,
    r.stated_cost_usd,
    r.input_tokens,
    r.output_tokens,
    r.cache_read_tokens,
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens,
    s.title as session,
    (select p.name from projects p where p.id = s.project_id)
    as project,
    s.session_key,
    (select o.kind from files f join sources o on o.id = f.source_id where f.id = r.file_id)
    as source,
    r.session_id,
    s.project_id,
    r.subagent_id,
    r.id
from responses r
left join sessions s on s.id = r.session_id
where s.linked_session_id is null
    or not exists (select 1 from responses o where o.session_id = s.linked_session_id);
CREATE VIEW retention as
select
    f.path,
    f.kind,
    s.title as session,
    p.name as project,
    f.size,
    f.mtime,
    case when f.gone_at is null then strftime(
    '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, r.retention_days) || ' days'
    ) end as due_at,
    case when f.gone_at is null then cast(
    julianday(f.mtime) + coalesce(r.cleanup_period_days, r.retention_days) - julianday('now') as integer
    ) end as days_left,
    f.gone_at is not null as is_gone,
    f.gone_at,
    s.session_key,
    r.kind as source,
    f.session_id,
    f.project_id,
    f.id
from files f
join sources r on r.id = f.source_id and r.retention_days is not null
left join sessions s on s.id = f.session_id
left join projects p on p.id = f.project_id
where f.kind <> 'file_history';
CREATE VIEW searchable as
select
    e.what,
    e.kind,
    e.title,
    e.text,
    e.words,
    e.facts,
    e.timestamp,
    e.gone_at,
    e.head,
    e.tail,
    e.position,
    e.is_repeated,
    e.channel,
    s.title as session,
    s.session_key,
    r.kind as source,
    coalesce(e.project_id, s.project_id) as project_id,
    e.session_id, e.source_id,
    e.file_id,
    e.byte_offset,
    e.id
from (
    select
    'task' as what,
    t.status as kind,
    t.subject as title,
    t.description as text,
    trim(coalesce(t.subject, '') || char(10) || coalesce(t.description, ''), char(10)) as words,
    t.owner as facts,
    t.stated_at as timestamp,
    t.gone_at,
    t.list_key as head,
    t.task_key as tail,
    coalesce(t.task_number, 9223372036854775807) as position,
    t.gone_at is not null and exists (
    select 1
    from tasks o
    where o.source_id = t.source_id
    and o.list_key = t.list_key
    and o.task_key = t.task_key
    and o.channel = 'transcript'
    ) as is_repeated,
    t.channel,
    t.session_id,
    null as project_id,
    t.source_id,
    t.file_id,
    t.byte_offset,
    t.id
    from tasks t
    union all
    select
    'todo', t.status, null, t.content, t.content, nullif(t.agent_key, t.session_key), t.stated_at, t.gone_at,
    coalesce(t.session_key, (select f.path from files f where f.id = t.file_id)), null,
    t.position,
    t.gone_at is not null and exists (
    select 1
    from todos o
    where o.session_key = t.session_key
    and o.agent_key is t.agent_key
    and o.content is t.content
    and o.channel = 'transcript'
    ),
    t.channel, t.session_id, null, (select f.source_id from files f where f.id = t.file_id),
    t.file_id, t.byte_offset, t.id
    from todos t
    union all
    select
    'plan', p.status, p.title, p.text, p.text, null, p.modified_at,
    (select f.gone_at from files f where f.id = p.file_id),
    nullif(p.name, ''), null,
    0,
    0,
    p.channel, p.session_id, null, (select f.source_id from files f where f.id = p.file_id),
    p.file_id, p.byte_offset, p.id
    from plans p
    union all
    select
    'inbox', i.kind, i.summary, i.text,
    trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10)),
    coalesce(i.sender, '?') || ' → ' || coalesce(i.recipient, '?'), i.timestamp, i.gone_at,
    (select coalesce(f.team_key, f.path) from files f where f.id = i.file_id) || '/' || coalesce(i.recipient, ''),
    (
    select count(*)
    from inbox_items o
    where o.file_id = i.file_id
    and o.byte_offset = i.byte_offset
    and (coalesce(o.timestamp, ''), coalesce(o.sender, ''), coalesce(o.text_hash, ''), o.ordinal)
    <= (coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal)
    ),
    0,
    i.channel <> 'inbox',
    i.channel,
    coalesce(i.session_id, (select m.lead_session_id from teams m where m.id = i.team_id)), null,
    (select f.source_id from files f where f.id = i.file_id),
    i.file_id, i.byte_offset, i.id
    from inbox_items i
    union all
    select
    'document', d.kind, d.title, d.text,
    trim(coalesce(d.title, '') || char(10) || d.text, char(10)), null, d.modified_at, d.gone_at,
    d.path, nullif(d.ordinal, 0),
    d.ordinal,
    0,
    'file', d.session_id, d.project_id, (select f.source_id from files f where f.id = d.file_id),
    d.file_id, 0, d.id
    from documents d
    union all
    select
    'prompt', null, null,
    trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)),
    trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)), p.project_path, p.timestamp,
    (select f.gone_at from files f where f.id = p.file_id),
    null, null,
    0,
    coalesce((select s.message_count from sessions s where s.id = p.session_id), 0) > 0,
    'file', p.session_id, p.project_id, (select f.source_id from files f where f.id = p.file_id),
    p.file_id, p.byte_offset, p.id
    from prompts p
    union all
    select
    'tool_result_file', o.media_type, null, o.text, o.text, null,
    (select f.mtime from files f where f.id = o.file_id),
    (select f.gone_at from files f where f.id = o.file_id),
    coalesce(o.session_key, o.name), iif(o.session_key is null, null, o.name),
    0,
    0,
    'file', o.session_id, null, (select f.source_id from files f where f.id = o.file_id),
    o.file_id, 0, o.id
    from tool_result_files o
) e
left join sources r on r.id = e.source_id
left join sessions s on s.id = e.session_id;
CREATE VIEW session_ends as
select
    s.id as session_id,
    case coalesce((
    select m.kind
    from messages m
    where m.file_id = (
    select f.id
    from files f
    where f.session_id = s.id and f.kind = 'transcript' and f.subagent_id is null
    order by f.gone_at is not null, f.mtime desc, f.id desc
    limit 1
    )
    and m.subagent_id is null
    and m.kind in (
    'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
    )
    order by m.byte_offset desc, m.block desc
    limit 1
    ), 'text')
    when 'text' then null
    when 'error' then 'ended with an error'
    when 'interrupt' then 'interrupted'
    else 'in the middle of a turn'
    end as state,
    s.ended_at as last_at,
    s.session_key,
    (select r.kind from sources r where r.id = s.source_id) as source
from sessions s
where s.kind in ('main', 'background')
    and s.message_count > 0;
CREATE VIEW tool_calls_full as
select
    t.name, t.action, t.target,
    t.status,
    t.started_at, t.duration_ms, t.exit_code,
    c.tool_text as input,
    (select r.tool_text from messages r where r.id = t.result_id)
    as output,
    s.title as session,
    (select p.name from projects p where p.id = s.project_id)
    as project,
    (select a.agent_type from subagents a where a.id = t.subagent_id)
    as subagent,
    s.session_key,
    (select o.kind from files f join sources o on o.id = f.source_id where f.id = t.file_id)
    as source,
    (select o.session_id from messages o where o.session_id = s.linked_session_id limit 1)
    as repeats_session_id,
    t.id, t.session_id, t.subagent_id, t.tool_use_id, t.call_id, t.result_id
from tool_calls t
cross join messages c on c.id = t.call_id and c.copy_of is null
left join sessions s on s.id = t.session_id;
CREATE VIEW usage_by_day as
select
    substr(timestamp, 1, 10) as day,
    model,
    count(*) as responses,
    sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens,
    sum(cache_read_tokens) as cache_read_tokens,
    sum(cache_write_tokens) as cache_write_tokens,
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(cost_microusd is null) as unpriced
from response_costs
group by day, model;
CREATE VIEW usage_by_model as
select
    model,
    count(*) as responses,
    sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens,
    sum(cache_read_tokens) as cache_read_tokens,
    sum(cache_write_tokens) as cache_write_tokens,
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(cost_microusd is null) as unpriced,
    min(timestamp) as first_at,
    max(timestamp) as last_at
from response_costs
group by model;
CREATE VIEW usage_by_project as
select
    p.name as project,
    p.path,
    count(distinct r.session_id) as sessions,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(r.cost_microusd is null) as unpriced,
    min(r.timestamp) as first_at,
    max(r.timestamp) as last_at,
    o.kind as source,
    p.id as project_id
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
left join sources o on o.id = p.source_id
group by p.id;
CREATE VIEW usage_by_session as
select
    s.title,
    p.name as project,
    s.started_at,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    coalesce(s.stated_cost_usd, sum(r.stated_cost_usd)) as stated_cost_usd,
    sum(r.cost_microusd is null) as unpriced,
    sum(r.subagent_id is not null) as subagent_responses,
    s.session_key,
    o.kind as source,
    s.id as session_id,
    s.project_id
from response_costs r
left join sessions s on s.id = r.session_id
left join sources o on o.id = s.source_id
left join projects p on p.id = s.project_id
group by s.id;
CREATE VIEW usage_by_subagent_type as
select
    case when r.subagent_id is null then 'main conversation' else coalesce(a.agent_type, a.kind) end
    as subagent_type,
    count(distinct r.subagent_id) as subagents,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(r.cost_microusd is null) as unpriced,
    min(r.timestamp) as first_at,
    max(r.timestamp) as last_at
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;
CREATE VIEW usage_reconciliation as
select
    'every line' as counting,
    'adds up all lines of a response, and all copies of a conversation' as explanation,
    coalesce(sum(u.line_count), 0) as counted,
    coalesce(sum(u.all_input_tokens), 0) as input_tokens,
    coalesce(sum(u.all_output_tokens), 0) as output_tokens,
    coalesce(sum(u.all_cache_read_tokens), 0) as cache_read_tokens,
    coalesce(sum(u.all_cache_write_tokens), 0) as cache_write_tokens,
    s.kind as source
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind
union all
select
    'once in each file',
    'takes a response once, and again in each forked or resumed copy',
    count(*),
    coalesce(sum(u.input_tokens), 0),
    coalesce(sum(u.output_tokens), 0),
    coalesce(sum(u.cache_read_tokens), 0),
    coalesce(sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens), 0),
    s.kind
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind
union all
select
    'once, without subagents',
    'takes a response once, of main conversations only',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1 and r.subagent_id is null
group by s.kind
union all
select
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1 and not exists (
    select 1 from agent_lines l where l.file_id = r.file_id and l.byte_offset = r.byte_offset
)
group by s.kind
union all
select
    'once',
    'takes each response once, subagents included: what this program counts',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind;

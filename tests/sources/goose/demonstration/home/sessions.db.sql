create table schema_version (version integer primary key, applied_at timestamp default current_timestamp);
insert into schema_version (version, applied_at) values (17, '2026-01-01 09:00:00');
create table sessions (
  id text primary key,
  name text not null default '',
  description text not null default '',
  user_set_name boolean default false,
  session_type text not null default 'user',
  working_dir text not null,
  created_at timestamp default current_timestamp,
  updated_at timestamp default current_timestamp,
  extension_data text default '{}',
  total_tokens integer,
  input_tokens integer,
  output_tokens integer,
  cache_read_tokens integer,
  cache_write_tokens integer,
  accumulated_total_tokens integer,
  accumulated_input_tokens integer,
  accumulated_output_tokens integer,
  accumulated_cache_read_tokens integer,
  accumulated_cache_write_tokens integer,
  accumulated_cost real,
  schedule_id text,
  recipe_json text,
  user_recipe_values_json text,
  provider_name text,
  model_config_json text,
  goose_mode text not null default 'auto',
  archived_at timestamp,
  project_id text,
  parent_session_id text,
  parent_delegation text
);
create table messages (
  id integer primary key autoincrement,
  message_id text,
  session_id text not null references sessions(id),
  role text not null,
  content_json text not null,
  created_timestamp integer not null,
  timestamp timestamp default current_timestamp,
  tokens integer,
  metadata_json text
);
create table usage_ledger (id integer primary key autoincrement, session_id text not null references sessions(id) on delete cascade,
  created_timestamp integer not null, model text, input_tokens integer, output_tokens integer, total_tokens integer,
  cache_read_tokens integer, cache_write_tokens integer, cost real, cost_source text, is_compaction integer default 0);
create table provider_inventory_entries (id text primary key, api_key text);
insert into provider_inventory_entries values ('p', 'SECRET1');
create index idx_messages_session on messages(session_id);

insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, user_set_name, session_type, provider_name, model_config_json, total_tokens, input_tokens, output_tokens, accumulated_total_tokens, accumulated_input_tokens, accumulated_output_tokens, accumulated_cache_read_tokens, accumulated_cache_write_tokens, accumulated_cost) values
  ('20260101_1', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'Water for bed 5', 0, 'user', 'anthropic', '{"model_name": "claude-sonnet-4-5", "context_limit": 200000, "toolshim": false}', 700, 680, 20, 1370, 1320, 50, 600, 0, 0.02);
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (1, 'msg_1', '20260101_1', 'user', '[{"type": "text", "text": "Is bed 5 dry? If so, plan water for it."}]', 1767258000, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (2, 'msg_2', '20260101_1', 'assistant', '[{"type": "thinking", "thinking": "The notes will say it.", "signature": "c2ln"}, {"type": "text", "text": "I look at the notes."}, {"type": "toolRequest", "id": "toolu_1", "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "cat beds/5.md"}}}}]', 1767258003, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (3, 'msg_3', '20260101_1', 'user', '[{"type": "toolResponse", "id": "toolu_1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "moisture: 12 %", "annotations": {"audience": ["assistant"]}}, {"type": "text", "text": "moisture: 12 %", "annotations": {"audience": ["user"], "priority": 0.0}}], "isError": false}}}]', 1767258004, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (4, 'msg_4', '20260101_1', 'assistant', '[{"type": "text", "text": "Bed 5 is dry."}, {"type": "toolRequest", "id": "toolu_2", "toolCall": {"status": "success", "value": {"name": "developer__text_editor", "arguments": {"command": "str_replace", "path": "/srv/garden/plan.md", "old_str": "bed 4", "new_str": "bed 4\nbed 5: 8 l"}}}}]', 1767258008, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (5, 'msg_5', '20260101_1', 'user', '[{"type": "toolResponse", "id": "toolu_2", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "The file has been edited.", "annotations": {"audience": ["assistant"]}}, {"type": "text", "text": "```diff\n+bed 5: 8 l\n```", "annotations": {"audience": ["user"]}}], "isError": false}}}]', 1767258009, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (6, 'msg_6', '20260101_1', 'assistant', '[{"type": "text", "text": "Bed 5 gets 8 l."}]', 1767258012, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into usage_ledger (id, session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction) values
  (1, '20260101_1', 1767258003, 'claude-sonnet-4-5', 640, 30, 670, 0, 0, 0.01, 'provider_reported', 0);
insert into usage_ledger (id, session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction) values
  (2, '20260101_1', 1767258008, 'claude-sonnet-4-5', 680, 20, 700, 600, 0, 0.01, 'provider_reported', 0);

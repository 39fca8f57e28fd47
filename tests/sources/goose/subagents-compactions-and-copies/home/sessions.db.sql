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

insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, provider_name, model_config_json, user_set_name) values
  ('20260101_1', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'Prepare the beds', 'openai', '{"model_name": "gpt-5.1"}', 1);
insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, provider_name, model_config_json, session_type, parent_session_id, parent_delegation) values
  ('20260101_2', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'Subagent task', 'openai', '{"model_name": "gpt-5.1"}', 'sub_agent', '20260101_1', '{"execution_mode": "foreground"}');
insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, provider_name, model_config_json) values
  ('20260101_3', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'Prepare the beds (copy)', 'openai', '{"model_name": "gpt-5.1"}');
insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, provider_name, model_config_json, session_type) values
  ('20260101_4', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'orphan', 'openai', '{"model_name": "gpt-5.1"}', 'sub_agent');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (1, 'msg_p1', '20260101_1', 'user', '[{"type": "text", "text": "Prepare the beds."}]', 1767258000, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (2, 'msg_p2', '20260101_1', 'assistant', '[{"type": "toolRequest", "id": "call_1", "toolCall": {"status": "success", "value": {"name": "delegate", "arguments": {"instructions": "Dig bed 1."}}}}]', 1767258002, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (3, 'msg_p3', '20260101_1', 'user', '[{"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "Bed 1 is dug."}], "isError": false}}}]', 1767258009, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (4, 'msg_4', '20260101_1', 'user', '[{"type": "text", "text": "Summary: bed 1 is dug."}]', 1767258010, '2026-01-01 09:00:00', '{"userVisible": false, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (5, 'msg_5', '20260101_1', 'assistant', '[{"type": "text", "text": "Your context was compacted."}]', 1767258010, '2026-01-01 09:00:00', '{"userVisible": false, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (6, 'msg_6', '20260101_1', 'assistant', '[{"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compaction complete"}]', 1767258011, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (7, 'msg_7', '20260101_1', 'user', '[{"type": "text", "text": "And bed 2?"}]', 1767258020, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (8, 'msg_8', '20260101_1', 'assistant', '[{"type": "actionRequired", "data": {"actionType": "elicitation", "id": "e1", "message": "How deep?", "requested_schema": {}}}, {"type": "moonlight", "words": "a kind that nobody knows"}]', 1767258022, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (9, 'msg_9', '20260101_1', 'user', '[{"type": "toolResponse", "id": "call_7", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "fell over"}], "isError": true}}}]', 1767258023, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into usage_ledger (id, session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction) values
  (1, '20260101_1', 1767258002, 'gpt-5.1', 500, 20, 520, null, null, null, null, 0);
insert into usage_ledger (id, session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction) values
  (2, '20260101_1', 1767258010, 'gpt-5.1-mini', 900, 60, 960, 0, 0, 0.01, 'estimated', 1);
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (10, 'msg_10', '20260101_2', 'user', '[{"type": "text", "text": "Dig bed 1."}]', 1767258003, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (11, 'msg_11', '20260101_2', 'assistant', '[{"type": "text", "text": "Dug."}]', 1767258008, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into usage_ledger (id, session_id, created_timestamp, model, input_tokens, output_tokens, total_tokens, cache_read_tokens, cache_write_tokens, cost, cost_source, is_compaction) values
  (3, '20260101_2', 1767258008, 'gpt-5.1', 100, 5, 105, 0, 0, 0.01, 'provider_reported', 0);
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (12, 'msg_p1', '20260101_3', 'user', '[{"type": "text", "text": "Prepare the beds."}]', 1767258000, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (13, 'msg_p2', '20260101_3', 'assistant', '[{"type": "toolRequest", "id": "call_1", "toolCall": {"status": "success", "value": {"name": "delegate", "arguments": {"instructions": "Dig bed 1."}}}}]', 1767258002, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (14, 'msg_p3', '20260101_3', 'user', '[{"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "Bed 1 is dug."}], "isError": false}}}]', 1767258009, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": false}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (15, 'msg_15', '20260101_3', 'user', '[{"type": "text", "text": "And bed 3?"}]', 1767258050, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (16, 'msg_16', '20260101_4', 'user', '[{"type": "text", "text": "Sharpen the spade."}]', 1767258070, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, message_id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (17, 'msg_17', '20260101_4', 'assistant', '[{"type": "text", "text": "Sharp."}]', 1767258072, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');

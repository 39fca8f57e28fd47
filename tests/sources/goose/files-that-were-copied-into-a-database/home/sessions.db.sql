create table schema_version (version integer primary key, applied_at timestamp default current_timestamp);
insert into schema_version (version, applied_at) values (5, '2026-01-01 09:00:00');
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
  accumulated_total_tokens integer,
  accumulated_input_tokens integer,
  accumulated_output_tokens integer,
  schedule_id text,
  recipe_json text,
  user_recipe_values_json text
);
create table messages (
  id integer primary key autoincrement,
  session_id text not null references sessions(id),
  role text not null,
  content_json text not null,
  created_timestamp integer not null,
  timestamp timestamp default current_timestamp,
  tokens integer,
  metadata_json text
);
create index idx_messages_session on messages(session_id);

insert into sessions (id, working_dir, created_at, updated_at, extension_data, recipe_json, name, session_type, total_tokens, input_tokens, output_tokens, accumulated_total_tokens, accumulated_input_tokens, accumulated_output_tokens) values
  ('20260101_090000', '/srv/garden', '2026-01-01 09:00:00', '2026-01-01 09:00:30', '{"enabled_extensions.v0": {"extensions": [{"envs": {"TOKEN": "SECRET2"}}]}}', '{"title": "r", "extensions": [{"envs": {"K": "SECRET3"}}]}', 'Tools in the shed', 'user', 100, 90, 10, 400, 350, 50);
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (1, '20260101_090000', 'user', '[{"type": "text", "text": "What is in the shed?"}]', 1767258000, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (2, '20260101_090000', 'assistant', '[{"type": "text", "text": "I look."}, {"type": "toolRequest", "id": "call_1", "toolCall": {"status": "success", "value": {"name": "developer__text_editor", "arguments": {"command": "view", "path": "/srv/garden/shed.md"}}}}]', 1767258002, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (3, '20260101_090000', 'user', '[{"type": "toolResponse", "id": "call_1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "two hoses"}, {"type": "resource", "resource": {"uri": "file:///srv/garden/shed.md", "text": "a rake"}}, {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}], "isError": false}}}]', 1767258003, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (4, '20260101_090000', 'assistant', '[{"type": "text", "text": "A rake and two hoses."}]', 1767258005, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (5, '20260101_090000', 'user', '[{"type": "text", "text": "And in the cellar?"}]', 1767258090, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');
insert into messages (id, session_id, role, content_json, created_timestamp, timestamp, metadata_json) values
  (6, '20260101_090000', 'assistant', '[{"type": "text", "text": "Nothing."}]', 1767258092, '2026-01-01 09:00:00', '{"userVisible": true, "agentVisible": true}');

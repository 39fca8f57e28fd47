create table project (id text primary key, worktree text not null, vcs text, name text, sandboxes text not null,
  time_created integer not null, time_updated integer not null);
create table session (id text primary key, project_id text not null, parent_id text, slug text not null,
  directory text not null, title text not null, version text not null, share_url text, revert text,
  agent text, model text, cost real, tokens_input integer,
  time_created integer not null, time_updated integer not null, time_archived integer);
create table message (id text primary key, session_id text not null,
  time_created integer not null, time_updated integer not null, data text not null);
create table part (id text primary key, message_id text not null, session_id text not null,
  time_created integer not null, time_updated integer not null, data text not null);
create table todo (session_id text not null, content text not null, status text not null, priority text not null,
  position integer not null, time_created integer not null, time_updated integer not null,
  primary key (session_id, position));
create index part_session_idx on part (session_id);

create table account (id text primary key, email text, access_token text);
create table control_account (email text, url text, access_token text);
create table credential (id text primary key, value text);
create table session_share (session_id text primary key, id text, secret text, url text);
create table event (id text primary key, aggregate_id text, seq integer, type text, data text);
create table session_message (id text primary key, session_id text, type text, seq integer, data text);

insert into account (id, email, access_token) values
  ('a', 'SECRET-mail', 'SECRET4');
insert into control_account (email, url, access_token) values
  ('SECRET-mail', 'u', 'SECRET5');
insert into credential (id, value) values
  ('c', 'SECRET6');
insert into session_share (session_id, id, secret, url) values
  ('ses_4f02ffee', 'i', 'SECRET7', 'https://opncd.ai/s/SECRET8');
insert into event (id, aggregate_id, seq, type, data) values
  ('e1', 'ses_4f02ffee', 1, 'message.updated', '{"text": "SECRET-event"}');
insert into session_message (id, session_id, type, seq, data) values
  ('sm1', 'ses_4f02ffee', 'user', 1, '{"text": "of the next engine"}');
insert into project (id, worktree, vcs, name, sandboxes, time_created, time_updated) values
  ('6f1c2d', '/srv/fernhill', 'git', 'Fernhill', '[]', 1769508000000, 1769508000000);
insert into session (id, project_id, parent_id, slug, directory, title, version, share_url, agent, model, cost, tokens_input, time_created, time_updated) values
  ('ses_4f02ffee', '6f1c2d', null, 'stellar-fern', '/srv/fernhill', 'Prune the hedge', '1.18.33', 'https://opncd.ai/s/SECRET8', 'build', '{"id": "claude-sonnet-5", "providerID": "anthropic", "variant": "default"}', 0.01, 900, 1769508000000, 1769508009000);
insert into session (id, project_id, parent_id, slug, directory, title, version, share_url, agent, model, cost, tokens_input, time_created, time_updated) values
  ('ses_4f01ffee', '6f1c2d', 'ses_4f02ffee', 'stellar-fern', '/srv/fernhill', 'look at the hedge (@general subagent)', '1.18.33', null, 'general', '{"id": "claude-sonnet-5", "providerID": "anthropic", "variant": "default"}', 0.01, 900, 1769508001000, 1769508010000);
insert into session (id, project_id, parent_id, slug, directory, title, version, share_url, agent, model, cost, tokens_input, time_created, time_updated, revert) values
  ('ses_4f00ffee', '6f1c2d', null, 'stellar-fern', '/srv/fernhill', 'Prune the hedge (fork #1)', '1.18.33', 'https://opncd.ai/s/SECRET8', 'build', '{"id": "claude-sonnet-5", "providerID": "anthropic", "variant": "default"}', 0.01, 900, 1769508020000, 1769508029000, '{"messageID": "msg_f5", "snapshot": "9c"}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_a1', 'ses_4f02ffee', 1769508000000, 1769508000500, '{"role": "user", "time": {"created": 1769508000000}, "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_a11', 'msg_a1', 'ses_4f02ffee', 1769508000000, 1769508000000, '{"type": "text", "text": "Prune the hedge."}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_a2', 'ses_4f02ffee', 1769508000200, 1769508000700, '{"role": "assistant", "time": {"created": 1769508000200, "completed": 1769508003000}, "mode": "build", "agent": "build", "modelID": "claude-sonnet-5", "providerID": "anthropic", "path": {"cwd": "/srv/fernhill", "root": "/srv/fernhill"}, "finish": "stop", "tokens": {"total": 1052, "input": 402, "output": 40, "reasoning": 10, "cache": {"read": 600, "write": 0}}, "parentID": "msg_a1", "cost": 0.004}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_a21', 'msg_a2', 'ses_4f02ffee', 1769508000300, 1769508000300, '{"type": "reasoning", "text": "A long hedge.", "time": {"start": 1769508000300, "end": 1769508000350}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_a22', 'msg_a2', 'ses_4f02ffee', 1769508000400, 1769508000400, '{"type": "tool", "callID": "call_task_1000", "tool": "task", "state": {"status": "completed", "input": {"description": "look at the hedge", "prompt": "How long is it?", "subagent_type": "general"}, "output": "<task id=\"ses_4f01ffee\">12 m</task>", "title": "", "metadata": {"sessionId": "ses_4f01ffee", "parentSessionId": "ses_4f02ffee"}, "time": {"start": 1769508001000, "end": 1769508002500}}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_a23', 'msg_a2', 'ses_4f02ffee', 1769508000500, 1769508000500, '{"type": "tool", "callID": "call_apply_patch_2600", "tool": "apply_patch", "state": {"status": "completed", "input": {"patchText": "*** Begin Patch\n*** Update File: a.txt"}, "output": "Success", "title": "", "metadata": {"files": [{"filePath": "/srv/fernhill/a.txt", "type": "update"}, {"filePath": "/srv/fernhill/b.txt", "type": "add"}]}, "time": {"start": 1769508002600, "end": 1769508002700}}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_a24', 'msg_a2', 'ses_4f02ffee', 1769508000600, 1769508000600, '{"type": "text", "text": "It is pruned.", "time": {"start": 1769508002800, "end": 1769508002900}}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_c1', 'ses_4f01ffee', 1769508001000, 1769508001500, '{"role": "user", "time": {"created": 1769508001000}, "agent": "general", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_c11', 'msg_c1', 'ses_4f01ffee', 1769508001000, 1769508001000, '{"type": "text", "text": "How long is it?"}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_c2', 'ses_4f01ffee', 1769508001100, 1769508001600, '{"role": "assistant", "time": {"created": 1769508001100, "completed": 1769508002400}, "mode": "general", "agent": "general", "modelID": "claude-sonnet-5", "providerID": "anthropic", "path": {"cwd": "/srv/fernhill", "root": "/srv/fernhill"}, "finish": "stop", "tokens": {"total": 320, "input": 300, "output": 20, "reasoning": 0, "cache": {"read": 0, "write": 0}}, "parentID": "msg_c1", "cost": 0.001}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_c21', 'msg_c2', 'ses_4f01ffee', 1769508001200, 1769508001200, '{"type": "text", "text": "12 m", "time": {"start": 1769508001200, "end": 1769508001300}}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f1', 'ses_4f00ffee', 1769508020000, 1769508000500, '{"role": "user", "time": {"created": 1769508000000}, "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f11', 'msg_f1', 'ses_4f00ffee', 1769508020000, 1769508020000, '{"type": "text", "text": "Prune the hedge."}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f2', 'ses_4f00ffee', 1769508020200, 1769508000700, '{"role": "assistant", "time": {"created": 1769508000200, "completed": 1769508003000}, "mode": "build", "agent": "build", "modelID": "claude-sonnet-5", "providerID": "anthropic", "path": {"cwd": "/srv/fernhill", "root": "/srv/fernhill"}, "finish": "stop", "tokens": {"total": 1052, "input": 402, "output": 40, "reasoning": 10, "cache": {"read": 600, "write": 0}}, "parentID": "msg_f1", "cost": 0.004}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f21', 'msg_f2', 'ses_4f00ffee', 1769508020300, 1769508020300, '{"type": "reasoning", "text": "A long hedge.", "time": {"start": 1769508000300, "end": 1769508000350}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f22', 'msg_f2', 'ses_4f00ffee', 1769508020400, 1769508020400, '{"type": "tool", "callID": "call_task_1000", "tool": "task", "state": {"status": "completed", "input": {"description": "look at the hedge", "prompt": "How long is it?", "subagent_type": "general"}, "output": "<task id=\"ses_4f01ffee\">12 m</task>", "title": "", "metadata": {"sessionId": "ses_4f01ffee", "parentSessionId": "ses_4f02ffee"}, "time": {"start": 1769508001000, "end": 1769508002500}}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f23', 'msg_f2', 'ses_4f00ffee', 1769508020500, 1769508020500, '{"type": "tool", "callID": "call_apply_patch_2600", "tool": "apply_patch", "state": {"status": "completed", "input": {"patchText": "*** Begin Patch\n*** Update File: a.txt"}, "output": "Success", "title": "", "metadata": {"files": [{"filePath": "/srv/fernhill/a.txt", "type": "update"}, {"filePath": "/srv/fernhill/b.txt", "type": "add"}]}, "time": {"start": 1769508002600, "end": 1769508002700}}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f24', 'msg_f2', 'ses_4f00ffee', 1769508020600, 1769508020600, '{"type": "text", "text": "It is pruned.", "time": {"start": 1769508002800, "end": 1769508002900}}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f3', 'ses_4f00ffee', 1769508021000, 1769508021500, '{"role": "user", "time": {"created": 1769508021000}, "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f31', 'msg_f3', 'ses_4f00ffee', 1769508021000, 1769508021000, '{"type": "compaction", "auto": false}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f4', 'ses_4f00ffee', 1769508021100, 1769508021600, '{"role": "assistant", "time": {"created": 1769508021100, "completed": 1769508022000}, "mode": "compaction", "agent": "compaction", "modelID": "claude-sonnet-5", "providerID": "anthropic", "path": {"cwd": "/srv/fernhill", "root": "/srv/fernhill"}, "finish": "stop", "tokens": {"total": 457, "input": 417, "output": 30, "reasoning": 10, "cache": {"read": 0, "write": 0}}, "parentID": "msg_f3", "summary": true, "cost": 0.002}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f41', 'msg_f4', 'ses_4f00ffee', 1769508021200, 1769508021200, '{"type": "text", "text": "The hedge was pruned.", "time": {"start": 1769508021200, "end": 1769508021300}}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f5', 'ses_4f00ffee', 1769508023000, 1769508023500, '{"role": "user", "time": {"created": 1769508023000}, "agent": "build", "model": {"providerID": "anthropic", "modelID": "claude-sonnet-5"}}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f51', 'msg_f5', 'ses_4f00ffee', 1769508023000, 1769508023000, '{"type": "text", "text": "Now burn it."}');
insert into message (id, session_id, time_created, time_updated, data) values
  ('msg_f6', 'ses_4f00ffee', 1769508023100, 1769508023600, '{"role": "assistant", "time": {"created": 1769508023100, "completed": 1769508023900}, "mode": "build", "agent": "build", "modelID": "claude-sonnet-5", "providerID": "anthropic", "path": {"cwd": "/srv/fernhill", "root": "/srv/fernhill"}, "finish": "stop", "tokens": {"total": 825, "input": 20, "output": 5, "reasoning": 0, "cache": {"read": 800, "write": 0}}, "parentID": "msg_f5", "cost": 0.001}');
insert into part (id, message_id, session_id, time_created, time_updated, data) values
  ('prt_f61', 'msg_f6', 'ses_4f00ffee', 1769508023200, 1769508023200, '{"type": "text", "text": "It burns.", "time": {"start": 1769508023200, "end": 1769508023300}}');
insert into todo (session_id, content, status, priority, position, time_created, time_updated) values
  ('ses_4f02ffee', 'Sweep up', 'pending', 'low', 0, 1769508000500, 1769508000500);

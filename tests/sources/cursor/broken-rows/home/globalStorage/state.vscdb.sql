create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);

insert into ItemTable values
  ('cursorAuth/accessToken', 'SECRET-token');
insert into ItemTable values
  ('secret://{"extensionId":"anysphere.cursor-mcp","key":"tokens"}', 'SECRET-mcp');
insert into cursorDiskKV values
  ('composerData:7c0b0000-0000-4000-8000-00000000000b', '{"_v": 16, "composerId": "7c0b0000-0000-4000-8000-00000000000b", "name": ["no", "title"], "createdAt": "soon", "modelConfig": "m", "usageData": {"m": {"costInCents": "much"}, "n": 3}, "conversation": "c", "subagentInfo": {"parentComposerId": 5}, "fullConversationHeadersOnly": [{"bubbleId": "x1", "type": 1}, {"bubbleId": "x2", "type": 2}, {"bubbleId": "x3", "type": 3}, {"bubbleId": "x4", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x1', '{"_v": 3, "bubbleId": "x1", "type": 1, "text": "A prompt at a time that is none.", "createdAt": "yesterday", "tokenCount": {"inputTokens": "many"}, "workspaceUris": "/srv", "images": "none"}');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x2', '{"_v": 3, "bubbleId": "x2", "type": 2, "text": ["a", "list"], "createdAt": "2026-05-02T06:00:00.000Z", "thinking": "text", "toolFormerData": {"name": "read_file", "toolCallId": 9, "rawArgs": "{\"target_file\":", "params": "[1]", "result": "{", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x3', '{"_v": 3, "bubbleId": "x3", "type": 3, "text": "A bubble of a type that nobody knows.", "createdAt": "2026-05-02T06:00:01.000Z", "novelty": {"text": "and a field"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x4', '{"_v": 3, "bubbleId": "x4", "type": 2, "createdAt": "2026-05-02T06:00:02.000Z", "errorDetails": {"error": "ERROR_RATE_LIMITED", "message": "Too many requests"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x5', '{"type":2,"text":"torn');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x6', 'null');
insert into cursorDiskKV values
  ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x7', '[1,2]');
insert into cursorDiskKV values ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x8', x'ff00fe7b7d');
insert into cursorDiskKV values ('bubbleId:7c0b0000-0000-4000-8000-00000000000b:x9', null);
insert into cursorDiskKV values
  ('composerData:7c0c0000-0000-4000-8000-00000000000c', '{"name":"SECRET-torn", "blobEncryptionKey":"SECRET-');
insert into cursorDiskKV values
  ('composerData:with spaces', '{"_v": 3, "name": "a key that cannot be a name"}');
insert into cursorDiskKV values
  ('bubbleId:7c0d0000-0000-4000-8000-00000000000d:y1', '{"type": 1, "text": "Of a conversation that was deleted."}');
insert into cursorDiskKV values ('composerData:7c0e0000-0000-4000-8000-00000000000e', null);
insert into cursorDiskKV values
  ('agentKv:blob:00', '{"role": "user", "content": "SECRET-blob"}');
insert into cursorDiskKV values
  ('messageRequestContext:x:y', '{"knowledgeItems": ["SECRET-context"]}');

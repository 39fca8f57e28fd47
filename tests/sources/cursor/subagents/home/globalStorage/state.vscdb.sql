create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);
create table composerHeaders (composerId text primary key, workspaceId text, createdAt integer,
  lastUpdatedAt integer, isArchived integer, isSubagent integer, recency integer, checkpointAt integer, value text);

insert into ItemTable values
  ('cursorAuth/accessToken', 'SECRET-token');
insert into ItemTable values
  ('secret://{"extensionId":"anysphere.cursor-mcp","key":"tokens"}', 'SECRET-mcp');
insert into cursorDiskKV values
  ('composerData:7c070000-0000-4000-8000-000000000007', '{"_v": 16, "composerId": "7c070000-0000-4000-8000-000000000007", "name": "Seeds", "createdAt": 1787209200000, "subagentComposerIds": ["7c080000-0000-4000-8000-000000000008"], "workspaceIdentifier": {"id": "w", "uri": {"fsPath": "/srv/seeds"}}, "fullConversationHeadersOnly": [{"bubbleId": "s1", "type": 1}, {"bubbleId": "s2", "type": 2}, {"bubbleId": "s3", "type": 2}, {"bubbleId": "s4", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c070000-0000-4000-8000-000000000007:s1', '{"_v": 3, "bubbleId": "s1", "type": 1, "text": "Count the seeds in all drawers.", "createdAt": "2026-08-20T07:00:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c070000-0000-4000-8000-000000000007:s2', '{"_v": 3, "bubbleId": "s2", "type": 2, "text": "", "createdAt": "2026-08-20T07:00:01.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "task_v2", "toolCallId": "toolu_s2", "modelCallId": "m-toolu_s2", "toolIndex": 0, "params": "{\"description\": \"Count a drawer\", \"prompt\": \"Count drawer A.\", \"subagentType\": \"explore\"}", "rawArgs": "{\"description\": \"Count a drawer\", \"prompt\": \"Count drawer A.\", \"subagentType\": \"explore\"}", "result": "{\"agentId\": \"7c080000-0000-4000-8000-000000000008\"}", "status": "completed", "additionalData": {"subagentComposerId": "7c080000-0000-4000-8000-000000000008"}}}');
insert into cursorDiskKV values
  ('bubbleId:7c070000-0000-4000-8000-000000000007:s3', '{"_v": 3, "bubbleId": "s3", "type": 2, "text": "", "createdAt": "2026-08-20T07:00:02.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "task_v2", "toolCallId": "toolu_s3", "modelCallId": "m-toolu_s3", "toolIndex": 0, "params": "{\"description\": \"Another\", \"prompt\": \"Count drawer B.\"}", "rawArgs": "{\"description\": \"Another\", \"prompt\": \"Count drawer B.\"}", "result": "{\"agentId\": \"task-toolu_s3\"}", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c070000-0000-4000-8000-000000000007:s4', '{"_v": 3, "bubbleId": "s4", "type": 2, "text": "240 seeds in A; B is not counted.", "createdAt": "2026-08-20T07:00:09.000Z"}');
insert into cursorDiskKV values
  ('composerData:7c080000-0000-4000-8000-000000000008', '{"_v": 16, "composerId": "7c080000-0000-4000-8000-000000000008", "name": "Count a drawer", "createdAt": 1787209202000, "modelConfig": {"modelName": "composer-2-fast"}, "subagentInfo": {"parentComposerId": "7c070000-0000-4000-8000-000000000007", "rootParentConversationId": "7c070000-0000-4000-8000-000000000007", "subagentTypeName": "explore", "toolCallId": "toolu_s2"}, "fullConversationHeadersOnly": [{"bubbleId": "u1", "type": 1}, {"bubbleId": "u2", "type": 2}, {"bubbleId": "u3", "type": 2}, {"bubbleId": "u4", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c080000-0000-4000-8000-000000000008:u1', '{"_v": 3, "bubbleId": "u1", "type": 1, "text": "Count drawer A.", "createdAt": "2026-08-20T07:00:02.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c080000-0000-4000-8000-000000000008:u2', '{"_v": 3, "bubbleId": "u2", "type": 2, "text": "", "createdAt": "2026-08-20T07:00:03.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "list_dir_v2", "toolCallId": "toolu_u2", "modelCallId": "m-toolu_u2", "toolIndex": 0, "params": "{\"targetDirectory\": \"/srv/seeds/a\"}", "rawArgs": "{\"targetDirectory\": \"/srv/seeds/a\"}", "result": "{\"output\": \"240 files\"}", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c080000-0000-4000-8000-000000000008:u3', '{"_v": 3, "bubbleId": "u3", "type": 2, "text": "", "createdAt": "2026-08-20T07:00:04.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "task_v2", "toolCallId": "toolu_u3", "modelCallId": "m-toolu_u3", "toolIndex": 0, "params": "{\"prompt\": \"Check it.\"}", "rawArgs": "{\"prompt\": \"Check it.\"}", "result": "{\"agentId\": \"7c090000-0000-4000-8000-000000000009\"}", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c080000-0000-4000-8000-000000000008:u4', '{"_v": 3, "bubbleId": "u4", "type": 2, "text": "240.", "createdAt": "2026-08-20T07:00:05.000Z", "modelInfo": {"modelName": "composer-2-fast"}, "tokenCount": {"inputTokens": 2000, "outputTokens": 20}}');
insert into cursorDiskKV values
  ('composerData:7c090000-0000-4000-8000-000000000009', '{"_v": 16, "composerId": "7c090000-0000-4000-8000-000000000009", "createdAt": 1787209204000, "subagentInfo": {"parentComposerId": "7c080000-0000-4000-8000-000000000008", "rootParentConversationId": "7c070000-0000-4000-8000-000000000007"}, "fullConversationHeadersOnly": [{"bubbleId": "v1", "type": 1}, {"bubbleId": "v2", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c090000-0000-4000-8000-000000000009:v1', '{"_v": 3, "bubbleId": "v1", "type": 1, "text": "Check it.", "createdAt": "2026-08-20T07:00:04.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c090000-0000-4000-8000-000000000009:v2', '{"_v": 3, "bubbleId": "v2", "type": 2, "text": "It is right.", "createdAt": "2026-08-20T07:00:05.000Z"}');

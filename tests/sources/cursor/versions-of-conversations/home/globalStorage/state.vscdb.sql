create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);
create table composerHeaders (composerId text primary key, workspaceId text, createdAt integer,
  lastUpdatedAt integer, isArchived integer, isSubagent integer, recency integer, checkpointAt integer, value text);

insert into ItemTable values
  ('cursorAuth/accessToken', 'SECRET-token');
insert into ItemTable values
  ('secret://{"extensionId":"anysphere.cursor-mcp","key":"tokens"}', 'SECRET-mcp');
insert into cursorDiskKV values
  ('composerData:7c020000-0000-4000-8000-000000000002', '{"composerId": "7c020000-0000-4000-8000-000000000002", "name": "Compost in spring", "createdAt": 1733824800000, "lastUpdatedAt": 1733824860000, "richText": "", "hasLoaded": true, "status": "completed", "usageData": {"claude-3.5-sonnet": {"costInCents": 8, "amount": 2}, "default": {"costInCents": 0.5, "amount": 1}, "gpt-4o": {"amount": 1}}, "conversation": [{"type": 1, "bubbleId": "o1", "text": "", "richText": "{\"root\": {\"children\": [{\"children\": [{\"text\": \"How hot may compost get?\", \"type\": \"text\"}], \"type\": \"paragraph\"}], \"type\": \"root\"}}", "timingInfo": {"clientStartTime": 1733824800000}}, {"type": 2, "bubbleId": "o2", "text": "Up to 65 \u00b0C. A check:", "codeBlocks": [{"content": "assert celsius <= 65", "languageId": "python"}, {"content": "Up to 65"}], "timingInfo": {"clientStartTime": 5214.25, "clientRpcSendTime": 1733824801000.5, "clientEndTime": 1733824804000}, "tokenCount": {"inputTokens": 900, "outputTokens": 30}}, "no bubble"]}');
insert into cursorDiskKV values
  ('composerData:7c030000-0000-4000-8000-000000000003', '{"_v": 3, "composerId": "7c030000-0000-4000-8000-000000000003", "name": "The heap", "createdAt": 1746093600000, "modelConfig": {"modelName": "default", "maxMode": false}, "unifiedMode": "chat", "createdOnBranch": "autumn", "fullConversationHeadersOnly": [{"bubbleId": "p1", "type": 1}, {"bubbleId": "p2", "type": 2}, {"bubbleId": "p3", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c030000-0000-4000-8000-000000000003:p1', '{"_v": 2, "bubbleId": "p1", "type": 1, "text": "Turn the heap.", "timingInfo": {"clientRpcSendTime": 1746093600000}, "workspaceUris": ["vscode-remote://ssh-remote%2Bshed/srv/compost%20heap"]}');
insert into cursorDiskKV values
  ('bubbleId:7c030000-0000-4000-8000-000000000003:p2', '{"_v": 2, "bubbleId": "p2", "type": 2, "text": "Turned.", "timingInfo": {"clientRpcSendTime": 1746093601000, "clientEndTime": 1746093605000}, "intermediateChunks": [], "codeBlocks": []}');
insert into cursorDiskKV values
  ('bubbleId:7c030000-0000-4000-8000-000000000003:p3', '{"_v": 2, "bubbleId": "p3", "type": 2, "text": "And covered."}');
insert into cursorDiskKV values
  ('composerData:7c040000-0000-4000-8000-000000000004', '{"_v": 18, "composerId": "7c040000-0000-4000-8000-000000000004", "name": "Ripeness", "createdAt": 1782892800000, "lastUpdatedAt": 1782892801000, "isArchived": true, "latestConversationSummary": {"summary": {"summary": "The heap is almost ripe."}}, "subComposerIds": ["x"], "workspaceIdentifier": {"id": "w1"}, "fullConversationHeadersOnly": [{"bubbleId": "q1", "type": 1}, {"bubbleId": "q2", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c040000-0000-4000-8000-000000000004:q1', '{"_v": 3, "bubbleId": "q1", "type": 1, "text": "Is it ripe?", "createdAt": "2026-07-01T08:00:00.000Z", "images": [{"path": "/tmp/heap.png", "dimension": {"width": 10, "height": 10}}, {"uuid": "5f"}]}');
insert into cursorDiskKV values
  ('bubbleId:7c040000-0000-4000-8000-000000000004:q2', '{"_v": 3, "bubbleId": "q2", "type": 2, "text": "Almost.", "createdAt": "2026-07-01T08:00:01.000Z", "modelInfo": {"modelName": "gpt-5.4"}, "tokenCount": {"inputTokens": 12, "outputTokens": 3}}');
insert into composerHeaders values
  ('7c040000-0000-4000-8000-000000000004', 'w1', 1790503200000, 1790503260000, 0, 0, 1790503260000, null, '{"type": "head", "composerId": "7c040000-0000-4000-8000-000000000004", "name": "Ripeness", "workspaceIdentifier": {"id": "w1", "uri": {"external": "file:///c%3A/Gardens/compost", "scheme": "file"}}}');
insert into cursorDiskKV values
  ('composerData:empty-state-draft', '{"_v": 16, "composerId": "empty-state-draft", "text": "an unsent draft", "createdAt": 1782892800000, "fullConversationHeadersOnly": []}');

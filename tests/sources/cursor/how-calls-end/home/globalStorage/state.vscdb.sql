create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);

insert into ItemTable values
  ('cursorAuth/accessToken', 'SECRET-token');
insert into ItemTable values
  ('secret://{"extensionId":"anysphere.cursor-mcp","key":"tokens"}', 'SECRET-mcp');
insert into cursorDiskKV values
  ('composerData:7c0a0000-0000-4000-8000-00000000000a', '{"_v": 16, "composerId": "7c0a0000-0000-4000-8000-00000000000a", "name": "Pump", "createdAt": 1777615200000, "fullConversationHeadersOnly": [{"bubbleId": "w0", "type": 1}, {"bubbleId": "w1", "type": 2}, {"bubbleId": "w2", "type": 2}, {"bubbleId": "w3", "type": 2}, {"bubbleId": "w4", "type": 2}, {"bubbleId": "w5", "type": 2}, {"bubbleId": "w6", "type": 2}, {"bubbleId": "w7", "type": 2}, {"bubbleId": "w8", "type": 2}, {"bubbleId": "w9", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w0', '{"_v": 3, "bubbleId": "w0", "type": 1, "text": "Water everything.", "createdAt": "2026-05-01T06:00:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w1', '{"_v": 3, "bubbleId": "w1", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:01.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "run_terminal_cmd", "toolCallId": "toolu_w1", "modelCallId": "m-toolu_w1", "toolIndex": 0, "params": "{\"command\": \"pump --on\"}", "rawArgs": "{\"command\": \"pump --on\"}", "result": "{\"output\": \"no water\\n\", \"exitCode\": 3}", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w2', '{"_v": 3, "bubbleId": "w2", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:02.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "run_terminal_cmd", "toolCallId": "toolu_w2", "modelCallId": "m-toolu_w2", "toolIndex": 0, "params": "{\"command\": \"rm -r beds\"}", "rawArgs": "{\"command\": \"rm -r beds\"}", "result": "{\"rejected\": true}", "status": "completed", "userDecision": "rejected"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w3', '{"_v": 3, "bubbleId": "w3", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:03.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "read_file_v2", "toolCallId": "toolu_w3", "modelCallId": "m-toolu_w3", "toolIndex": 0, "params": "{\"targetFile\": \"pump.log\"}", "rawArgs": "{\"targetFile\": \"pump.log\"}", "result": "", "status": "error", "error": "{\"clientVisibleErrorMessage\": \"No such file\", \"modelVisibleErrorMessage\": \"ENOENT: pump.log\"}"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w4', '{"_v": 3, "bubbleId": "w4", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:04.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "web_search", "toolCallId": "toolu_w4", "modelCallId": "m-toolu_w4", "toolIndex": 0, "params": "{\"search_term\": \"pump without water\"}", "rawArgs": "{\"search_term\": \"pump without water\"}", "result": "plain text, no JSON", "status": "cancelled"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w5', '{"_v": 3, "bubbleId": "w5", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:05.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "mcp_valves_open", "toolCallId": "toolu_w5", "modelCallId": "m-toolu_w5", "toolIndex": 0, "params": "{\"valve\": 7}", "rawArgs": "{\"valve\": 7}", "result": "{\"content\": \"valve 7 is open\"}", "status": "completed", "additionalData": {"reviewStatus": "Done", "note": "kept"}}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w6', '{"_v": 3, "bubbleId": "w6", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:06.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "edit_file_v2", "toolCallId": "toolu_w6", "modelCallId": "m-toolu_w6", "toolIndex": 0, "params": "{\"relativeWorkspacePath\": \"pump.py\", \"streamingContent\": \"def run_the_pump_now():\\n    return True\\n\"}", "rawArgs": "{\"relativeWorkspacePath\": \"pump.py\", \"streamingContent\": \"def run_the_pump_now():\\n    return True\\n\"}", "result": "{\"diff\": {}}", "status": "loading"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w7', '{"_v": 3, "bubbleId": "w7", "type": 2, "createdAt": "2026-05-01T06:00:07.000Z", "toolFormerData": {"additionalData": {"status": "error"}}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w8', '{"_v": 3, "bubbleId": "w8", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:08.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "write", "toolCallId": "toolu_w8", "modelCallId": "m-toolu_w8", "toolIndex": 0, "params": "{\"file_path\": \"/srv/pump.txt\", \"contents\": \"the pump is without water\\n\"}", "rawArgs": "{\"file_path\": \"/srv/pump.txt\", \"contents\": \"the pump is without water\\n\"}", "result": "{\"resultForModel\": \"written\"}", "status": "completed"}}');
insert into cursorDiskKV values
  ('bubbleId:7c0a0000-0000-4000-8000-00000000000a:w9', '{"_v": 3, "bubbleId": "w9", "type": 2, "text": "", "createdAt": "2026-05-01T06:00:09.000Z", "capabilityType": 15, "toolFormerData": {"tool": 15, "name": "ask_question", "toolCallId": "", "modelCallId": "m-", "toolIndex": 0, "params": "{\"question\": \"Which valve?\"}", "rawArgs": "{\"question\": \"Which valve?\"}", "result": "{\"output\": \"the left one\"}", "status": "completed"}}');

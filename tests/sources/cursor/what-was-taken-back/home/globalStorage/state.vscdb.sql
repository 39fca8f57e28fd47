create table ItemTable (key text unique on conflict replace, value blob);
create table cursorDiskKV (key text unique on conflict replace, value blob);

insert into ItemTable values
  ('cursorAuth/accessToken', 'SECRET-token');
insert into ItemTable values
  ('secret://{"extensionId":"anysphere.cursor-mcp","key":"tokens"}', 'SECRET-mcp');
insert into cursorDiskKV values
  ('composerData:7c050000-0000-4000-8000-000000000005', '{"_v": 16, "composerId": "7c050000-0000-4000-8000-000000000005", "name": "Beds", "createdAt": 1785574800000, "fullConversationHeadersOnly": [{"bubbleId": "t1", "type": 1}, {"bubbleId": "t2", "type": 2}, {"bubbleId": "t5", "type": 1}, {"bubbleId": "t6", "type": 2}, {"bubbleId": "t7", "type": 2}]}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t1', '{"_v": 3, "bubbleId": "t1", "type": 1, "text": "Draw a plan of the beds.", "createdAt": "2026-08-01T09:00:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t2', '{"_v": 3, "bubbleId": "t2", "type": 2, "text": "Four beds in a row.", "createdAt": "2026-08-01T09:00:01.000Z", "tokenCount": {"inputTokens": 100, "outputTokens": 10}, "modelInfo": {"modelName": "composer-2"}}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t3', '{"_v": 3, "bubbleId": "t3", "type": 1, "text": "Make it six.", "createdAt": "2026-08-01T09:01:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t4', '{"_v": 3, "bubbleId": "t4", "type": 2, "text": "Six beds.", "createdAt": "2026-08-01T09:01:01.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t5', '{"_v": 3, "bubbleId": "t5", "type": 1, "text": "Make it eight.", "createdAt": "2026-08-01T09:02:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c050000-0000-4000-8000-000000000005:t6', '{"_v": 3, "bubbleId": "t6", "type": 2, "text": "Eight beds.", "createdAt": "2026-08-01T09:02:01.000Z"}');
insert into cursorDiskKV values
  ('composerData:7c060000-0000-4000-8000-000000000006', '{"_v": 10, "composerId": "7c060000-0000-4000-8000-000000000006", "name": "No list", "createdAt": 1785574800000}');
insert into cursorDiskKV values
  ('bubbleId:7c060000-0000-4000-8000-000000000006:z1', '{"_v": 3, "type": 1, "bubbleId": "z1", "text": "Without a list, the order is that of the rows.", "createdAt": "2026-08-01T09:00:00.000Z"}');
insert into cursorDiskKV values
  ('bubbleId:7c060000-0000-4000-8000-000000000006:a2', '{"_v": 3, "type": 2, "bubbleId": "a2", "text": "This was written later.", "createdAt": "2026-08-01T09:00:02.000Z"}');

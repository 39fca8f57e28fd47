create table blobs (id text primary key, data blob);
create table meta (key text primary key, value text);

insert into meta values
  ('0', '7b226167656e744964223a202237643033303030302d303030302d343030302d383030302d303030303030303030303033222c20226c6174657374526f6f74426c6f624964223a202261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162222c2022697352756e45766572797468696e67223a2066616c73652c2022626c6f62456e6372797074696f6e4b6579223a20225345435245542d6b6579222c20226e616d65223a2022436f756e74206170706c6573222c20226d6f6465223a202264656661756c74222c2022637265617465644174223a20313739303630303030303030307d');
insert into blobs values
  ('7e3dbfdd6d6cc454bd9e5b1a6825c5a075742ad01783e50f30b0e7b5cae05e1c', cast('{"role": "user", "content": [{"type": "text", "text": "<user_query>Count all apples.</user_query>"}]}' as blob));
insert into blobs values
  ('62474dac01d47d6e1271cb6d22b7790696636e3d4b2afacb2d6cc6f844f9b027', cast('{"id": "1", "role": "assistant", "content": [{"type": "tool-call", "toolCallId": "t1", "toolName": "Task", "args": {"description": "Count a tree", "prompt": "Count tree 1.", "subagent_type": "explore"}}]}' as blob));
insert into blobs values
  ('16876d8f9808a1ce9eec005ad3f4f579a1113d3b2e7af81137b122685db821d5', cast('{"role": "tool", "id": "t1", "content": [{"type": "tool-result", "toolCallId": "t1", "toolName": "Task", "result": "31 apples", "experimental_content": [{"type": "text", "text": "31 apples"}]}], "providerOptions": {"cursor": {"highLevelToolCallResult": {"output": {"success": {"agentId": "7d040000-0000-4000-8000-000000000004", "durationMs": 2000}}}}}}' as blob));
insert into blobs values
  ('2330e8903c06bd57605179780416e3c17935aa9c8a8ca0e63108b6aa67f0920c', cast('{"id": "1", "role": "assistant", "content": [{"type": "text", "text": "31 apples."}]}' as blob));
insert into blobs values
  ('abababababababababababababababababababababababababababababababab', x'0a20cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd');

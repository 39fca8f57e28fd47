create table blobs (id text primary key, data blob);
create table meta (key text primary key, value text);

insert into meta values
  ('0', '7b226167656e744964223a202237643032303030302d303030302d343030302d383030302d303030303030303030303032222c20226c6174657374526f6f74426c6f624964223a202261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162616261626162222c2022697352756e45766572797468696e67223a20747275652c2022626c6f62456e6372797074696f6e4b6579223a20225345435245542d6b6579222c20226e616d65223a20224e6577204167656e74222c20226d6f6465223a2022706c616e222c2022637265617465644174223a20313736343030303030303030302c20226c617374557365644d6f64656c223a207b226d6f64656c223a2022636f6d706f7365722d32227d2c202263757272656e74506c616e557269223a202266696c653a2f2f2f702e706c616e2e6d64227d');
insert into blobs values
  ('05cf2d4bc5dfa20288a85ad47241e2ee6a013e8d3510e833dc2310f9c6492eab', cast('{"role": "user", "content": [{"type": "text", "text": "<user_info>\nOS Version: linux 6.12\nShell: bash\nWorkspace Path: /srv/orchard\n</user_info>\n<rules>Be brief.</rules>"}, {"type": "text", "text": "<timestamp>Monday</timestamp>\n<user_query>Prune the trees.</user_query>\n<note>of the program</note>"}]}' as blob));
insert into blobs values
  ('8191addb8aaed143aab29743ea37df823e7e88f85bdf99534e9c42f40af71956', cast('{"role": "user", "content": "A prompt that is a text."}' as blob));
insert into blobs values
  ('5a59e372159f518ca0ed41cb6255e89b46bcb157b5a1e38b5cf169985284ea9e', cast('{"id": "1", "role": "assistant", "content": [{"type": "redacted-reasoning", "data": "ZW5jcnlwdGVk"}, {"type": "text", "text": "Which?"}, {"type": "image", "image": {"__type": "Uint8Array", "hex": "89504e47"}, "mediaType": "image/png"}]}' as blob));
insert into blobs values
  ('870f9d4746ef131a39bfb2499b4348a8aa1d03468b060120e117df53dbcdf39a', cast('{"id": "1", "role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "Shell", "args": {"command": "saw --all"}}, {"type": "tool-call", "toolCallId": "c2", "toolName": "ReadFile", "args": {"target_file": "saw.md"}}, {"type": "tool-call", "toolCallId": "c3", "toolName": "Orchard_pick", "args": {"tree": 3}}]}' as blob));
insert into blobs values
  ('1b24d4ae709e1bdace8859e3edc4b60dc275f4fc976907330ee1347b3382eac9', cast('{"role": "tool", "id": "c1", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "Shell", "result": "Exit code: 2\n\nno saw", "experimental_content": [{"type": "text", "text": "Exit code: 2\n\nno saw"}]}], "providerOptions": {"cursor": {"highLevelToolCallResult": {"isError": true, "output": {}}}}}' as blob));
insert into blobs values
  ('799f4346c6d36675fe9739a8fa624275fd703b177344f2103fb02b195b4ef416', cast('{"role": "tool", "id": "c2", "content": [{"type": "tool-result", "toolCallId": "c2", "toolName": "ReadFile", "result": "not found", "experimental_content": [{"type": "text", "text": "not found"}]}], "providerOptions": {"cursor": {"highLevelToolCallResult": {"output": {"isError": true}}}}}' as blob));
insert into blobs values
  ('725371cba66985ff3e690cd177bd858bc8b6af1349552a7e358e5dd377b4c3f7', cast('{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c3", "toolName": "Orchard_pick", "result": {"text": "three pears"}}]}' as blob));
insert into blobs values
  ('56ab8caac9d4def8233c863f828ae87156fb6ce7440773c803d7ef6dffbbbda9', cast('{"role": "user", "content": [{"type": "text", "text": "The conversation so far: pruning."}], "providerOptions": {"cursor": {"isSummary": true}}}' as blob));
insert into blobs values
  ('d7cd293c5e226fd10e0deffe870d0277df0e9680f4a9cbebedc1bdb9792025b5', cast('{"role": "assistant", "content": [{"type": "riddle", "text": "A part of a kind that nobody knows."}], "providerOptions": {"cursor": {"modelProviderMessageId": "m1", "pendingToolCallStartedAtMs": 5}}}' as blob));
insert into blobs values
  ('929ca8267fd079ddcd032da87f7545b59b693c3d0187b5e62699bbef1a63b719', cast('{"role": "oracle", "content": "A role that nobody knows."}' as blob));
insert into blobs values
  ('65fc0175e56aaa4b72765eaccbbff5fb2052be8f901178c91210cc0cbbc29ca0', cast('{"id":"a file of the workspace","version":1}' as blob));
insert into blobs values
  ('abababababababababababababababababababababababababababababababab', x'0a20cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd');

create table blobs (id text primary key, data blob);
create table meta (key text primary key, value text);

insert into meta values
  ('0', '7b2261');
insert into blobs values
  ('cc9df0dcbfd67a2d1353e8736f54eb6f760a15e8b9246fada21d54076933ba03', cast('{"role":"user","content":[{"type":"text","text":"torn' as blob));
insert into blobs values
  ('c9b42ea0f285fbd5d12a9663e30bda4cfade8d22aa2bc0def64cfcc8a78ea7ba', cast('{"role":7,"content":"a role that is a number"}' as blob));
insert into blobs values
  ('ab749f69af0439d8db7fedbdd2bc4d44537041d102e2e1155cb7732a8d8a724a', cast('{"role": "user", "content": 7}' as blob));
insert into blobs values
  ('4a561b4634f1650dafd34959a383169fd78ccca141a20a76f0713ef5fa564f76', cast('{"role": "assistant", "content": ["a text", {"type": "text", "text": ["l"]}, {"type": "tool-call", "toolCallId": 5, "toolName": ["n"], "args": "none"}]}' as blob));
insert into blobs values
  ('fa0f1f89a04ef8083a8d761ca9d69ca412713e013ce278626b65653d3307b149', cast('{"role": "tool", "content": [{"type": "tool-result"}], "providerOptions": {"cursor": {"highLevelToolCallResult": [1]}}}' as blob));
insert into blobs values
  ('88f18dd91726c4636cb914d18e03c53c34caae25a3cec2c8a0850bc19f84b0e1', cast('{"role": "user", "content": "What is whole is read."}' as blob));
insert into blobs values
  ('abababababababababababababababababababababababababababababababab', x'0a20cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd');

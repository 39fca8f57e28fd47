create table blobs (id text primary key, data blob);
create table meta (key text primary key, value text);

insert into blobs values
  ('c9cc8d880ddb07e72b4681d011660a13e4bb7493b5e60ca3973ffc1a66ac15a0', cast('{"role": "user", "content": [{"type": "text", "text": "Without a row of facts, nothing is listed."}]}' as blob));
insert into blobs values
  ('abababababababababababababababababababababababababababababababab', x'0a20cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd');

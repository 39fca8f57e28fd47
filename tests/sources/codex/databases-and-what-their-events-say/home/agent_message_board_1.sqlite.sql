create table deleted_boards (board text primary key not null);
create table channels (
    board text not null, name text not null, name_search text not null, created_at text not null,
    timestamp integer not null, author text not null, primary key (board, name)
);
create table posts (
    seq integer primary key autoincrement, board text not null, id text not null,
    channel text not null, root text not null, author text not null, timestamp integer not null,
    body_search text not null, payload text not null, request_id text not null,
    request text not null, unique (board, id), unique (board, request_id)
);
insert into posts values
(1, '019e5615-0060-7270-b988-4f52f86449a4', 'p1', 'work', 'p1', '/root/a', 1789894800000000, 'ready', '{"metadata":{"message_id":"p1"},"text":"The bed is ready"}', 'r1', '{}'),
(2, '019e5615-0060-7270-b988-4f52f86449a4', 'p2', 'work', 'p1', '/root/b', 1789894860000000, 'thanks', '{"metadata":{"message_id":"p2"},"text":"Thanks"}', 'r2', '{}'),
(3, '019e5615-0060-7270-b988-4f52f86449a4', 'p3', 'work', 'p3', '/root/b', 1789894920000000, '', 'not JSON', 'r3', '{}');

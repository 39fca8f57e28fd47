create table queued_items (
    id text primary key not null, thread_id text not null, payload_json text not null,
    queue_order integer not null, created_at_ms integer not null, updated_at_ms integer not null
);
insert into queued_items values
('b', '019e5615-0060-7270-b988-4f52f86449a4', '{"items":[{"type":"text","text":"Then weed"}]}', 2, 1789894820000, 1789894820000),
('a', '019e5615-0060-7270-b988-4f52f86449a4', '{"input":[{"type":"text","text":"Then water"},{"type":"localImage","path":"/srv/bed.png"}]}', 1, 1789894810000, 1789894810000),
('c', '019e5615-0060-7270-b988-4f52f86449a4', '{}', 3, 1789894830000, 1789894830000);

create table threads (
    id text primary key, rollout_path text not null, title text not null, name text,
    created_at integer not null,
    first_user_message text not null default ''
);
insert into threads values
('019e5615-0060-7270-b988-4f52f86449a4', '/x', 'Sow the beds', 'Spring work', 1789894800, 'Sow the beds'), ('019e5615-0061-7270-b988-4f52f86449a4', '/y', 'Unnamed', null, 1789894800, '');
create table thread_spawn_edges (parent_thread_id text, child_thread_id text);

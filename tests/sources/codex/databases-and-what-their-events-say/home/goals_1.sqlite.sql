create table thread_goals (
    thread_id text primary key not null, goal_id text not null, objective text not null,
    status text not null, token_budget integer, tokens_used integer not null default 0,
    time_used_seconds integer not null default 0, created_at_ms integer not null,
    updated_at_ms integer not null
);
insert into thread_goals values
('019e5615-0060-7270-b988-4f52f86449a4', 'g1', 'Feed the street
with beans', 'active', 50000, 1200, 60, 1789894800000, 1789894900000);

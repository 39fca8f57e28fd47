create table stage1_outputs (
    thread_id text primary key, source_updated_at integer not null, raw_memory text not null,
    rollout_summary text not null, rollout_slug text, generated_at integer not null
);
insert into stage1_outputs values
('019e5615-0060-7270-b988-4f52f86449a4', 1789894900, 'Beans like warm soil', 'Sowed beans', 'sow-beans', 1789894950);

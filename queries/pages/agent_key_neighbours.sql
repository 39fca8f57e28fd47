-- The keys of subagents before and after :key
-- They tell how short a prefix of the key may be to mean only it.
select
    (
        select max(agent_key)
        from subagents
        where agent_key < :key
    ) as before,
    (
        select min(agent_key)
        from subagents
        where agent_key > :key
    ) as after

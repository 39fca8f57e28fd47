-- The keys before and after :key
-- Of sessions and subagents. They tell how short a prefix of the key may be to mean only it.
select
    (
        select max(session_key)
        from sessions
        where session_key < :key
    ) as before,
    (
        select min(session_key)
        from sessions
        where session_key > :key
    ) as after,
    (
        select max(agent_key)
        from subagents
        where agent_key < :key
    ) as agent_before,
    (
        select min(agent_key)
        from subagents
        where agent_key > :key
    ) as agent_after

-- The session keys before and after :key
-- They tell how short a prefix of the key may be to mean only it.
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
    ) as after

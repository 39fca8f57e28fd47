-- With several nodes (Citus), each node has a copy of `origins`. So what a push changes of a machine is
-- in a table of its own, which is distributed like all that machines push.

create table assoc.origin_states (
    origin_id integer primary key,
    db_uuid uuid not null,               -- of the local database that was pushed last
    version bigint not null default 0,   -- one more with every call that writes
    nonce uuid not null,                 -- sent by the last of these calls; its sender recognises it
    next_file_no integer not null default 1,
    pushed_at timestamptz not null default now(),
    reindexed_after uuid[] not null default '{}'
);
insert into assoc.origin_states (
    origin_id, db_uuid, version, nonce, next_file_no, pushed_at, reindexed_after
)
select origin_id, db_uuid, version, nonce, next_file_no, pushed_at, reindexed_after
from assoc.origins;
alter table assoc.origins
    drop column db_uuid,
    drop column version,
    drop column nonce,
    drop column next_file_no,
    drop column pushed_at,
    drop column reindexed_after;

-- A function in SQL is put in the place of its call. Then a coordinator sends another expression than
-- that of the text index, and no node uses it.

create function assoc.words_of(p_text text) returns tsvector
language sql immutable parallel safe
as $$
    select case
        when pg_catalog.octet_length(p_text) > 250000
        then assoc.words_of(pg_catalog.left(p_text, 60000))
        -- The same as below for most texts, in half the time: all of its bytes are ASCII.
        when pg_catalog.octet_length(p_text) = pg_catalog.length(p_text)
        then pg_catalog.to_tsvector(
            'pg_catalog.simple',
            pg_catalog.regexp_replace(pg_catalog.lower(p_text), '[^0-9a-z]+', ' ', 'g')
        )
        when p_text ~ '[\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]'
        then pg_catalog.to_tsvector(
            'pg_catalog.simple', assoc.plain_text(p_text) || ' ' || coalesce(assoc.cjk_pairs(p_text), '')
        )
        else pg_catalog.to_tsvector('pg_catalog.simple', assoc.plain_text(p_text))
    end
$$;

create or replace function assoc.words(p_text text) returns tsvector
language plpgsql immutable parallel safe
as $$
begin
    return assoc.words_of(p_text);
end $$;

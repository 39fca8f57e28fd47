-- How much the machines of a login may store; null: as much as fits.
alter table assoc.logins add column most_bytes bigint;

-- For logins with such a limit: what an origin stores at most. It was counted once, and what was sent
-- since is added.
create table assoc.stored (
    origin_id integer primary key,
    bytes bigint not null
);

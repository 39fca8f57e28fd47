create table superseded ( -- What a conversation took back: a rewind, a roll-back, a revert
    id integer primary key,
    timestamp text,                     -- when it was taken back
    first_uuid text,                    -- the first line that was taken back, if it is named; of an unknown one, the whole file was
    first_offset integer,               -- where the first line begins that was taken back, if that is known
    file_id integer not null references files (id),
    byte_offset integer not null,       -- the line that says so: everything between is taken back
    unique (file_id, byte_offset)
) strict;

alter table messages add column is_superseded integer not null default 0 /* 1: taken back, and so no longer part of the conversation; see superseded */;

-- What lists of sessions read: branch, agent version and permission mode, at each line where they
-- change, and how the agent of a transcript was started.

create table assoc.contexts (
    origin_id integer not null,
    file_no integer not null,
    byte_offset bigint not null,
    row_no integer not null,
    name text collate "C",
    value text collate "C",
    primary key (origin_id, file_no, byte_offset, row_no)
);

alter table assoc.files add column entrypoint text collate "C";

-- A machine that finds an unexpected version compares everything, and so sends the new columns.
update assoc.origins set version = version + 1;

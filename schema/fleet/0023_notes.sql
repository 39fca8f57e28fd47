-- What the users of machines noted on conversations, lines and files.

create table assoc.notes (
    origin_id integer not null,
    session_key text collate "C" not null,
    line_key text collate "C" not null,
    path text collate "C" not null,
    text text collate "C",
    verdict text collate "C",
    title text collate "C",
    is_starred integer,
    noted_at text collate "C",
    digest bytea not null,
    primary key (origin_id, session_key, line_key, path)
);

-- A machine that finds an unexpected version compares everything, and so sends its notes.
update assoc.origins set version = version + 1;

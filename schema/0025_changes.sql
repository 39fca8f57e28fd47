-- What it takes to keep a second record equal to this one: names that last, and what changed.
--
-- A path changes when its file moves, a generation when an older one is removed, an id when the
-- database is made anew. So files have a key of their own. Which rows a transaction changed is noted
-- when it commits; only the last changes are kept, so whoever saw an older one has to compare
-- everything. The program fills in names and the first change (store/changes.py).

create table identity ( -- The name of this database: another one, made from the same files, has another
    id integer primary key,
    database_key blob not null          -- 16 random bytes
) strict;

alter table files add column file_key blob /* 16 random bytes that name the file for life, whatever its path and generation become */;
create unique index files_file_key on files (file_key);

create table changes ( -- A transaction that changed rows; only the last ones are kept
    id integer primary key,
    mark integer not null               -- random: a database that was restored from a copy has other marks at the same ids
) strict;

create table changed_rows ( -- What a change touched
    id integer primary key,
    name text not null,                 -- table: files, or one of those whose rows outlive files
    row_id integer,                     -- the row; of files, the file whose rows or bytes changed; null: a row was removed
    start integer,                      -- of files: the first place in the file where anything changed; null: only its own row and its counts
    change_id integer not null references changes (id) on delete cascade -- the change
) strict;
create index changed_rows_change on changed_rows (change_id);

create table forgotten_files ( -- A file that was forgotten: what other records have of it has to go, too
    id integer primary key,
    file_key blob not null unique,      -- key that the file had
    change_id integer not null          -- the change that removed it
) strict;

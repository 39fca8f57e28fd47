-- Credentials that a user told the program to forget.
--
-- The agent's own files still hold them, so every later sync has to leave them out. They are known
-- again by a keyed hash: nothing here tells what a credential was to anybody who cannot guess it.

create table forgotten_secrets ( -- A credential that `forget --secret` removed, and that no sync stores again
    id integer primary key,
    fingerprint text not null unique,   -- what reports name it by
    rule text not null,                 -- the rule that found it
    length integer not null,            -- letters that it has
    core_start integer,                 -- where in it the longest run of letters and digits begins; null: only the rule finds it again
    core_length integer,                -- letters of that run
    salt blob not null,                 -- random key of the hash, the same in all rows of a database
    hash blob not null,                 -- keyed hash of the credential, 16 bytes
    forgotten_at text not null,         -- when it was forgotten
    is_pending integer not null         -- 1: pages with it may still be on the disk, until `compact` has run
) strict;

-- What a user told the program to forget.
--
-- A row keeps every sync from reading it again: `forget` removes what was read, but the agent's own
-- files are still there. Keys and paths only; nothing here repeats what a file said.

create table forgotten ( -- A conversation, file or directory that `forget` removed, and that no sync reads
    id integer primary key,
    session_key text,                   -- the conversation; beside a path: the one that it was forgotten with
    path text,                          -- the file or directory, relative to the root; null: all that names the conversation
    root text,                          -- root in which it is forgotten; null: every root
    forgotten_at text not null,         -- when it was forgotten
    is_pending integer not null,        -- 1: pages with its text may still be on the disk, until `compact` has run
    check (session_key is not null or path is not null)
) strict;
create unique index forgotten_key on forgotten (coalesce(session_key, ''), coalesce(path, ''), coalesce(root, ''));

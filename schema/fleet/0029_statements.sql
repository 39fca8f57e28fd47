-- The statements of a push were in a function, which each new connection read several times.

drop function if exists assoc.write_of(text), assoc.deletion_of(text), assoc.same_key(text);

create table assoc.statements (
    name text primary key,               -- of a table
    bit integer,                         -- in frames.row_tables; null: its rows have no place in a file
    deletes text,
    writes text not null
);

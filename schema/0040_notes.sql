-- What a user noted on conversations, on their lines, and on files.
--
-- No file says it, so it is nowhere else. A note names its target by what outlives all rows: the key
-- of the conversation, the uuid of the line, the path of the file. So it stays through every rebuild,
-- and if its target is forgotten.

create table notes ( -- What a user noted on a conversation, a line or a file
    id integer primary key,
    text text,                          -- the note
    verdict text,                       -- kept: a decision that held; rejected: one that was turned down
    title text,                         -- the user's own title of the conversation
    is_starred integer not null default 0, -- 1: it has a star
    noted_at text not null,             -- when it was last changed
    path text,                          -- the file, absolute, with forward slashes
    session_key text,                   -- the conversation, or that of the line
    line_key text,                      -- the line: its uuid, or without one PATH@OFFSET of its file; null: the conversation
    origin text,                        -- label of the machine that it was pulled from; null: it was written here
    check ((path is null) <> (session_key is null))
) strict;
alter table notes add column joined text
    generated always as (case
        when length(text) = length(cast(text as blob)) then null
        when not (instr(cast(text as blob), x'c2ad') or instr(cast(text as blob), x'cd8f') or instr(cast(text as blob), x'd89c')
            or instr(cast(text as blob), x'e1a08e') or instr(cast(text as blob), x'efbbbf') or instr(cast(text as blob), x'e280')
            or instr(cast(text as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        text)
    end) virtual /* text without invisible letters; null where it has none */;
create unique index notes_target on notes (
    coalesce(session_key, ''), coalesce(line_key, ''), coalesce(path, ''), coalesce(origin, '')
);
create index notes_session on notes (session_key) where session_key is not null;
create virtual table notes_fts using fts5 (text, joined, content="notes", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
create trigger notes_fts_insert after insert on notes begin
    insert into notes_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
create trigger notes_fts_delete after delete on notes begin
    insert into notes_fts (notes_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
end;
create trigger notes_fts_update after update of text, joined on notes begin
    insert into notes_fts (notes_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
    insert into notes_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;

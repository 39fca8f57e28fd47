-- Which tables may have rows in the stretch of a frame, so that a push that replaces it need not look into
-- the others: a bit for each, in the order of assoc.placed_tables(). -1: any table may.
alter table assoc.frames add column row_tables integer not null default -1;

-- They were replaced by statements that are made with the functions.
drop function if exists assoc.columns_of(text, text), assoc.write_placed(integer, text, json, json),
    assoc.write_keyed(integer, text, json, json);

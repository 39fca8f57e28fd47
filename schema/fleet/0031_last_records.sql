-- When the last line of a file was written, as the line says: a copy of a file has another time.
alter table assoc.files add column recorded_at text collate "C";

-- A machine that finds an unexpected version compares everything, and so sends the new column.
update assoc.origin_states set version = version + 1;

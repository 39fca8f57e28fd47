-- The length of the output of a response.
alter table assoc.usage add column written_bytes bigint;
alter table assoc.responses add column written_bytes bigint;

-- A machine that finds an unexpected version compares everything, and so sends the new columns.
update assoc.origins set version = version + 1;

-- What a call does, whatever its tool is called: reports need no tool's name. The next sync derives it
-- from the archive, for calls that were read before, too.
alter table tool_calls add column action text /* run, read, edit, search, plan, spawn, ask or other, as its source says; null: only the result is in this file */;
alter table tool_calls add column paths text /* JSON list of the files that it was applied to, where target is not all of them */;

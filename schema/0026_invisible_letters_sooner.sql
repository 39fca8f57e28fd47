-- Most texts without invisible letters are known as such in a tenth of the time.
--
-- Each text that is indexed is looked at. An expression that compared each letter with all invisible
-- ones took longer than indexing the text. Now the bytes are searched for those with which these
-- letters begin in UTF-8. Some dashes and quotes begin with them, too: then the letters are removed,
-- and if that changes nothing, there were none. The columns have the same content as before, so the
-- indexes stay as they are.

drop trigger inbox_items_fts_insert;
drop trigger inbox_items_fts_delete;
drop trigger inbox_items_fts_update;
alter table inbox_items drop column joined;
alter table inbox_items add column joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(summary, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob)) then null
        when not (instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'c2ad')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'cd8f')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'd89c')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e1a08e')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'efbbbf')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e280')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(summary, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(text, '') || char(10) || coalesce(summary, ''))
    end) virtual /* text and summary without invisible letters; null where they have none */;
create trigger inbox_items_fts_insert after insert on inbox_items begin
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;
create trigger inbox_items_fts_delete after delete on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
end;
create trigger inbox_items_fts_update after update of text, summary, joined on inbox_items begin
    insert into inbox_items_fts (inbox_items_fts, rowid, text, summary, joined) values ('delete', old.id, old.text, old.summary, old.joined);
    insert into inbox_items_fts (rowid, text, summary, joined) values (new.id, new.text, new.summary, new.joined);
end;

drop trigger tasks_fts_insert;
drop trigger tasks_fts_delete;
drop trigger tasks_fts_update;
alter table tasks drop column joined;
alter table tasks add column joined text
    generated always as (case
        when length(coalesce(subject, '') || char(10) || coalesce(description, '')) = length(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob)) then null
        when not (instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'c2ad')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'cd8f')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'd89c')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e1a08e')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'efbbbf')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e280')
            or instr(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(subject, '') || char(10) || coalesce(description, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(subject, '') || char(10) || coalesce(description, ''))
    end) virtual /* subject and description without invisible letters; null where they have none */;
create trigger tasks_fts_insert after insert on tasks begin
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;
create trigger tasks_fts_delete after delete on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
end;
create trigger tasks_fts_update after update of subject, description, joined on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description, joined) values ('delete', old.id, old.subject, old.description, old.joined);
    insert into tasks_fts (rowid, subject, description, joined) values (new.id, new.subject, new.description, new.joined);
end;

drop trigger todos_fts_insert;
drop trigger todos_fts_delete;
drop trigger todos_fts_update;
alter table todos drop column joined;
alter table todos add column joined text
    generated always as (case
        when length(content) = length(cast(content as blob)) then null
        when not (instr(cast(content as blob), x'c2ad') or instr(cast(content as blob), x'cd8f') or instr(cast(content as blob), x'd89c')
            or instr(cast(content as blob), x'e1a08e') or instr(cast(content as blob), x'efbbbf') or instr(cast(content as blob), x'e280')
            or instr(cast(content as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        content
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        content)
    end) virtual /* content without invisible letters; null where it has none */;
create trigger todos_fts_insert after insert on todos begin
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;
create trigger todos_fts_delete after delete on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
end;
create trigger todos_fts_update after update of content, joined on todos begin
    insert into todos_fts (todos_fts, rowid, content, joined) values ('delete', old.id, old.content, old.joined);
    insert into todos_fts (rowid, content, joined) values (new.id, new.content, new.joined);
end;

drop trigger plans_fts_insert;
drop trigger plans_fts_delete;
drop trigger plans_fts_update;
alter table plans drop column joined;
alter table plans add column joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || text) = length(cast(coalesce(title, '') || char(10) || text as blob)) then null
        when not (instr(cast(coalesce(title, '') || char(10) || text as blob), x'c2ad')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'cd8f')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'd89c')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e1a08e')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'efbbbf')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e280')
            or instr(cast(coalesce(title, '') || char(10) || text as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || text
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(title, '') || char(10) || text)
    end) virtual /* title and text without invisible letters; null where they have none */;
create trigger plans_fts_insert after insert on plans begin
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
create trigger plans_fts_delete after delete on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
create trigger plans_fts_update after update of title, text, joined on plans begin
    insert into plans_fts (plans_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into plans_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;

drop trigger documents_fts_insert;
drop trigger documents_fts_delete;
drop trigger documents_fts_update;
alter table documents drop column joined;
alter table documents add column joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || coalesce(text, '')) = length(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob)) then null
        when not (instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'c2ad')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'cd8f')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'd89c')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e1a08e')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'efbbbf')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e280')
            or instr(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || coalesce(text, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(title, '') || char(10) || coalesce(text, ''))
    end) virtual /* title and text without invisible letters; null where they have none */;
create trigger documents_fts_insert after insert on documents begin
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;
create trigger documents_fts_delete after delete on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
end;
create trigger documents_fts_update after update of title, text, joined on documents begin
    insert into documents_fts (documents_fts, rowid, title, text, joined) values ('delete', old.id, old.title, old.text, old.joined);
    insert into documents_fts (rowid, title, text, joined) values (new.id, new.title, new.text, new.joined);
end;

drop trigger prompts_fts_insert;
drop trigger prompts_fts_delete;
drop trigger prompts_fts_update;
alter table prompts drop column joined;
alter table prompts add column joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(pasted, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob)) then null
        when not (instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'c2ad')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'cd8f')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'd89c')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e1a08e')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'efbbbf')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e280')
            or instr(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob), x'e281')) then null
        else nullif(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(pasted, '')
        , char(173), '') , char(847), '') , char(1564), '') , char(6158), '') , char(8203), '') , char(8204), '')
        , char(8205), '') , char(8206), '') , char(8207), '') , char(8234), '') , char(8235), '') , char(8236), '')
        , char(8237), '') , char(8238), '') , char(8288), '') , char(8289), '') , char(8290), '') , char(8291), '')
        , char(8292), '') , char(8294), '') , char(8295), '') , char(8296), '') , char(8297), '') , char(65279), ''),
        coalesce(text, '') || char(10) || coalesce(pasted, ''))
    end) virtual /* text and pasted without invisible letters; null where they have none */;
create trigger prompts_fts_insert after insert on prompts begin
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;
create trigger prompts_fts_delete after delete on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
end;
create trigger prompts_fts_update after update of text, pasted, joined on prompts begin
    insert into prompts_fts (prompts_fts, rowid, text, pasted, joined) values ('delete', old.id, old.text, old.pasted, old.joined);
    insert into prompts_fts (rowid, text, pasted, joined) values (new.id, new.text, new.pasted, new.joined);
end;

drop trigger tool_result_files_fts_insert;
drop trigger tool_result_files_fts_delete;
drop trigger tool_result_files_fts_update;
alter table tool_result_files drop column joined;
alter table tool_result_files add column joined text
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
create trigger tool_result_files_fts_insert after insert on tool_result_files begin
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;
create trigger tool_result_files_fts_delete after delete on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
end;
create trigger tool_result_files_fts_update after update of text, joined on tool_result_files begin
    insert into tool_result_files_fts (tool_result_files_fts, rowid, text, joined) values ('delete', old.id, old.text, old.joined);
    insert into tool_result_files_fts (rowid, text, joined) values (new.id, new.text, new.joined);
end;


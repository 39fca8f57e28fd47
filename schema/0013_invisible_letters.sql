-- Words that invisible letters take apart are found.
--
-- A soft hyphen, a space of no width or a byte order mark inside of a word is no letter to the
-- index, so a word that holds one was indexed as two, and nobody found it. Its text stays as it is.
-- Beside it the index has, in a column of its own, the same text without such letters, so that both
-- the whole word and its parts are found. These columns are computed, not stored, and null where
-- there is nothing to join. The built-in functions of SQLite do it, so that the database can be read
-- and edited without this program.

drop trigger messages_fts_delete;
drop trigger messages_fts_update;
drop table messages_fts;
drop trigger messages_cjk_fts_delete;
drop trigger messages_cjk_fts_update;
drop table messages_cjk_fts;
drop view messages_cjk;

drop trigger inbox_items_fts_insert;
drop trigger inbox_items_fts_delete;
drop trigger inbox_items_fts_update;
drop table inbox_items_fts;
drop trigger tasks_fts_insert;
drop trigger tasks_fts_delete;
drop trigger tasks_fts_update;
drop table tasks_fts;
drop trigger todos_fts_insert;
drop trigger todos_fts_delete;
drop trigger todos_fts_update;
drop table todos_fts;
drop trigger plans_fts_insert;
drop trigger plans_fts_delete;
drop trigger plans_fts_update;
drop table plans_fts;
drop trigger documents_fts_insert;
drop trigger documents_fts_delete;
drop trigger documents_fts_update;
drop table documents_fts;
drop trigger prompts_fts_insert;
drop trigger prompts_fts_delete;
drop trigger prompts_fts_update;
drop table prompts_fts;
drop trigger tool_result_files_fts_insert;
drop trigger tool_result_files_fts_delete;
drop trigger tool_result_files_fts_update;
drop table tool_result_files_fts;

-- Of messages the program says which have such letters: to look for them here would cost a first
-- sync more than it may. Rows that are there already are looked at once.
alter table messages add column has_invisible integer not null default 0 /* 1: holds letters that nobody sees, see joined_text */;
update messages
set has_invisible = 1
where length(coalesce(text, tool_text)) < length(cast(coalesce(text, tool_text) as blob))
  and coalesce(text, tool_text) glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*';

alter table messages add column joined_text text
    generated always as (iif(has_invisible,
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    , null)) virtual /* text without invisible letters, so that the words are whole that they take apart; null where it has none */;
alter table messages add column joined_tool_text text
    generated always as (iif(has_invisible,
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        tool_text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    , null)) virtual /* the same of tool_text */;

create virtual table messages_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages", content_rowid="id",
    tokenize="unicode61 remove_diacritics 2"
);
create trigger messages_fts_delete after delete on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
end;
create trigger messages_fts_update after update of text, tool_text, has_invisible, joined_text, joined_tool_text on messages begin
    insert into messages_fts (messages_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
    insert into messages_fts (rowid, text, tool_text, joined_text, joined_tool_text)
    values (new.id, new.text, new.tool_text, new.joined_text, new.joined_tool_text);
end;

create view messages_cjk as -- Messages that hold Chinese, Japanese or Korean: what messages_cjk_fts indexes
select id, text, tool_text, joined_text, joined_tool_text
from messages
where has_cjk = 1;
create virtual table messages_cjk_fts using fts5 (
    text, tool_text, joined_text, joined_tool_text,
    content="messages_cjk", content_rowid="id",
    tokenize="trigram"
);
create trigger messages_cjk_fts_delete after delete on messages when old.has_cjk = 1 begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    values ('delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text);
end;
create trigger messages_cjk_fts_update after update of text, tool_text, has_cjk, has_invisible, joined_text, joined_tool_text on messages begin
    insert into messages_cjk_fts (messages_cjk_fts, rowid, text, tool_text, joined_text, joined_tool_text)
    select 'delete', old.id, old.text, old.tool_text, old.joined_text, old.joined_tool_text where old.has_cjk = 1;
    insert into messages_cjk_fts (rowid, text, tool_text, joined_text, joined_tool_text)
    select new.id, new.text, new.tool_text, new.joined_text, new.joined_tool_text where new.has_cjk = 1;
end;

-- The smaller stores: their rows are few, so they are looked at here. A text of plain ASCII costs
-- nothing; of others it is asked first whether they have any of these letters.

alter table inbox_items add column joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(summary, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(summary, '') as blob)) then null
        when coalesce(text, '') || char(10) || coalesce(summary, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(summary, '')
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text and summary without invisible letters; null where they have none */;
create virtual table inbox_items_fts using fts5 (text, summary, joined, content="inbox_items", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table tasks add column joined text
    generated always as (case
        when length(coalesce(subject, '') || char(10) || coalesce(description, '')) = length(cast(coalesce(subject, '') || char(10) || coalesce(description, '') as blob)) then null
        when coalesce(subject, '') || char(10) || coalesce(description, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(subject, '') || char(10) || coalesce(description, '')
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* subject and description without invisible letters; null where they have none */;
create virtual table tasks_fts using fts5 (subject, description, joined, content="tasks", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table todos add column joined text
    generated always as (case
        when length(content) = length(cast(content as blob)) then null
        when content not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        content
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* content without invisible letters; null where it has none */;
create virtual table todos_fts using fts5 (content, joined, content="todos", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table plans add column joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || text) = length(cast(coalesce(title, '') || char(10) || text as blob)) then null
        when coalesce(title, '') || char(10) || text not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* title and text without invisible letters; null where they have none */;
create virtual table plans_fts using fts5 (title, text, joined, content="plans", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table documents add column joined text
    generated always as (case
        when length(coalesce(title, '') || char(10) || coalesce(text, '')) = length(cast(coalesce(title, '') || char(10) || coalesce(text, '') as blob)) then null
        when coalesce(title, '') || char(10) || coalesce(text, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(title, '') || char(10) || coalesce(text, '')
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* title and text without invisible letters; null where they have none */;
create virtual table documents_fts using fts5 (title, text, joined, content="documents", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table prompts add column joined text
    generated always as (case
        when length(coalesce(text, '') || char(10) || coalesce(pasted, '')) = length(cast(coalesce(text, '') || char(10) || coalesce(pasted, '') as blob)) then null
        when coalesce(text, '') || char(10) || coalesce(pasted, '') not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        coalesce(text, '') || char(10) || coalesce(pasted, '')
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text and pasted without invisible letters; null where they have none */;
create virtual table prompts_fts using fts5 (text, pasted, joined, content="prompts", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

alter table tool_result_files add column joined text
    generated always as (case
        when length(text) = length(cast(text as blob)) then null
        when text not glob '*[' || char(173, 847, 1564, 6158, 8203) || '-' || char(8207, 8234) || '-' || char(8238, 8288) || '-' || char(8292, 8294) || '-' || char(8297, 65279) || ']*' then null
        else
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
        text
        , char(173), ''), char(847), ''), char(1564), ''), char(6158), ''), char(8203), ''), char(8204), '')
        , char(8205), ''), char(8206), ''), char(8207), ''), char(8234), ''), char(8235), ''), char(8236), '')
        , char(8237), ''), char(8238), ''), char(8288), ''), char(8289), ''), char(8290), ''), char(8291), '')
        , char(8292), ''), char(8294), ''), char(8295), ''), char(8296), ''), char(8297), ''), char(65279), '')
    end) virtual /* text without invisible letters; null where it has none */;
create virtual table tool_result_files_fts using fts5 (text, joined, content="tool_result_files", content_rowid="id", tokenize="unicode61 remove_diacritics 2");
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

insert into messages_fts (messages_fts) values ('rebuild');
insert into messages_cjk_fts (messages_cjk_fts) values ('rebuild');
insert into inbox_items_fts (inbox_items_fts) values ('rebuild');
insert into tasks_fts (tasks_fts) values ('rebuild');
insert into todos_fts (todos_fts) values ('rebuild');
insert into plans_fts (plans_fts) values ('rebuild');
insert into documents_fts (documents_fts) values ('rebuild');
insert into prompts_fts (prompts_fts) values ('rebuild');
insert into tool_result_files_fts (tool_result_files_fts) values ('rebuild');

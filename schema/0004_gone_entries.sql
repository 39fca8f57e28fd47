-- What a list no longer names.
--
-- Lists are rewritten whole: members of a team, todos, the conversations, chats and projects of an
-- application, tickets, links. An entry that one no longer names stays, as tasks and messages of an
-- inbox always did, and gone_at says since when. So entries are found again by a key that does not
-- depend on their place: among equals, by ordinal.

alter table session_entries add column gone_at text /* when a sync found it missing from its list */;
alter table project_entries add column gone_at text /* when a sync found it missing from its list */;
alter table team_members add column gone_at text /* when a sync found it missing from its team */;
alter table team_members add column ordinal integer not null default 0 /* among equals */;
alter table links add column gone_at text /* when a sync found it missing from the list that stated it */;
alter table documents add column gone_at text /* of a ticket: when a sync found it missing from its list */;
alter table sessions add column gone_at text /* since when nothing names it: only lists ever did, and none does any more */;
alter table projects add column gone_at text /* since when nothing names it: only lists ever did, and none does any more */;

update team_members set ordinal = o.ordinal from (
    select id, row_number() over (
        partition by file_id, coalesce(agent_id, name, '') order by id
    ) - 1 as ordinal
    from team_members
) o where o.id = team_members.id;
create unique index team_members_key on team_members (file_id, coalesce(agent_id, name, ''), ordinal);

-- The place of a todo in its list was its key: now two may have had the same one after the other.
-- SQLite cannot drop a constraint, so the table is made anew; its full-text index still fits.
create temp table kept_todos as
select
    *,
    row_number() over (partition by file_id, coalesce(content, '') order by position) - 1 as ordinal
from todos;
drop table todos;
create table todos ( -- An item of a todo list
    id integer primary key,
    content text,                       -- what is to be done
    status text,                        -- pending, in_progress, completed
    priority text,                      -- high, medium, low; old versions only
    active_form text,                   -- what is shown while it runs
    position integer not null,          -- place in its list; of one that is gone, its last one
    gone_at text,                       -- when a sync found it missing from its list
    session_key text,
    agent_key text,                     -- the session's own id for the main agent
    session_id integer references sessions (id) on delete set null,
    subagent_id integer references subagents (id) on delete set null,
    ordinal integer not null default 0, -- among equals
    file_id integer not null references files (id) on delete cascade
) strict;
insert into todos (
    id, content, status, priority, active_form, position, session_key, agent_key, session_id,
    subagent_id, ordinal, file_id
)
select
    id, content, status, priority, active_form, position, session_key, agent_key, session_id,
    subagent_id, ordinal, file_id
from kept_todos;
drop table kept_todos;
create unique index todos_key on todos (file_id, coalesce(content, ''), ordinal);
create index todos_session_key on todos (session_key) where session_key is not null;
create index todos_session on todos (session_id) where session_id is not null;
create index todos_subagent on todos (subagent_id) where subagent_id is not null;
create index todos_status on todos (status);
create trigger todos_fts_insert after insert on todos begin
    insert into todos_fts (rowid, content) values (new.id, new.content);
end;
create trigger todos_fts_delete after delete on todos begin
    insert into todos_fts (todos_fts, rowid, content) values ('delete', old.id, old.content);
end;
create trigger todos_fts_update after update of content on todos begin
    insert into todos_fts (todos_fts, rowid, content) values ('delete', old.id, old.content);
    insert into todos_fts (rowid, content) values (new.id, new.content);
end;

-- The lists that are gone themselves name nothing any more.
update session_entries set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null and session_entries.kind <> 'meta';
update project_entries set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null;
update team_members set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null;
update todos set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null;
update links set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null and links.session_key is not null;
update documents set gone_at = f.gone_at from files f
where f.id = file_id and f.gone_at is not null and documents.kind = 'ticket';

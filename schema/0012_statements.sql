-- Tasks, todos and plans that only a transcript tells of.
--
-- Claude Code deletes the files of its lists: those of tasks when all are done, those of todos after
-- a month. What its tools were called with stays in the transcripts. Each such call is a statement;
-- where no file of the list is there, rows of the channel transcript follow from them. So a task may
-- have two rows: that of its file, which is gone, and what the transcripts say of it.

create table statements ( -- What a line of a transcript states about tasks, todos or a plan; tasks, todos and plans have what follows
    id integer primary key,
    kind text not null,                 -- task, todos, plan
    list_key text not null,             -- list of the task: the team's or the session's; session of the todos; name of the plan, else its session
    task_key text,                      -- the task; of one that was made, its result tells
    stated text,                        -- JSON object: what the call, or the line, states; null: only the result is in this file
    answered text,                      -- JSON object: what the result adds
    timestamp text,                     -- of the line that states it
    tool_use_id text,                   -- the call, if it is one
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,
    byte_length integer not null,
    block integer not null
) strict;
create unique index statements_call on statements (file_id, tool_use_id) where tool_use_id is not null;
create unique index statements_place on statements (file_id, byte_offset, block);
create index statements_list on statements (list_key, kind);

-- SQLite cannot drop a constraint, so tables are made anew; their full-text indexes still fit. What
-- refers to a task or a plan would go with it.
create temp table kept_tasks as select * from tasks;
create temp table kept_changes as select * from task_changes;
create temp table kept_edges (id integer primary key, task_id integer, blocker_id integer);
insert into kept_edges select id, task_id, blocker_id from task_dependencies;
delete from task_changes;
update task_dependencies set task_id = null, blocker_id = null;
drop table tasks;
create table tasks ( -- A task of a task list
    id integer primary key,
    subject text,                       -- what is to be done, in a few words
    description text,                   -- what is to be done
    status text,                        -- pending, in_progress, completed, deleted
    owner text,                         -- agent that does it
    active_form text,                   -- what is shown while it runs
    metadata text,                      -- JSON object
    task_number integer,                -- task_key, where that is a number: to sort by
    task_key text not null,             -- number or name within its list
    list_key text not null,             -- session, team or name that the list belongs to
    session_id integer references sessions (id) on delete set null,
    team_id integer references teams (id) on delete set null,
    gone_at text,                       -- when a sync found it missing
    channel text not null default 'file', -- file; transcript: no file of it is there, so calls tell of it
    stated_at text,                     -- of a transcript: time of the last call that counts
    blocked_by text,                    -- of a transcript: JSON array of the tasks that it waits for, see task_dependencies
    tool_use_id text,                   -- of a transcript: the last call that counts
    source_id integer not null references sources (id) on delete cascade,
    file_id integer references files (id) on delete set null, -- the file; or the transcript with the last call that counts
    byte_offset integer not null default 0 -- first byte of the line of that call
) strict;
insert into tasks (
    id, subject, description, status, owner, active_form, metadata, task_number, task_key, list_key,
    session_id, team_id, gone_at, source_id, file_id
)
select
    id, subject, description, status, owner, active_form, metadata,
    iif(task_key <> '' and length(task_key) <= 18 and task_key not glob '*[^0-9]*', cast(task_key as integer), null),
    task_key, list_key, session_id, team_id, gone_at, source_id, file_id
from kept_tasks;
create unique index tasks_key on tasks (source_id, list_key, task_key, channel);
create index tasks_list on tasks (list_key);
create index tasks_session on tasks (session_id) where session_id is not null;
create index tasks_team on tasks (team_id) where team_id is not null;
create index tasks_status on tasks (status);
create index tasks_file on tasks (file_id) where file_id is not null;
create trigger tasks_fts_insert after insert on tasks begin
    insert into tasks_fts (rowid, subject, description) values (new.id, new.subject, new.description);
end;
create trigger tasks_fts_delete after delete on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description) values ('delete', old.id, old.subject, old.description);
end;
create trigger tasks_fts_update after update of subject, description on tasks begin
    insert into tasks_fts (tasks_fts, rowid, subject, description) values ('delete', old.id, old.subject, old.description);
    insert into tasks_fts (rowid, subject, description) values (new.id, new.subject, new.description);
end;
insert into task_changes select * from kept_changes;
update task_dependencies
set task_id = (select k.task_id from kept_edges k where k.id = task_dependencies.id),
    blocker_id = (select k.blocker_id from kept_edges k where k.id = task_dependencies.id);
drop table kept_tasks;
drop table kept_changes;
drop table kept_edges;

create temp table kept_plans as select * from plans;
create temp table kept_lines (id integer primary key, plan_id integer);
insert into kept_lines select id, plan_id from plan_lines;
update plan_lines set plan_id = null;
drop table plans;
create table plans ( -- A plan: a file, or what only a transcript tells of
    id integer primary key,
    title text,                         -- first heading, else (untitled)
    text text not null,                 -- the plan, Markdown
    name text not null,                 -- file name without extension; '' of one that never had a file
    status text,                        -- as the last call that proposed it ended: accepted, rejected, or proposed (no answer yet); null: no call did
    modified_at text,                   -- modification time of the file; of a transcript, time of the line
    session_id integer references sessions (id) on delete set null,
    channel text not null default 'file', -- file; transcript: no file of it is there, so calls and attachments tell of it
    tool_use_id text,                   -- of a transcript: the call that proposed it
    file_id integer not null references files (id) on delete cascade, -- the file; or the transcript that has its text
    byte_offset integer not null default 0 -- first byte of that line
) strict;
insert into plans (id, title, text, name, modified_at, session_id, file_id)
select id, title, text, name, modified_at, session_id, file_id from kept_plans;
create unique index plans_key on plans (file_id, byte_offset, name);
create index plans_name on plans (name);
create index plans_session on plans (session_id) where session_id is not null;
create trigger plans_fts_insert after insert on plans begin
    insert into plans_fts (rowid, title, text) values (new.id, new.title, new.text);
end;
create trigger plans_fts_delete after delete on plans begin
    insert into plans_fts (plans_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
end;
create trigger plans_fts_update after update of title, text on plans begin
    insert into plans_fts (plans_fts, rowid, title, text) values ('delete', old.id, old.title, old.text);
    insert into plans_fts (rowid, title, text) values (new.id, new.title, new.text);
end;
update plan_lines
set plan_id = (select k.plan_id from kept_lines k where k.id = plan_lines.id);
drop table kept_plans;
drop table kept_lines;

alter table todos add column channel text not null default 'file' /* file; transcript: its list has no file that names anything, so the last call tells of it */;
alter table todos add column stated_at text /* of a transcript: time of that call */;
alter table todos add column tool_use_id text /* of a transcript: that call */;
alter table todos add column byte_offset integer not null default 0 /* of a transcript: first byte of its line */;
drop index todos_key;
create unique index todos_key on todos (file_id, coalesce(content, ''), ordinal, coalesce(tool_use_id, ''));

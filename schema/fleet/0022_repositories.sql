-- Clones and worktrees of one repository are one, also of several machines.

alter table assoc.projects add column remote text collate "C";
alter table assoc.projects add column git_remote text collate "C";
alter table assoc.projects add column first_commit text collate "C";
alter table assoc.projects add column git_first_commit text collate "C";
alter table assoc.projects add column repository_key text collate "C";
alter table assoc.projects add column repository_name text collate "C";

-- What git says of the projects on this disk, asked by `sync --git` only. It comes from no file that
-- is indexed: `rebuild` and `verify` leave it alone, and it goes with its project.

alter table projects add column git_seen_at text /* when git last answered for its directory */;
alter table projects add column change_count integer /* entries that git listed as changed then; git_changes has at most 1,000 of them */;

create table git_changes ( -- A changed file of a project, as git listed it at the last sync --git
    id integer primary key,
    path text not null,                 -- relative to the top of the repository; a directory that is untracked as a whole ends in /; bytes that are no text are escaped like \xff
    status text not null,               -- staged, unstaged or untracked
    letter text not null,               -- M modified, A added, D deleted, R renamed, C copied, T type changed, U unmerged, ? untracked
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, path, status)
) strict;

create table git_branches ( -- A branch of a project's repository, as git listed it at the last sync --git
    id integer primary key,
    name text not null,                 -- name of the branch
    is_current integer not null,        -- 1: checked out in the project's directory
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, name)
) strict;

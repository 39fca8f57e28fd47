-- The diffs of uncommitted changes, asked by `sync --git` only. Like git_changes they come from no file
-- that is indexed and go with their project.

alter table git_changes add column is_diff_cut integer /* 1: git_diff_lines has only a part of its diff, or nothing of it; 0: all; null for an untracked file, which has none */;

create table git_diff_lines ( -- A line of the diff of a staged or unstaged change, at the last sync --git; at most 512 KiB for the staged changes of a project and as much for the others, and 1,000 lines a file
    id integer primary key,
    path text not null,                 -- as in git_changes
    status text not null,               -- staged: against the last commit; unstaged: against what is staged
    position integer not null,          -- number of the line in the diff of its file, from 1
    kind text not null,                 -- header (what git says of the file), hunk (where the next lines stand), add, remove or context
    text text not null,                 -- the line, without its sign if it is added, removed or context; stars cover what looks like a credential
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, path, status, position)
) strict;

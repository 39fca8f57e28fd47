-- Commits of the projects on this disk, asked by `sync --git` only: what changed since a conversation.
-- Like git_changes they come from no file that is indexed and go with their project.

create table git_commits ( -- A file that a commit changed, as git listed it at the last sync --git: commits of what was checked out, since the first conversation, without merges; at most 1,000 commits per project
    id integer primary key,
    path text not null,                 -- relative to the directory of the project; of a renamed file there are both names
    hash text not null,                 -- of the commit
    authored_at text not null,          -- when it was written; an amended, rebased or picked commit keeps it
    project_id integer not null references projects (id) on delete cascade,
    seen_at text not null,              -- when git was asked
    unique (project_id, path, hash)
) strict;

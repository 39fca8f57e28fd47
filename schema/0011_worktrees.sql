-- Worktrees are projects of their own, named after their repository and branch, and refer to it.

alter table projects add column repository text /* directory of the repository that it is a worktree of, as its path, a link or git says */;
alter table projects add column git_repository text /* the same, as git said; only with sync --git */;
alter table links add column origin text /* of a worktree: the directory from which it was made */;

create index links_worktree on links (url) where kind = 'worktree';
create index projects_place on projects (source_id, lower(path));
create index projects_repository on projects (source_id, lower(repository)) where repository is not null;

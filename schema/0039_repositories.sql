-- Clones and worktrees of one repository are one.

alter table projects add column remote text /* remote origin of its repository as conversations state it: host/owner/name */;
alter table projects add column git_remote text /* the same, as git said; only with sync --git */;
alter table projects add column first_commit text /* first commit of its repository, as an agent states it */;
alter table projects add column git_first_commit text /* the same, as git said, where there is no remote; only with sync --git */;
alter table projects add column repository_key text /* the same in all clones and worktrees of a repository: its remote, else its first commit and name, else its directory */;
alter table projects add column repository_name text /* what the repository is called: owner/name of the remote, else the name of its directory; the whole address or path if another one is called so */;

create index projects_repository_key on projects (repository_key);
create index tool_calls_git on tool_calls (session_id) where action = 'run'
  and (target like '%git %origin%' or target like '%git remote -v%');
create index line_extras_git on line_extras (session_id) where type in (
    'session_meta', 'session.start', 'session.resume', 'session.context_changed', 'project'
);

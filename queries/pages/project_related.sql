-- Worktrees and teams of one project
-- Projects that are worktrees of it, and teams that one of its sessions leads.
select 'worktree' as kind, p.name, p.path, p.key, p.on_disk, p.id
from projects p
where p.parent_id in (select value from json_each(nullif(:project, '')))
  and p.gone_at is null
union all
select 'team', t.name, t.description, t.key, null, t.id
from sessions s
join teams t on t.lead_session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
order by 1, 2

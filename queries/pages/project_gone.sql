-- What is gone of one project
-- How many sessions, worktrees, tasks, tickets and links its lists no longer name.
select 'session' as what, count(*) as gone
from sessions s
where s.project_id in (select value from json_each(nullif(:project, '')))
  and s.gone_at is not null
union all
select 'worktree', count(*)
from projects p
where p.parent_id in (select value from json_each(nullif(:project, '')))
  and p.gone_at is not null
union all
select 'task', count(distinct i.id)
from sessions s
left join teams c on c.lead_session_id = s.id
join tasks i on i.session_id = s.id or i.team_id = c.id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and i.gone_at is not null
union all
select 'ticket', count(*)
from documents d
where d.project_id in (select value from json_each(nullif(:project, '')))
  and d.gone_at is not null
union all
select 'link', count(*)
from sessions s
join links l on l.session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and l.kind <> 'plan'
  and l.gone_at is not null

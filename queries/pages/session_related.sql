-- Project and teams of one session
-- The project that it belongs to, and the teams that it leads.
select 'project' as kind, p.name, p.key, p.id
from sessions s
join projects p on p.id = s.project_id
where s.id = :session
union all
select 'team', t.name, t.key, t.id
from teams t
where t.lead_session_id = :session
order by 1, 2

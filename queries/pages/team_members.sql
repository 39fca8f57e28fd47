-- Members of one team
-- In the order in which they joined. Those that it no longer names are left out.
select
    m.name,
    m.agent_type,
    m.model,
    m.cwd,
    m.joined_at,
    m.is_active,
    m.prompt,
    m.id
from team_members m
where m.team_id = :team
  and m.gone_at is null
order by m.joined_at, m.name, m.id

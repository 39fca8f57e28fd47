-- What is gone of one team
-- How many members its configuration no longer names, and how many tasks are missing.
select 'member' as what, count(*) as gone
from team_members m
where m.team_id = :team
  and m.gone_at is not null
union all
select 'task', count(*)
from tasks i
where i.team_id = :team
  and i.gone_at is not null

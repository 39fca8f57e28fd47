-- Usage of one project and its worktrees
-- Sessions and cost of the project, and of each worktree of it; each response counts once.
select
    p.session_count,
    sum(c.cost_microusd) / 1000000.0 as cost_usd,
    count(c.session_id) as responses,
    count(c.session_id) - count(c.cost_microusd) as unpriced,
    coalesce(sum(c.partial), 0) as partial,
    p.id
from projects p
left join sessions s on s.project_id = p.id
left join response_costs c on c.session_id = s.id
where p.id in (select value from json_each(nullif(:project, '')))
   or p.parent_id in (select value from json_each(nullif(:project, '')))
group by p.id
order by p.id

-- Usage of one project and its worktrees
-- Sessions and cost of the project, and of each worktree of it; each response counts once.
select
    p.session_count,
    (
        select sum(c.cost_microusd) / 1000000.0
        from sessions s
        join response_costs c on c.session_id = s.id
        where s.project_id = p.id
    ) as cost_usd,
    p.id
from projects p
where p.id in (select value from json_each(nullif(:project, '')))
   or p.parent_id in (select value from json_each(nullif(:project, '')))
order by p.id

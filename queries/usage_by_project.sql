-- Usage by project
-- Tokens and cost of each project, the most expensive first; each response counts once, in the
-- project of its original conversation.
select
    p.name as project,
    round(sum(c.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(distinct c.session_id) as sessions,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    max(c.timestamp) as last_activity,
    p.path
from response_costs c
left join sessions s on s.id = c.session_id
left join projects p on p.id = s.project_id
where (coalesce(:since, '') = '' or c.timestamp >= :since)
group by p.id
order by cost_usd desc, responses desc, p.path

-- Usage by session
-- Tokens and cost of each session, including subagents, the most expensive first. If an application
-- states the cost itself, that is shown, too.
-- Group: cost
select
    s.session_key,
    s.title,
    p.name as project,
    round(sum(c.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    coalesce(s.stated_cost_usd, sum(c.stated_cost_usd)) as stated_cost_usd,
    sum(c.subagent_id is not null) as subagent_responses,
    max(c.timestamp) as last_activity
from response_costs c
left join sessions s on s.id = c.session_id
left join projects p on p.id = s.project_id
where (coalesce(:since, '') = '' or c.timestamp >= :since)
group by s.id
order by cost_usd desc, responses desc, s.session_key

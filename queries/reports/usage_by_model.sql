-- Usage by model
-- Tokens and cost of each model, the most expensive first; each response counts once.
-- Group: cost
select
    c.model,
    round(sum(c.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    min(c.timestamp) as first_activity,
    max(c.timestamp) as last_activity
from response_costs c
where (coalesce(:since, '') = '' or c.timestamp >= :since)
group by c.model
order by cost_usd desc, responses desc, c.model

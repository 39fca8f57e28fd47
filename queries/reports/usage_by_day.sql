-- Usage by day
-- Tokens and cost of each day (UTC) and model, newest first; each response counts once. The cost
-- leaves out unpriced responses, whose model has no price; :since is a time.
-- Group: cost
select
    substr(c.timestamp, 1, 10) as day,
    c.model,
    round(sum(c.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced
from response_costs c
where (coalesce(:since, '') = '' or c.timestamp >= :since)
group by day, c.model
order by day desc, cost_usd desc, c.model

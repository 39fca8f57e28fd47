-- Tokens and cost of one session
-- By model, subagents included; each response counts once. Where an application repeats another's
-- conversation, the other's responses are counted, and here are none.
select
    c.model,
    count(*) as responses,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    round(sum(c.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(c.cost_microusd is null) as unpriced
from response_costs c
where c.session_id = :session
group by c.model
order by cost_usd desc, c.model

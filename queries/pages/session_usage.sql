-- Tokens and cost of one session
-- By model, subagents included; each response counts once. Where an application repeats another's
-- conversation, the other's responses are counted, and here are none. The last columns are what an
-- estimate of the partial responses follows from: see usage_partial.
select
    c.model,
    count(*) as responses,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    sum(iif(c.partial = 1, c.written_bytes is null, 0)) as unmeasured,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(iif(c.partial = 1, c.written_bytes, 0)) as written_bytes,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens * c.output_price, 0))
        as begun_worth,
    sum(iif(c.partial = 1, c.written_bytes * c.output_price, 0)) as written_worth
from response_costs c
where c.session_id = :session
group by c.model
order by cost_usd desc, c.model

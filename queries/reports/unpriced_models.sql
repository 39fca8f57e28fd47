-- Models without a price
-- Responses of these models have no cost, and sums of costs leave them out. To add a price, use
-- `assoc-ingest price set its-name --input 3 --output 15`, in dollars per million tokens.
-- Group: cost
select
    c.model,
    count(*) as responses,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.partial) as partial,
    iif(sum(c.partial) > 0, 1, 0) as is_lower_bound,
    min(c.timestamp) as first_activity,
    max(c.timestamp) as last_activity
from response_costs c
where c.cost_microusd is null
group by c.model
order by responses desc, c.model

-- What the agent of a session states of its use
-- By model, '' for all: sums that it wrote down, or the costs that it stated of each response.
select
    model,
    output_tokens,
    cost_usd,
    is_lower_bound,
    is_followed
from stated_by_model
where session_id = :session
union all
select
    model,
    null,
    round(sum(stated_cost_usd), 4),
    0,
    0
from responses
where session_id = :session and stated_cost_usd is not null
group by model
order by cost_usd desc, model

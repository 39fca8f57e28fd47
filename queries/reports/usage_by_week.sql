-- Usage by week
-- Tokens and cost of each week (Monday to Sunday, local time) and model, newest first; each response
-- counts once. The cost leaves out unpriced responses, whose model has no price. Partial responses
-- have no final count, so output and cost are lower bounds. :since and :until are times.
-- Group: cost
with counted as materialized ( -- or each cost is computed wherever it is named
    select
        c.timestamp,
        c.model,
        c.cost_microusd,
        c.partial,
        c.input_tokens,
        c.output_tokens,
        c.cache_read_tokens,
        c.cache_write_tokens
    from response_costs c
    left join sessions s on s.id = c.session_id
    where (coalesce(:since, '') = '' or c.timestamp >= :since)
      and (coalesce(:until, '') = '' or c.timestamp < :until)
      and (coalesce(:model, '') = '' or c.model = :model)
      and (coalesce(:session, '') = '' or s.session_key = :session)
      and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
      )
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
)
select
    date(c.timestamp, 'localtime', '-6 days', 'weekday 1') as week_of,
    c.model,
    round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    iif(sum(c.cost_microusd is null or c.partial = 1) > 0, 1, 0) as is_lower_bound
from counted c
group by week_of, c.model
order by week_of desc, cost_usd desc, c.model

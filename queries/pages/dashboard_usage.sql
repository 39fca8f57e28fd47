-- Usage by hour, model and project
-- Tokens and cost of each hour (local time), model and project, newest first: one pass over the responses
-- for all that the dashboard shows of them. :since is a time, :limit ends after so many.
select
    strftime('%Y-%m-%dT%H', c.timestamp, 'localtime') as hour,
    c.model,
    p.name as project,
    sum(c.cost_microusd) as cost_microusd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    sum(iif(c.partial = 1, c.written_bytes is null, 0)) as unmeasured,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(iif(c.partial = 1, c.written_bytes, 0)) as written_bytes,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens * c.output_price, 0))
        as begun_worth,
    sum(iif(c.partial = 1, c.written_bytes * c.output_price, 0)) as written_worth,
    coalesce(p.same_as, p.id) as project_id
from response_costs c
left join sessions s on s.id = c.session_id
left join projects p on p.id = s.project_id
where c.timestamp is not null
  and (coalesce(:since, '') = '' or c.timestamp >= :since)
group by hour, c.model, coalesce(p.same_as, p.id)
order by hour desc, c.model, p.id
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

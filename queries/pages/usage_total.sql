-- Usage in all
-- What the reports on usage add up to: each response once. Of partial responses the number of
-- output tokens is not known to its end.
select
    round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
    coalesce(sum(c.input_tokens), 0) as input_tokens,
    coalesce(sum(c.output_tokens), 0) as output_tokens,
    coalesce(sum(c.cache_read_tokens), 0) as cache_read_tokens,
    coalesce(sum(c.cache_write_tokens), 0) as cache_write_tokens,
    count(*) as responses,
    count(distinct c.session_id) as sessions,
    coalesce(sum(c.cost_microusd is null), 0) as unpriced,
    coalesce(sum(c.partial), 0) as partial
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

-- Usage by type of subagent
-- Tokens and cost of the main conversations, and of each type of subagent.
-- Group: cost
select
    iif(c.subagent_id is null, 'main conversation', coalesce(a.agent_type, a.kind))
        as subagent_type,
    round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    count(distinct c.subagent_id) as subagents,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    iif(sum(c.cost_microusd is null or c.partial = 1) > 0, 1, 0) as is_lower_bound
from response_costs c
left join sessions s on s.id = c.session_id
left join subagents a on a.id = c.subagent_id
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
group by subagent_type
order by cost_usd desc, responses desc, subagent_type

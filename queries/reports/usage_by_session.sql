-- Usage by conversation
-- Tokens and cost of each conversation, including subagents, the most expensive first. The cost
-- that an application states itself is shown, too.
-- Group: cost
with used as materialized (
    select
        c.session_id,
        sum(c.cost_microusd) as cost_microusd,
        sum(c.input_tokens) as input_tokens,
        sum(c.output_tokens) as output_tokens,
        sum(c.cache_read_tokens) as cache_read_tokens,
        sum(c.cache_write_tokens) as cache_write_tokens,
        count(*) as responses,
        sum(c.cost_microusd is null) as unpriced,
        sum(c.partial) as partial,
        sum(c.stated_cost_usd) as stated_cost_usd,
        sum(c.subagent_id is not null) as subagent_responses,
        max(c.timestamp) as last_activity
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
    group by c.session_id
)
select
    s.session_key,
    round(u.cost_microusd / 1000000.0, 6) as cost_usd,
    s.title,
    p.name as project,
    u.input_tokens,
    u.output_tokens,
    u.cache_read_tokens,
    u.cache_write_tokens,
    u.responses,
    u.unpriced,
    u.partial,
    iif(u.unpriced + u.partial > 0, 1, 0) as is_lower_bound,
    coalesce(s.stated_cost_usd, u.stated_cost_usd) as stated_cost_usd,
    u.subagent_responses,
    u.last_activity
from used u
left join sessions s on s.id = u.session_id
left join projects p on p.id = s.project_id
order by cost_usd desc, u.responses desc, s.session_key

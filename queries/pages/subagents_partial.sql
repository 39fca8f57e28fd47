-- Partial responses of subagents, by model
-- Of the subagents in the JSON array :agents of their keys. A subagent that two homes have is two
-- rows with one key. The measures are those of usage_partial.
select
    a.id,
    a.agent_key,
    s.session_key,
    c.model,
    count(*) as partial,
    sum(c.written_bytes is null) as unmeasured,
    sum(iif(c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(c.written_bytes) as written_bytes,
    sum(iif(c.written_bytes is not null, c.output_tokens * c.output_price, 0)) as begun_worth,
    sum(c.written_bytes * c.output_price) as written_worth
from subagents a
join response_costs c on c.subagent_id = a.id
left join sessions s on s.id = a.session_id
where a.agent_key in (select value from json_each(nullif(:agents, '')))
  and c.partial = 1
group by a.id, c.model

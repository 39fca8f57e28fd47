-- What the agent of a session states of its use
-- By model, '' for all: sums that it wrote down, the costs that it stated of each response, or what
-- an application that repeats the conversation states, which `stated_by` names.
select
    model,
    output_tokens,
    cost_usd,
    is_lower_bound,
    is_followed,
    null as stated_by
from stated_by_model
where session_id = :session
union all
select
    model,
    null,
    round(sum(stated_cost_usd), 6),
    0,
    0,
    null
from responses
where session_id = :session and stated_cost_usd is not null
group by model
union all
select
    '',
    iif(exists (select 1 from responses o where o.session_id = s.id), null, s.output_tokens),
    s.stated_cost_usd,
    0,
    0,
    coalesce(r.label, r.kind)
from sessions s
join sources r on r.id = s.source_id
where s.linked_session_id = :session and s.stated_cost_usd is not null and r.is_agent = 0
order by cost_usd desc, model

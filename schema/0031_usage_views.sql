-- The sums of usage: their days are local ones, as everywhere, costs are not rounded up, and a lower
-- bound says that it is one.

drop view usage_by_day;
create view usage_by_day as -- Tokens and cost by day (local time) and model
select
    strftime('%Y-%m-%d', timestamp, 'localtime') as day, -- day in the time zone of who asks
    model,                              -- model that answered
    count(*) as responses,              -- responses, each counted once
    sum(input_tokens) as input_tokens,  -- tokens that were not cached
    sum(output_tokens) as output_tokens, -- output tokens
    sum(cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(cost_microusd) / 1000000.0, 6) as cost_usd, -- cost in dollars, without unpriced responses
    sum(cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(partial) as partial,    -- responses without a final count: output tokens and cost are lower bounds
    iif(sum(cost_microusd is null or partial = 1) > 0, 1, 0) as is_lower_bound -- 1: some responses are unpriced or partial
from response_costs
group by day, model;

drop view usage_by_model;
create view usage_by_model as -- Tokens and cost by model
select
    model,                              -- model that answered
    count(*) as responses,              -- responses, each counted once
    sum(input_tokens) as input_tokens,  -- tokens that were not cached
    sum(output_tokens) as output_tokens, -- output tokens
    sum(cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(cost_microusd) / 1000000.0, 6) as cost_usd, -- cost in dollars, without unpriced responses
    sum(cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(partial) as partial,    -- responses without a final count: output tokens and cost are lower bounds
    iif(sum(cost_microusd is null or partial = 1) > 0, 1, 0) as is_lower_bound, -- 1: some responses are unpriced or partial
    min(timestamp) as first_at,         -- first response
    max(timestamp) as last_at           -- last response
from response_costs
group by model;

drop view usage_by_session;
create view usage_by_session as -- Tokens and cost by session, subagents included
select
    s.title,                            -- title of the session
    p.name as project,                  -- name of the project
    s.started_at,                       -- when the session began
    count(*) as responses,              -- responses, each counted once
    sum(r.input_tokens) as input_tokens, -- tokens that were not cached
    sum(r.output_tokens) as output_tokens, -- output tokens
    sum(r.cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(r.cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(r.cost_microusd) / 1000000.0, 6) as cost_usd, -- cost in dollars, without unpriced responses
    coalesce(s.stated_cost_usd, sum(r.stated_cost_usd)) as stated_cost_usd, -- cost as an application stated it
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,    -- responses without a final count: output tokens and cost are lower bounds
    iif(sum(r.cost_microusd is null or r.partial = 1) > 0, 1, 0) as is_lower_bound, -- 1: some responses are unpriced or partial
    sum(r.subagent_id is not null) as subagent_responses, -- those of them that subagents got
    nullif(s.git_branch, '') as git_branch, -- last branch of the session
    s.session_key,                      -- uuid of the session
    o.kind as source,                   -- the system that wrote it
    s.id as session_id,                 -- the session
    s.project_id                        -- the project
from response_costs r
left join sessions s on s.id = r.session_id
left join sources o on o.id = s.source_id
left join projects p on p.id = s.project_id
group by s.id;

drop view usage_by_project;
create view usage_by_project as -- Tokens and cost by project
select
    p.name as project,                  -- name of the project
    p.path,                             -- path of the project
    count(distinct r.session_id) as sessions, -- sessions with a response
    count(*) as responses,              -- responses, each counted once
    sum(r.input_tokens) as input_tokens, -- tokens that were not cached
    sum(r.output_tokens) as output_tokens, -- output tokens
    sum(r.cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(r.cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(r.cost_microusd) / 1000000.0, 6) as cost_usd, -- cost in dollars, without unpriced responses
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,    -- responses without a final count: output tokens and cost are lower bounds
    iif(sum(r.cost_microusd is null or r.partial = 1) > 0, 1, 0) as is_lower_bound, -- 1: some responses are unpriced or partial
    min(r.timestamp) as first_at,       -- first response
    max(r.timestamp) as last_at,        -- last response
    o.kind as source,                   -- the system that keeps the project
    p.id as project_id                  -- the project
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
left join sources o on o.id = p.source_id
group by p.id;

drop view usage_by_subagent_type;
create view usage_by_subagent_type as -- Tokens and cost by type of subagent
select
    case when r.subagent_id is null then 'main conversation' else coalesce(a.agent_type, a.kind) end
        as subagent_type,               -- type of the subagent, or main conversation
    count(distinct r.subagent_id) as subagents, -- subagents with a response
    count(*) as responses,              -- responses, each counted once
    sum(r.input_tokens) as input_tokens, -- tokens that were not cached
    sum(r.output_tokens) as output_tokens, -- output tokens
    sum(r.cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(r.cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(r.cost_microusd) / 1000000.0, 6) as cost_usd, -- cost in dollars, without unpriced responses
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,    -- responses without a final count: output tokens and cost are lower bounds
    iif(sum(r.cost_microusd is null or r.partial = 1) > 0, 1, 0) as is_lower_bound, -- 1: some responses are unpriced or partial
    min(r.timestamp) as first_at,       -- first response
    max(r.timestamp) as last_at         -- last response
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;

alter table usage add column written_bytes integer /* length of what the response wrote in this file, where a reader measures it: see docs/costs.md */;
alter table responses add column written_bytes integer /* length of what it wrote, as its file has it; null: not known. An estimate of output_tokens where partial is 1: see docs/costs.md */;
create index responses_complete on responses (model, output_tokens, written_bytes)
    where partial = 0 and written_bytes > 0;
create index responses_partial on responses (session_id) where partial = 1;

drop view response_costs;
create view response_costs as -- What each response cost
select
    r.model,                            -- model that answered
    r.timestamp,                        -- of the line that counts
    (
        select cast(
            (
                r.input_tokens * p.input
                + r.output_tokens * p.output
                + r.cache_read_tokens * coalesce(p.cache_read, p.input)
                + r.cache_write_5m_tokens * coalesce(p.cache_write_5m, p.input)
                + r.cache_write_1h_tokens * coalesce(p.cache_write_1h, p.cache_write_5m, p.input)
                + (
                    r.web_searches
                    -- A tool that searches states in its result how often it did. A copied call
                    -- did it once.
                    + coalesce((
                        select sum(searches)
                        from (
                            select max(c.search_count) as searches
                            from tool_calls c
                            where c.response_key = r.response_key and c.search_count is not null
                            group by c.tool_use_id
                        )
                    ), 0)
                ) * coalesce(p.web_search, 0) * 1000
                + 500000
            ) / 1000000 as integer
        )
        from prices p
        where p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as cost_microusd,                 -- cost in millionths of a dollar; null where the model has no price
    r.partial,                          -- 1: the final count was never written, so output tokens and cost are lower bounds
    r.written_bytes,                    -- length of what it wrote, where it is known
    (
        select p.output
        from prices p
        where p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as output_price,                  -- price of a million output tokens, in millionths of a dollar; null where there is none
    r.stated_cost_usd,                  -- cost as an application stated it
    r.input_tokens,                     -- tokens that were not cached
    r.output_tokens,                    -- output tokens
    r.cache_read_tokens,                -- tokens read from the cache
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    s.title as session,                 -- title of its session
    (select p.name from projects p where p.id = s.project_id)
        as project,                     -- name of its project
    s.session_key,
    (select o.kind from files f join sources o on o.id = f.source_id where f.id = r.file_id)
        as source,                      -- the system that wrote it
    r.session_id,                       -- the session
    s.project_id,                       -- its project
    r.subagent_id,                      -- the subagent
    r.id                                -- the response, in responses
from responses r
left join sessions s on s.id = r.session_id
where s.linked_session_id is null
   or not exists (select 1 from responses o where o.session_id = s.linked_session_id);

drop view usage_by_day;
create view usage_by_day as -- Tokens and cost by day (UTC) and model
select
    substr(timestamp, 1, 10) as day,    -- day (UTC)
    model,                              -- model that answered
    count(*) as responses,              -- responses, each counted once
    sum(input_tokens) as input_tokens,  -- tokens that were not cached
    sum(output_tokens) as output_tokens, -- output tokens
    sum(cache_read_tokens) as cache_read_tokens, -- tokens read from the cache
    sum(cache_write_tokens) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd, -- cost in dollars, without unpriced responses
    sum(cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(partial) as partial         -- responses without a final count: output tokens and cost are lower bounds
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
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd, -- cost in dollars, without unpriced responses
    sum(cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(partial) as partial,         -- responses without a final count: output tokens and cost are lower bounds
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
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd, -- cost in dollars, without unpriced responses
    coalesce(s.stated_cost_usd, sum(r.stated_cost_usd)) as stated_cost_usd, -- cost as an application stated it
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,         -- responses without a final count: output tokens and cost are lower bounds
    sum(r.subagent_id is not null) as subagent_responses, -- those of them that subagents got
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
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd, -- cost in dollars, without unpriced responses
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,         -- responses without a final count: output tokens and cost are lower bounds
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
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd, -- cost in dollars, without unpriced responses
    sum(r.cost_microusd is null) as unpriced, -- responses whose model has no price
    sum(r.partial) as partial,         -- responses without a final count: output tokens and cost are lower bounds
    min(r.timestamp) as first_at,       -- first response
    max(r.timestamp) as last_at         -- last response
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;

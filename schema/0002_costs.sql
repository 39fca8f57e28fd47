-- What responses cost.
--
-- A price is a row of its own, so that a user can change it, and a cost is computed when it is
-- asked for: change a price, and every cost follows. Money is counted in integers, in millionths
-- of a dollar, because sums of fractions drift.

create table prices ( -- Price of a model from a day on; one you change or add is never overwritten
    id integer primary key,
    model text not null,                -- model, as responses name it
    valid_from text not null default '', -- first day (UTC, YYYY-MM-DD) of this price; '': always was
    above_tokens integer not null default 0, -- the price of requests with more input than this, cached input included; 0: of all
    input integer,                      -- millionths of a dollar for a million tokens, as all below
    output integer,                     -- output
    cache_read integer,                 -- input read from the cache
    cache_write_5m integer,             -- input written to the cache for five minutes
    cache_write_1h integer,             -- input written to the cache for an hour
    web_search integer,                 -- millionths of a dollar for a thousand searches
    origin text not null default 'user', -- user, or the version of genai-prices that it was taken from
    unique (model, valid_from, above_tokens)
) strict;

-- Whoever changes a price makes it theirs.
create trigger prices_edited after update of model, valid_from, above_tokens, input, output,
    cache_read, cache_write_5m, cache_write_1h, web_search on prices
when new.origin = old.origin and new.origin <> 'user' begin
    update prices set origin = 'user' where id = new.id;
end;

-- The cost of each response, in millionths of a dollar; null where the model has no price. The
-- price is that of the response's day and of the size of its input. What was written to the cache
-- or read from it without a price of its own costs what input costs. An application that repeats
-- another's conversation (Chorus repeats Claude Code's) has responses of its own, which are left out
-- where the other's are here.
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
                + r.web_searches * coalesce(p.web_search, 0) * 1000
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
    r.stated_cost_usd,                  -- cost as an application stated it
    r.input_tokens,                     -- tokens that were not cached
    r.output_tokens,                    -- output tokens
    r.cache_read_tokens,                -- tokens read from the cache
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    r.session_id,                       -- the session
    r.subagent_id,                      -- the subagent
    r.id                                -- the response, in responses
from responses r
left join sessions s on s.id = r.session_id
where s.linked_session_id is null
   or not exists (select 1 from responses o where o.session_id = s.linked_session_id);

-- Tokens and cost by day (UTC) and model. unpriced counts the responses whose cost is unknown, and
-- which the cost leaves out.
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
    sum(cost_microusd is null) as unpriced -- responses whose model has no price
from response_costs
group by day, model;

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
    min(timestamp) as first_at,         -- first response
    max(timestamp) as last_at           -- last response
from response_costs
group by model;

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
    sum(r.subagent_id is not null) as subagent_responses, -- those of them that subagents got
    s.session_key,                      -- uuid of the session
    s.id as session_id,                 -- the session
    s.project_id                        -- the project
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
group by s.id;

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
    p.id as project_id                  -- the project
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
group by p.id;

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
    sum(r.cost_microusd is null) as unpriced -- responses whose model has no price
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;

-- Why tools disagree: the same transcripts, counted in four ways. The last is ours.
create view usage_reconciliation as -- Why tools disagree: the same transcripts, counted in four ways; the last is ours
select
    'every line' as counting,           -- the way of counting
    'adds up all lines of a response, and all copies of a conversation' as explanation, -- what it does
    coalesce(sum(u.line_count), 0) as counted, -- lines or responses that it counts
    coalesce(sum(u.all_input_tokens), 0) as input_tokens, -- tokens that were not cached
    coalesce(sum(u.all_output_tokens), 0) as output_tokens, -- output tokens
    coalesce(sum(u.all_cache_read_tokens), 0) as cache_read_tokens, -- tokens read from the cache
    coalesce(sum(u.all_cache_write_tokens), 0) as cache_write_tokens-- tokens written to the cache, for five minutes and for an hour
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.kind = 'claude'
union all
select
    'once in each file',
    'takes a response once, and again in each forked or resumed copy',
    count(*),
    coalesce(sum(u.input_tokens), 0),
    coalesce(sum(u.output_tokens), 0),
    coalesce(sum(u.cache_read_tokens), 0),
    coalesce(sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens), 0)
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.kind = 'claude'
union all
select
    'once, without subagents',
    'takes a response once, of main conversations only',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0)
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.kind = 'claude' and r.subagent_id is null
union all
select
    'once',
    'takes each response once, subagents included: what this program counts',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0)
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.kind = 'claude';

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

-- Responses that count: an application that repeats another's conversation (Chorus repeats Claude
-- Code's) has responses of its own, which are left out where the other's are here.
create view counted_responses as
select r.*
from responses r
left join sessions s on s.id = r.session_id
where s.linked_session_id is null
   or not exists (select 1 from responses o where o.session_id = s.linked_session_id);

-- The cost of each response, in millionths of a dollar; null where the model has no price. The
-- price is that of the response's day and of the size of its input. What was written to the cache
-- or read from it without a price of its own costs what input costs.
create view response_costs as
select
    r.model,
    r.timestamp,
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
    ) as cost_microusd,
    r.stated_cost_usd,
    r.input_tokens,
    r.output_tokens,
    r.cache_read_tokens,
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens,
    r.session_id,
    r.subagent_id,
    r.id
from counted_responses r;

-- Tokens and cost by day (UTC) and model. unpriced counts the responses whose cost is unknown, and
-- which the cost leaves out.
create view usage_by_day as
select
    substr(timestamp, 1, 10) as day,
    model,
    count(*) as responses,
    sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens,
    sum(cache_read_tokens) as cache_read_tokens,
    sum(cache_write_tokens) as cache_write_tokens,
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(cost_microusd is null) as unpriced
from response_costs
group by day, model;

create view usage_by_model as
select
    model,
    count(*) as responses,
    sum(input_tokens) as input_tokens,
    sum(output_tokens) as output_tokens,
    sum(cache_read_tokens) as cache_read_tokens,
    sum(cache_write_tokens) as cache_write_tokens,
    round(sum(cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(cost_microusd is null) as unpriced,
    min(timestamp) as first_at,
    max(timestamp) as last_at
from response_costs
group by model;

create view usage_by_session as
select
    s.title,
    p.name as project,
    s.started_at,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    coalesce(s.stated_cost_usd, sum(r.stated_cost_usd)) as stated_cost_usd,
    sum(r.cost_microusd is null) as unpriced,
    sum(r.subagent_id is not null) as subagent_responses,
    s.session_key,
    s.id as session_id,
    s.project_id
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
group by s.id;

create view usage_by_project as
select
    p.name as project,
    p.path,
    count(distinct r.session_id) as sessions,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(r.cost_microusd is null) as unpriced,
    p.id as project_id
from response_costs r
left join sessions s on s.id = r.session_id
left join projects p on p.id = s.project_id
group by p.id;

create view usage_by_subagent_type as
select
    case when r.subagent_id is null then 'main conversation' else coalesce(a.agent_type, a.kind) end
        as subagent_type,
    count(distinct r.subagent_id) as subagents,
    count(*) as responses,
    sum(r.input_tokens) as input_tokens,
    sum(r.output_tokens) as output_tokens,
    sum(r.cache_read_tokens) as cache_read_tokens,
    sum(r.cache_write_tokens) as cache_write_tokens,
    round(sum(r.cost_microusd) / 1000000.0, 4) as cost_usd,
    sum(r.cost_microusd is null) as unpriced
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;

-- Costs of usage_reconciliation have six decimals: four made a lower bound of it that was too high.
-- What a second home of an agent repeats of a conversation is stated once.
drop view usage_reconciliation;
drop view stated_sessions;
create view stated_sessions as -- Sessions of which an agent or an application states what they used
select
    s.title,                            -- title of the session
    s.ended_at as last_at,              -- when it ended
    coalesce(m.cost_usd, s.stated_cost_usd) as cost_usd, -- cost in dollars, as stated
    coalesce(m.input_tokens, iif(n.session_id is null, s.input_tokens, null)) as input_tokens, -- tokens that were not cached, as all counts as stated
    coalesce(m.output_tokens, iif(n.session_id is null, s.output_tokens, null)) as output_tokens, -- output tokens
    coalesce(m.cache_read_tokens, iif(n.session_id is null, s.cache_read_tokens, null)) as cache_read_tokens, -- tokens read from the cache
    coalesce(m.cache_write_tokens, iif(n.session_id is null, s.cache_write_tokens, null)) as cache_write_tokens, -- tokens written to the cache
    coalesce(m.is_lower_bound, 0) as is_lower_bound, -- 1: the agent knows no price for some of it
    nullif(s.git_branch, '') as git_branch, -- last branch of the session
    s.session_key,                      -- uuid of the session
    o.kind as source,                   -- the system that wrote it
    s.id as session_id,                 -- the session
    coalesce(s.linked_session_id, s.id) as counted_session_id -- the session whose responses these are
from sessions s
join sources o on o.id = s.source_id
left join stated_by_model m on m.session_id = s.id and m.model = ''
left join (select distinct session_id from responses) n on n.session_id = s.id
where (s.stated_cost_usd is not null or m.session_id is not null)
  and (s.linked_session_id is null or o.is_agent = 0);
create view usage_reconciliation as -- Why tools disagree: the same transcripts of each agent, counted in five ways, of which the last is ours, and beside what the agent states
select
    'every line' as counting,           -- the way of counting
    'adds up all lines of a response, and all copies of a conversation' as explanation, -- what it does
    coalesce(sum(u.line_count), 0) as counted, -- lines or responses that it counts
    coalesce(sum(u.all_input_tokens), 0) as input_tokens, -- tokens that were not cached
    coalesce(sum(u.all_output_tokens), 0) as output_tokens, -- output tokens
    coalesce(sum(u.all_cache_read_tokens), 0) as cache_read_tokens, -- tokens read from the cache
    coalesce(sum(u.all_cache_write_tokens), 0) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
    null as cost_usd,                   -- cost in dollars, of what an agent states and of the same sessions
    coalesce(sum(u.partial), 0) as partial, -- responses without a final count: output tokens are a lower bound
    null as unpriced,                   -- responses whose model has no price, where there is a cost
    s.kind as source                    -- the agent whose transcripts are counted
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind
union all
select
    'once in each file',
    'takes a response once, and again in each forked or resumed copy',
    count(*),
    coalesce(sum(u.input_tokens), 0),
    coalesce(sum(u.output_tokens), 0),
    coalesce(sum(u.cache_read_tokens), 0),
    coalesce(sum(u.cache_write_5m_tokens + u.cache_write_1h_tokens), 0),
    null,
    coalesce(sum(u.partial), 0),
    null,
    s.kind
from usage u
join files f on f.id = u.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind
union all
select
    'once, without subagents',
    'takes a response once, of main conversations only',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    null,
    coalesce(sum(r.partial), 0),
    null,
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1 and r.subagent_id is null
group by s.kind
union all
select
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    null,
    coalesce(sum(r.partial), 0),
    null,
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1 and not exists (
    select 1 from agent_lines l where l.file_id = r.file_id and l.byte_offset = r.byte_offset
)
group by s.kind
union all
select
    'once',
    'takes each response once, subagents included: what this program counts',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0),
    null,
    coalesce(sum(r.partial), 0),
    null,
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind
union all
select
    'stated by the agent',
    'adds up what the agent, or the application, says of its sessions: the last time of each',
    count(*),
    sum(t.input_tokens),
    sum(t.output_tokens),
    sum(t.cache_read_tokens),
    sum(t.cache_write_tokens),
    round(sum(t.cost_usd), 6),
    sum(t.is_lower_bound),
    null,
    t.source
from stated_sessions t
group by t.source
union all
select
    'once, where the agent states it',
    'takes each response of these sessions once, to compare',
    count(*),
    sum(c.input_tokens),
    sum(c.output_tokens),
    sum(c.cache_read_tokens),
    sum(c.cache_write_tokens),
    round(sum(c.cost_microusd) / 1000000.0, 6),
    sum(c.partial),
    sum(c.cost_microusd is null),
    t.source
from stated_sessions t
join response_costs c on c.session_id = t.counted_session_id
group by t.source;

-- Costs of usage_reconciliation have six decimals: four made a lower bound of it that was too high.
-- What a second home of an agent repeats of a conversation is stated once.

create or replace view assoc_read.stated_sessions with (security_barrier = true) as
select
    s.title, s.ended_at as last_at, coalesce(m.cost_usd, s.stated_cost_usd) as cost_usd,
    coalesce(m.input_tokens, case when n.session_id is null then s.input_tokens end)
        as input_tokens,
    coalesce(m.output_tokens, case when n.session_id is null then s.output_tokens end)
        as output_tokens,
    coalesce(m.cache_read_tokens, case when n.session_id is null then s.cache_read_tokens end)
        as cache_read_tokens,
    coalesce(m.cache_write_tokens, case when n.session_id is null then s.cache_write_tokens end)
        as cache_write_tokens,
    coalesce(m.is_lower_bound, 0) as is_lower_bound,
    s.session_key, o.kind as source, s.id as session_id,
    coalesce(s.linked_session_id, s.id) as counted_session_id,
    nullif(s.git_branch, '') as git_branch
from assoc_read.sessions s
join assoc_read.sources o on o.id = s.source_id
left join assoc_read.stated_by_model m on m.session_id = s.id and m.model = ''
left join (select distinct session_id from assoc_read.responses) n on n.session_id = s.id
where (s.stated_cost_usd is not null or m.session_id is not null)
  and (s.linked_session_id is null or o.is_agent = 0);

create or replace view assoc_read.usage_reconciliation with (security_barrier = true) as
with used as (
    select u.*, s.kind as agent
    from assoc_read.usage u
    join assoc_read.files f on f.id = u.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
),
counted as (
    select r.*, s.kind as agent
    from assoc_read.responses r
    join assoc_read.files f on f.id = r.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
)
select
    'every line' as counting,
    'adds up all lines of a response, and all copies of a conversation' as explanation,
    sum(line_count) as counted,
    sum(all_input_tokens) as input_tokens,
    sum(all_output_tokens) as output_tokens,
    sum(all_cache_read_tokens) as cache_read_tokens,
    sum(all_cache_write_tokens) as cache_write_tokens,
    null::double precision as cost_usd,
    sum(partial) as partial,
    null::bigint as unpriced,
    agent as source
from used
group by agent
union all
select
    'once in each file', 'takes a response once, and again in each forked or resumed copy',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from used
group by agent
union all
select
    'once, without subagents', 'takes a response once, of main conversations only',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
where subagent_id is null
group by agent
union all
select
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted c
where not exists (
    select from assoc.agent_lines l
    where l.origin_id = c.origin_id and l.file_no = c.file_no and l.byte_offset = c.byte_offset
)
group by agent
union all
select
    'once', 'takes each response once, subagents included: what this program counts',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
group by agent
union all
select
    'stated by the agent',
    'adds up what the agent, or the application, says of its sessions: the last time of each',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), assoc_read.round(sum(cost_usd), 6), sum(is_lower_bound), null, source
from assoc_read.stated_sessions
group by source
union all
select
    'once, where the agent states it', 'takes each response of these sessions once, to compare',
    count(*), sum(c.input_tokens), sum(c.output_tokens), sum(c.cache_read_tokens),
    sum(c.cache_write_tokens), assoc_read.round(sum(c.cost_microusd) / 1000000.0, 6),
    sum(c.partial), count(*) filter (where c.cost_microusd is null), t.source
from assoc_read.stated_sessions t
join assoc_read.response_costs c on c.session_id = t.counted_session_id
group by t.source;

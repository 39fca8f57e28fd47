drop view usage_reconciliation;
create view usage_reconciliation as -- Why tools disagree: the same transcripts of each agent, counted in five ways; the last is ours
select
    'every line' as counting,           -- the way of counting
    'adds up all lines of a response, and all copies of a conversation' as explanation, -- what it does
    coalesce(sum(u.line_count), 0) as counted, -- lines or responses that it counts
    coalesce(sum(u.all_input_tokens), 0) as input_tokens, -- tokens that were not cached
    coalesce(sum(u.all_output_tokens), 0) as output_tokens, -- output tokens
    coalesce(sum(u.all_cache_read_tokens), 0) as cache_read_tokens, -- tokens read from the cache
    coalesce(sum(u.all_cache_write_tokens), 0) as cache_write_tokens, -- tokens written to the cache, for five minutes and for an hour
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
    s.kind
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.is_agent = 1
group by s.kind;

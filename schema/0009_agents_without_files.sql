-- Subagents that left no file of their own: what the transcript that called them says of them.

create table agent_lines ( -- A line that repeats a message of a subagent which has no file of its own
    id integer primary key,
    agent_key text not null,            -- the subagent whose message it is
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line; its messages have the same
    unique (file_id, byte_offset)
) strict;
create index agent_lines_agent on agent_lines (agent_key);

create table agent_totals ( -- What the result of a call states about the run of the subagent that it spawned
    id integer primary key,
    agent_key text not null,            -- the subagent
    agent_type text,                    -- Explore, general-purpose, ...
    tokens integer,                     -- tokens of the run
    duration_ms integer,                -- how long it took
    tool_call_count integer,            -- calls that it made
    file_id integer not null references files (id) on delete cascade,
    byte_offset integer not null,       -- first byte of the line
    unique (file_id, agent_key, byte_offset)
) strict;
create index agent_totals_agent on agent_totals (agent_key);

alter table subagents add column tool_call_count integer /* calls as the result of its call states them; null where it has a file of its own */;

create index files_agent on files (source_id, agent_key) where agent_key is not null;

-- Why tools disagree: the same transcripts, counted in five ways. The last is ours.
drop view usage_reconciliation;
create view usage_reconciliation as -- Why tools disagree: the same transcripts, counted in five ways; the last is ours
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
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*),
    coalesce(sum(r.input_tokens), 0),
    coalesce(sum(r.output_tokens), 0),
    coalesce(sum(r.cache_read_tokens), 0),
    coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0)
from responses r
join files f on f.id = r.file_id
join sources s on s.id = f.source_id
where s.kind = 'claude' and not exists (
    select 1 from agent_lines l where l.file_id = r.file_id and l.byte_offset = r.byte_offset
)
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

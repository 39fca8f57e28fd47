-- What the rest needs to know of a source stands in its row, as the source states it: no query and no
-- view names one. The next sync writes it; here it is written for the sources there were.
alter table sources add column label text /* how the system is called: Claude Code, Chorus, ... */;
alter table sources add column is_agent integer not null default 0 /* 1: the transcripts of the agent itself; 0: of a program around it, which may repeat them */;
alter table sources add column lists_sessions integer not null default 0 /* 1: a list of its own says which conversations there are */;
alter table sources add column retention_days integer /* days after which the system deletes its files, unless its settings say otherwise; null: it deletes nothing */;

update sources
set label = case kind
        when 'claude' then 'Claude Code'
        when 'associate' then 'TheAssociate'
        when 'chorus' then 'Chorus'
        when 'cortex' then 'Cortex'
        when 'ccinsights' then 'CCInsights'
    end,
    is_agent = kind = 'claude',
    lists_sessions = kind in ('chorus', 'ccinsights'),
    retention_days = iif(kind = 'claude', 30, null);

-- An agent may delete what is older than its settings say when it starts.
drop view retention;
create view retention as -- What the agent will delete, and when; what only this database still holds
select
    f.path,
    f.kind,
    s.title as session,                 -- title of its session
    p.name as project,                  -- name of its project
    f.size,
    f.mtime,
    case when f.gone_at is null then strftime(
        '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, r.retention_days) || ' days'
    ) end as due_at,                    -- when the agent may delete it; null: it has
    case when f.gone_at is null then cast(
        julianday(f.mtime) + coalesce(r.cleanup_period_days, r.retention_days) - julianday('now') as integer
    ) end as days_left,                 -- days until then; negative: at its next start
    f.gone_at is not null as is_gone,   -- 1: only this database still holds it
    f.gone_at,
    s.session_key,
    r.kind as source,                   -- the system that wrote it
    f.session_id,
    f.project_id,
    f.id
from files f
join sources r on r.id = f.source_id and r.retention_days is not null
left join sessions s on s.id = f.session_id
left join projects p on p.id = f.project_id
where f.kind <> 'file_history';

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
where s.is_agent = 1
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
where s.is_agent = 1
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
where s.is_agent = 1 and r.subagent_id is null
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
where s.is_agent = 1 and not exists (
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
where s.is_agent = 1;

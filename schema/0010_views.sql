-- Every view whose rows belong to a conversation says which (session_key), which system wrote it
-- (source) and when it was, as text. Where a row is a sum over all systems, nothing is added but
-- the times between which it lies.
--
-- What few questions ask of rows that are many is a subquery in its column and not a join: SQLite
-- evaluates it for those who ask, and leaves it out of every sum.

drop view conversation;
create view conversation as -- Messages with the titles of their session and project; copies in forked sessions left out
select
    m.kind, m.text, m.tool_text, m.role, m.timestamp,
    s.title as session,                 -- title of its session
    p.name as project,                  -- name of its project
    g.name as agent,                    -- name of the application's agent with whom it is held
    a.agent_type as subagent,           -- type of its subagent; null in the main conversation
    m.model,
    nullif(coalesce((
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ), s.git_branch), '') as git_branch, -- branch on which it was said; that of its session where its lines state none
    (
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'agent_version' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ) as agent_version,                 -- version of the agent that wrote it
    (
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'permission_mode' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ) as permission_mode,               -- permission mode in which it was said
    s.session_key,
    (select r.kind from files f join sources r on r.id = f.source_id where f.id = m.file_id)
        as source,                      -- the system that wrote it
    (select o.session_id from messages o where o.session_id = s.linked_session_id limit 1)
        as repeats_session_id,          -- conversation of another system that this one repeats, where that is here too
    m.id, m.session_id, m.subagent_id, m.file_id, m.byte_offset, m.block
from messages m
left join sessions s on s.id = m.session_id
left join projects p on p.id = s.project_id
left join agents g on g.id = s.agent_id
left join subagents a on a.id = m.subagent_id
where m.copy_of is null;

drop view tool_calls_full;
create view tool_calls_full as -- Tool calls with the whole text of input and output; copies left out
select
    t.name, t.target,
    t.status,                           -- ok, error, declined (a person said no) or pending (no result yet)
    t.started_at, t.duration_ms, t.exit_code,
    c.tool_text as input,               -- what the tool was given, as JSON
    (select r.tool_text from messages r where r.id = t.result_id)
        as output,                      -- what it gave back
    s.title as session,                 -- title of its session
    (select p.name from projects p where p.id = s.project_id)
        as project,                     -- name of its project
    (select a.agent_type from subagents a where a.id = t.subagent_id)
        as subagent,                    -- type of the subagent that called; null in the main conversation
    s.session_key,
    (select o.kind from files f join sources o on o.id = f.source_id where f.id = t.file_id)
        as source,                      -- the system that wrote it
    (select o.session_id from messages o where o.session_id = s.linked_session_id limit 1)
        as repeats_session_id,          -- conversation of another system that this one repeats, where that is here too
    t.id, t.session_id, t.subagent_id, t.tool_use_id, t.call_id, t.result_id
from tool_calls t
-- A cross join is never reordered: the calls come first, else every message would be visited.
cross join messages c on c.id = t.call_id and c.copy_of is null
left join sessions s on s.id = t.session_id;

drop view coverage;
create view coverage as -- Every type of line that was ever seen in files of a system, and how often
select
    l.type, l.subtype,
    sum(l.count) as lines,              -- decoded objects of this type
    count(*) as files,                  -- files that have it
    r.kind as source                    -- the system that writes such lines
from line_types l
join files f on f.id = l.file_id
join sources r on r.id = f.source_id
group by r.kind, l.type, l.subtype;

drop view orphaned_projects;
create view orphaned_projects as -- Projects whose directory is not on this machine
select
    p.name, p.path, p.last_activity_at, p.session_count,
    r.kind as source,                   -- the system that keeps it
    p.id
from projects p
join sources r on r.id = p.source_id
where p.path is not null and p.on_disk = 0;

-- A session is known from its first SessionStart or SubagentStart on; what came before is not about
-- it. The last of SessionStart, Stop and SessionEnd says how it is; an agent runs until it stops.
drop view active_sessions;
create view active_sessions as -- Sessions as TheAssociate shows them: its hook events replayed in the order of their file
with events as materialized (
    select
        f.source_id, h.session_key, h.session_id, h.event, h.agent_key, h.agent_type, h.cwd, h.model,
        row_number() over (
            partition by f.source_id, h.session_key
            order by f.path, f.generation, h.byte_offset
        ) as n
    from hook_events h
    join files f on f.id = h.file_id and f.gone_at is null
    where h.session_key is not null
      and (
        h.event in ('SessionStart', 'Stop', 'SessionEnd')
        or (h.event in ('SubagentStart', 'SubagentStop') and h.agent_key is not null)
      )
),
known as materialized (
    select
        *,
        min(iif(event in ('SessionStart', 'SubagentStart'), n, null))
            over (partition by source_id, session_key) as since,
        max(iif(event = 'SubagentStop', n, 0))
            over (partition by source_id, session_key, agent_key) as stopped
    from events
),
running as materialized (
    select source_id, session_key, agent_key, agent_type, min(n) as n
    from known
    where event = 'SubagentStart' and n > stopped
    group by source_id, session_key, agent_key
),
state as materialized (
    select
        source_id, session_key, max(session_id) as session_id, since,
        max(iif(event in ('SessionStart', 'Stop', 'SessionEnd'), n, null)) as changed,
        max(iif(event = 'SessionStart', n, null)) as started,
        max(iif(event = 'SessionStart' and model is not null, n, null)) as named
    from known
    where n >= since
    group by source_id, session_key
)
select
    s.title as session,                 -- title of the session, once it is there
    case c.event
        when 'Stop' then 'idle'
        when 'SessionEnd' then 'completed'
        else 'active'
    end as status,                      -- active, idle (it waits for a prompt) or completed
    iif(c.event in ('Stop', 'SessionEnd'), 0, 1) as is_active, -- 1: it works
    w.cwd as cwd,                       -- working directory of its last start, null where that states none
    m.model as model,                   -- model of its last start that states one
    (
        select count(*)
        from running r
        where r.source_id = t.source_id and r.session_key = t.session_key
    ) as running_subagents,             -- subagents that run
    (
        select json_group_array(json_object('agent_id', agent_key, 'agent_type', agent_type))
        from (
            select agent_key, agent_type
            from running r
            where r.source_id = t.source_id and r.session_key = t.session_key
            order by r.n
        )
    ) as subagents,                     -- the same as a JSON array of agent_id and agent_type
    s.started_at,                       -- earliest time in its transcript; hook events have none
    s.ended_at,                         -- latest time in its transcript
    t.session_key,
    r.kind as source,                   -- the system that wrote the events
    t.session_id, t.source_id
from state t
join sources r on r.id = t.source_id
left join sessions s on s.id = t.session_id
left join known c on c.source_id = t.source_id and c.session_key = t.session_key and c.n = t.changed
left join known w on w.source_id = t.source_id and w.session_key = t.session_key
    and w.n = coalesce(t.started, t.since)
left join known m on m.source_id = t.source_id and m.session_key = t.session_key and m.n = t.named;

-- Claude Code deletes what is older than cleanupPeriodDays when it starts.
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
        '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, 30) || ' days'
    ) end as due_at,                    -- when the agent may delete it; null: it has
    case when f.gone_at is null then cast(
        julianday(f.mtime) + coalesce(r.cleanup_period_days, 30) - julianday('now') as integer
    ) end as days_left,                 -- days until then; negative: at its next start
    f.gone_at is not null as is_gone,   -- 1: only this database still holds it
    f.gone_at,
    s.session_key,
    r.kind as source,                   -- the system that wrote it
    f.session_id,
    f.project_id,
    f.id
from files f
join sources r on r.id = f.source_id and r.kind = 'claude'
left join sessions s on s.id = f.session_id
left join projects p on p.id = f.project_id
where f.kind <> 'file_history';

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
    min(r.timestamp) as first_at,       -- first response
    max(r.timestamp) as last_at         -- last response
from response_costs r
left join subagents a on a.id = r.subagent_id
group by subagent_type;

-- What Datasette counts beside a table is read from an index, else from every row. None of these
-- begins with status or event: SQLite would take it for narrower than it is, and go through all
-- calls that are ok where it now goes through those of one file.
drop index tool_calls_session;
create index tool_calls_session on tool_calls (session_id, name, status);
drop index hook_events_session_key;
create index hook_events_session_key on hook_events (session_key, event);
create index inbox_items_kind on inbox_items (kind);

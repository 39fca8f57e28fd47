-- The views. Every database gets those of the version that writes to it: they are dropped before
-- migrations and made again behind them, so no migration has to, and a change here is all it takes.
-- Only a view that goes away needs a migration that drops it.
--
-- Every view whose rows belong to a conversation says on which branch it was (git_branch): where a
-- row is something that was said, the branch on which it was said, else the last one of its session.
-- It also says which conversation (session_key), which system wrote it (source) and when it was, as
-- text. Where a row is a sum over all systems, nothing is added but the times between which it lies.
--
-- What few questions ask of rows that are many is a subquery in its column and not a join: SQLite
-- evaluates it for those who ask, and leaves it out of every sum.

CREATE VIEW conversation as -- Messages with the titles of their session and project; copies in forked sessions left out
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

CREATE VIEW coverage as -- Every type of line that was ever seen in files of a system, and how often
select
    l.type, l.subtype,
    sum(l.count) as lines,              -- decoded objects of this type
    count(*) as files,                  -- files that have it
    r.kind as source                    -- the system that writes such lines
from line_types l
join files f on f.id = l.file_id
join sources r on r.id = f.source_id
group by r.kind, l.type, l.subtype;

CREATE VIEW orphaned_projects as -- Projects whose directory is not on this machine
select
    p.name, p.path, p.last_activity_at, p.session_count,
    r.kind as source,                   -- the system that keeps it
    p.id
from projects p
join sources r on r.id = p.source_id
where p.path is not null and p.on_disk = 0;

CREATE VIEW tool_calls_full as -- Tool calls with the whole text of input and output; copies left out
select
    t.name, t.action, t.target,
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
    nullif(coalesce((
        select b.value
        from contexts b
        where b.file_id = t.file_id and b.name = 'git_branch' and b.byte_offset <= t.byte_offset
        order by b.byte_offset desc limit 1
    ), s.git_branch), '') as git_branch, -- branch on which it was called
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

-- The cost of each response, in millionths of a dollar; null where the model has no price. The
-- price is that of the response's day and of the size of its input. What was written to the cache
-- or read from it without a price of its own costs what input costs. An application that repeats
-- another's conversation (Chorus repeats Claude Code's) has responses of its own, which are left out
-- where the other's are here.
CREATE VIEW response_costs as -- What each response cost
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
    nullif(coalesce((
        select b.value
        from contexts b
        where b.file_id = r.file_id and b.name = 'git_branch' and b.byte_offset <= r.byte_offset
        order by b.byte_offset desc limit 1
    ), s.git_branch), '') as git_branch, -- branch on which it answered
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

CREATE VIEW stated_by_model as -- What the agent of a session states last of its own use
select
    u.model,                            -- model as the agent names it; '': all models
    u.input_tokens,                     -- tokens that were not cached
    u.output_tokens,                    -- output tokens
    u.cache_read_tokens,                -- tokens read from the cache
    u.cache_write_tokens,               -- tokens written to the cache
    u.cost_usd,                         -- cost in dollars
    u.is_lower_bound,                   -- 1: the agent knows no price for some of it
    u.timestamp,                        -- when it was stated, if the line says so
    exists (
        select 1 from responses r where r.file_id = u.file_id and r.byte_offset > u.byte_offset
    ) as is_followed,                   -- 1: the session went on after it
    (select nullif(s.git_branch, '') from sessions s where s.id = f.session_id)
        as git_branch,                  -- last branch of the session
    (select s.session_key from sessions s where s.id = f.session_id)
        as session_key,                 -- uuid of the session
    (select o.kind from sources o where o.id = f.source_id) as source, -- the system that wrote it
    f.session_id,                       -- the session
    u.file_id,                          -- the file that states it
    u.byte_offset                       -- the line
from stated_usage u
join files f on f.id = u.file_id
where f.kind = 'transcript'
  and u.byte_offset = (select max(o.byte_offset) from stated_usage o where o.file_id = u.file_id)
  and u.file_id = (
    select i.id
    from files i
    where i.session_id = f.session_id and i.kind = 'transcript'
      and exists (select 1 from stated_usage o where o.file_id = i.id)
    order by -- sums only grow, so the file with the most is the last
        i.gone_at is not null, i.generation desc,
        (select max(o.cost_usd) from stated_usage o where o.file_id = i.id) desc, i.path, i.id
    limit 1
  );

CREATE VIEW stated_sessions as -- Sessions of which an agent or an application states what they used
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

-- The sums of usage. Their days are local ones, as everywhere, costs are not rounded up, and a lower
-- bound says that it is one.
CREATE VIEW usage_by_day as -- Tokens and cost by day (local time) and model
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

CREATE VIEW usage_by_model as -- Tokens and cost by model
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

CREATE VIEW usage_by_session as -- Tokens and cost by session, subagents included
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

CREATE VIEW usage_by_project as -- Tokens and cost by project
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

CREATE VIEW usage_by_subagent_type as -- Tokens and cost by type of subagent
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

-- Why tools disagree: the same transcripts, counted in five ways. The last is ours.
-- Costs have six decimals: four made a lower bound that was too high. What a second home of an agent
-- repeats of a conversation is stated once.
CREATE VIEW usage_reconciliation as -- Why tools disagree: the same transcripts of each agent, counted in five ways, of which the last is ours, and beside what the agent states
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

-- A session is known from its first SessionStart or SubagentStart on; what came before is not about
-- it. The last of SessionStart, Stop and SessionEnd says how it is; an agent runs until it stops.
CREATE VIEW active_sessions as -- Sessions as TheAssociate shows them: its hook events replayed in the order of their file
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
    nullif(s.git_branch, '') as git_branch, -- last branch of the session
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

CREATE VIEW session_ends as -- How conversations ended: with a finished turn, or not
select
    s.id as session_id,                 -- the conversation
    case coalesce((
        -- What stands behind the last turn, as hooks and notices, is not part of it.
        select m.kind
        from messages m
        where m.file_id = (
            select f.id
            from files f
            where f.session_id = s.id and f.kind = 'transcript' and f.subagent_id is null
            order by f.gone_at is not null, f.mtime desc, f.id desc
            limit 1
        )
          and m.subagent_id is null
          and m.kind in (
              'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
          )
        order by m.byte_offset desc, m.block desc
        limit 1
    ), 'text')
        when 'text' then null
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'unfinished'
    end as state,                       -- ended with an error, interrupted, unfinished; null: the last turn was finished
    s.ended_at as last_at,              -- when its last line was written
    nullif(s.git_branch, '') as git_branch, -- last branch of the session
    s.session_key,
    (select r.kind from sources r where r.id = s.source_id) as source -- the system that wrote it
from sessions s
where s.kind in ('main', 'background')
  and s.message_count > 0;

-- An agent may delete what is older than its settings say when it starts.
CREATE VIEW retention as -- What the agent will delete, and when; what only this database still holds
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
    nullif(s.git_branch, '') as git_branch, -- last branch of the session
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

-- What a user noted, with what it is about.
CREATE VIEW notes_full as -- Notes with the conversation, the line and the project that they are about
select
    n.text,                             -- the note
    n.verdict,                          -- kept: a decision that held; rejected: one that was turned down
    n.is_starred,                       -- 1: it has a star
    n.title,                            -- the user's own title of the conversation
    n.noted_at,                         -- when it was last changed
    s.title as session,                 -- title of its session
    p.name as project,                  -- name of its project
    n.path,                             -- the file, absolute, with forward slashes
    n.origin,                           -- label of the machine that it was pulled from; null: it was written here
    s.git_branch,                       -- last branch of the session
    n.session_key,                      -- the conversation, or that of the line
    n.line_key,                         -- the line, as in notes; null: the conversation
    r.kind as source,                   -- the system that wrote the conversation
    s.id as session_id,                 -- the session; null: it was forgotten, or never read here
    p.id as project_id,                 -- of the session, or the one with the file
    m.file_id,                          -- file with the line; null: the note is about no line, or that is gone
    m.byte_offset,                      -- first byte of the line
    n.id                                -- number of its row in notes
from (
    select
        k.*,
        (
            select o.id
            from sessions o
            where o.session_key = k.session_key
            order by o.message_count desc, o.id
            limit 1
        ) as session_id,
        coalesce((
            select l.id
            from messages l
            join sessions o on o.id = l.session_id
            where l.uuid = k.line_key and o.session_key = k.session_key
            order by l.copy_of is not null, l.file_id, l.byte_offset, l.block
            limit 1
        ), (
            select l.id
            from messages l
            where l.uuid = k.line_key and l.copy_of is null
            order by l.file_id, l.byte_offset, l.block
            limit 1
        ), (
            select l.id
            from sessions o
            cross join files f on f.session_id = o.id
            cross join messages l on l.file_id = f.id
                and l.byte_offset = cast(substr(k.line_key, length(f.path) + 2) as integer)
            where o.session_key = k.session_key and k.line_key = f.path || '@' || l.byte_offset
            order by l.block
            limit 1
        )) as message_id,
        (
            select o.id
            from projects o
            where o.path <> '' and substr(k.path, 1, length(o.path) + 1) = replace(o.path, '\', '/') || '/'
            order by length(o.path) desc, o.same_as is not null, o.id
            limit 1
        ) as project_id
    from notes k
) n
left join sessions s on s.id = n.session_id
left join sources r on r.id = s.source_id
left join messages m on m.id = n.message_id
left join projects p on p.id = coalesce(s.project_id, n.project_id);

-- What is no message, in one shape, and how conversations ended.
CREATE VIEW searchable as -- Notes, tasks, todos, plans, messages between agents, documents, prompts and large tool outputs, as search and show see them
select
    e.what,                             -- note, task, todo, plan, inbox, document, prompt or tool_result_file
    e.kind,                             -- tells those of one store apart: a status, a type
    e.title,                            -- null where there is none
    e.text,                             -- without the title
    e.words,                            -- what is searched: both
    e.facts,                            -- whose it is, or between whom
    e.timestamp,                        -- when it was said or last changed, where that is known
    e.gone_at,                          -- since when its file or its list lacks it
    e.head,                             -- first part of the name by which show opens it; null: its line is its name
    e.tail,                             -- second part, where there is one
    e.position,                         -- place among those of the same head
    e.is_repeated,                      -- 1: what it says is found elsewhere, so search leaves it out
    e.channel,                          -- file, inbox, note, or transcript: a line of one states it
    s.title as session,                 -- title of its session
    nullif(coalesce((
        select c.value
        from contexts c
        where c.file_id = e.file_id and c.name = 'git_branch' and c.byte_offset <= e.byte_offset
        order by c.byte_offset desc limit 1
    ), s.git_branch), '') as git_branch, -- branch on which it was said
    s.session_key,
    r.kind as source,                   -- the system that wrote it
    coalesce(e.project_id, s.project_id) as project_id, -- of its own or of its session
    e.session_id, e.source_id,
    e.file_id,                          -- file that says it
    e.byte_offset,                      -- first byte of its line; 0 in a file of its own
    e.id                                -- number of its row in the table of its store
from (
    select
        'task' as what,
        t.status as kind,
        t.subject as title,
        t.description as text,
        trim(coalesce(t.subject, '') || char(10) || coalesce(t.description, ''), char(10)) as words,
        t.owner as facts,
        t.stated_at as timestamp,
        t.gone_at,
        t.list_key as head,
        t.task_key as tail,
        coalesce(t.task_number, 9223372036854775807) as position,
        t.gone_at is not null and exists (
            select 1
            from tasks o
            where o.source_id = t.source_id
              and o.list_key = t.list_key
              and o.task_key = t.task_key
              and o.channel = 'transcript'
        ) as is_repeated,
        t.channel,
        t.session_id,
        null as project_id,
        t.source_id,
        t.file_id,
        t.byte_offset,
        t.id
    from tasks t
    union all
    select
        'todo', t.status, null, t.content, t.content, nullif(t.agent_key, t.session_key), t.stated_at, t.gone_at,
        coalesce(t.session_key, (select f.path from files f where f.id = t.file_id)), null,
        t.position,
        t.gone_at is not null and exists (
            select 1
            from todos o
            where o.session_key = t.session_key
              and o.agent_key is t.agent_key
              and o.content is t.content
              and o.channel = 'transcript'
        ),
        t.channel, t.session_id, null, (select f.source_id from files f where f.id = t.file_id),
        t.file_id, t.byte_offset, t.id
    from todos t
    union all
    select
        'plan', p.status, p.title, p.text, p.text, null, p.modified_at,
        (select f.gone_at from files f where f.id = p.file_id),
        nullif(p.name, ''), null,
        0,
        0,
        p.channel, p.session_id, null, (select f.source_id from files f where f.id = p.file_id),
        p.file_id, p.byte_offset, p.id
    from plans p
    union all
    select
        'inbox', i.kind, i.summary, i.text,
        trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10)),
        coalesce(i.sender, '?') || ' → ' || coalesce(i.recipient, '?'), i.timestamp, i.gone_at,
        (select coalesce(f.team_key, f.path) from files f where f.id = i.file_id) || '/' || coalesce(i.recipient, ''),
        -- its place among those of the inbox, by the index that keeps them apart
        (
            select count(*)
            from inbox_items o
            where o.file_id = i.file_id
              and o.byte_offset = i.byte_offset
              and (coalesce(o.timestamp, ''), coalesce(o.sender, ''), coalesce(o.text_hash, ''), o.ordinal)
                <= (coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal)
        ),
        0,
        i.channel <> 'inbox',
        i.channel,
        coalesce(i.session_id, (select m.lead_session_id from teams m where m.id = i.team_id)), null,
        (select f.source_id from files f where f.id = i.file_id),
        i.file_id, i.byte_offset, i.id
    from inbox_items i
    union all
    select
        'document', d.kind, d.title, d.text,
        trim(coalesce(d.title, '') || char(10) || d.text, char(10)), null, d.modified_at, d.gone_at,
        d.path, nullif(d.ordinal, 0),
        d.ordinal,
        0,
        'file', d.session_id, d.project_id, (select f.source_id from files f where f.id = d.file_id),
        d.file_id, 0, d.id
    from documents d
    union all
    select
        'prompt', null, null,
        trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)),
        trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)), p.project_path, p.timestamp,
        (select f.gone_at from files f where f.id = p.file_id),
        null, null,
        0,
        coalesce((select s.message_count from sessions s where s.id = p.session_id), 0) > 0,
        'file', p.session_id, p.project_id, (select f.source_id from files f where f.id = p.file_id),
        p.file_id, p.byte_offset, p.id
    from prompts p
    union all
    select
        'tool_result_file', o.media_type, null, o.text, o.text, null,
        (select f.mtime from files f where f.id = o.file_id),
        (select f.gone_at from files f where f.id = o.file_id),
        coalesce(o.session_key, o.name), iif(o.session_key is null, null, o.name),
        0,
        0,
        'file', o.session_id, null, (select f.source_id from files f where f.id = o.file_id),
        o.file_id, 0, o.id
    from tool_result_files o
    union all
    select
        'note', n.verdict, n.title, n.text, n.text, n.path, n.noted_at, null,
        cast(n.id as text), null,
        0,
        0,
        'note',
        (select o.session_id from notes_full o where o.id = n.id),
        (select o.project_id from notes_full o where o.id = n.id),
        (select o.source_id from sessions o where o.id = (select f.session_id from notes_full f where f.id = n.id)),
        null, null, n.id
    from notes n
) e
left join sources r on r.id = e.source_id
left join sessions s on s.id = e.session_id;

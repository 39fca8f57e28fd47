-- Tokens and costs

-- name: usage
-- Tokens and cost by day, model, conversation and subagent
-- What `stats` adds up, in one pass over the responses. Days are those of the local calendar. The
-- branch is null unless :branches is given: finding it takes as long as the rest.
-- Of partial responses, what an estimate follows from: those without written_bytes are unmeasured; of
-- the others, begun_tokens is the output that they state, written_bytes the length of what they
-- wrote, and worth each of the two times the price of output, in millionths of a dollar for a million.
with counted as materialized ( -- or each cost is computed wherever it is named
    select
        date(c.timestamp, 'localtime') as day,
        iif(coalesce(:branches, '') = '', null, c.git_branch) as git_branch,
        c.model,
        c.session_id,
        c.subagent_id,
        c.timestamp,
        c.cost_microusd,
        c.input_tokens,
        c.output_tokens,
        c.cache_read_tokens,
        c.cache_write_tokens,
        c.partial,
        iif(c.partial = 1, c.written_bytes, null) as written_bytes,
        iif(c.partial = 1, c.output_price, null) as output_price
    from response_costs c
    left join sessions s on s.id = c.session_id
    where (coalesce(:since, '') = '' or c.timestamp >= :since)
      and (coalesce(:until, '') = '' or c.timestamp < :until)
      and (coalesce(:model, '') = '' or c.model = :model)
      and (coalesce(:branch, '') = '' or c.git_branch = :branch)
      and (coalesce(:session, '') = '' or s.session_key = :session)
      and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
      )
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
),
added as (
    select
        c.day,
        c.git_branch,
        c.model,
        c.session_id,
        c.subagent_id,
        sum(c.cost_microusd) / 1000000.0 as cost_usd,
        iif(c.subagent_id is null, null, sum(c.cost_microusd) / 1000000.0) as subagent_cost_usd,
        sum(c.input_tokens) as input_tokens,
        sum(c.output_tokens) as output_tokens,
        sum(c.cache_read_tokens) as cache_read_tokens,
        sum(c.cache_write_tokens) as cache_write_tokens,
        count(*) as responses,
        count(*) - count(c.cost_microusd) as unpriced,
        sum(c.partial) as partial,
        sum(c.partial) - count(c.written_bytes) as unmeasured,
        sum(iif(c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
        sum(c.written_bytes) as written_bytes,
        sum(iif(c.written_bytes is not null, c.output_tokens * c.output_price, 0)) as begun_worth,
        sum(c.written_bytes * c.output_price) as written_worth,
        max(c.timestamp) as last_activity
    from counted c
    group by c.session_id, c.subagent_id, c.model, c.day, c.git_branch
)
select
    e.*,
    date(e.day, '-6 days', 'weekday 1') as week_of,
    substr(e.day, 1, 7) as month,
    iif(e.subagent_id is null, 'main conversation', coalesce(a.agent_type, a.kind))
        as subagent_type,
    s.session_key,
    s.title,
    o.kind as agent,
    p.name as project,
    p.path,
    p.id as project_id,
    coalesce(p.repository_name, p.name, p.key) as repository,
    coalesce(p.repository_key, p.path, p.key) as repository_key
from added e
left join subagents a on a.id = e.subagent_id
left join sessions s on s.id = e.session_id
left join sources o on o.id = s.source_id
left join projects d on d.id = s.project_id
left join projects p on p.id = coalesce(d.same_as, d.id)

-- name: sessions_usage
-- Cost of sessions, and whether they can be resumed
-- Of the sessions in the JSON array :sessions of their ids. unpriced counts the responses whose
-- cost is unknown, and which the cost leaves out, partial those without a final count. labels are
-- those of all programs that recorded a session.
select
    s.id,
    exists (
        select 1
        from files f
        where f.session_id = s.id and f.kind = 'transcript' and f.gone_at is null
    ) as is_there,
    (select p.path from projects p where p.id = s.project_id) as project_path,
    s.project_id,
    (
        select coalesce(r.label, r.kind)
        from sources r
        where r.id = s.source_id
    ) || coalesce(
        ', '
        || (
            select group_concat(distinct coalesce(y.label, y.kind))
            from sessions l
            join sources y on y.id = l.source_id
            join sources o on o.id = s.source_id
            where l.linked_session_id = s.id and y.kind <> o.kind
        ),
        ''
    ) as labels,
    u.cost_usd,
    u.unpriced,
    u.partial
from sessions s
left join (
    select
        c.session_id,
        round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
        sum(c.cost_microusd is null) as unpriced,
        sum(c.partial) as partial
    from response_costs c
    where c.session_id in (select value from json_each(nullif(:sessions, '')))
    group by c.session_id
) u on u.session_id = s.id
where s.id in (select value from json_each(nullif(:sessions, '')))

-- name: partial_responses
-- Partial responses of sessions and their subagents, by model
-- Of the sessions in the JSON array :sessions of their keys; a session or subagent that two homes
-- have is two of them, with one key. The measures are those of usage_partial.
select
    s.id as session_id,
    s.session_key,
    a.id as subagent_id,
    a.agent_key,
    c.model,
    count(*) as partial,
    sum(c.written_bytes is null) as unmeasured,
    sum(iif(c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(c.written_bytes) as written_bytes,
    sum(iif(c.written_bytes is not null, c.output_tokens * c.output_price, 0)) as begun_worth,
    sum(c.written_bytes * c.output_price) as written_worth
from sessions s
join response_costs c on c.session_id = s.id
left join subagents a on a.id = c.subagent_id
where s.session_key in (select value from json_each(nullif(:sessions, '')))
  and c.session_id in (
    select o.id from sessions o
    where o.session_key in (select value from json_each(nullif(:sessions, '')))
  )
  and c.partial = 1
group by s.id, s.session_key, a.id, a.agent_key, c.model

-- name: output_rates
-- Output tokens for each byte that a model writes
-- Of the complete responses of each model: their output tokens, and the length of what they wrote.
select
    model,
    count(*) as responses,
    sum(output_tokens) as output_tokens,
    sum(written_bytes) as written_bytes
from responses
where partial = 0 and written_bytes > 0
group by model

-- name: models
-- Models in the order of their first use
-- The first :limit by name. The index has all that is needed.
select model, first_at
from (
    select model, min(timestamp) as first_at
    from responses
    where model is not null
    group by model
    order by model
    limit cast(coalesce(nullif(:limit, ''), 200) as integer)
) m
order by first_at is null, first_at, model

-- name: dashboard_projects
-- Projects by their newest session
-- Conversations, prompts and tool calls of each project in the sessions that ended after :since. Of a
-- repository, sessions_with_worktrees has those of its worktrees too, and worktrees their ids (JSON).
with own as materialized (
    select
        coalesce(p.same_as, p.id) as project_id,
        sum(s.message_count + s.copied_message_count > 0) as sessions,
        sum(s.prompt_count) as prompts,
        sum(s.tool_call_count) as tool_calls,
        max(s.ended_at) as last_activity
    from sessions s
    join projects p on p.id = s.project_id
    where s.kind in ('main', 'background')
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
      and (coalesce(:since, '') = '' or s.ended_at >= :since)
    group by coalesce(p.same_as, p.id)
),
worktrees as materialized (
    select
        coalesce(q.same_as, q.id) as parent_id,
        sum(o.sessions) as sessions,
        max(o.last_activity) as last_activity,
        '[' || group_concat(cast(p.id as text)) || ']' as ids
    from own o
    join projects p on p.id = o.project_id
    join projects q on q.id = p.parent_id
    group by coalesce(q.same_as, q.id)
),
active as (
    select project_id from own
    union
    select parent_id from worktrees
)
select
    p.name as project,
    coalesce(o.sessions, 0) as sessions,
    coalesce(o.sessions, 0) + w.sessions as sessions_with_worktrees,
    coalesce(o.prompts, 0) as prompts,
    coalesce(o.tool_calls, 0) as tool_calls,
    coalesce(o.last_activity, w.last_activity) as last_activity,
    p.on_disk,
    p.path,
    w.ids as worktrees,
    p.id
from active a
join projects p on p.id = a.project_id
left join own o on o.project_id = p.id
left join worktrees w on w.parent_id = p.id
order by 6 desc, p.id

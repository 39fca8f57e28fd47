-- What was done in a period
--
-- Each of the sessions :sessions, a JSON array of their ids, on each day (local time) between :since
-- and :until.

-- name: recap_sessions
-- Sessions with the repository in which they worked
-- With the directory of the project, and of the repository that it is a worktree of.
select
    s.id,
    s.cwd,
    p.path,
    coalesce(p.repository_key, p.path, p.key) as repository_key,
    coalesce(p.repository_name, p.name) as repository,
    r.path as repository_path
from sessions s
left join projects p on p.id = s.project_id
left join projects r on r.id = p.parent_id
where s.id in (select value from json_each(nullif(:sessions, '')))

-- name: recap_prompts
-- Prompts of sessions by day
-- What people typed; copies in forks are left out.
select
    m.session_id,
    strftime('%Y-%m-%d', m.timestamp, 'localtime') as day,
    count(*) as prompts,
    min(m.timestamp) as started_at,
    max(m.timestamp) as ended_at
from messages m
where m.session_id in (select value from json_each(nullif(:sessions, '')))
  and (m.kind = 'prompt' or m.kind = 'command' or m.kind = 'bash_input' or m.kind = 'queued_prompt')
  and m.subagent_id is null
  and m.copy_of is null
  and (coalesce(:since, '') = '' or m.timestamp >= :since)
  and (coalesce(:until, '') = '' or m.timestamp < :until)
group by m.session_id, day

-- name: recap_usage
-- Responses of sessions by day and model
-- Subagents included. The measures of partial responses are those of usage_partial.
select
    c.session_id,
    strftime('%Y-%m-%d', c.timestamp, 'localtime') as day,
    c.model,
    min(c.timestamp) as started_at,
    max(c.timestamp) as ended_at,
    sum(c.cost_microusd) / 1000000.0 as cost_usd,
    sum(c.output_tokens) as output_tokens,
    count(*) as responses,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    sum(c.partial = 1 and c.written_bytes is null) as unmeasured,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(iif(c.partial = 1, c.written_bytes, 0)) as written_bytes,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens * c.output_price, 0))
        as begun_worth,
    sum(iif(c.partial = 1, c.written_bytes * c.output_price, 0)) as written_worth
from response_costs c
where c.session_id in (select value from json_each(nullif(:sessions, '')))
  and (coalesce(:since, '') = '' or c.timestamp >= :since)
  and (coalesce(:until, '') = '' or c.timestamp < :until)
group by c.session_id, day, c.model

-- name: recap_calls
-- Edits of sessions, and commands that can have made a commit
-- By day, subagents included, in the order of their time. Calls that failed or were declined changed
-- nothing, and one that a second transcript repeats is one.
select
    t.session_id,
    strftime('%Y-%m-%d', t.started_at, 'localtime') as day,
    t.action,
    coalesce(e.value, t.target) as path,
    t.started_at as timestamp,
    t.call_id,
    t.result_id,
    t.file_id,
    (select m.byte_offset from messages m where m.id = coalesce(t.result_id, t.call_id))
        as byte_offset
from tool_calls t
left join json_each(t.paths) e on t.action = 'edit'
where t.session_id in (select value from json_each(nullif(:sessions, '')))
  and (
    t.action = 'edit'
    or (
      t.action = 'run'
      and t.result_id is not null
      and (
        t.target like '%commit%'
        or t.target like '%merge%'
        or t.target like '%revert%'
        or t.target like '%cherry-pick%'
        or t.target like '%rebase%'
      )
    )
  )
  and coalesce(t.result_id, t.call_id) is not null
  and (select m.copy_of from messages m where m.id = coalesce(t.result_id, t.call_id)) is null
  and t.status not in ('declined', 'error')
  and (coalesce(:since, '') = '' or t.started_at >= :since)
  and (coalesce(:until, '') = '' or t.started_at < :until)
order by t.started_at, t.id

-- name: recap_links
-- Pull requests of sessions by day
-- Each once, at the time when a session first names it.
select
    i.session_id,
    i.url,
    min(i.timestamp) as timestamp,
    strftime('%Y-%m-%d', min(i.timestamp), 'localtime') as day
from links i
where i.session_id in (select value from json_each(nullif(:sessions, '')))
  and i.kind = 'pull_request'
  and (coalesce(:since, '') = '' or i.timestamp >= :since)
  and (coalesce(:until, '') = '' or i.timestamp < :until)
group by i.session_id, i.url
order by 3, i.url

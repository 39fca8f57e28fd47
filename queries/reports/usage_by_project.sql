-- Usage by project
-- Tokens and cost of each project, the most expensive first; each response counts once, in the
-- project of its original conversation. A worktree is a project of its own. The columns
-- with_worktrees have the sums of a repository and its worktrees, so do not add these up.
-- Group: cost
with own as materialized (
    select
        coalesce(p.same_as, p.id) as project_id,
        sum(c.cost_microusd) as cost_microusd,
        sum(c.input_tokens) as input_tokens,
        sum(c.output_tokens) as output_tokens,
        sum(c.cache_read_tokens) as cache_read_tokens,
        sum(c.cache_write_tokens) as cache_write_tokens,
        count(distinct c.session_id) as sessions,
        count(*) as responses,
        sum(c.cost_microusd is null) as unpriced,
        sum(c.partial) as partial,
        max(c.timestamp) as last_activity
    from response_costs c
    left join sessions s on s.id = c.session_id
    left join projects p on p.id = s.project_id
    where (coalesce(:since, '') = '' or c.timestamp >= :since)
      and (coalesce(:until, '') = '' or c.timestamp < :until)
      and (coalesce(:model, '') = '' or c.model = :model)
      and (coalesce(:session, '') = '' or s.session_key = :session)
      and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
      )
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
    group by coalesce(p.same_as, p.id)
),
worktrees as materialized (
    select
        coalesce(q.same_as, q.id) as parent_id,
        sum(o.cost_microusd) as cost_microusd,
        sum(o.sessions) as sessions,
        sum(o.unpriced + o.partial) as unknown
    from own o
    join projects p on p.id = o.project_id
    join projects q on q.id = p.parent_id
    group by coalesce(q.same_as, q.id)
),
used as (
    select project_id from own
    union
    select parent_id from worktrees
)
select
    p.name as project,
    round(o.cost_microusd / 1000000.0, 6) as cost_usd,
    iif(
        w.parent_id is null,
        null,
        round((coalesce(o.cost_microusd, 0) + coalesce(w.cost_microusd, 0)) / 1000000.0, 6)
    ) as cost_with_worktrees_usd,
    coalesce(o.input_tokens, 0) as input_tokens,
    coalesce(o.output_tokens, 0) as output_tokens,
    coalesce(o.cache_read_tokens, 0) as cache_read_tokens,
    coalesce(o.cache_write_tokens, 0) as cache_write_tokens,
    coalesce(o.sessions, 0) as sessions,
    coalesce(o.sessions, 0) + w.sessions as sessions_with_worktrees,
    coalesce(o.responses, 0) as responses,
    coalesce(o.unpriced, 0) as unpriced,
    coalesce(o.partial, 0) as partial,
    iif(coalesce(o.unpriced + o.partial, 0) + coalesce(w.unknown, 0) > 0, 1, 0) as is_lower_bound,
    o.last_activity,
    r.name as worktree_of,
    p.path,
    p.id
from used u
left join own o on o.project_id is u.project_id
left join worktrees w on w.parent_id = u.project_id
left join projects p on p.id = u.project_id
left join projects r on r.id = p.parent_id
order by cost_usd desc, o.responses desc, p.path, p.id

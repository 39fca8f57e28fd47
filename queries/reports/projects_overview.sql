-- Projects at a glance
-- Conversations, prompts, tool calls and tokens of each project, the newest activity first. A
-- worktree is a project of its own; sessions_with_worktrees has the conversations of a repository
-- and its worktrees. The output is a lower bound if some responses are partial, without a final
-- count.
-- Group: sessions
with own as materialized (
    select
        coalesce(p.same_as, p.id) as project_id,
        count(*) as sessions,
        sum(s.prompt_count) as prompts,
        sum(s.tool_call_count) as tool_calls,
        sum(s.input_tokens) as input_tokens,
        sum(s.cache_read_tokens) as cache_read_tokens,
        sum(s.cache_write_tokens) as cache_write_tokens,
        sum(s.output_tokens) as output_tokens,
        sum(u.partial) as partial,
        min(s.started_at) as first_activity,
        max(s.ended_at) as last_activity
    from sessions s
    join projects p on p.id = s.project_id
    left join (
        select session_id, count(*) as partial
        from responses
        where partial = 1
        group by session_id
    ) u on u.session_id = s.id
    where s.kind in ('main', 'background')
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
    group by coalesce(p.same_as, p.id)
),
worktrees as materialized (
    select coalesce(q.same_as, q.id) as parent_id, sum(o.sessions) as sessions
    from own o
    join projects p on p.id = o.project_id
    join projects q on q.id = p.parent_id
    group by coalesce(q.same_as, q.id)
)
select
    p.name as project,
    o.sessions,
    o.sessions + w.sessions as sessions_with_worktrees,
    o.prompts,
    o.tool_calls,
    o.input_tokens,
    o.cache_read_tokens,
    o.cache_write_tokens,
    o.output_tokens,
    coalesce(o.partial, 0) as partial,
    iif(o.partial > 0, 1, 0) as is_lower_bound,
    o.first_activity,
    o.last_activity,
    r.name as worktree_of,
    p.on_disk,
    p.path
from own o
join projects p on p.id = o.project_id
left join projects r on r.id = p.parent_id
left join worktrees w on w.parent_id = p.id
order by o.last_activity desc, p.id

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
        json_group_array(p.id) as ids
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

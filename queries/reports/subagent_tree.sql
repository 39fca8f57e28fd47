-- Subagents of a conversation as a tree
-- The subagents of a conversation, each below the agent that spawned it, with how the link was
-- found. :session is the beginning of a conversation's key.
-- Group: activity
with recursive tree (id, depth, indent, path) as (
    select
        a.id,
        0,
        '',
        coalesce(a.started_at, '')
            || '/' || substr('000000000', 1 + length(cast(a.id as text))) || a.id
    from subagents a
    join sessions s on s.id = a.session_id
    where a.parent_id is null
      and coalesce(:session, '') <> ''
      and substr(s.session_key, 1, length(:session)) = :session
    union all
    select
        a.id,
        t.depth + 1,
        t.indent || '  ',
        t.path || '/' || coalesce(a.started_at, '')
            || '/' || substr('000000000', 1 + length(cast(a.id as text))) || a.id
    from tree t
    join subagents a on a.parent_id = t.id
    where t.depth < 50
)
select
    t.indent || coalesce(a.description, a.agent_key) as subagent,
    a.agent_type,
    a.kind,
    a.link_method,
    a.message_count,
    a.tokens,
    iif(exists (select 1 from responses r where r.subagent_id = a.id and r.partial = 1), 1, 0)
        as is_lower_bound,
    a.started_at,
    a.agent_key
from tree t
join subagents a on a.id = t.id
order by t.path

-- Subagents of one session
-- With the tool call that spawned each, where it is known. :limit ends after so many.
select
    a.agent_type,
    a.description,
    a.kind,
    a.name,
    a.model,
    a.workflow,
    a.started_at,
    a.ended_at,
    a.message_count,
    a.tokens,
    (select count(*) from responses r where r.subagent_id = a.id and r.partial = 1) as partial,
    a.link_method,
    a.spawned_by,
    t.call_id,
    o.agent_key as parent,
    a.agent_key,
    a.id
from subagents a
left join subagents o on o.id = a.parent_id
left join tool_calls t on t.id = a.spawned_by
where a.session_id = :session
order by a.started_at, a.agent_key
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

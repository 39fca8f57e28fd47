-- Messages as a search finds them
-- The messages of the JSON array :ids, with what a search knows of them before it reads their
-- texts.
select
    'message' as what,
    m.kind,
    null as text,
    s.title as session,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    a.agent_type as subagent,
    (
        select min(t.name)
        from tool_calls t
        where t.call_id = m.id or t.result_id = m.id
    ) as tool,
    coalesce(m.timestamp, s.started_at) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    m.byte_offset,
    0 as verbatim,
    m.id,
    null as rank
from json_each(coalesce(nullif(:ids, ''), '[]')) j
cross join messages m on m.id = j.value
cross join files f on f.id = m.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = m.session_id
left join projects p on p.id = s.project_id
left join subagents a on a.id = m.subagent_id

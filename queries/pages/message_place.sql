-- Where a message stands
-- Its conversation, its subagent and its place in the file; of a result, also the call it answers.
select
    m.kind,
    s.session_key,
    a.agent_key,
    m.byte_offset,
    m.block,
    c.call_id as answers,
    m.session_id,
    m.subagent_id,
    m.file_id,
    m.id
from messages m
left join sessions s on s.id = m.session_id
left join subagents a on a.id = m.subagent_id
left join tool_calls c on c.result_id = m.id
where m.id = :id
order by c.id
limit 1

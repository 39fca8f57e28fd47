-- The last commands of sessions
-- Of each session in the JSON array :sessions of their ids, the last command that the agent ran, if
-- it failed.
select
    t.session_id,
    t.target,
    t.exit_code,
    t.started_at,
    m.byte_offset,
    m.file_id
from json_each(nullif(:sessions, '')) k
join tool_calls t on t.id = (
    select c.id
    from tool_calls c
    where c.session_id = k.value and c.action = 'run' and c.subagent_id is null
    order by c.started_at desc, c.id desc
    limit 1
)
join messages m on m.id = t.call_id
where t.status = 'error'

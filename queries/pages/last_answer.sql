-- The last answer of a conversation
-- What the agent said last in the newest transcript of a session, subagents left out.
select
    m.text,
    m.timestamp,
    m.byte_offset,
    m.file_id
from messages m
where m.file_id = (
    select f.id
    from files f
    where f.session_id = :session and f.kind = 'transcript' and f.subagent_id is null
    order by f.gone_at is not null, f.mtime desc, f.id desc
    limit 1
  )
  and m.subagent_id is null
  and m.kind = 'text'
order by m.byte_offset desc, m.block desc
limit 1

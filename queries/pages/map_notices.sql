-- Compactions and errors of a conversation
-- Messages of one :kind in the conversation :session, or in one :subagent of it: compact_summary,
-- behind which an agent no longer knew what was said before, or error. What the conversation repeats
-- is left out. :limit ends after so many.
select m.id, m.file_id, m.byte_offset, m.block
from messages m
where m.session_id = :session
  and m.kind = :kind
  and m.subagent_id is nullif(:subagent, '')
  and not exists ( -- repeated by a second transcript of the conversation
    select 1
    from messages c
    where c.id = m.copy_of and c.session_id = m.session_id and c.subagent_id is m.subagent_id
  )
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

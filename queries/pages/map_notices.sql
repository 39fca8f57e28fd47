-- Compactions and errors of a conversation
-- Messages of one :kind in the conversation :session, or in one :subagent of it: compact_summary,
-- behind which an agent no longer knew what was said before, or error. :limit ends after so many.
select m.id, m.file_id, m.byte_offset, m.block
from messages m
where m.session_id = :session
  and m.kind = :kind
  and m.subagent_id is nullif(:subagent, '')
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

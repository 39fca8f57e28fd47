-- The newest activity
-- When the session that was active last ended, and how many conversations there are since :since.
select
    max(s.ended_at) as ended_at,
    sum(
        (coalesce(:since, '') = '' or s.ended_at >= :since)
        and s.message_count + s.copied_message_count > 0
    ) as sessions
from sessions s
where s.kind in ('main', 'background')
  and not exists (
    select 1
    from sessions l
    where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
  )

-- The files that a reference with the key of a session can mean
-- Those with messages of the conversation :session_key, in the order in which references number
-- them: where there is more of it first, transcripts before other files.
select
    f.path,
    r.root,
    f.gone_at,
    f.session_id,
    null as subagent_id,
    s.session_key,
    f.id
from sessions s
join files f on f.session_id = s.id and f.subagent_id is null
join sources r on r.id = f.source_id
where s.session_key = :session_key
  and exists (
    select 1
    from messages m
    where m.file_id = f.id
  )
order by s.message_count desc, s.id, f.kind <> 'transcript', f.generation, f.own_since, f.path

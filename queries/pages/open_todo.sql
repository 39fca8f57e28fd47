-- Todo lists by name
-- The things to do of the session :head, or of those that begin with it where :is_prefix is given.
select
    coalesce(i.session_key, f.path) as name,
    null as title,
    i.content as text,
    i.status as kind,
    nullif(i.agent_key, i.session_key) as facts,
    i.stated_at as timestamp,
    i.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    i.channel,
    i.byte_offset,
    i.file_id,
    i.id
from todos i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
where (
    coalesce(i.session_key, f.path) = :head
    or (coalesce(:is_prefix, '') <> '' and coalesce(i.session_key, f.path) >= :head and coalesce(i.session_key, f.path) < :head || char(1114111))
  )
order by i.session_key, i.agent_key <> i.session_key, i.agent_key, i.file_id, i.gone_at is not null, i.position, i.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

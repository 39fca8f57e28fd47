-- Large tool outputs by name
-- The output :tail of the session :head, or of those that begin with it where :is_prefix is given;
-- all of the session without :tail.
select
    coalesce(i.session_key || '/', '') || i.name,
    null as title,
    i.text,
    i.media_type as kind,
    null as facts,
    f.mtime as timestamp,
    f.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    'file' as channel,
    0 as byte_offset,
    i.file_id,
    i.id
from tool_result_files i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
where (
    coalesce(i.session_key, i.name) = :head
    or (coalesce(:is_prefix, '') <> '' and coalesce(i.session_key, i.name) >= :head and coalesce(i.session_key, i.name) < :head || char(1114111))
  )
  and (coalesce(:tail, '') = '' or i.name = :tail)
order by i.session_key, i.name, i.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

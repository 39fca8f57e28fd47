-- Documents by name
-- The documents of the file :head, a path below its root or the end of one; of one file the document
-- :tail.
select
    i.path || iif(i.ordinal = 0, '', '/' || i.ordinal) as name,
    i.title,
    i.text,
    i.kind,
    null as facts,
    i.modified_at as timestamp,
    i.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    'file' as channel,
    0 as byte_offset,
    i.file_id,
    i.id
from documents i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
where (
    i.path = :head
    or (coalesce(:is_prefix, '') <> '' and substr(i.path, -length(:head) - 1) = '/' || :head)
  )
  and (coalesce(:tail, '') = '' or i.ordinal = :tail)
order by i.path, i.ordinal, i.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

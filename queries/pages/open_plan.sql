-- Plans by name
-- The plan :head, or those that begin with it where :is_prefix is given.
select
    i.name,
    i.title,
    i.text,
    i.status as kind,
    null as facts,
    i.modified_at as timestamp,
    f.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    i.channel,
    i.byte_offset,
    i.file_id,
    i.id
from plans i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
where (
    i.name = :head
    or (coalesce(:is_prefix, '') <> '' and i.name >= :head and i.name < :head || char(1114111))
  )
  and i.name <> ''
order by i.name, i.modified_at desc, i.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

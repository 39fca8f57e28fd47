-- Tasks by name
-- The task :tail of the list :head, or of the lists that begin with it where :is_prefix is given; all
-- of the list without :tail.
select
    i.list_key || '/' || i.task_key as name,
    i.subject as title,
    i.description as text,
    i.status as kind,
    i.owner as facts,
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
from tasks i
left join files f on f.id = i.file_id
join sources r on r.id = i.source_id
left join sessions s on s.id = i.session_id
where (
    i.list_key = :head
    or (coalesce(:is_prefix, '') <> '' and i.list_key >= :head and i.list_key < :head || char(1114111))
  )
  and (coalesce(:tail, '') = '' or i.task_key = :tail)
order by i.list_key, i.task_number is null, i.task_number, i.task_key, i.channel, i.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

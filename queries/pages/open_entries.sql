-- Entries by name
-- Ids of the entries of the store :what that are called :head, or whose name begins with it where
-- :is_prefix is given (of documents: ends with it); with :tail only those with this second part.
select e.id
from searchable e
where e.what = :what
  and (
    e.head = :head
    or (
        coalesce(:is_prefix, '') <> ''
        and iif(
            :what = 'document',
            substr(e.head, -length(:head) - 1) = '/' || :head,
            e.head >= :head and e.head < :head || char(1114111)
        )
    )
  )
  and (coalesce(:tail, '') = '' or e.tail = :tail)
order by
    e.head,
    iif(e.what = 'todo', coalesce(e.facts, ''), ''),
    iif(e.what = 'todo', e.file_id, 0),
    iif(e.what = 'todo', e.gone_at is not null, 0),
    e.position,
    e.tail,
    iif(e.what = 'plan', e.timestamp, '') desc,
    e.channel,
    e.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

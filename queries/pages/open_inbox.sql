-- Messages of an inbox by name
-- Ids of the messages of the inbox :head, a team and a name with a slash between them, or of those
-- that begin with it where :is_prefix is given; with :tail only the message of that number.
with known as (
    select
        i.*,
        coalesce(f.team_key, f.path) || '/' || coalesce(i.recipient, '') as head
    from inbox_items i
    join files f on f.id = i.file_id
    where i.channel = 'inbox'
),
numbered as (
    select
        i.id,
        i.head,
        i.file_id,
        row_number() over (
            partition by i.file_id
            order by coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal
        ) as number
    from known i
)
select id
from numbered
where (
    head = :head
    or (coalesce(:is_prefix, '') <> '' and head >= :head and head < :head || char(1114111))
  )
  and (coalesce(:tail, '') = '' or number = :tail)
order by head, file_id, number
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

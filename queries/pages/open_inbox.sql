-- Messages of an inbox by name
-- The :tail-th message of the inbox :head, a team and a name with a slash between them, or of those
-- that begin with it where :is_prefix is given; all of them without :tail.
select
    i.name || '/' || i.number as name,
    i.summary as title,
    i.text,
    i.kind,
    coalesce(i.sender, '?') || ' → ' || coalesce(i.recipient, '?') as facts,
    i.timestamp,
    i.gone_at,
    s.session_key,
    s.title as session,
    r.root,
    f.path,
    i.channel,
    i.byte_offset,
    i.file_id,
    i.id
from (
    select
        i.*,
        coalesce(f.team_key, f.path) || '/' || coalesce(i.recipient, '') as name,
        row_number() over (
            partition by i.file_id
            order by coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal
        ) as number
    from inbox_items i
    join files f on f.id = i.file_id
    where i.channel = 'inbox'
) i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join teams t on t.id = i.team_id
left join sessions s on s.id = coalesce(i.session_id, t.lead_session_id)
where (
    i.name = :head
    or (coalesce(:is_prefix, '') <> '' and i.name >= :head and i.name < :head || char(1114111))
  )
  and (coalesce(:tail, '') = '' or i.number = :tail)
order by i.name, i.file_id, i.number
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

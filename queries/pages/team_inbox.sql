-- Messages within one team
-- The newest :limit of them, those that repeat one of an inbox left out.
select
    i.timestamp,
    i.sender,
    i.recipient,
    i.kind,
    i.summary,
    i.text,
    i.is_read,
    i.gone_at,
    i.id
from inbox_items i
where i.team_id = :team
  and i.copy_of is null
order by i.timestamp desc, i.id desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

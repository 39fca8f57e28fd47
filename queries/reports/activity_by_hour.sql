-- Activity by weekday and hour
-- Responses by weekday and hour (UTC), with their output: 0 is Sunday.
-- Group: activity
select
    cast(strftime('%w', c.timestamp) as integer) as weekday,
    cast(strftime('%H', c.timestamp) as integer) as hour,
    count(*) as responses,
    sum(c.output_tokens) as output_tokens
from response_costs c
where c.timestamp is not null
  and (coalesce(:since, '') = '' or c.timestamp >= :since)
group by weekday, hour
order by weekday, hour

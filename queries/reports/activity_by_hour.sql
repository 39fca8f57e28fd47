-- Activity by weekday and hour
-- Responses by weekday and hour (local time), with their output; 0 is Sunday. The output is a lower
-- bound if some responses are partial, without a final count.
-- Group: activity
select
    cast(strftime('%w', c.timestamp, 'localtime') as integer) as weekday,
    cast(strftime('%H', c.timestamp, 'localtime') as integer) as hour,
    count(*) as responses,
    sum(c.output_tokens) as output_tokens,
    sum(c.partial) as partial,
    iif(sum(c.partial) > 0, 1, 0) as is_lower_bound
from response_costs c
where c.timestamp is not null
  and (coalesce(:since, '') = '' or c.timestamp >= :since)
group by weekday, hour
order by weekday, hour

-- Partial responses of sessions, by model
-- Of the sessions in the JSON array :sessions of their ids. The measures are those of usage_partial.
select
    c.session_id,
    c.model,
    count(*) as partial,
    sum(c.written_bytes is null) as unmeasured,
    sum(iif(c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(c.written_bytes) as written_bytes,
    sum(iif(c.written_bytes is not null, c.output_tokens * c.output_price, 0)) as begun_worth,
    sum(c.written_bytes * c.output_price) as written_worth
from response_costs c
where c.session_id in (select value from json_each(nullif(:sessions, '')))
  and c.partial = 1
group by c.session_id, c.model

-- Models in the order of their first use
-- The first :limit by name, each found by one look into an index, however many responses there are.
with recursive known (model, place) as (
    select (select min(r.model) from responses r), 1
    union all
    select (select min(r.model) from responses r where r.model > k.model), k.place + 1
    from known k
    where k.model is not null
      and k.place < cast(coalesce(nullif(:limit, ''), 200) as integer)
)
select
    k.model,
    (select min(r.timestamp) from responses r where r.model = k.model) as first_at
from known k
where k.model is not null
order by first_at is null, first_at, k.model

-- Cost of sessions, and whether they can be resumed
-- Of the sessions in the JSON array :sessions of their ids. unpriced counts the responses whose
-- cost is unknown, and which the cost leaves out, partial those without a final count.
select
    s.id,
    exists (
        select 1
        from files f
        where f.session_id = s.id and f.kind = 'transcript' and f.gone_at is null
    ) as is_there,
    (select p.path from projects p where p.id = s.project_id) as project_path,
    u.cost_usd,
    u.unpriced,
    u.partial
from sessions s
left join (
    select
        c.session_id,
        round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
        sum(c.cost_microusd is null) as unpriced,
        sum(c.partial) as partial
    from response_costs c
    where c.session_id in (select value from json_each(nullif(:sessions, '')))
    group by c.session_id
) u on u.session_id = s.id
where s.id in (select value from json_each(nullif(:sessions, '')))

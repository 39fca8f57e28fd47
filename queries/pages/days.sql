-- Conversations of some days
-- How many conversations were active in each of the spans [since, until] of the JSON array :days;
-- one that lasted longer is counted in each of them.
with days as materialized (
    select
        json_extract(d.value, '$[0]') as since,
        json_extract(d.value, '$[1]') as until,
        d.key as place
    from json_each(nullif(:days, '')) d
),
recent as materialized (
    select s.started_at, s.ended_at
    from sessions s
    where s.kind in ('main', 'background')
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
      and s.message_count + s.copied_message_count > 0
      and s.ended_at >= (select min(since) from days)
)
select
    d.since,
    (
        select count(*)
        from recent r
        where r.ended_at >= d.since and r.started_at < d.until
    ) as conversations
from days d
order by d.place

-- Partial responses by model, day, session and project
-- What an estimate of them follows from. Those without written_bytes are unmeasured. Of the others:
-- begun_tokens is the output that they state, written_bytes the length of what they wrote, and worth
-- is each of the two times the price of output, in millionths of a dollar for a million.
select
    c.model,
    strftime('%Y-%m-%d', c.timestamp, 'localtime') as day,
    strftime('%Y-%m', c.timestamp, 'localtime') as month,
    date(c.timestamp, 'localtime', '-6 days', 'weekday 1') as week_of,
    s.session_key,
    coalesce(p.same_as, p.id) as id,
    count(*) as partial,
    sum(c.written_bytes is null) as unmeasured,
    sum(iif(c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(c.written_bytes) as written_bytes,
    sum(iif(c.written_bytes is not null, c.output_tokens * c.output_price, 0)) as begun_worth,
    sum(c.written_bytes * c.output_price) as written_worth
from response_costs c
left join sessions s on s.id = c.session_id
left join projects p on p.id = s.project_id
where c.partial = 1
  and (coalesce(:since, '') = '' or c.timestamp >= :since)
  and (coalesce(:until, '') = '' or c.timestamp < :until)
  and (coalesce(:model, '') = '' or c.model = :model)
  and (coalesce(:session, '') = '' or s.session_key = :session)
  and (
    coalesce(:source, '') = ''
    or s.source_id in (select r.id from sources r where r.kind = :source)
  )
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
group by c.model, day, c.session_id

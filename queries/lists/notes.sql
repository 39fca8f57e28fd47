-- Notes
-- What you noted on conversations, on lines and on files, those with a star first, then the newest.
-- A verdict is a status: kept or rejected.
select
    n.text,
    n.verdict,
    n.is_starred,
    n.title,
    n.noted_at,
    n.session,
    n.project,
    n.path,
    n.origin,
    n.session_key,
    n.id
from notes_full n
where true
  and (
    coalesce(:project, '') = ''
    or n.project_id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or n.noted_at >= :since)
  and (coalesce(:until, '') = '' or n.noted_at < :until)
  and (coalesce(:source, '') = '' or n.source = :source)
  and (coalesce(:status, '') = '' or n.verdict like '%' || :status || '%')
order by n.is_starred desc, n.noted_at desc, n.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

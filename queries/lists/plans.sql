-- Plans
-- Newest first, with the conversation that wrote the plan, if known, and whether the plan was
-- accepted. Plans without a file have the channel transcript.
select
    i.title,
    i.status,
    i.modified_at,
    s.title as session,
    p.name as project,
    i.name,
    i.channel,
    r.root || '/' || f.path as file
from plans i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where true
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or i.modified_at >= :since)
  and (coalesce(:until, '') = '' or i.modified_at < :until)
  and (coalesce(:source, '') = '' or r.kind = :source)
  and (coalesce(:status, '') = '' or i.status like '%' || :status || '%')
order by i.modified_at desc, i.name, i.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

-- Prompts
-- Prompts that people typed, from the global history, newest first, without repetitions.
select
    i.timestamp,
    i.text,
    max(coalesce(p.name, i.project_path)) as project,
    max(s.title) as session,
    i.session_key
from prompts i
left join sessions s on s.id = i.session_id
left join projects p on p.id = coalesce(i.project_id, s.project_id)
where true
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or i.timestamp >= :since)
  and (coalesce(:until, '') = '' or i.timestamp < :until)
  and (
    coalesce(:source, '') = ''
    or i.file_id in (
        select f.id
        from files f
        join sources r on r.id = f.source_id
        where r.kind = :source
    )
  )
group by i.timestamp, i.text, i.session_key
order by i.timestamp desc, max(i.id) desc
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

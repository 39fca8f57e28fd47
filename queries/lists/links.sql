-- Links
-- Pull requests, frames and worktrees of conversations, newest first. Links that were removed from
-- the only list that had them are shown only with :gone.
select
    i.kind,
    i.url,
    i.title,
    i.timestamp,
    s.title as session,
    p.name as project,
    i.gone_at,
    s.session_key
from links i
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or i.gone_at is null
    or (coalesce(:gone, '') <> '' and i.gone_at is not null)
  )
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
order by i.timestamp desc, i.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

-- Files
-- All files ever indexed, the most recently read first.
select
    f.path,
    f.kind,
    f.size,
    f.last_synced_at,
    f.gone_at,
    f.offset as read,
    f.line_count,
    f.issue_count,
    r.kind as source,
    r.root
from files f
join sources r on r.id = f.source_id
left join projects p on p.id = f.project_id
where true
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:source, '') = '' or r.kind = :source)
order by f.last_synced_at desc, r.root, f.path
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

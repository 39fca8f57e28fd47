-- Issues
-- Records that could not be read (quarantined) or were stored incompletely, with their place in the
-- file.
select
    i.reason,
    i.quarantined,
    r.root || '/' || f.path as file,
    i.byte_offset,
    i.byte_length,
    substr(i.sample, 1, 200) as sample
from issues i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join projects p on p.id = f.project_id
where true
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:source, '') = '' or r.kind = :source)
order by i.quarantined desc, r.root, f.path, i.byte_offset
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

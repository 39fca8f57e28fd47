-- Issues
-- Records that could not be read (quarantined) or were stored incompletely: for each reason and file,
-- how many there are and the first of them; with :all, each of them.
select
    i.reason,
    i.quarantined,
    i.count,
    r.root || '/' || f.path as file,
    i.byte_offset,
    i.byte_length,
    substr(i.sample, 1, 200) as sample
from (
    select
        issues.*,
        count(*) over (partition by file_id, reason, quarantined) as count,
        row_number() over (
            partition by file_id, reason, quarantined order by byte_offset, id
        ) as number
    from issues
) i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join projects p on p.id = f.project_id
where (i.number = 1 or coalesce(:all, '') <> '')
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:source, '') = '' or r.kind = :source)
order by i.quarantined desc, r.root, f.path, i.reason, i.byte_offset
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

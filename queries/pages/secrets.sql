-- Where credentials can be

-- name: secret_files
-- Files in which credentials are looked for
-- All that have archived bytes, in the order of their root and path, limited by what is asked for.
select
    f.id,
    f.path,
    r.root,
    r.kind as source,
    s.session_key,
    p.name as project,
    f.mtime,
    f.offset
from files f
join sources r on r.id = f.source_id
left join sessions s on s.id = f.session_id
left join projects p on p.id = coalesce(f.project_id, s.project_id)
where f.offset > 0
  and (
    coalesce(:project, '') = ''
    or f.project_id in (select value from json_each(:project))
    or s.project_id in (select value from json_each(:project))
  )
  and (coalesce(:session, '') = '' or s.session_key = :session)
  and (coalesce(:source, '') = '' or r.kind = :source)
  and (coalesce(:since, '') = '' or f.mtime >= :since)
order by r.root, f.path, f.generation

-- name: secret_time
-- When the line at an offset was written
-- The time of the last message or prompt that begins at this offset of a file or before it.
select coalesce(
    (
      select m.timestamp
      from messages m
      where m.file_id = :file
        and m.byte_offset <= :offset
      order by m.byte_offset desc
      limit 1
    ),
    (
      select i.timestamp
      from prompts i
      where i.file_id = :file
        and i.byte_offset <= :offset
      order by i.byte_offset desc
      limit 1
    )
  ) as timestamp

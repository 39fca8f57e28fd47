-- Pull requests that conversations name as theirs
-- Links to the pull request number :number, the oldest first.
select
    i.url,
    i.title,
    i.timestamp,
    i.file_id,
    i.byte_offset,
    i.session_id
from links i
join sessions s on s.id = i.session_id
where i.kind = 'pull_request'
  and i.url like '%/' || :number
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by i.timestamp, i.id
limit 200

-- The files of a session
-- Those that hold its main conversation, the transcript first; not those of its subagents.
-- :with_messages leaves out those without messages, :limit ends after so many.
select
    f.path,
    f.kind,
    f.size,
    f.line_count,
    f.issue_count,
    f.gone_at,
    f.id
from files f
where f.session_id = :session
  and f.subagent_id is null
  and (
    coalesce(:with_messages, '') = ''
    or exists (
        select 1
        from messages m
        where m.file_id = f.id and m.subagent_id is null
    )
  )
order by f.kind <> 'transcript', f.generation, f.own_since, f.path
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

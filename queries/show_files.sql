-- The files of a session
-- Those that hold its main conversation, the transcript first; not those of its subagents.
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
order by f.kind <> 'transcript', f.generation, f.own_since, f.path

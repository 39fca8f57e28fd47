-- Conversations by their ids
-- Title, project, branch and source of the sessions :ids, a JSON array.
select
    s.id,
    s.session_key,
    s.title,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    s.git_branch,
    s.cwd,
    s.started_at,
    s.ended_at,
    r.kind as source
from sessions s
cross join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
where s.id in (select value from json_each(coalesce(nullif(:ids, ''), '[]')))

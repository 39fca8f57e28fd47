-- Projects by their newest session
-- Sessions, prompts and tool calls of each project in the sessions that ended after :since.
select
    p.name as project,
    count(*) as sessions,
    sum(s.prompt_count) as prompts,
    sum(s.tool_call_count) as tool_calls,
    max(s.ended_at) as last_activity,
    p.path,
    p.id
from sessions s
join projects p on p.id = s.project_id
where s.kind in ('main', 'background')
  and (coalesce(:since, '') = '' or s.ended_at >= :since)
group by p.id
order by last_activity desc

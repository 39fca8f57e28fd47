-- Failed tool calls
-- The newest :limit calls (default 50) that failed, with the start of their output. :tool limits
-- the list to one tool.
-- Group: activity
select
    t.started_at,
    t.name,
    t.target,
    substr(o.tool_text, 1, 200) as said,
    t.exit_code,
    s.title as session,
    p.name as project,
    s.session_key
from tool_calls t
cross join messages c on c.id = t.call_id
left join messages o on o.id = t.result_id
left join sessions s on s.id = t.session_id
left join projects p on p.id = s.project_id
where t.status = 'error'
  and c.copy_of is null
  and coalesce(:tool, '') in ('', t.name)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
order by t.started_at desc, t.id desc
limit cast(coalesce(nullif(:limit, ''), '50') as integer)

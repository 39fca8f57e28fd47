-- Most edited files
-- The :limit files (default 30) that agents changed most often, in :project or anywhere; errors are
-- the attempts that failed.
-- Group: activity
select
    coalesce(e.value, t.target) as file,
    sum(t.status <> 'error') as edits,
    count(distinct t.session_id) as sessions,
    sum(t.status = 'error') as errors,
    max(t.started_at) as last_edited,
    p.name as project
from tool_calls t
cross join messages m on m.id = t.call_id
left join json_each(t.paths) e on true
left join sessions s on s.id = t.session_id
left join projects p on p.id = s.project_id
where t.action = 'edit'
  and coalesce(e.value, t.target) is not null
  and m.copy_of is null
  and t.status <> 'declined'
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
group by coalesce(e.value, t.target), s.project_id, p.name
order by edits desc, last_edited desc
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

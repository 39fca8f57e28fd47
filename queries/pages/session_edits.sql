-- Files that a conversation changed
-- Those that calls of a session edited, subagents included: how often, and when last; the newest
-- first, at most :limit (default 50).
select
    coalesce(e.value, t.target) as path,
    count(*) as edits,
    max(t.started_at) as last_edited
from tool_calls t
left join json_each(t.paths) e
where t.session_id = :session
  and t.action = 'edit'
  and t.status not in ('declined', 'error')
  and coalesce(e.value, t.target) is not null
group by path
order by last_edited desc, path
limit cast(coalesce(nullif(:limit, ''), 50) as integer)

-- Files that a conversation changed
-- Those that calls of a session edited, subagents included: how often, and when last; the newest
-- first, at most :limit (default 50). Calls that failed or were declined changed nothing, and one
-- that a second transcript repeats is one.
select
    coalesce(e.value, t.target) as path,
    count(*) as edits,
    max(t.started_at) as last_edited
from tool_calls t
cross join messages m on m.id = t.call_id
left join json_each(t.paths) e on true
where t.session_id = :session
  and t.action = 'edit'
  and t.status not in ('declined', 'error')
  and coalesce(e.value, t.target) is not null
  and m.copy_of is null
group by coalesce(e.value, t.target) -- not path: json_each has a column of that name
order by last_edited desc, path
limit cast(coalesce(nullif(:limit, ''), 50) as integer)

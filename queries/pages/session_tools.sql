-- The tools of one session
-- How often each was called, subagents included, the most used first.
select t.name, count(*) as calls
from tool_calls t
where t.session_id = :session
  and t.name is not null
group by t.name
order by calls desc, t.name

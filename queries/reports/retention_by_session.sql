-- Conversations that the agent will delete
-- Conversations with files that an agent is due to delete within :days (default 7), or that only
-- this database still has; the most urgent first.
-- Group: database
select
    r.session,
    r.project,
    min(r.due_at) as due_at,
    min(r.days_left) as days_left,
    sum(r.is_gone) as files_gone,
    count(*) as files,
    sum(r.size) as size,
    s.session_key
from retention r
join sessions s on s.id = r.session_id
where r.is_gone = 1
   or r.days_left <= cast(coalesce(nullif(:days, ''), '7') as integer)
group by r.session_id, r.session, r.project, s.session_key
order by min(r.due_at) is null, min(r.due_at), r.session_id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

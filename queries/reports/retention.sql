-- Files that the agent will delete or has deleted
-- Files that an agent is due to delete within :days (default 7), the most urgent first, then files
-- that only this database still has.
-- Group: database
select
    path,
    due_at,
    days_left,
    is_gone,
    session,
    project,
    size,
    gone_at
from retention
where is_gone = 1
   or days_left <= cast(coalesce(nullif(:days, ''), '7') as integer)
order by is_gone, due_at, gone_at desc, path

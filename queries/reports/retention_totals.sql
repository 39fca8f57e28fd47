-- How much the agent will delete
-- Files of Claude Code that are due for deletion within :days (default 7), and those that only this
-- database still holds, with their bytes.
-- Group: database
select
    sum(r.is_gone = 0) as due_files,
    sum(iif(r.is_gone = 0, r.size, 0)) as due_size,
    sum(r.is_gone) as gone_files,
    sum(iif(r.is_gone = 1, r.size, 0)) as gone_size
from retention r
where r.is_gone = 1
   or r.days_left <= cast(coalesce(nullif(:days, ''), 7) as integer)

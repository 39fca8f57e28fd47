-- How much the agent will delete
-- Number and size of the files that an agent is due to delete within :days (default 7), and of
-- those that only this database still has; and which agents delete files at all.
-- Group: database
select
    sum(r.is_gone = 0) as due_files,
    sum(iif(r.is_gone = 0, r.size, 0)) as due_size,
    sum(r.is_gone) as gone_files,
    sum(iif(r.is_gone = 1, r.size, 0)) as gone_size,
    (
        select group_concat(label, ', ')
        from (select distinct label from sources where retention_days is not null order by label) l
    ) as agents
from retention r
where r.is_gone = 1
   or r.days_left <= cast(coalesce(nullif(:days, ''), '7') as integer)

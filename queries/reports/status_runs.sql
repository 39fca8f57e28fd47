-- Sync runs
-- The newest :limit runs (default 20); one without an end is running, or was cut off.
-- Group: database
select
    started_at,
    finished_at,
    files_read,
    bytes_read,
    rows,
    issues,
    error,
    id
from sync_runs
order by id desc
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

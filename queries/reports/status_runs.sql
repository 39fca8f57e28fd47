-- Sync runs
-- The newest :limit runs (default 20). A run without an end is still running or was interrupted.
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
limit cast(coalesce(nullif(:limit, ''), '20') as integer)

-- Projects whose directory is not on this machine
-- The rows of the view orphaned_projects, the newest activity first.
-- Group: sessions
select
    name,
    path,
    last_activity_at,
    session_count,
    source,
    id
from orphaned_projects
order by last_activity_at desc, id

-- Projects whose directory is not on this machine
-- What the view orphaned_projects shows, the newest activity first.
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

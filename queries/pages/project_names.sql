-- Projects as they can be named
-- What :project of other queries is chosen from: an id, a path, a name, or the name of the directory
-- under projects/. The newest activity comes first.
select
    name,
    path,
    key,
    id,
    parent_id,
    same_as,
    (select r.kind from sources r where r.id = projects.source_id) as source
from projects
order by last_activity_at desc, id

-- Projects that :project can mean
-- By name, by a part of the path, or by the name of the directory under projects/.
select
    name,
    path,
    key,
    id
from projects
where key = lower(:project)
   or lower(name) = lower(:project)
   or instr(lower(path), lower(:project))
order by last_activity_at desc

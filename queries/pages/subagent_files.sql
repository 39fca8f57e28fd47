-- Files of a subagent
-- The files that hold its messages, in the order in which they are read.
select f.path, f.id
from files f
where f.id in (select m.file_id from messages m where m.subagent_id = :subagent)
order by f.id

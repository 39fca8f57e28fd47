-- Documents with the name of a file
-- The paths below their roots that end with the file name :name, to tell them apart.
select distinct i.path
from documents i
where i.path = :name
   or substr(i.path, -length(:name) - 1) = '/' || :name
order by i.path
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

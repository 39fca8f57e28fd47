-- The files of the prompt history
-- In the order in which references number them.
select r.root, f.path, f.id
from files f
join sources r on r.id = f.source_id
where exists (
    select 1
    from prompts p
    where p.file_id = f.id
  )
order by r.root, f.path, f.generation

-- Projects of one directory
-- Several agents or homes may know the directory of the project :id: theirs, and its own. The one
-- that stands for all comes first.
select o.id, coalesce(r.label, r.kind) as agent
from projects p
join projects o on coalesce(o.same_as, o.id) = coalesce(p.same_as, p.id)
join sources r on r.id = o.source_id
where p.id = :id
order by o.same_as is not null, agent, o.id

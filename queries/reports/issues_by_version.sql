-- Issues by version
-- What could not be read, or was stored incompletely, by the program that wrote it: source, kind of
-- file, version and reason. What is new with a version has probably changed in it.
-- Group: database
select
    r.kind as source,
    f.kind,
    coalesce((
        select c.value
        from contexts c
        where c.file_id = i.file_id and c.name = 'agent_version' and c.byte_offset <= i.byte_offset
        order by c.byte_offset desc
        limit 1
    ), x.agent_version) as version,
    i.reason,
    count(*) as pieces,
    sum(i.quarantined) as quarantined,
    count(distinct i.file_id) as files,
    min(r.root || '/' || f.path) as example
from issues i
join files f on f.id = i.file_id
join sources r on r.id = f.source_id
left join sessions x on x.id = f.session_id
group by 1, 2, 3, 4
order by source, f.kind, version, pieces desc, i.reason

-- Types of lines that are new
-- How many lines there are of the types in :unknown, a JSON list of [source, type, subtype], by the
-- version of the agent that wrote the first of them in each file.
select
    n.source,
    n.label,
    n.type,
    n.subtype,
    sum(n.lines) as lines,
    n.version
from (
    select
        r.kind as source,
        coalesce(r.label, r.kind) as label,
        l.type,
        l.subtype,
        l.count as lines,
        coalesce((
            select c.value
            from contexts c
            where c.file_id = l.file_id
              and c.name = 'agent_version'
              and c.byte_offset <= l.first_offset
            order by c.byte_offset desc
            limit 1
        ), (
            select c.value
            from contexts c
            where c.file_id = l.file_id and c.name = 'agent_version'
            order by c.byte_offset
            limit 1
        ), x.agent_version) as version
    from json_each(coalesce(nullif(:unknown, ''), '[]')) u
    join sources r on r.kind = u.value ->> 0
    join files f on f.source_id = r.id
    join line_types l on l.file_id = f.id
        and l.type = u.value ->> 1 and l.subtype = u.value ->> 2 and l.first_offset is not null
    left join transcripts x on x.file_id = f.id
) n
group by n.source, n.label, n.type, n.subtype, n.version
order by n.source, n.type, n.subtype, n.version

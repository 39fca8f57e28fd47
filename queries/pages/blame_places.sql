-- Files and subagents that evidence names
-- For each [file, byte_offset, subagent] of the JSON array :places the path of the file, the type of
-- the subagent, the branch there, and the texts of the line.
select
    json_extract(x.value, '$[0]') as file_id,
    json_extract(x.value, '$[1]') as byte_offset,
    r.root || '/' || f.path as file,
    coalesce(a.agent_type, a.agent_key) as subagent,
    (
        select group_concat(coalesce(m.text, m.tool_text), char(10))
        from messages m
        where m.file_id = f.id
          and m.byte_offset = json_extract(x.value, '$[1]')
    ) as texts,
    (
        select c.value
        from contexts c
        where c.file_id = f.id
          and c.name = 'git_branch'
          and c.byte_offset <= json_extract(x.value, '$[1]')
        order by c.byte_offset desc
        limit 1
    ) as branch
from json_each(coalesce(nullif(:places, ''), '[]')) x
cross join files f on f.id = json_extract(x.value, '$[0]')
cross join sources r on r.id = f.source_id
left join subagents a on a.id = json_extract(x.value, '$[2]')

-- What messages can be limited to
-- For each message of the JSON array :ids its role, its model and the branch on which it was said.
select
    m.id,
    m.role,
    m.model,
    nullif(coalesce((
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc
        limit 1
    ), s.git_branch), '') as branch
from json_each(coalesce(nullif(:ids, ''), '[]')) j
cross join messages m on m.id = j.value
left join sessions s on s.id = m.session_id

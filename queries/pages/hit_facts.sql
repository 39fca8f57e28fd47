-- What hits can be limited to
-- For each [what, id] of the JSON array :places, its project, and of a message its role, its model
-- and the branch on which it was said.
select
    x.what,
    x.id,
    case x.what
        when 'document' then coalesce(
            (select d.project_id from documents d where d.id = x.id), s.project_id
        )
        when 'prompt' then coalesce(
            (select t.project_id from prompts t where t.id = x.id), s.project_id
        )
        else s.project_id
    end as project_id,
    m.role,
    m.model,
    (
        select nullif(c.value, '')
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc
        limit 1
    ) as branch
from (
    select json_extract(value, '$[0]') as what, json_extract(value, '$[1]') as id
    from json_each(coalesce(nullif(:places, ''), '[]'))
) x
left join messages m on x.what = 'message' and m.id = x.id
left join sessions s on s.id = case x.what
    when 'message' then m.session_id
    when 'session' then x.id
    when 'inbox' then (
        select coalesce(i.session_id, t.lead_session_id)
        from inbox_items i
        left join teams t on t.id = i.team_id
        where i.id = x.id
    )
    when 'task' then (select i.session_id from tasks i where i.id = x.id)
    when 'todo' then (select i.session_id from todos i where i.id = x.id)
    when 'plan' then (select i.session_id from plans i where i.id = x.id)
    when 'document' then (select i.session_id from documents i where i.id = x.id)
    when 'prompt' then (select i.session_id from prompts i where i.id = x.id)
    when 'tool_result_file' then (
        select i.session_id from tool_result_files i where i.id = x.id
    )
end

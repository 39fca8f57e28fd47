-- What a hit shows
-- For each [what, id] of the JSON array :places, the whole text of the row, the file and the offset
-- of the line that holds it, and of a message where it was said.
select
    x.what,
    x.id,
    case x.what
        when 'message' then coalesce(m.text, m.tool_text)
        when 'session' then s.title
        when 'inbox' then (
            select trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10))
            from inbox_items i
            where i.id = x.id
        )
        when 'task' then (
            select trim(coalesce(i.subject, '') || char(10) || coalesce(i.description, ''), char(10))
            from tasks i
            where i.id = x.id
        )
        when 'todo' then (select i.content from todos i where i.id = x.id)
        when 'plan' then (select i.text from plans i where i.id = x.id)
        when 'document' then (
            select trim(coalesce(i.title, '') || char(10) || i.text, char(10))
            from documents i
            where i.id = x.id
        )
        when 'prompt' then (
            select trim(i.text || char(10) || coalesce(i.pasted, ''), char(10))
            from prompts i
            where i.id = x.id
        )
        when 'tool_result_file' then (select i.text from tool_result_files i where i.id = x.id)
    end as text,
    m.model,
    coalesce((
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ), s.git_branch) as branch,
    s.cwd,
    s.kind as session_kind,
    exists (
        select 1
        from files t
        where t.session_id = s.id and t.kind = 'transcript' and t.gone_at is null
    ) as has_transcript,
    m.file_id,
    a.agent_key
from (
    select
        json_extract(value, '$[0]') as what,
        json_extract(value, '$[1]') as id,
        json_extract(value, '$[2]') as session_key,
        json_extract(value, '$[3]') as source
    from json_each(coalesce(nullif(:places, ''), '[]'))
) x
left join messages m on x.what = 'message' and m.id = x.id
left join files f on f.id = m.file_id
left join subagents a on a.id = f.subagent_id
left join sessions s on s.id = (
    select o.id
    from sessions o
    join sources r on r.id = o.source_id
    where o.session_key = x.session_key
      and r.kind = x.source
    order by o.id
    limit 1
)

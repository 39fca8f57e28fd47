-- What a hit shows
-- For each [what, id, session_key, source] of the JSON array :places what its conversation is, and of
-- a message where it was said. The whole text is that of a message or a title; that of other entries
-- is in pages/entry.
select
    x.what,
    x.id,
    case x.what
        when 'message' then coalesce(m.text, m.tool_text)
        when 'session' then s.title
    end as text,
    m.model,
    coalesce((
        select c.value
        from contexts c
        where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
        order by c.byte_offset desc limit 1
    ), s.git_branch) as branch,
    s.cwd,
    (select p.path from projects p where p.id = s.project_id) as project_path,
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

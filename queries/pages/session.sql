-- One session
-- Everything known of the session with the key :session_key. The same conversation in two homes
-- gives two rows, the fuller one first.
select
    s.title,
    s.title_source,
    p.name as project,
    p.path as project_path,
    s.started_at,
    s.ended_at,
    s.message_count,
    s.prompt_count,
    s.tool_call_count,
    s.input_tokens,
    s.output_tokens,
    s.cache_read_tokens,
    s.cache_write_tokens,
    s.stated_cost_usd,
    s.models,
    s.git_branch,
    s.cwd,
    s.agent_version,
    s.kind,
    s.permission_mode,
    a.name as agent,
    o.session_key as forked_from,
    l.session_key as linked_session,
    (
        select i.url
        from links i
        where i.session_id = s.id and i.kind = 'continued_in'
        order by i.byte_offset desc
        limit 1
    ) as continued_in,
    (
        select c.session_key
        from links i
        join sessions c on c.id = i.session_id
        where i.url = s.session_key and i.kind = 'continued_in' and c.source_id = s.source_id
        order by c.session_key
        limit 1
    ) as continues,
    (
        select group_concat(distinct i.url)
        from links i
        where i.session_id = s.id and i.kind = 'derived_from'
    ) as derived_from,
    (
        select nullif(x.tag, '')
        from files f
        join transcripts x on x.file_id = f.id
        where f.session_id = s.id and f.kind = 'transcript' and x.tag is not null
        order by f.gone_at is not null, x.ended_at desc, f.path
        limit 1
    ) as tag,
    r.kind as source,
    coalesce(r.label, r.kind) as label,
    r.root,
    s.session_key,
    s.id
from sessions s
join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
left join agents a on a.id = s.agent_id
left join sessions o on o.id = s.forked_from
left join sessions l on l.id = s.linked_session_id
where s.session_key = :session_key
order by s.message_count desc, s.id

-- Search the smaller stores for Chinese, Japanese or Korean letters
-- Inbox items, tasks, todos, plans, documents, prompts and large tool outputs that fit all LIKE
-- patterns of the JSON array :patterns, newest first. :scope is said or tools.
select
    i.what,
    i.kind,
    substr(i.text, 1, 4000) as text,
    s.title as session,
    p.name as project,
    null as subagent,
    null as tool,
    coalesce(i.timestamp, f.mtime) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    i.byte_offset,
    iif(:literal is null, 0, instr(lower(i.text), :literal) > 0) as verbatim,
    i.id,
    null as rank
from (
    select
        'inbox' as what, i.kind as kind, i.text || ' ' || coalesce(i.summary, '') as text, i.timestamp as timestamp, i.byte_offset as byte_offset,
        i.id, coalesce(i.session_id, t.lead_session_id) as session_id, null as project_id, i.file_id as file_id
    from inbox_items i
    left join teams t on t.id = i.team_id
    where i.channel = 'inbox'
    union all
    select
        'task' as what, i.status as kind, coalesce(i.subject, '') || ' ' || coalesce(i.description, '') as text, i.stated_at as timestamp, i.byte_offset as byte_offset,
        i.id, i.session_id as session_id, null as project_id, i.file_id as file_id
    from tasks i
    where i.gone_at is null or not exists (
        select 1
        from tasks o
        where o.source_id = i.source_id and o.list_key = i.list_key and o.task_key = i.task_key and o.channel = 'transcript'
    )
    union all
    select
        'todo' as what, i.status as kind, i.content as text, i.stated_at as timestamp, i.byte_offset as byte_offset,
        i.id, i.session_id as session_id, null as project_id, i.file_id as file_id
    from todos i
    where i.gone_at is null or not exists (
        select 1
        from todos o
        where o.session_key = i.session_key and o.agent_key is i.agent_key and o.content is i.content and o.channel = 'transcript'
    )
    union all
    select
        'plan' as what, i.status as kind, i.text as text, i.modified_at as timestamp, i.byte_offset as byte_offset,
        i.id, i.session_id as session_id, null as project_id, i.file_id as file_id
    from plans i
    union all
    select
        'document' as what, i.kind as kind, coalesce(i.title, '') || ' ' || i.text as text, i.modified_at as timestamp, 0 as byte_offset,
        i.id, i.session_id as session_id, i.project_id as project_id, i.file_id as file_id
    from documents i
    union all
    select
        'prompt' as what, null as kind, i.text || ' ' || coalesce(i.pasted, '') as text, i.timestamp as timestamp, i.byte_offset as byte_offset,
        i.id, i.session_id as session_id, i.project_id as project_id, i.file_id as file_id
    from prompts i
    left join sessions s on s.id = i.session_id
    where coalesce(s.message_count, 0) = 0
    union all
    select
        'tool_result_file' as what, i.media_type as kind, i.text as text, null as timestamp, 0 as byte_offset,
        i.id, i.session_id as session_id, null as project_id, i.file_id as file_id
    from tool_result_files i
) i
cross join files f on f.id = i.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = coalesce(i.project_id, s.project_id)
where (i.what = 'tool_result_file') = (coalesce(:scope, 'said') = 'tools')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in (i.what))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or coalesce(i.timestamp, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(i.timestamp, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:without, ''), '[]')) l
    where coalesce(i.text, '') like l.value escape '~'
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:patterns, ''), '[]')) l
    where coalesce(i.text, '') not like l.value escape '~'
  )
order by coalesce(i.timestamp, f.mtime) desc, i.what, i.id
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- Search what is no message
-- Entries of the store :what (note, inbox, task, todo, plan, document, prompt or tool_result_file)
-- that match an FTS5 expression, best first. What is found elsewhere is left out: messages that are also in
-- a transcript, prompts whose conversation is indexed, and tasks and todos that are gone but recorded
-- in a transcript. The columns are those of `searchable`, reached by the index.
with found as (
    select
        'inbox' as what, i.id, inbox_items_fts.rank, i.kind,
        trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10)) as words,
        i.timestamp, i.byte_offset, i.file_id,
        coalesce(i.session_id, (select m.lead_session_id from teams m where m.id = i.team_id)) as session_id,
        null as project_id, null as source_id, null as tool_use_id
    from inbox_items_fts
    -- A cross join is never reordered: the index comes first, else every entry would be visited.
    cross join inbox_items i on i.id = inbox_items_fts.rowid
    where :what = 'inbox'
      and inbox_items_fts match coalesce(nullif(:match, ''), '""')
      and i.channel = 'inbox'
    union all
    select
        'task', t.id, tasks_fts.rank, t.status,
        trim(coalesce(t.subject, '') || char(10) || coalesce(t.description, ''), char(10)),
        t.stated_at, t.byte_offset, t.file_id, t.session_id, null, t.source_id, null
    from tasks_fts
    cross join tasks t on t.id = tasks_fts.rowid
    where :what = 'task'
      and tasks_fts match coalesce(nullif(:match, ''), '""')
      and not (
        t.gone_at is not null
        and exists (
            select 1
            from tasks o
            where o.source_id = t.source_id
              and o.list_key = t.list_key
              and o.task_key = t.task_key
              and o.channel = 'transcript'
        )
      )
    union all
    select
        'todo', t.id, todos_fts.rank, t.status, t.content,
        t.stated_at, t.byte_offset, t.file_id, t.session_id, null, null, null
    from todos_fts
    cross join todos t on t.id = todos_fts.rowid
    where :what = 'todo'
      and todos_fts match coalesce(nullif(:match, ''), '""')
      and not (
        t.gone_at is not null
        and exists (
            select 1
            from todos o
            where o.session_key = t.session_key
              and o.agent_key is t.agent_key
              and o.content is t.content
              and o.channel = 'transcript'
        )
      )
    union all
    select
        'plan', p.id, plans_fts.rank, p.status, p.text,
        p.modified_at, p.byte_offset, p.file_id, p.session_id, null, null, null
    from plans_fts
    cross join plans p on p.id = plans_fts.rowid
    where :what = 'plan'
      and plans_fts match coalesce(nullif(:match, ''), '""')
    union all
    select
        'document', d.id, documents_fts.rank, d.kind,
        trim(coalesce(d.title, '') || char(10) || d.text, char(10)),
        d.modified_at, 0, d.file_id, d.session_id, d.project_id, null, null
    from documents_fts
    cross join documents d on d.id = documents_fts.rowid
    where :what = 'document'
      and documents_fts match coalesce(nullif(:match, ''), '""')
    union all
    select
        'prompt', p.id, prompts_fts.rank, null,
        trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)),
        p.timestamp, p.byte_offset, p.file_id, p.session_id, p.project_id, null, null
    from prompts_fts
    cross join prompts p on p.id = prompts_fts.rowid
    left join sessions s on s.id = p.session_id
    where :what = 'prompt'
      and prompts_fts match coalesce(nullif(:match, ''), '""')
      and coalesce(s.message_count, 0) = 0
    union all
    select
        'tool_result_file', o.id, tool_result_files_fts.rank, o.media_type, o.text,
        (select f.mtime from files f where f.id = o.file_id), 0,
        o.file_id, o.session_id, null, null, o.tool_use_id
    from tool_result_files_fts
    cross join tool_result_files o on o.id = tool_result_files_fts.rowid
    where :what = 'tool_result_file'
      and tool_result_files_fts match coalesce(nullif(:match, ''), '""')
    union all
    select
        'note', n.id, notes_fts.rank, n.verdict, n.text, n.noted_at, null, null,
        (select o.session_id from notes_full o where o.id = n.id),
        (select o.project_id from notes_full o where o.id = n.id), null, null
    from notes_fts
    cross join notes n on n.id = notes_fts.rowid
    where :what = 'note'
      and notes_fts match coalesce(nullif(:match, ''), '""')
)
select
    e.what,
    e.kind,
    -- A tool's output may be long: only what is shown of it is read.
    iif(e.what = 'tool_result_file', null, substr(e.words, 1, 4000)) as text,
    s.title as session,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    null as subagent,
    null as tool,
    coalesce(e.timestamp, s.started_at, f.mtime) as timestamp,
    r.kind as source,
    s.session_key,
    coalesce(r.root || '/' || f.path, (select n.path from notes n where e.what = 'note' and n.id = e.id)) as file,
    e.byte_offset,
    iif(:literal is null, 0, instr(lower(e.words), :literal) > 0) as verbatim,
    e.id,
    e.rank
from found e
left join files f on f.id = e.file_id
left join sessions s on s.id = e.session_id
left join sources r on r.id = coalesce(e.source_id, f.source_id, s.source_id)
left join projects p on p.id = coalesce(e.project_id, s.project_id)
where (
    coalesce(:kind, '') = ''
    or exists (
        select 1
        from json_each(:kind) k
        where k.value = e.what
           or (e.what in ('inbox', 'document') and k.value = e.kind)
    )
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or coalesce(e.timestamp, s.started_at, f.mtime) >= :since)
  and (coalesce(:until, '') = '' or coalesce(e.timestamp, s.started_at, f.mtime) < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:tool, '') = ''
    or exists (
        select 1
        from tool_calls t
        where t.tool_use_id = e.tool_use_id and lower(t.name) = lower(:tool)
    )
  )
order by e.rank
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

-- What is no message, in one shape, and how conversations ended.

create view searchable as -- Tasks, todos, plans, messages between agents, documents, prompts and large tool outputs, as search and show see them
select
    e.what,                             -- task, todo, plan, inbox, document, prompt or tool_result_file
    e.kind,                             -- tells those of one store apart: a status, a type
    e.title,                            -- null where there is none
    e.text,                             -- without the title
    e.words,                            -- what is searched: both
    e.facts,                            -- whose it is, or between whom
    e.timestamp,                        -- when it was said or last changed, where that is known
    e.gone_at,                          -- since when its file or its list lacks it
    e.head,                             -- first part of the name by which show opens it; null: its line is its name
    e.tail,                             -- second part, where there is one
    e.position,                         -- place among those of the same head
    e.is_repeated,                      -- 1: what it says is found elsewhere, so search leaves it out
    e.channel,                          -- file, inbox, or transcript: a line of one states it
    s.title as session,                 -- title of its session
    s.session_key,
    r.kind as source,                   -- the system that wrote it
    coalesce(e.project_id, s.project_id) as project_id, -- of its own or of its session
    e.session_id, e.source_id,
    e.file_id,                          -- file that says it
    e.byte_offset,                      -- first byte of its line; 0 in a file of its own
    e.id                                -- number of its row in the table of its store
from (
    select
        'task' as what,
        t.status as kind,
        t.subject as title,
        t.description as text,
        trim(coalesce(t.subject, '') || char(10) || coalesce(t.description, ''), char(10)) as words,
        t.owner as facts,
        t.stated_at as timestamp,
        t.gone_at,
        t.list_key as head,
        t.task_key as tail,
        coalesce(t.task_number, 9223372036854775807) as position,
        t.gone_at is not null and exists (
            select 1
            from tasks o
            where o.source_id = t.source_id
              and o.list_key = t.list_key
              and o.task_key = t.task_key
              and o.channel = 'transcript'
        ) as is_repeated,
        t.channel,
        t.session_id,
        null as project_id,
        t.source_id,
        t.file_id,
        t.byte_offset,
        t.id
    from tasks t
    union all
    select
        'todo', t.status, null, t.content, t.content, nullif(t.agent_key, t.session_key), t.stated_at, t.gone_at,
        coalesce(t.session_key, (select f.path from files f where f.id = t.file_id)), null,
        t.position,
        t.gone_at is not null and exists (
            select 1
            from todos o
            where o.session_key = t.session_key
              and o.agent_key is t.agent_key
              and o.content is t.content
              and o.channel = 'transcript'
        ),
        t.channel, t.session_id, null, (select f.source_id from files f where f.id = t.file_id),
        t.file_id, t.byte_offset, t.id
    from todos t
    union all
    select
        'plan', p.status, p.title, p.text, p.text, null, p.modified_at,
        (select f.gone_at from files f where f.id = p.file_id),
        nullif(p.name, ''), null,
        0,
        0,
        p.channel, p.session_id, null, (select f.source_id from files f where f.id = p.file_id),
        p.file_id, p.byte_offset, p.id
    from plans p
    union all
    select
        'inbox', i.kind, i.summary, i.text,
        trim(coalesce(i.text, '') || char(10) || coalesce(i.summary, ''), char(10)),
        coalesce(i.sender, '?') || ' → ' || coalesce(i.recipient, '?'), i.timestamp, i.gone_at,
        (select coalesce(f.team_key, f.path) from files f where f.id = i.file_id) || '/' || coalesce(i.recipient, ''),
        -- its place among those of the inbox, by the index that keeps them apart
        (
            select count(*)
            from inbox_items o
            where o.file_id = i.file_id
              and o.byte_offset = i.byte_offset
              and (coalesce(o.timestamp, ''), coalesce(o.sender, ''), coalesce(o.text_hash, ''), o.ordinal)
                <= (coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal)
        ),
        0,
        i.channel <> 'inbox',
        i.channel,
        coalesce(i.session_id, (select m.lead_session_id from teams m where m.id = i.team_id)), null,
        (select f.source_id from files f where f.id = i.file_id),
        i.file_id, i.byte_offset, i.id
    from inbox_items i
    union all
    select
        'document', d.kind, d.title, d.text,
        trim(coalesce(d.title, '') || char(10) || d.text, char(10)), null, d.modified_at, d.gone_at,
        d.path, nullif(d.ordinal, 0),
        d.ordinal,
        0,
        'file', d.session_id, d.project_id, (select f.source_id from files f where f.id = d.file_id),
        d.file_id, 0, d.id
    from documents d
    union all
    select
        'prompt', null, null,
        trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)),
        trim(p.text || char(10) || coalesce(p.pasted, ''), char(10)), p.project_path, p.timestamp,
        (select f.gone_at from files f where f.id = p.file_id),
        null, null,
        0,
        coalesce((select s.message_count from sessions s where s.id = p.session_id), 0) > 0,
        'file', p.session_id, p.project_id, (select f.source_id from files f where f.id = p.file_id),
        p.file_id, p.byte_offset, p.id
    from prompts p
    union all
    select
        'tool_result_file', o.media_type, null, o.text, o.text, null,
        (select f.mtime from files f where f.id = o.file_id),
        (select f.gone_at from files f where f.id = o.file_id),
        coalesce(o.session_key, o.name), iif(o.session_key is null, null, o.name),
        0,
        0,
        'file', o.session_id, null, (select f.source_id from files f where f.id = o.file_id),
        o.file_id, 0, o.id
    from tool_result_files o
) e
left join sources r on r.id = e.source_id
left join sessions s on s.id = e.session_id;

create view session_ends as -- How conversations ended: with a finished turn, or not
select
    s.id as session_id,                 -- the conversation
    case coalesce((
        -- What stands behind the last turn, as hooks and notices, is not part of it.
        select m.kind
        from messages m
        where m.file_id = (
            select f.id
            from files f
            where f.session_id = s.id and f.kind = 'transcript' and f.subagent_id is null
            order by f.gone_at is not null, f.mtime desc, f.id desc
            limit 1
        )
          and m.subagent_id is null
          and m.kind in (
              'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
          )
        order by m.byte_offset desc, m.block desc
        limit 1
    ), 'text')
        when 'text' then null
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'in the middle of a turn'
    end as state,                       -- ended with an error, interrupted, or in the middle of a turn; null: the last turn was finished
    s.ended_at as last_at,              -- when its last line was written
    s.session_key,
    (select r.kind from sources r where r.id = s.source_id) as source -- the system that wrote it
from sessions s
where s.kind in ('main', 'background')
  and s.message_count > 0;

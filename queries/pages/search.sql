-- What a search shows of its hits

-- name: hits
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

-- name: hit_facts
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

-- name: first_prompts
-- What conversations are about
-- Of each session of the JSON array :keys, its title, if one was given to it, and its first prompts.
select
    s.session_key,
    iif(s.title_source in ('prompt', 'history', 'id'), null, s.title) as title,
    (
        select group_concat(x.text, char(10))
        from (
            select substr(m.text, 1, 2000) as text
            from messages m
            where m.session_id = s.id
              and m.kind = 'prompt'
              and m.subagent_id is null
            order by m.id
            limit 2
        ) x
    ) as prompts
from json_each(coalesce(nullif(:keys, ''), '[]')) k
cross join sessions s on s.session_key = k.value

-- name: asking
-- Conversations that may be the one that asks
-- The one with the key :session_key, and those in the directory :cwd in which something happened since
-- :since.
select s.session_key
from sessions s
left join projects p on p.id = s.project_id
where s.session_key = :session_key
   or (s.ended_at >= :since and coalesce(s.cwd, p.path) = :cwd)

-- name: session_find
-- Find in one conversation
-- Places in the files of the conversation :session, its subagents included, whose texts match an
-- FTS5 expression, in the order of each file. What repeats a text of the conversation is left out.
-- Without :match, all texts with Chinese, Japanese or Korean letters are looked at. :cjk, :letters,
-- :line_starts and :without are what `search/messages` takes for them, and so are the filters.
with own as materialized (
    -- The index of places has all that is needed: no message is read.
    select m.id, m.file_id, m.byte_offset, m.block
    from files f
    cross join messages m on m.file_id = f.id
    where f.session_id = :session
),
found as materialized (
    select messages_fts.rowid as id
    from messages_fts
    where messages_fts match coalesce(nullif(:match, ''), '""')
      and messages_fts.rowid between (select min(o.id) from own o) and (select max(o.id) from own o)
    union all
    select h.id
    from messages h
    where coalesce(:match, '') = ''
      and h.has_cjk = 1
      and h.id between (select min(o.id) from own o) and (select max(o.id) from own o)
)
select 'message' as what, m.kind, o.file_id, o.byte_offset, o.block, o.id
from own o
cross join messages m on m.id = o.id
cross join files f on f.id = o.file_id
cross join sources r on r.id = f.source_id
cross join sessions s on s.id = :session
where o.id in (select f.id from found f)
  and o.id not in (
    select c.id
    from messages c
    join messages first on first.id = c.copy_of and first.session_id = c.session_id
    where c.session_id = :session and c.copy_of is not null
  )
  -- A text of the queue in a fork, which was delivered there: the original is in another conversation.
  and (
    m.copy_of is null
    or m.uuid is not null
    or not exists (
        select 1
        from messages d
        where d.copy_of = m.copy_of and d.session_id = :session and d.uuid is not null
    )
  )
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('message', m.kind))
  )
  and coalesce(:session_key, '') in ('', s.session_key)
  and coalesce(:model, '') in ('', m.model)
  and coalesce(:role, '') in ('', m.role)
  and coalesce(:source, '') in ('', r.kind)
  and coalesce(:branch, '') in ('', (select c.git_branch from conversation c where c.id = m.id))
  and (coalesce(:since, '') = '' or coalesce(m.timestamp, s.started_at) >= :since)
  and (coalesce(:until, '') = '' or coalesce(m.timestamp, s.started_at) < :until)
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
  and (
    coalesce(:tool, '') = ''
    or exists (
        select 1
        from tool_calls t
        where (t.call_id = m.id or t.result_id = m.id) and lower(t.name) = lower(:tool)
    )
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:without, ''), '[]')) l
    where coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text) like l.value escape '~'
  )
  and (
    coalesce(:cjk, '') = ''
    or m.id in (select rowid from messages_cjk_fts where messages_cjk_fts match :cjk)
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:letters, ''), '[]')) l
    where coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text)
        not like l.value escape '~'
  )
  and (
    coalesce(:line_starts, '') = ''
    or exists (
        select 1
        from json_each(:line_starts) l
        where coalesce(m.joined_tool_text, m.tool_text) like l.value escape '~'
    )
  )
limit cast(coalesce(nullif(:limit, ''), 20000) as integer)

-- name: message_text
-- The text of one message
-- Whole, whichever of the two columns holds it, and the line that it comes from.
select
    coalesce(m.text, m.tool_text) as text,
    f.path,
    m.is_cut,
    m.byte_offset,
    m.byte_length,
    m.block,
    m.file_id
from messages m
join files f on f.id = m.file_id
where m.id = :id

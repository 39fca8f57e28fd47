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

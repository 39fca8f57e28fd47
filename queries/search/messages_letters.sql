-- Search conversations for one or two Chinese, Japanese or Korean letters
-- Messages that match all LIKE patterns of the JSON array :letters, newest first. No index finds
-- fewer than three letters, so all rows with such letters are compared. :scope is said or tools.
select
    'message' as what,
    m.kind,
    null as text, -- it may be long: only what is shown is read
    s.title as session,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    a.agent_type as subagent,
    (
        select min(t.name)
        from tool_calls t
        where t.call_id = m.id or t.result_id = m.id
    ) as tool,
    coalesce(m.timestamp, s.started_at) as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || f.path as file,
    m.byte_offset,
    iif(
        :literal is null, 0,
        instr(lower(coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text)), :literal)
        or instr(lower(coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text)), :escaped)
    ) as verbatim,
    m.id,
    null as rank
-- scans messages: only the rows with such letters, by their own index.
from messages m
cross join files f on f.id = m.file_id
cross join sources r on r.id = f.source_id
left join sessions s on s.id = m.session_id
left join projects p on p.id = s.project_id
left join subagents a on a.id = m.subagent_id
where m.has_cjk = 1
  and m.copy_of is null
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('message', m.kind))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:model, '') in ('', m.model)
  and coalesce(:role, '') in ('', m.role)
  and coalesce(:source, '') in ('', r.kind)
  -- Where it was said: a session may change its branch on the way.
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
  and not exists (
    select 1
    from json_each(coalesce(nullif(:letters, ''), '[]')) l
    where coalesce(
        iif(
            :scope = 'tools',
            coalesce(m.joined_tool_text, m.tool_text),
            coalesce(m.joined_text, m.text)
        ), ''
    ) not like l.value escape '~'
  )
order by timestamp desc, m.id desc
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

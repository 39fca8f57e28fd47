-- Count the hits of a search
-- How many of the newest :limit messages that match an FTS5 expression have each kind, project,
-- source, model, role, branch and month. The row of the facet "all" has their number.
with hits as materialized (
    select
        m.kind,
        p.name as project,
        r.kind as source,
        m.model,
        m.role,
        -- Where it was said: a session may change its branch on the way.
        (select c.git_branch from conversation c where c.id = m.id) as branch,
        substr(m.timestamp, 1, 7) as month
    from messages_fts
    -- A cross join is never reordered: the index comes first, else every message would be visited.
    cross join messages m on m.id = messages_fts.rowid
    cross join files f on f.id = m.file_id
    cross join sources r on r.id = f.source_id
    left join sessions s on s.id = m.session_id
    left join projects p on p.id = s.project_id
    where messages_fts match coalesce(nullif(:match, ''), '""')
      and m.copy_of is null
      and (
        coalesce(:kind, '') = ''
        or exists (select 1 from json_each(:kind) k where k.value in ('message', m.kind))
      )
      and coalesce(:session, '') in ('', s.session_key)
      and coalesce(:model, '') in ('', m.model)
      and coalesce(:role, '') in ('', m.role)
      and coalesce(:source, '') in ('', r.kind)
      and coalesce(:branch, '') in ('', branch)
      and (coalesce(:since, '') = '' or m.timestamp >= :since)
      and (coalesce(:until, '') = '' or m.timestamp < :until)
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
    order by messages_fts.rowid desc
    limit cast(coalesce(nullif(:limit, ''), 20000) as integer)
)
select 'all' as facet, null as value, count(*) as hits from hits
union all
select 'kind', kind, count(*) from hits group by kind
union all
select 'project', project, count(*) from hits where project is not null group by project
union all
select 'source', source, count(*) from hits group by source
union all
select 'model', model, count(*) from hits where model is not null group by model
union all
select 'role', role, count(*) from hits where role is not null group by role
union all
select 'branch', branch, count(*) from hits where branch <> '' group by branch
union all
select 'month', month, count(*) from hits where month is not null group by month

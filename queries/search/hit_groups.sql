-- Count the hits of a search in groups
-- Messages that match an FTS5 expression, or are among the JSON array :ids, in groups of one
-- conversation that agree in all that a search can be limited to: how many, when the newest was
-- said, and the ids of the newest and the oldest. Of very many, the newest :limit are counted.
-- With :apart, each message is a group; with the JSON array :among, no others are counted.
with hits as materialized (
    select
        m.id,
        m.session_id,
        f.source_id,
        m.kind,
        m.role,
        m.model,
        -- Where it was said: a session may change its branch on the way.
        nullif(coalesce((
            select c.value
            from contexts c
            where c.file_id = m.file_id and c.name = 'git_branch' and c.byte_offset <= m.byte_offset
            order by c.byte_offset desc
            limit 1
        ), s.git_branch), '') as branch,
        coalesce(m.timestamp, s.started_at) as timestamp
    from (
        -- The limit keeps the order: without it, SQLite would be free to drop both.
        select *
        from (
            select rowid as id
            from messages_fts
            where messages_fts match coalesce(nullif(:match, ''), '""')
            order by rowid desc
            limit -1
        )
        union all
        select value as id
        from json_each(coalesce(nullif(:ids, ''), '[]'))
    ) h
    -- A cross join is never reordered: the index comes first, else every message would be visited.
    cross join messages m on m.id = h.id
    cross join files f on f.id = m.file_id
    cross join sources r on r.id = f.source_id
    left join sessions s on s.id = m.session_id
    where m.copy_of is null
      and (
        coalesce(:among, '') = ''
        or h.id in (select value from json_each(:among))
      )
      and (
        coalesce(:kind, '') = ''
        or exists (select 1 from json_each(:kind) k where k.value in ('message', m.kind))
      )
      and coalesce(:session, '') in ('', s.session_key)
      and coalesce(:model, '') in ('', m.model)
      and coalesce(:role, '') in ('', m.role)
      and coalesce(:source, '') in ('', r.kind)
      and coalesce(:branch, '') in ('', branch)
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
      and (
        coalesce(:without, '') = ''
        or not exists (
            select 1
            from json_each(:without) l
            where coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text)
                like l.value escape '~'
        )
      )
      and (
        coalesce(:cjk, '') = ''
        or m.id in (select rowid from messages_cjk_fts where messages_cjk_fts match :cjk)
      )
      and (
        coalesce(:letters, '') in ('', '[]')
        or not exists (
            select 1
            from json_each(:letters) l
            where coalesce(m.joined_text, m.text, m.joined_tool_text, m.tool_text)
                not like l.value escape '~'
        )
      )
    limit cast(coalesce(nullif(:limit, ''), 30000) as integer)
),
counted as (
    select
        session_id,
        iif(session_id is null or coalesce(:apart, '') <> '', id, null) as apart,
        source_id,
        kind,
        role,
        model,
        branch,
        -- Local time matters only where a month begins or ends; it would be slow for all.
        iif(
            substr(timestamp, 9, 2) in ('01', '28', '29', '30', '31'),
            strftime('%Y-%m', timestamp, 'localtime'),
            substr(timestamp, 1, 7)
        ) as month,
        count(*) as hits,
        max(timestamp) as newest,
        max(id) as last_id,
        min(id) as first_id
    from hits
    group by 1, 2, 3, 4, 5, 6, 7, 8
)
select
    s.session_key,
    c.apart,
    r.kind as source,
    coalesce(p.same_as, p.id) as project_id,
    c.kind,
    c.role,
    c.model,
    c.branch,
    c.month,
    c.hits,
    c.newest,
    c.last_id,
    c.first_id
from counted c
join sources r on r.id = c.source_id
left join sessions s on s.id = c.session_id
left join projects p on p.id = s.project_id

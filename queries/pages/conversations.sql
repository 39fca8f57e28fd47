-- The list of conversations

-- name: conversation_values
-- What conversations can be narrowed to
-- The projects, repositories, models and sources of conversations, those of the newest first and :limit of each;
-- the id of a project is its key.
with shown as materialized (
    select s.project_id, s.source_id, s.models, s.ended_at
    from sessions s
    where s.kind in ('main', 'background')
      and s.message_count + s.copied_message_count > 0
),
found as (
    select 'project' as what, cast(s.project_id as text) as key, max(s.ended_at) as newest
    from shown s
    where s.project_id is not null
    group by s.project_id
    union all
    select 'repository', p.repository_name, max(s.ended_at)
    from shown s
    join projects p on p.id = s.project_id
    where p.repository_name is not null
    group by p.repository_name
    union all
    select 'model', m.value, max(s.ended_at)
    from shown s
    join json_each(s.models) m on true
    group by m.value
    union all
    select 'source', r.kind, max(s.ended_at)
    from shown s
    join sources r on r.id = s.source_id
    group by r.kind
),
ranked as (
    select
        f.what,
        f.key,
        f.newest,
        row_number() over (partition by f.what order by f.newest desc, f.key) as place
    from found f
)
select
    n.what,
    n.key,
    case n.what when 'project' then p.name else n.key end as text
from ranked n
left join projects p on n.what = 'project' and cast(p.id as text) = n.key
where n.place <= cast(coalesce(nullif(:limit, ''), 100) as integer)
order by n.what, n.place

-- name: days
-- Conversations of some days
-- How many conversations were active in each of the spans [since, until] of the JSON array :days;
-- one that lasted longer is counted in each of them.
with days as materialized (
    select
        json_extract(d.value, '$[0]') as since,
        json_extract(d.value, '$[1]') as until,
        d.key as place
    from json_each(nullif(:days, '')) d
),
recent as materialized (
    select s.started_at, s.ended_at
    from sessions s
    where s.kind in ('main', 'background')
      and not exists (
        select 1
        from sessions l
        where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
      )
      and s.message_count + s.copied_message_count > 0
      and s.ended_at >= (select min(since) from days)
)
select
    d.since,
    (
        select count(*)
        from recent r
        where r.ended_at >= d.since and r.started_at < d.until
    ) as conversations
from days d
order by d.place

-- name: newest_session
-- The newest activity
-- When the session that was active last ended, and how many conversations there are since :since.
select
    max(s.ended_at) as ended_at,
    sum(
        (coalesce(:since, '') = '' or s.ended_at >= :since)
        and s.message_count + s.copied_message_count > 0
    ) as sessions
from sessions s
where s.kind in ('main', 'background')
  and not exists (
    select 1
    from sessions l
    where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
  )

-- name: jump
-- Conversations to jump to
-- What the menu of Datasette 1.0 that opens with / offers: titles, projects, and the address of each
-- page below :address. Keys that would have to be written otherwise in an address are left out.
select
    'conversation' as type,
    s.title as label,
    p.name as description,
    :address || s.session_key as url,
    s.title || ' ' || coalesce(p.name, '') || ' ' || s.session_key as search_text,
    null as display_name
from sessions s
left join projects p on p.id = s.project_id
where s.session_key not glob '*[^0-9A-Za-z_-]*'

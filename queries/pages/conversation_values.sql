-- What conversations can be narrowed to
-- The projects, models and sources of conversations, those of the newest first and :limit of each;
-- the id of a project is its key.
with shown as materialized (
    select s.project_id, s.source_id, s.models, s.ended_at
    from sessions s
    where s.kind in ('main', 'background')
      and s.message_count + s.copied_message_count > 0
),
found as (
    select 'project' as what, s.project_id as key, max(s.ended_at) as newest
    from shown s
    where s.project_id is not null
    group by s.project_id
    union all
    select 'model', m.value, max(s.ended_at)
    from shown s
    join json_each(s.models) m
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
left join projects p on n.what = 'project' and p.id = n.key
where n.place <= cast(coalesce(nullif(:limit, ''), 100) as integer)
order by n.what, n.place

-- Conversations by what they are of
-- Those of the project, branch, model, source and times asked for, :limit of them after the first
-- :offset; total counts them all. :errors leaves those in which something failed, and :min_cost (in
-- dollars) those that cost as much. They are in the order of :sort: cost, messages, else the newest
-- first. A conversation that another program wrote down, too, is there once: see lists/sessions. Only
-- the order and the filter by cost add up responses, and only those of what was found.
with found as materialized (
    select s.id, s.ended_at, s.message_count
    from sessions s
    where s.kind in ('main', 'background')
      and s.message_count + s.copied_message_count > 0
      and not exists (
        select 1
        from sessions l
        join sources y on y.id = l.source_id
        where l.id = s.linked_session_id
          and l.message_count + l.copied_message_count > 0
          and (coalesce(:source, '') = '' or y.kind = :source)
      )
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
      and (
        coalesce(:branch, '') = ''
        or s.git_branch = :branch
        or exists (
            select 1
            from files f
            join contexts c on c.file_id = f.id
            where f.session_id = s.id and c.name = 'git_branch' and c.value = :branch
        )
      )
      and (
        coalesce(:model, '') = ''
        or exists (select 1 from json_each(s.models) m where m.value = :model)
      )
      and (
        coalesce(:status, '') = ''
        or exists (
            select 1
            from session_ends e
            where e.session_id = s.id
              and coalesce(e.state, 'finished') like '%' || :status || '%'
        )
      )
      and (
        coalesce(:errors, '') = ''
        or exists (select 1 from messages e where e.session_id = s.id and e.kind = 'error')
        or exists (select 1 from tool_calls c where c.session_id = s.id and c.status = 'error')
      )
      and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
      )
      and (coalesce(:since, '') = '' or s.ended_at >= :since)
      and (coalesce(:until, '') = '' or s.started_at < :until)
),
costs as materialized (
    select f.id, sum(c.cost_microusd) as cost
    from found f
    cross join response_costs c on c.session_id = f.id
    where :sort = 'cost' or coalesce(:min_cost, '') <> ''
    group by f.id
),
chosen as (
    select
        f.id,
        count(*) over () as total,
        row_number() over (
            order by
                case :sort when 'cost' then c.cost when 'messages' then f.message_count end desc,
                f.ended_at desc,
                f.id desc
        ) as place
    from found f
    left join costs c on c.id = f.id
    where coalesce(:min_cost, '') = '' or c.cost >= :min_cost * 1000000
    order by place
    limit cast(coalesce(nullif(:limit, ''), 50) as integer)
    offset cast(coalesce(nullif(:offset, ''), 0) as integer)
)
select
    s.title,
    p.name as project,
    s.git_branch,
    s.ended_at,
    s.message_count,
    s.models,
    r.kind as source,
    coalesce(r.label, r.kind) || coalesce(
        ', '
        || (
            select group_concat(distinct coalesce(y.label, y.kind))
            from sessions l
            join sources y on y.id = l.source_id
            where l.linked_session_id = s.id and y.kind <> r.kind
        ),
        ''
    ) as agent,
    x.total,
    s.session_key,
    s.project_id,
    s.id
from chosen x
join sessions s on s.id = x.id
join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
order by x.place

-- Teams
-- Newest first, with the number of current members. Teams whose directory is gone are shown only
-- with :gone. With :cwd, only teams with a member who works in this directory, or all if there are
-- none.
select
    t.name,
    t.description,
    t.created_at,
    (
        select count(*)
        from team_members m
        where m.team_id = t.id and m.gone_at is null
    ) as member_count,
    (
        select count(*)
        from team_members m
        where m.team_id = t.id and m.gone_at is not null
    ) as gone_member_count,
    (
        select count(*)
        from inbox_items i
        where i.team_id = t.id and i.copy_of is null
    ) as item_count,
    s.title as session,
    p.name as project,
    t.gone_at,
    t.lead_session_key as session_key
from teams t
left join sessions s on s.id = t.lead_session_id
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or t.gone_at is null
    or (coalesce(:gone, '') <> '' and t.gone_at is not null)
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:cwd, '') = ''
    or t.id in (
        select team_id
        from team_members
        where gone_at is null
          and lower(rtrim(replace(cwd, '\', '/'), '/')) = lower(rtrim(replace(:cwd, '\', '/'), '/'))
    )
    or not exists (
        select 1
        from team_members
        where gone_at is null
          and lower(rtrim(replace(cwd, '\', '/'), '/')) = lower(rtrim(replace(:cwd, '\', '/'), '/'))
    )
  )
order by t.created_at desc, t.name, t.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

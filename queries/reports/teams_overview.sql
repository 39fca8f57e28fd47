-- Teams at a glance
-- The newest :limit teams, including those whose directory is gone, with the number of their
-- members, former members and messages.
-- Group: sessions
select
    t.name,
    t.created_at,
    t.gone_at,
    (
        select count(*)
        from team_members m
        where m.team_id = t.id and m.gone_at is null
    ) as members,
    (
        select count(*)
        from team_members m
        where m.team_id = t.id and m.gone_at is not null
    ) as gone_members,
    (
        select count(*)
        from inbox_items i
        where i.team_id = t.id and i.copy_of is null
    ) as messages,
    p.name as project,
    t.key,
    t.id
from teams t
left join sessions s on s.id = t.lead_session_id
left join projects p on p.id = s.project_id
order by t.created_at desc, t.name
limit cast(coalesce(nullif(:limit, ''), '20') as integer)

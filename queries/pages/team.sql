-- One team
-- What is known of a team, by :id or by the text :name, which is its name or its key.
select
    t.name,
    t.description,
    t.created_at,
    t.gone_at,
    s.title as session,
    s.session_key,
    p.name as project,
    r.root,
    t.key,
    s.project_id,
    t.id
from teams t
join sources r on r.id = t.source_id
left join sessions s on s.id = t.lead_session_id
left join projects p on p.id = s.project_id
where t.id = :id
   or (coalesce(:id, '') = '' and (lower(t.name) = lower(:name) or t.key = lower(:name)))
order by t.created_at desc, t.id

-- Agents
-- The named agents of applications, with their conversations. Agents that their configuration no
-- longer lists are shown only with :all.
select
    a.name,
    p.name as project,
    count(s.id) as sessions,
    max(s.ended_at) as last_activity,
    a.is_general,
    a.type,
    a.description,
    a.path,
    r.kind as source,
    a.gone_at,
    a.agent_key
from agents a
join sources r on r.id = a.source_id
left join projects p on p.id = a.project_id
left join sessions s on s.agent_id = a.id
where (coalesce(:all, '') <> '' or a.gone_at is null)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:source, '') = '' or r.kind = :source)
group by
    a.id, a.name, p.name, a.is_general, a.type, a.description, a.path, r.kind, a.gone_at, a.agent_key
order by last_activity desc, p.name, a.name, a.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

-- Subagents
-- Newest first. Warm-up subagents, and copies in a second home, are shown only with :all.
select
    a.agent_key,
    a.agent_type,
    a.description,
    a.started_at,
    a.message_count,
    a.tokens,
    iif(exists (select 1 from responses r where r.subagent_id = a.id and r.partial = 1), 1, 0)
        as is_lower_bound,
    s.title as session,
    p.name as project,
    a.kind,
    a.link_method,
    s.session_key
from subagents a
left join sessions s on s.id = a.session_id
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or (
      a.kind <> 'warmup'
      and not exists (
        select 1
        from subagents o
        where o.session_id = s.linked_session_id and o.agent_key = a.agent_key
      )
    )
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or a.ended_at >= :since)
  and (coalesce(:until, '') = '' or a.started_at < :until)
  and (
    coalesce(:source, '') = ''
    or s.source_id in (select r.id from sources r where r.kind = :source)
  )
order by a.started_at desc, a.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

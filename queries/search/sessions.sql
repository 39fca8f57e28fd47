-- Search titles of sessions
-- Sessions whose title matches one LIKE pattern of each array in the JSON array :patterns, newest
-- first. Titles that were made from a prompt or an id are left out, because the prompt itself is found.
select
    'session' as what,
    s.title_source as kind,
    s.title as text,
    s.title as session,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    null as subagent,
    null as tool,
    s.ended_at as timestamp,
    r.kind as source,
    s.session_key,
    r.root || '/' || (
        select f.path
        from files f
        where f.session_id = s.id and f.subagent_id is null
        order by f.kind <> 'transcript', f.path
        limit 1
    ) as file,
    0 as byte_offset,
    iif(:literal is null, 0, instr(lower(s.title), :literal) > 0) as verbatim,
    s.id,
    null as rank
from sessions s
join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
where s.title is not null
  and s.title_source not in ('prompt', 'history', 'id')
  and (
    coalesce(:kind, '') = ''
    or exists (select 1 from json_each(:kind) k where k.value in ('session'))
  )
  and coalesce(:session, '') in ('', s.session_key)
  and coalesce(:source, '') in ('', r.kind)
  and (coalesce(:since, '') = '' or s.ended_at >= :since)
  and (coalesce(:until, '') = '' or s.started_at < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:without, ''), '[]')) l
    where s.title like l.value escape '~'
  )
  and not exists (
    select 1
    from json_each(coalesce(nullif(:patterns, ''), '[]')) c
    where not exists (select 1 from json_each(c.value) l where s.title like l.value escape '~')
  )
order by s.ended_at desc, s.id desc
limit cast(coalesce(nullif(:limit, ''), 20) as integer)

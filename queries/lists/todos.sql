-- Todo items
-- Items of todo lists, in the order of their list. If the file of an agent's list is missing or
-- empty, its last list is shown, with the channel transcript. Done items are shown only with :all,
-- items that their list no longer contains only with :gone.
select
    i.status,
    i.content,
    i.priority,
    s.title as session,
    p.name as project,
    i.channel,
    i.gone_at,
    i.session_key,
    i.agent_key
from todos i
join files f on f.id = i.file_id
left join sessions s on s.id = i.session_id
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or (i.gone_at is null and coalesce(i.status, '') <> 'completed')
    or (coalesce(:gone, '') <> '' and i.gone_at is not null)
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:source, '') = ''
    or i.file_id in (
        select f.id
        from files f
        join sources r on r.id = f.source_id
        where r.kind = :source
    )
  )
  and (coalesce(:status, '') = '' or i.status like '%' || :status || '%')
order by s.ended_at desc, f.path, i.agent_key, i.gone_at is not null, i.position, i.id
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

-- Messages between agents
-- Newest first. Copies of inbox messages are shown only with :all, messages that are missing from
-- their inbox only with :gone.
select
    i.timestamp,
    i.sender,
    i.recipient,
    coalesce(i.summary, i.text) as message,
    i.kind,
    i.is_read,
    t.name as team,
    s.title as session,
    p.name as project,
    i.channel,
    i.gone_at,
    i.text
from inbox_items i
left join teams t on t.id = i.team_id
left join sessions s on s.id = coalesce(i.session_id, t.lead_session_id)
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or (i.gone_at is null and i.copy_of is null)
    or (coalesce(:gone, '') <> '' and i.gone_at is not null)
  )
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (coalesce(:since, '') = '' or i.timestamp >= :since)
  and (coalesce(:until, '') = '' or i.timestamp < :until)
  and (
    coalesce(:source, '') = ''
    or i.file_id in (
        select f.id
        from files f
        join sources r on r.id = f.source_id
        where r.kind = :source
    )
  )
order by i.timestamp desc, i.id desc
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

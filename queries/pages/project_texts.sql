-- Plans and documents of one project
-- Plans of its sessions, and notes, memories, summaries and tickets, newest first. Tickets that are
-- gone are left out.
select coalesce(i.status || ' ', '') || 'plan' as kind, i.title, i.modified_at, i.text, s.title as session, s.session_key, i.id
from sessions s
join plans i on i.session_id = s.id
where s.project_id in (select value from json_each(nullif(:project, '')))
union all
select i.kind, i.title, i.modified_at, i.text, s.title, s.session_key, i.id
from documents i
left join sessions s on s.id = i.session_id
where i.project_id in (select value from json_each(nullif(:project, '')))
  and i.gone_at is null
order by 3 desc, 1, 7
limit cast(coalesce(nullif(:limit, ''), 30) as integer)

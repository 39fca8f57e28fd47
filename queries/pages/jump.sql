-- Conversations to jump to
-- What the menu of Datasette 1.0 that opens with / offers: titles, projects, and the address of each
-- page below :address. Keys that would have to be written otherwise in an address are left out.
select
    'conversation' as type,
    s.title as label,
    p.name as description,
    :address || s.session_key as url,
    s.title || ' ' || coalesce(p.name, '') || ' ' || s.session_key as search_text,
    null as display_name
from sessions s
left join projects p on p.id = s.project_id
where s.session_key not glob '*[^0-9A-Za-z_-]*'

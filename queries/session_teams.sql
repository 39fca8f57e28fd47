-- Teams that one session leads
-- With their names and numbers.
select t.name, t.key, t.id
from teams t
where t.lead_session_id = :session
order by t.name

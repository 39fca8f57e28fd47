-- How sessions ended
-- Of the sessions in the JSON array :sessions of their ids: 'ended with an error', 'interrupted' or
-- 'in the middle of a turn'; no row where the last turn was finished.
with ended as materialized (
    select session_id, state
    from session_ends
    where session_id in (select value from json_each(nullif(:sessions, '')))
)
select session_id, state
from ended
where state is not null

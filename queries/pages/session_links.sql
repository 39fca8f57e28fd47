-- Links of one session
-- Pull requests, frames, worktrees, plans and other sessions that it names, each once, and the
-- sessions that say that they are continued in it, or that it is their origin. The address of a
-- session is its key.
select
    i.kind,
    i.url,
    min(i.title) as title,
    min(i.timestamp) as timestamp
from (
    select kind, url, title, timestamp
    from links
    where session_id = :session
    union all
    select
        iif(i.kind = 'continued_in', 'continues', 'origin_of'),
        o.session_key,
        i.title,
        i.timestamp
    from sessions s
    join links i on i.url = s.session_key and i.kind in ('continued_in', 'derived_from')
    join sessions o on o.id = i.session_id and o.source_id = s.source_id
    where s.id = :session
) i
group by i.kind, i.url
order by timestamp, i.url
limit 50

-- Links of one session
-- Pull requests, frames, worktrees and plans that it names, each once.
select
    i.kind,
    i.url,
    min(i.title) as title,
    min(i.timestamp) as timestamp
from links i
where i.session_id = :session
group by i.kind, i.url
order by timestamp, i.url
limit 50

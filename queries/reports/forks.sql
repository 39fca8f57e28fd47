-- Forked conversations
-- Conversations that begin with the messages of another one, because they resumed it elsewhere or
-- branched off. Copied lines are shown once, in the original.
-- Group: sessions
select
    s.title,
    o.title as forked_from,
    s.started_at,
    s.message_count,
    p.name as project,
    s.session_key,
    o.session_key as origin_key
from sessions s
join sessions o on o.id = s.forked_from
left join projects p on p.id = s.project_id
order by s.ended_at desc, s.id desc

-- The files that a reference with the key of a subagent can mean
-- Those with messages of the subagents :agent_key, in the order in which references number them:
-- where there is more first, its own files before the transcript that repeats it.
select
    f.path,
    r.root,
    f.gone_at,
    a.session_id,
    a.id as subagent_id,
    s.session_key,
    f.id
from subagents a
join sessions s on s.id = a.session_id
join files f on f.id in (select m.file_id from messages m where m.subagent_id = a.id)
join sources r on r.id = f.source_id
where a.agent_key = :agent_key
order by a.message_count desc, a.id, f.subagent_id is null, f.generation, f.own_since, f.path

-- What a call does, whatever its tool is called: reports need no tool's name. The next sync derives it
-- from the archive, for calls that were read before, too.
alter table tool_calls add column action text /* run, read, edit, search, plan, spawn, ask or other, as its source says; null: only the result is in this file */;
alter table tool_calls add column paths text /* JSON list of the files that it was applied to, where target is not all of them */;

drop view tool_calls_full;
create view tool_calls_full as -- Tool calls with the whole text of input and output; copies left out
select
    t.name, t.action, t.target,
    t.status,                           -- ok, error, declined (a person said no) or pending (no result yet)
    t.started_at, t.duration_ms, t.exit_code,
    c.tool_text as input,               -- what the tool was given, as JSON
    (select r.tool_text from messages r where r.id = t.result_id)
        as output,                      -- what it gave back
    s.title as session,                 -- title of its session
    (select p.name from projects p where p.id = s.project_id)
        as project,                     -- name of its project
    (select a.agent_type from subagents a where a.id = t.subagent_id)
        as subagent,                    -- type of the subagent that called; null in the main conversation
    s.session_key,
    (select o.kind from files f join sources o on o.id = f.source_id where f.id = t.file_id)
        as source,                      -- the system that wrote it
    (select o.session_id from messages o where o.session_id = s.linked_session_id limit 1)
        as repeats_session_id,          -- conversation of another system that this one repeats, where that is here too
    t.id, t.session_id, t.subagent_id, t.tool_use_id, t.call_id, t.result_id
from tool_calls t
-- A cross join is never reordered: the calls come first, else every message would be visited.
cross join messages c on c.id = t.call_id and c.copy_of is null
left join sessions s on s.id = t.session_id;

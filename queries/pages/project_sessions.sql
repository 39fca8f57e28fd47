-- Sessions of one project
-- The newest first, :limit of them after the first :offset. Those are left out that only a list
-- named, and no longer names.
select
    s.title,
    s.ended_at,
    s.prompt_count,
    s.message_count,
    s.tool_call_count,
    s.output_tokens,
    s.kind,
    s.git_branch,
    coalesce(r.label, r.kind) as agent,
    s.session_key,
    s.id
from sessions s
join sources r on r.id = s.source_id
where s.project_id in (select value from json_each(nullif(:project, '')))
  and s.gone_at is null
order by s.ended_at desc, s.id desc
limit cast(coalesce(nullif(:limit, ''), 50) as integer)
offset cast(coalesce(nullif(:offset, ''), 0) as integer)

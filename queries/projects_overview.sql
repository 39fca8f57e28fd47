-- Projects at a glance
-- Sessions, prompts, tool calls and tokens of each project, the newest activity first.
select
    p.name as project,
    count(*) as sessions,
    sum(s.prompt_count) as prompts,
    sum(s.tool_call_count) as tool_calls,
    sum(s.input_tokens) as input_tokens,
    sum(s.cache_read_tokens) as cache_read_tokens,
    sum(s.cache_write_tokens) as cache_write_tokens,
    sum(s.output_tokens) as output_tokens,
    min(s.started_at) as first_activity,
    max(s.ended_at) as last_activity,
    p.path
from sessions s
join projects p on p.id = s.project_id
where s.kind in ('main', 'background')
group by p.id
order by last_activity desc

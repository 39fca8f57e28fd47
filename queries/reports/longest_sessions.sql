-- Longest conversations
-- The :limit conversations (default 20) with the most prompts; hours includes pauses. The output is
-- a lower bound if some responses are partial, without a final count.
-- Group: sessions
select
    s.title,
    p.name as project,
    s.prompt_count,
    s.message_count,
    s.tool_call_count,
    round((julianday(s.ended_at) - julianday(s.started_at)) * 24, 1) as hours,
    s.output_tokens,
    s.ended_at,
    coalesce(u.partial, 0) as partial,
    iif(u.partial > 0, 1, 0) as is_lower_bound,
    s.session_key
from sessions s
left join projects p on p.id = s.project_id
left join (
    select session_id, count(*) as partial
    from responses
    where partial = 1
    group by session_id
) u on u.session_id = s.id
where s.kind in ('main', 'background')
  and not exists (
    select 1
    from sessions l
    where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
  )
order by s.prompt_count desc, s.message_count desc, s.ended_at desc, s.session_key
limit cast(coalesce(nullif(:limit, ''), '20') as integer)

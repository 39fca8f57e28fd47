-- Recent conversations
-- Conversations of the last :days days (default 7), newest first.
-- Group: sessions
select
    s.title,
    p.name as project,
    s.ended_at,
    s.prompt_count,
    s.tool_call_count,
    s.git_branch,
    s.session_key
from sessions s
left join projects p on p.id = s.project_id
where s.kind in ('main', 'background')
  and not exists (
    select 1
    from sessions l
    where l.id = s.linked_session_id and l.message_count + l.copied_message_count > 0
  )
  and s.ended_at >= strftime(
    '%Y-%m-%dT%H:%M:%fZ', 'now', '-' || coalesce(nullif(:days, ''), '7') || ' days'
  )
order by s.ended_at desc

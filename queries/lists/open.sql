-- Open items
-- Unfinished tasks and todos, unread inbox messages, unanswered plans, accepted plans without an
-- edit after them, and conversations that ended with an error or are unfinished (except unanswered
-- test calls and empty answers); by repository, newest first, with the number of all that are open
-- there. Without :all, only items at most 30 days older than the newest conversation. :branch is the
-- last one of their conversation.
with newest as materialized (
    -- Not the clock: a database may be of another time or machine.
    select strftime('%Y-%m-%dT%H:%M:%fZ', max(ended_at), '-30 days') as since
    from sessions
),
ended as materialized (
    select e.session_id, e.state
    from session_ends e
    join sessions s on s.id = e.session_id
    where coalesce(:all, '') <> '' or s.ended_at >= (select since from newest)
),
unfinished as materialized (
    select session_id as id
    from ended
    where state = 'unfinished'
),
answered as materialized (
    -- An empty answer: behind the prompt, which is the last message, there is a response.
    select r.session_id as id
    from responses r
    where r.session_id in (select u.id from unfinished u)
      and r.byte_offset > (
        select max(m.byte_offset)
        from messages m
        where m.file_id = r.file_id
      )
      and exists (
        select 1
        from messages m
        where m.file_id = r.file_id and m.kind in ('prompt', 'queued_prompt')
        group by m.file_id
        having max(m.byte_offset) = (
            select max(x.byte_offset)
            from messages x
            where x.file_id = r.file_id
        )
      )
),
open as (
    select
        'task' as what,
        t.subject as text,
        t.status,
        s.ended_at as since,
        coalesce(t.session_id, e.lead_session_id) as session_id
    from tasks t
    left join teams e on e.id = t.team_id
    left join sessions s on s.id = coalesce(t.session_id, e.lead_session_id)
    where t.gone_at is null and t.status in ('pending', 'in_progress')
    union all
    select
        'todo',
        i.content,
        i.status,
        s.ended_at,
        i.session_id
    from todos i
    left join sessions s on s.id = i.session_id
    where i.gone_at is null and coalesce(i.status, '') <> 'completed'
    union all
    select
        'inbox',
        coalesce(i.sender || ': ', '') || coalesce(i.summary, i.text),
        'unread',
        i.timestamp,
        coalesce(i.session_id, e.lead_session_id)
    from inbox_items i
    left join teams e on e.id = i.team_id
    where i.channel = 'inbox'
      and i.is_read = 0
      and i.gone_at is null
      and i.copy_of is null
      and coalesce(i.kind, '') <> 'idle_notification' -- asks for nothing
    union all
    select
        'plan',
        p.title,
        p.status,
        p.modified_at,
        p.session_id
    from plans p
    left join sessions s on s.id = p.session_id
    where p.status = 'proposed'
       or (
        p.status = 'accepted'
        and not exists (
            select 1
            from sessions o
            join tool_calls c on c.session_id = o.id
            where (o.id = s.id or o.project_id = s.project_id)
              and o.ended_at >= p.modified_at
              and c.action = 'edit'
              and c.started_at > p.modified_at
        )
    )
    union all
    select
        'session',
        s.title,
        e.state,
        s.ended_at,
        s.id
    from ended e
    join sessions s on s.id = e.session_id
    where e.state is not null
      -- A call from a script with one prompt that nobody answered is a test, and no work.
      and not (
        s.prompt_count <= 1
        and s.tool_call_count = 0
        and exists (
            select 1
            from files f
            join transcripts t on t.file_id = f.id
            where f.session_id = s.id and t.entrypoint = 'sdk-cli'
        )
        and not exists (
            select 1
            from messages m
            where m.session_id = s.id and m.kind in ('text', 'thinking', 'tool_use')
        )
      )
      and s.id not in (select id from answered)
)
select
    coalesce(p.repository_name, p.name) as repository,
    count(*) over (partition by coalesce(p.repository_key, p.path, p.key)) as open,
    o.what,
    o.text,
    o.status,
    o.since as last_activity,
    p.name as project,
    s.session_key,
    s.title as session
from open o
left join sessions s on s.id = o.session_id
left join projects p on p.id = s.project_id
where (
    coalesce(:all, '') <> ''
    or o.since is null
    or o.since >= (select since from newest)
  )
  and (coalesce(:since, '') = '' or o.since >= :since)
  and (coalesce(:until, '') = '' or o.since < :until)
  and (
    coalesce(:project, '') = ''
    or p.id in (select value from json_each(:project))
  )
  and (
    coalesce(:source, '') = ''
    or s.source_id in (select r.id from sources r where r.kind = :source)
  )
  and (coalesce(:branch, '') = '' or s.git_branch = :branch)
  and (coalesce(:status, '') = '' or o.status like '%' || :status || '%')
order by
    max(o.since) over (partition by coalesce(p.repository_key, p.path, p.key)) desc,
    coalesce(p.repository_key, p.path, p.key),
    o.since desc,
    o.what,
    o.text
limit cast(coalesce(nullif(:limit, ''), '30') as integer)

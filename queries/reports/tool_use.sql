-- Tool calls, failures and durations
-- Calls of each tool, how many failed, how many a person declined, how long they took, and how many
-- letters they returned. Copies of a call in forked conversations count once. :project and :session
-- limit the calls to a project or a conversation, :since and :until to a time.
-- Group: activity
with calls as materialized (
    select
        t.name,
        t.action,
        t.status,
        t.duration_ms,
        length(coalesce(m.tool_text, m.text)) as letters
    from tool_calls t
    left join sessions s on s.id = t.session_id
    left join messages m on m.id = t.result_id
    where t.call_id is not null
      and t.call_id not in (
        -- scans messages: only the index of those that are copies
        select o.id
        from messages o
        where o.copy_of is not null and o.kind = 'tool_use'
      )
      and (coalesce(:since, '') = '' or t.started_at >= :since)
      and (coalesce(:until, '') = '' or t.started_at < :until)
      and (coalesce(:session, '') = '' or s.session_key = :session)
      and (
        coalesce(:source, '') = ''
        or s.source_id in (select r.id from sources r where r.kind = :source)
      )
      and (
        coalesce(:project, '') = ''
        or s.project_id in (select value from json_each(:project))
      )
),
timed as (
    select
        name,
        duration_ms,
        row_number() over (partition by name order by duration_ms) as place,
        count(*) over (partition by name) as of_all
    from calls
    where duration_ms is not null
),
counted as (
    select
        name,
        max(action) as action,
        count(*) as calls,
        sum(status = 'error') as errors,
        sum(status = 'declined') as declined,
        sum(duration_ms) as total_ms,
        sum(letters) as letters
    from calls
    group by name
)
select
    c.name,
    c.action,
    c.calls,
    c.errors,
    round(100.0 * c.errors / c.calls, 1) as error_percent,
    c.declined,
    t.duration_ms as median_ms,
    c.total_ms,
    c.letters
from counted c
left join timed t on t.name = c.name and t.place = (t.of_all + 1) / 2
order by c.calls desc, c.name

-- How sessions ended
-- Of the sessions in the JSON array :sessions of their ids: 'ended with an error', 'interrupted' or
-- 'in the middle of a turn'; no row where the last turn was finished. It is the rule of the list of
-- what is open (lists/open).
with ended as (
    select
        s.id,
        (
            select m.kind
            from messages m
            where m.file_id = (
                select f.id
                from files f
                where f.session_id = s.id and f.kind = 'transcript' and f.subagent_id is null
                order by f.gone_at is not null, f.mtime desc, f.id desc
                limit 1
            )
              and m.subagent_id is null
              and m.kind in (
                  'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
              )
            order by m.byte_offset desc, m.block desc
            limit 1
        ) as last_kind
    from sessions s
    where s.id in (select value from json_each(nullif(:sessions, '')))
      and s.kind in ('main', 'background')
      and s.message_count > 0
)
select
    e.id,
    case e.last_kind
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'in the middle of a turn'
    end as state
from ended e
where e.last_kind <> 'text'

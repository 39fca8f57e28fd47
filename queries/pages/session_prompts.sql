-- What was asked in a conversation
-- What people typed in each session of the JSON array :sessions of their ids, in order, subagents
-- and repeated lines left out; of long texts the beginning. :limit is the number from each end.
with typed as (
    select
        m.session_id,
        m.id,
        row_number() over (partition by m.session_id order by m.timestamp, m.id) as number,
        row_number() over (partition by m.session_id order by m.timestamp desc, m.id desc) as from_end
    from messages m
    where m.session_id in (select value from json_each(nullif(:sessions, '')))
      and (m.kind = 'prompt' or m.kind = 'command' or m.kind = 'bash_input' or m.kind = 'queued_prompt')
      and m.subagent_id is null
      and m.copy_of is null
)
select
    y.session_id,
    y.number,
    m.kind,
    substr(m.text, 1, 4000) as text,
    m.timestamp,
    m.byte_offset,
    m.file_id
from typed y
join messages m on m.id = y.id
where y.number <= cast(coalesce(nullif(:limit, ''), 3) as integer)
   or y.from_end <= cast(coalesce(nullif(:limit, ''), 3) as integer)
order by y.session_id, y.number

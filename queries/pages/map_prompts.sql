-- Where the prompts of a conversation are
-- Lines with what a person typed in the conversation :session; of one :subagent, with what it was
-- told. Lines that repeat others of the conversation are left out, and is_copy is 1 for those that
-- repeat another conversation. :limit ends after so many.
select
    min(m.id) as id,
    m.file_id,
    m.byte_offset,
    0 as block,
    max(m.kind) as kind,
    max(m.copy_of is not null) as is_copy
from messages m
where coalesce(:subagent, '') = ''
  and m.session_id = :session
  and m.subagent_id is null
  and (m.kind = 'prompt' or m.kind = 'command' or m.kind = 'bash_input' or m.kind = 'queued_prompt')
  and (
    m.copy_of is null
    or not exists (
        select 1
        from messages c
        where c.id = m.copy_of and c.session_id = m.session_id and c.subagent_id is null
        union all -- a text of the queue in a fork, which was delivered there
        select 1
        from messages o
        where m.uuid is null and o.copy_of = m.copy_of and o.session_id = m.session_id
          and o.uuid is not null
    )
  )
group by m.file_id, m.byte_offset
union all
select min(m.id), m.file_id, m.byte_offset, 0, max(m.kind), 0
from messages m
where m.subagent_id = nullif(:subagent, '')
  and m.kind in ('agent_prompt', 'prompt', 'command', 'bash_input', 'agent_message')
group by m.file_id, m.byte_offset
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

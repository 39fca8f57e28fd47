-- Where turns begin
-- Lines of a file with what a person typed, in the main conversation: each begins a turn. Those that
-- repeat lines of the same file are left out.
select distinct m.byte_offset
from messages m
where m.session_id = :session
  and +m.file_id = :file -- the index of prompts is the short one
  and m.subagent_id is null
  and (m.kind = 'prompt' or m.kind = 'command' or m.kind = 'bash_input' or m.kind = 'queued_prompt')
  and m.kind <> 'queued_prompt'
  and (
    m.copy_of is null
    or not exists (
        select 1
        from messages c
        where c.id = m.copy_of and c.file_id = m.file_id
    )
  )
order by m.byte_offset

-- Where turns of a subagent begin
-- Lines of a file with what the subagent was told: each begins a turn.
select distinct m.byte_offset
from messages m
where m.subagent_id = :subagent
  and m.file_id = :file
  and m.kind in ('agent_prompt', 'prompt', 'command', 'bash_input', 'agent_message')
order by m.byte_offset

-- An index for the search, which is in code.sql now.
create index subagents_key on assoc.subagents (agent_key);

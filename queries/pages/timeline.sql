-- The map and the timeline of a conversation, and what is next to a message

-- name: map_prompts
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

-- name: map_texts
-- How messages begin
-- The beginnings of the texts of the messages :ids, a JSON array.
select
    m.kind,
    substr(coalesce(m.text, m.tool_text), 1, 500) as text,
    m.timestamp,
    m.id
from messages m
where m.id in (select value from json_each(nullif(:ids, '')))

-- name: map_calls
-- Calls of a conversation that stand on its map
-- In the conversation :session, or in one :subagent of it: calls that failed, changed files or
-- spawned a subagent. :limit ends after so many.
select
    substr(t.name, 1, 200) as name,
    t.action,
    substr(t.target, 1, 500) as target,
    iif(length(t.paths) <= 100000, t.paths, null) as paths,
    t.status,
    exists (select 1 from subagents a where a.spawned_by = t.id) as spawned,
    t.file_id,
    t.byte_offset,
    t.block,
    t.tool_use_id,
    t.id
from tool_calls t
where t.session_id = :session
  and t.subagent_id is nullif(:subagent, '')
  and t.call_id is not null
  and (t.status = 'error' or t.action in ('edit', 'spawn') or spawned)
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: map_notices
-- Compactions and errors of a conversation
-- Messages of one :kind in the conversation :session, or in one :subagent of it: compact_summary,
-- behind which an agent no longer knew what was said before, or error. What the conversation repeats
-- is left out. :limit ends after so many.
select m.id, m.file_id, m.byte_offset, m.block
from messages m
where m.session_id = :session
  and m.kind = :kind
  and m.subagent_id is nullif(:subagent, '')
  and not exists ( -- repeated by a second transcript of the conversation
    select 1
    from messages c
    where c.id = m.copy_of and c.session_id = m.session_id and c.subagent_id is m.subagent_id
  )
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: turns
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

-- name: subagent_turns
-- Where turns of a subagent begin
-- Lines of a file with what the subagent was told: each begins a turn.
select distinct m.byte_offset
from messages m
where m.subagent_id = :subagent
  and m.file_id = :file
  and m.kind in ('agent_prompt', 'prompt', 'command', 'bash_input', 'agent_message')
order by m.byte_offset

-- name: timeline_calls
-- When the calls of a conversation ran
-- Calls of the conversation :session and its subagents, with the time that each took. Those that
-- repeat a call of another file are left out, as in the counts of a session. :waits leaves those for
-- which a person was waited: questions and declined calls. :limit ends after so many.
select
    substr(t.name, 1, 100) as name,
    t.action,
    t.status,
    t.started_at,
    t.ended_at,
    t.duration_ms,
    t.subagent_id,
    t.file_id,
    t.byte_offset,
    t.block,
    t.id
from tool_calls t
left join messages m on m.id = t.call_id
where t.session_id = :session
  and t.name is not null
  and m.copy_of is null
  and (coalesce(:waits, '') = '' or t.status = 'declined' or t.action = 'ask')
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: turn_responses
-- Where the responses of a conversation are
-- Of the conversation :session and its subagents, each once. :limit ends after so many.
select r.id, r.file_id, r.byte_offset, r.subagent_id
from responses r
where r.session_id = :session
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: turn_usage
-- Tokens and cost of turns
-- By turn and model: :responses is a JSON array of the number of a turn and the id of a response in
-- it. The last columns are what an estimate of the partial ones follows from: see usage_partial.
select
    j.value ->> 0 as turn,
    c.model,
    count(*) as responses,
    sum(c.input_tokens) as input_tokens,
    sum(c.output_tokens) as output_tokens,
    sum(c.cache_read_tokens) as cache_read_tokens,
    sum(c.cache_write_tokens) as cache_write_tokens,
    round(sum(c.cost_microusd) / 1000000.0, 6) as cost_usd,
    sum(c.cost_microusd is null) as unpriced,
    sum(c.partial) as partial,
    sum(iif(c.partial = 1, c.written_bytes is null, 0)) as unmeasured,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens, 0)) as begun_tokens,
    sum(iif(c.partial = 1, c.written_bytes, 0)) as written_bytes,
    sum(iif(c.partial = 1 and c.written_bytes is not null, c.output_tokens * c.output_price, 0))
        as begun_worth,
    sum(iif(c.partial = 1, c.written_bytes * c.output_price, 0)) as written_worth
from json_each(nullif(:responses, '')) j
cross join response_costs c on c.id = j.value ->> 1
group by turn, c.model

-- name: first_own_message
-- Where a fork becomes new
-- The first message of the main conversation in a file that was said, typed or called and is no
-- copy.
select
    m.kind,
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is null
  and m.copy_of is null
  and m.kind in ('prompt', 'command', 'bash_input', 'memory_input', 'text', 'thinking', 'tool_use')
order by m.byte_offset, m.block
limit 1

-- name: message_before
-- Places in a file before a message
-- The :limit messages of the main conversation, or of one :subagent, before a place, nearest first;
-- those of :kinds, a JSON array, where not all are wanted.
select
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  and (m.byte_offset, m.block) < (
    cast(coalesce(nullif(:before_offset, ''), 9223372036854775807) as integer),
    cast(coalesce(nullif(:before_block, ''), 0) as integer)
  )
  and (
    coalesce(:kinds, '') = ''
    or m.kind in (select value from json_each(:kinds))
  )
order by m.byte_offset desc, m.block desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- name: message_after
-- Places in a file after a message
-- The :limit messages of the main conversation, or of one :subagent, behind a place, nearest first.
select
    m.byte_offset,
    m.block,
    m.id
from messages m
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  and (m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
order by m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

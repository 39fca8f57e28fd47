-- One conversation and its subagents

-- name: session
-- One session
-- Everything known of the session with the key :session_key. The same conversation in two homes
-- gives two rows, the fuller one first.
select
    s.title,
    s.title_source,
    p.name as project,
    p.path as project_path,
    s.started_at,
    s.ended_at,
    s.message_count,
    s.prompt_count,
    s.tool_call_count,
    s.input_tokens,
    s.output_tokens,
    s.cache_read_tokens,
    s.cache_write_tokens,
    s.stated_cost_usd,
    s.models,
    s.git_branch,
    s.cwd,
    s.agent_version,
    s.kind,
    s.permission_mode,
    a.name as agent,
    o.session_key as forked_from,
    l.session_key as linked_session,
    (
        select i.url
        from links i
        where i.session_id = s.id and i.kind = 'continued_in'
        order by i.byte_offset desc
        limit 1
    ) as continued_in,
    (
        select c.session_key
        from links i
        join sessions c on c.id = i.session_id
        where i.url = s.session_key and i.kind = 'continued_in' and c.source_id = s.source_id
        order by c.session_key
        limit 1
    ) as continues,
    (
        select group_concat(distinct i.url)
        from links i
        where i.session_id = s.id and i.kind = 'derived_from'
    ) as derived_from,
    (
        select nullif(x.tag, '')
        from files f
        join transcripts x on x.file_id = f.id
        where f.session_id = s.id and f.kind = 'transcript' and x.tag is not null
        order by f.gone_at is not null, x.ended_at desc, f.path
        limit 1
    ) as tag,
    r.kind as source,
    coalesce(r.label, r.kind) as label,
    r.root,
    s.session_key,
    s.id
from sessions s
join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
left join agents a on a.id = s.agent_id
left join sessions o on o.id = s.forked_from
left join sessions l on l.id = s.linked_session_id
where s.session_key = :session_key
order by s.message_count desc, s.id

-- name: session_files
-- The files of a session
-- Those that hold its main conversation, the transcript first; not those of its subagents.
-- :with_messages leaves out those without messages, :limit ends after so many.
select
    f.path,
    f.kind,
    f.size,
    f.line_count,
    f.issue_count,
    f.gone_at,
    f.id
from files f
where f.session_id = :session
  and f.subagent_id is null
  and (
    coalesce(:with_messages, '') = ''
    or exists (
        select 1
        from messages m
        where m.file_id = f.id and m.subagent_id is null
    )
  )
order by f.kind <> 'transcript', f.generation, f.own_since, f.path
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: session_messages
-- Messages of the main conversation in one file
-- In the order of the file; a call with what is known of it, a result with the call it answers; or
-- those of one :subagent in the file. What another file of the session shows is left out; is_repeat
-- marks a line that the same file repeats. :after_offset and :after_block begin behind a
-- block, :limit ends after so many. :kinds, a JSON array, :tool and :errors leave out others.
select
    m.kind,
    m.text,
    m.tool_text,
    m.role,
    m.timestamp,
    m.model,
    m.uuid,
    m.parent_uuid,
    m.is_meta,
    m.is_error,
    m.is_cut,
    m.is_superseded,
    m.copy_of,
    c.file_id is not null and (
        c.file_id = m.file_id
        -- A text of the queue in a fork: its delivery is in this file, the original in another.
        or m.uuid is null and exists (
            select 1
            from messages o
            where o.copy_of = m.copy_of and o.file_id = m.file_id and o.uuid is not null
        )
    ) as is_repeat,
    t.id as tool_call_id,
    t.name as tool,
    t.target,
    t.action,
    t.status,
    t.duration_ms,
    t.exit_code,
    t.output_file,
    t.result_id,
    a.call_id as answers,
    f.path as file,
    m.file_id,
    m.byte_offset,
    m.byte_length,
    m.block,
    m.id
from messages m
join files f on f.id = m.file_id
left join messages c on c.id = m.copy_of
left join tool_calls t on t.call_id = m.id
left join tool_calls a on a.result_id = m.id
where m.file_id = :file
  and m.subagent_id is nullif(:subagent, '')
  -- A session may have several transcripts that repeat each other: each line is shown once.
  and not (
    m.subagent_id is null
    and c.file_id is not null
    and c.file_id <> m.file_id
    and c.session_id = m.session_id
    and c.subagent_id is null
  )
  and (m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
  and (
    coalesce(:kinds, '') = ''
    or m.kind in (select value from json_each(:kinds))
    or t.name = :tool
    or (coalesce(:errors, '') <> '' and (m.kind = 'error' or t.status = 'error'))
  )
order by m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: session_usage
-- Tokens and cost of one session
-- By model, subagents included; each response counts once. Where an application repeats another's
-- conversation, the other's responses are counted, and here are none. The last columns are what an
-- estimate of the partial responses follows from: see usage_partial.
select
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
from response_costs c
where c.session_id = :session
group by c.model
order by cost_usd desc, c.model

-- name: session_stated
-- What the agent of a session states of its use
-- By model, '' for all: sums that it wrote down, the costs that it stated of each response, or what
-- an application that repeats the conversation states, which `stated_by` names.
select
    model,
    output_tokens,
    cost_usd,
    is_lower_bound,
    is_followed,
    null as stated_by
from stated_by_model
where session_id = :session
union all
select
    model,
    null,
    round(sum(stated_cost_usd), 6),
    0,
    0,
    null
from responses
where session_id = :session and stated_cost_usd is not null
group by model
union all
select
    '',
    iif(exists (select 1 from responses o where o.session_id = s.id), null, s.output_tokens),
    s.stated_cost_usd,
    0,
    0,
    coalesce(r.label, r.kind)
from sessions s
join sources r on r.id = s.source_id
where s.linked_session_id = :session and s.stated_cost_usd is not null and r.is_agent = 0
order by cost_usd desc, model

-- name: session_tools
-- The tools of one session
-- How often each was called, subagents included, the most used first.
select t.name, count(*) as calls
from tool_calls t
where t.session_id = :session
  and t.name is not null
group by t.name
order by calls desc, t.name

-- name: session_edits
-- Files that a conversation changed
-- Those that calls of a session edited, subagents included: how often, and when last; the newest
-- first, at most :limit (default 50). Calls that failed or were declined changed nothing, and one
-- that a second transcript repeats is one.
select
    coalesce(e.value, t.target) as path,
    count(*) as edits,
    max(t.started_at) as last_edited
from tool_calls t
cross join messages m on m.id = t.call_id
left join json_each(t.paths) e on true
where t.session_id = :session
  and t.action = 'edit'
  and t.status not in ('declined', 'error')
  and coalesce(e.value, t.target) is not null
  and m.copy_of is null
group by coalesce(e.value, t.target) -- not path: json_each has a column of that name
order by last_edited desc, path
limit cast(coalesce(nullif(:limit, ''), 50) as integer)

-- name: session_later_edits
-- Who edited files after a conversation
-- Edits that other conversations in the same repository made after :since, each file once in each, and
-- when last. Another program's record of the same conversation is no other one.
with places as (
    select p.id, coalesce(r.same_as, r.id) as repository
    from projects p
    join projects r on r.id = coalesce(p.parent_id, p.id)
)
select
    o.session_key,
    o.cwd,
    coalesce(e.value, t.target) as path,
    max(t.started_at) as last_edited
from sessions s
join places p on p.id = s.project_id
join places q on q.repository = p.repository
cross join sessions o on o.project_id = q.id and o.ended_at > :since
cross join tool_calls t on t.session_id = o.id
cross join messages m on m.id = t.call_id
left join json_each(t.paths) e on true
where s.id = :session
  and o.session_key <> s.session_key
  and o.id is not s.linked_session_id
  and o.linked_session_id is not s.id
  and t.action = 'edit'
  and t.status = 'ok'
  and t.started_at > :since
  and m.copy_of is null
  and coalesce(e.value, t.target) is not null
group by o.session_key, o.cwd, coalesce(e.value, t.target)

-- name: session_later_commits
-- Commits after a conversation
-- Of :files, a JSON array of the path of each and when the conversation edited it last, the commits
-- after :ended_at that changed it, as git listed them at the last sync --git. The first commit behind
-- the last edit of a file may have the work of the conversation itself and is left out.
with files as (
    select json_extract(value, '$[0]') as path, json_extract(value, '$[1]') as last_edited
    from json_each(coalesce(nullif(:files, ''), '[]'))
),
later as (
    select
        f.path,
        c.hash,
        c.authored_at,
        row_number() over (partition by f.path, p.id order by c.authored_at, c.id desc) as place
    from projects p
    join files f on substr(f.path, 1, length(p.path) + 1) = p.path || '/'
    cross join git_commits c
        on c.project_id = p.id and c.path = substr(f.path, length(p.path) + 2)
        and c.authored_at > f.last_edited
    where p.git_seen_at is not null
)
select distinct l.path, l.hash
from later l
where l.place > 1
  and l.authored_at > :ended_at

-- name: session_work
-- Tasks, todos and plans of one session
-- Tasks in the order of their numbers, todos in that of their lists. What is gone or deleted is left
-- out.
select
    w.what,
    w.title,
    w.status,
    w.owner,
    w.id
from (
    select
        1 as rank,
        'task' as what,
        coalesce(t.subject, '#' || t.task_key) as title,
        t.status,
        t.owner,
        t.task_key glob '*[^0-9]*' as is_named,
        t.task_number as place,
        t.task_key as name,
        t.id
    from tasks t
    where t.session_id = :session
      and t.gone_at is null
      and coalesce(t.status, '') <> 'deleted'
    union all
    select 2, 'todo', i.content, i.status, null, i.agent_key <> i.session_key, i.position, i.agent_key, i.id
    from todos i
    where i.session_id = :session
      and i.gone_at is null
    union all
    select 3, 'plan', p.title, p.status, null, 0, null, p.modified_at, p.id
    from plans p
    where p.session_id = :session
) w
order by w.rank, w.is_named, iif(w.what = 'todo', w.name, null), w.place, w.name, w.id
limit 100

-- name: session_links
-- Links of one session
-- Pull requests, frames, worktrees, plans and other sessions that it names, each once, and the
-- sessions that say that they are continued in it, or that it is their origin. The address of a
-- session is its key.
select
    i.kind,
    i.url,
    min(i.title) as title,
    min(i.timestamp) as timestamp
from (
    select kind, url, title, timestamp
    from links
    where session_id = :session
    union all
    select
        iif(i.kind = 'continued_in', 'continues', 'origin_of'),
        o.session_key,
        i.title,
        i.timestamp
    from sessions s
    join links i on i.url = s.session_key and i.kind in ('continued_in', 'derived_from')
    join sessions o on o.id = i.session_id and o.source_id = s.source_id
    where s.id = :session
) i
group by i.kind, i.url
order by timestamp, i.url
limit 50

-- name: session_related
-- Project and teams of one session
-- The project that it belongs to, and the teams that it leads.
select 'project' as kind, p.name, p.key, p.id
from sessions s
join projects p on p.id = s.project_id
where s.id = :session
union all
select 'team', t.name, t.key, t.id
from teams t
where t.lead_session_id = :session
order by 1, 2

-- name: session_branches
-- Branches of a conversation
-- The branches that the lines of the conversation :session state, in the order of their first lines.
select c.value as branch
from contexts c
join files f on f.id = c.file_id
where f.session_id = :session
  and f.subagent_id is null
  and c.name = 'git_branch'
  and c.value not in ('', 'HEAD')
group by c.value
order by min(c.byte_offset), c.value

-- name: session_prompts
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

-- name: session_ends
-- How sessions ended
-- Of the sessions in the JSON array :sessions of their ids: 'ended with an error', 'interrupted' or
-- 'unfinished'; no row where the last turn was finished.
with ended as materialized (
    select session_id, state
    from session_ends
    where session_id in (select value from json_each(nullif(:sessions, '')))
)
select session_id, state
from ended
where state is not null

-- name: session_subagents
-- Subagents of one session
-- With the tool call that spawned each, where it is known. :limit ends after so many.
select
    a.agent_type,
    a.description,
    a.kind,
    a.name,
    a.model,
    a.workflow,
    a.started_at,
    a.ended_at,
    a.message_count,
    a.tokens,
    (select count(*) from responses r where r.subagent_id = a.id and r.partial = 1) as partial,
    a.link_method,
    a.spawned_by,
    t.call_id,
    o.agent_key as parent,
    a.agent_key,
    a.id
from subagents a
left join subagents o on o.id = a.parent_id
left join tool_calls t on t.id = a.spawned_by
where a.session_id = :session
order by a.started_at, a.agent_key
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: subagent_files
-- Files of a subagent
-- The files that hold its messages, in the order in which they are read.
select f.path, f.id
from files f
where f.id in (select m.file_id from messages m where m.subagent_id = :subagent)
order by f.id

-- name: subagent_messages
-- Messages of one subagent
-- In the order of its file; a call with what is known of it, a result with the call it answers.
-- :after_file, :after_offset and :after_block begin behind a block, :limit ends after so many.
select
    m.kind,
    m.text,
    m.tool_text,
    m.role,
    m.timestamp,
    m.model,
    m.uuid,
    m.parent_uuid,
    m.is_meta,
    m.is_error,
    m.is_cut,
    m.is_superseded,
    m.copy_of,
    c.file_id is not null and c.file_id = m.file_id as is_repeat,
    t.id as tool_call_id,
    t.name as tool,
    t.target,
    t.action,
    t.status,
    t.duration_ms,
    t.exit_code,
    t.output_file,
    t.result_id,
    a.call_id as answers,
    f.path as file,
    m.file_id,
    m.byte_offset,
    m.byte_length,
    m.block,
    m.id
from messages m
join files f on f.id = m.file_id
left join messages c on c.id = m.copy_of
left join tool_calls t on t.call_id = m.id
left join tool_calls a on a.result_id = m.id
where m.subagent_id = :subagent
  and (m.file_id, m.byte_offset, m.block) > (
    cast(coalesce(nullif(:after_file, ''), -1) as integer),
    cast(coalesce(nullif(:after_offset, ''), -1) as integer),
    cast(coalesce(nullif(:after_block, ''), -1) as integer)
  )
order by m.file_id, m.byte_offset, m.block
limit cast(coalesce(nullif(:limit, ''), -1) as integer)

-- name: result_file
-- The large output of one tool call
-- What a call of the session :session gave that was too large for the transcript, by the name
-- :name that the transcript gives its file.
select t.text, t.size, t.media_type
from tool_result_files t
where t.session_id = :session
  and t.name = :name
order by t.id
limit 1

-- name: last_answers
-- The last answers of conversations
-- What the agent said last in each transcript of the sessions :sessions, a JSON array of their ids;
-- of a session, its newest transcript first. Subagents are left out.
select
    f.session_id,
    m.text,
    m.timestamp,
    m.byte_offset,
    f.id as file_id
from files f
left join messages m
    on m.file_id = f.id
    and m.subagent_id is null
    and m.kind = 'text'
    and m.byte_offset = (
        select max(o.byte_offset)
        from messages o
        where o.file_id = f.id and o.subagent_id is null and o.kind = 'text'
    )
where f.session_id in (select value from json_each(nullif(:sessions, '')))
  and f.kind = 'transcript'
  and f.subagent_id is null
order by f.session_id, f.gone_at is not null, f.mtime desc, f.id desc, m.block desc

-- name: last_commands
-- The last commands of sessions
-- Of each session in the JSON array :sessions of their ids, the last command that the agent ran, if
-- it failed.
select
    t.session_id,
    t.target,
    t.exit_code,
    t.started_at,
    m.byte_offset,
    m.file_id
from json_each(nullif(:sessions, '')) k
join tool_calls t on t.id = (
    select c.id
    from tool_calls c
    where c.session_id = cast(k.value as integer) and c.action = 'run' and c.subagent_id is null
    order by c.started_at desc, c.id desc
    limit 1
)
join messages m on m.id = t.call_id
where t.status = 'error'

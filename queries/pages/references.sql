-- What a key or a reference names

-- name: sessions_by_prefix
-- Sessions whose key begins with :prefix
-- The sessions that a prefix can mean, newest first; one conversation in two homes gives two rows.
select
    s.title,
    p.name as project,
    s.ended_at,
    s.message_count,
    s.session_key,
    s.id
from sessions s
left join projects p on p.id = s.project_id
where s.session_key >= :prefix
  and s.session_key < :prefix || char(1114111)
order by s.ended_at desc, s.message_count desc, s.id

-- name: agents_by_prefix
-- Subagents whose key begins with :prefix
-- The subagents that a prefix can mean, the one of this very key first, then those with more
-- messages; an agent of two homes gives two rows.
select
    a.agent_type,
    a.description,
    a.message_count,
    s.title,
    s.session_key,
    a.agent_key,
    a.session_id,
    a.id
from subagents a
join sessions s on s.id = a.session_id
where a.agent_key >= :prefix
  and a.agent_key < :prefix || char(1114111)
order by a.agent_key <> :prefix, a.message_count desc, a.agent_key, a.id
limit 200

-- name: key_neighbours
-- The keys before and after :key
-- Of sessions and subagents. They tell how short a prefix of the key may be to mean only it.
select
    (
        select max(session_key)
        from sessions
        where session_key < :key
    ) as before,
    (
        select min(session_key)
        from sessions
        where session_key > :key
    ) as after,
    (
        select max(agent_key)
        from subagents
        where agent_key < :key
    ) as agent_before,
    (
        select min(agent_key)
        from subagents
        where agent_key > :key
    ) as agent_after

-- name: agent_key_neighbours
-- The keys of subagents before and after :key
-- They tell how short a prefix of the key may be to mean only it.
select
    (
        select max(agent_key)
        from subagents
        where agent_key < :key
    ) as before,
    (
        select min(agent_key)
        from subagents
        where agent_key > :key
    ) as after

-- name: session_key_files
-- The files that a reference with the key of a session can mean
-- Those with messages of the conversations :session_keys, a JSON array, in the order in which
-- references number them: where there is more of it first, transcripts before other files.
select
    f.path,
    r.root,
    f.gone_at,
    f.session_id,
    null as subagent_id,
    s.session_key,
    f.id
from sessions s
join files f on f.session_id = s.id and f.subagent_id is null
join sources r on r.id = f.source_id
where s.session_key in (select value from json_each(nullif(:session_keys, '')))
  and (select 1 from messages m where m.file_id = f.id limit 1) is not null
order by s.message_count desc, s.id, f.kind <> 'transcript', f.generation, f.own_since, f.path

-- name: agent_key_files
-- The files that a reference with the key of a subagent can mean
-- Those with messages of the subagents :agent_keys, a JSON array, in the order in which references
-- number them: where there is more first, its own files before the transcript that repeats it.
select
    f.path,
    r.root,
    f.gone_at,
    a.session_id,
    a.id as subagent_id,
    s.session_key,
    f.id,
    a.agent_key
from (
    select distinct m.subagent_id, m.file_id
    from messages m
    where m.subagent_id in (
        select o.id
        from subagents o
        where o.agent_key in (select value from json_each(nullif(:agent_keys, '')))
      )
) w
join subagents a on a.id = w.subagent_id
join sessions s on s.id = a.session_id
join files f on f.id = w.file_id
join sources r on r.id = f.source_id
order by a.message_count desc, a.id, f.subagent_id is null, f.generation, f.own_since, f.path

-- name: prompt_files
-- The files of the prompt history
-- In the order in which references number them.
select r.root, f.path, f.id
from files f
join sources r on r.id = f.source_id
where exists (
    select 1
    from prompts p
    where p.file_id = f.id
  )
order by r.root, f.path, f.generation

-- name: documents_called
-- Documents with the name of a file
-- The paths below their roots that end with the file name :name, to tell them apart.
select distinct i.path
from documents i
where i.path = :name
   or substr(i.path, -length(:name) - 1) = '/' || :name
order by i.path
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- name: reference_names
-- Names of entries that are no messages
-- What `show` could have been asked for instead of a name that it does not know, of the store :what.
select distinct e.head || iif(e.tail is null or e.what in ('inbox', 'document'), '', '/' || e.tail) as name
from searchable e
where e.what = :what
  and e.is_repeated = 0
  and e.head <> ''
limit 5000

-- name: line_messages
-- The messages of a line
-- All blocks from the place of a line in a file up to that of the next, :end_offset: a broken file
-- may have several records in a line. Of a result also the call that it answers, of a copy also
-- where the original is.
select
    m.kind,
    m.timestamp,
    m.byte_offset,
    m.block,
    t.name as tool,
    a.call_id as answers,
    c.byte_offset as call_offset,
    c.block as call_block,
    c.file_id as call_file_id,
    o.byte_offset as original_offset,
    o.file_id as original_file_id,
    o.session_id is m.session_id and o.subagent_id is null and m.subagent_id is null
        and o.file_id <> m.file_id as is_elsewhere,
    m.session_id,
    m.subagent_id,
    m.id
from messages m
left join tool_calls a on a.result_id = m.id
left join tool_calls t on t.call_id = m.id or t.id = a.id
left join messages c on c.id = a.call_id
left join messages o on o.id = m.copy_of
where m.file_id = :file
  and m.byte_offset >= :byte_offset
  and m.byte_offset < coalesce(nullif(:end_offset, ''), 9223372036854775807)
order by m.byte_offset, m.block

-- name: nearest_lines
-- The lines with messages around a place
-- In a file, the last before the place and the first after it.
select
    (
        select max(m.byte_offset)
        from messages m
        where m.file_id = :file and m.byte_offset < :byte_offset
    ) as before,
    (
        select min(m.byte_offset)
        from messages m
        where m.file_id = :file and m.byte_offset > :byte_offset
    ) as after

-- name: message_place
-- Where a message stands
-- Its conversation, its subagent and its place in the file; of a result, also the call it answers.
select
    m.kind,
    s.session_key,
    a.agent_key,
    m.byte_offset,
    m.block,
    c.call_id as answers,
    m.session_id,
    m.subagent_id,
    m.file_id,
    m.id
from messages m
left join sessions s on s.id = m.session_id
left join subagents a on a.id = m.subagent_id
left join tool_calls c on c.result_id = m.id
where m.id = :id
order by c.id
limit 1

-- name: message_places
-- Where messages stand
-- The places of the messages :ids, a JSON array, and of a copy the place of the original.
select
    m.id,
    m.file_id,
    m.byte_offset,
    m.block,
    m.role in ('user', 'assistant') and m.kind <> 'queued_prompt' as is_message,
    o.file_id as original_file_id,
    o.byte_offset as original_offset,
    o.block as original_block,
    s.session_key as original_session,
    s.title as original_title
from messages m
left join messages o on o.id = m.copy_of
left join sessions s on s.id = o.session_id
where m.id in (select value from json_each(nullif(:ids, '')))

-- name: entry
-- One entry that is no message
-- The entry :id of the store :what. is_session: the first part of its name is the key of a session.
select
    e.*,
    exists (
        select 1
        from sessions o
        where o.session_key = e.head
    ) as is_session,
    r.root,
    f.path
from searchable e
left join files f on f.id = e.file_id
left join sources r on r.id = e.source_id
where e.what = :what
  and e.id = :id

-- name: open_entries
-- Entries by name
-- Ids of the entries of the store :what that are called :head, or whose name begins with it where
-- :is_prefix is given (of documents: ends with it); with :tail only those with this second part.
select e.id
from searchable e
where e.what = :what
  and (
    e.head = :head
    or (
        coalesce(:is_prefix, '') <> ''
        and iif(
            :what = 'document',
            substr(e.head, -length(:head) - 1) = '/' || :head,
            e.head >= :head and e.head < :head || char(1114111)
        )
    )
  )
  and (coalesce(:tail, '') = '' or e.tail = :tail)
order by
    e.head,
    iif(e.what = 'todo', coalesce(e.facts, ''), ''),
    iif(e.what = 'todo', e.file_id, 0),
    iif(e.what = 'todo', e.gone_at is not null, 0),
    e.position,
    e.tail,
    iif(e.what = 'plan', e.timestamp, '') desc,
    e.channel,
    e.id
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

-- name: open_inbox
-- Messages of an inbox by name
-- Ids of the messages of the inbox :head, a team and a name with a slash between them, or of those
-- that begin with it where :is_prefix is given; with :tail only the message of that number.
with known as (
    select
        i.*,
        coalesce(f.team_key, f.path) || '/' || coalesce(i.recipient, '') as head
    from inbox_items i
    join files f on f.id = i.file_id
    where i.channel = 'inbox'
),
numbered as (
    select
        i.id,
        i.head,
        i.file_id,
        row_number() over (
            partition by i.file_id
            order by coalesce(i.timestamp, ''), coalesce(i.sender, ''), coalesce(i.text_hash, ''), i.ordinal
        ) as number
    from known i
)
select id
from numbered
where (
    head = :head
    or (coalesce(:is_prefix, '') <> '' and head >= :head and head < :head || char(1114111))
  )
  and (coalesce(:tail, '') = '' or number = :tail)
order by head, file_id, number
limit cast(coalesce(nullif(:limit, ''), 100) as integer)

-- name: open_prompt
-- A prompt of the history by its place
-- The id of the prompt that begins at :byte_offset in the history :file, or of the first one behind it.
select id
from prompts
where file_id = :file
  and byte_offset >= :byte_offset
order by byte_offset
limit 1

-- name: file_owners
-- Whose files are
-- The key of the subagent or the session that each of the files :files, a JSON array, belongs to.
select f.id, a.agent_key, s.session_key
from files f
left join subagents a on a.id = f.subagent_id
left join sessions s on s.id = f.session_id
where f.id in (select value from json_each(nullif(:files, '')))

-- name: row_owner
-- The conversation of a row
-- The keys of the session and of the subagent with these ids, null where there is none; the session
-- of the subagent if no session is named.
select
    a.agent_key,
    s.session_key,
    s.title
from (select 1)
left join subagents a on a.id = :subagent
left join sessions s on s.id = coalesce(:session, a.session_id)

-- Who made a file, a commit or a pull request

-- name: blame_calls
-- Calls by what they were given
-- Calls whose input an FTS5 expression finds, of the JSON array :actions, the last read first, at most
-- :limit. Begin the expression with {tool_text joined_tool_text} : for what tools were given.
select
    t.name as tool,
    t.action,
    t.target,
    t.paths,
    t.started_at as timestamp,
    t.ended_at,
    t.call_id,
    t.result_id,
    s.cwd,
    t.file_id,
    t.byte_offset,
    t.session_id,
    t.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.call_id = messages_fts.rowid
cross join messages m on m.id = t.call_id
cross join sessions s on s.id = t.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and t.action in (select value from json_each(coalesce(nullif(:actions, ''), '[]')))
  and t.status not in ('declined', 'error')
  and m.copy_of is null
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 1000) as integer)

-- name: blame_results
-- Calls by what they gave
-- Calls whose result an FTS5 expression finds, the first read first, at most :limit. Begin the
-- expression with {tool_text joined_tool_text} :.
select
    t.name as tool,
    t.action,
    t.target,
    m.timestamp,
    t.started_at,
    t.call_id,
    t.result_id,
    m.file_id,
    m.byte_offset,
    t.session_id,
    t.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, then the few calls among the messages.
cross join tool_calls t on t.result_id = messages_fts.rowid
cross join messages m on m.id = t.result_id
cross join sessions s on s.id = t.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and m.copy_of is null
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid
limit cast(coalesce(nullif(:limit, ''), 1000) as integer)

-- name: blame_said
-- What was said with these words
-- Messages of people and agents that an FTS5 expression finds, the last read first, at most :limit.
-- Begin the expression with {text joined_text} :.
select
    m.id,
    m.kind,
    m.timestamp,
    m.file_id,
    m.byte_offset,
    m.session_id,
    m.subagent_id
from messages_fts
-- A cross join is never reordered: the index comes first, else every message would be visited.
cross join messages m on m.id = messages_fts.rowid
cross join sessions s on s.id = m.session_id
where messages_fts match coalesce(nullif(:match, ''), '""')
  and m.copy_of is null
  and m.kind in (
      'prompt', 'queued_prompt', 'text', 'thinking', 'command', 'agent_prompt', 'agent_message',
      'compact_summary'
  )
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by messages_fts.rowid desc
limit cast(coalesce(nullif(:limit, ''), 200) as integer)

-- name: blame_texts
-- Texts of a few messages
-- The messages :ids, a JSON array.
select
    m.id,
    coalesce(m.text, m.tool_text) as text
from messages m
where m.id in (select value from json_each(coalesce(nullif(:ids, ''), '[]')))

-- name: blame_conversations
-- Conversations by their ids
-- Title, project, branch and source of the sessions :ids, a JSON array.
select
    s.id,
    s.session_key,
    s.title,
    p.name as project,
    coalesce(p.same_as, p.id) as project_id,
    s.git_branch,
    s.cwd,
    s.started_at,
    s.ended_at,
    r.kind as source
from sessions s
cross join sources r on r.id = s.source_id
left join projects p on p.id = s.project_id
where s.id in (select value from json_each(coalesce(nullif(:ids, ''), '[]')))

-- name: blame_places
-- Files and subagents that evidence names
-- For each [file, byte_offset, subagent] of the JSON array :places the path of the file, the type of
-- the subagent, the branch there, and the texts of the line.
select
    json_extract(x.value, '$[0]') as file_id,
    json_extract(x.value, '$[1]') as byte_offset,
    r.root || '/' || f.path as file,
    coalesce(a.agent_type, a.agent_key) as subagent,
    (
        select group_concat(coalesce(m.text, m.tool_text), char(10))
        from messages m
        where m.file_id = f.id
          and m.byte_offset = json_extract(x.value, '$[1]')
    ) as texts,
    (
        select c.value
        from contexts c
        where c.file_id = f.id
          and c.name = 'git_branch'
          and c.byte_offset <= json_extract(x.value, '$[1]')
        order by c.byte_offset desc
        limit 1
    ) as branch
from json_each(coalesce(nullif(:places, ''), '[]')) x
cross join files f on f.id = json_extract(x.value, '$[0]')
cross join sources r on r.id = f.source_id
left join subagents a on a.id = json_extract(x.value, '$[2]')

-- name: pull_request_links
-- Pull requests that conversations name as theirs
-- Links to the pull request number :number, the oldest first.
select
    i.url,
    i.title,
    i.timestamp,
    i.file_id,
    i.byte_offset,
    i.session_id
from links i
join sessions s on s.id = i.session_id
where i.kind = 'pull_request'
  and i.url like '%/' || :number
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by i.timestamp, i.id
limit 200

-- name: blame_branches
-- Where branches were checked out
-- Each stretch of a transcript with one of :branches, a JSON array, as its branch, at its first message
-- with a time; only those that began until :until and went on after :since.
select
    c.value as branch,
    m.timestamp,
    m.file_id,
    m.byte_offset,
    m.session_id,
    m.subagent_id
from contexts c
cross join messages m on m.id = (
    select f.id
    from messages f
    where f.file_id = c.file_id and f.byte_offset >= c.byte_offset and f.timestamp is not null
    order by f.byte_offset
    limit 1
)
cross join sessions s on s.id = m.session_id
where c.name = 'git_branch'
  and c.value in (select value from json_each(coalesce(nullif(:branches, ''), '[]')))
  and m.copy_of is null
  and (coalesce(:until, '') = '' or m.timestamp <= :until)
  and (coalesce(:since, '') = '' or coalesce(s.ended_at, m.timestamp) >= :since)
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
order by m.timestamp
limit 300

-- name: blame_lines
-- Who added lines
-- For each of :lines, a JSON array of hashes, the latest edit until :until that added it.
select
    x.value as line_hash,
    max(m.timestamp) as timestamp, -- SQLite takes the other columns from the same row
    t.name as tool,
    t.target,
    m.id as call_id,
    m.file_id,
    m.byte_offset,
    m.session_id,
    m.subagent_id
from json_each(coalesce(nullif(:lines, ''), '[]')) x
cross join added_lines l on l.line_hash = x.value
cross join messages m on m.file_id = l.file_id
    and m.byte_offset = l.byte_offset
    and m.block = l.block
cross join tool_calls t on t.call_id = m.id
cross join sessions s on s.id = m.session_id
where m.copy_of is null
  and t.status not in ('declined', 'error')
  and (coalesce(:until, '') = '' or m.timestamp <= :until)
  and (
    coalesce(:project, '') = ''
    or s.project_id in (select value from json_each(:project))
  )
group by x.value

-- name: blame_commits
-- Commands that may have made a commit
-- The first 100 commands of the session :session, subagents included, that name something with which
-- git commits.
select
    t.call_id,
    t.result_id,
    m.file_id,
    m.byte_offset
from tool_calls t
cross join messages m on m.id = t.result_id
where t.session_id = :session
  and t.action = 'run'
  and m.copy_of is null
  and t.status not in ('declined', 'error')
  and (
    t.target like '%commit%'
    or t.target like '%merge%'
    or t.target like '%revert%'
    or t.target like '%cherry-pick%'
    or t.target like '%rebase%'
  )
order by t.started_at, t.id
limit 100

-- How much was read

-- name: fresh
-- How fresh the index is
-- When the last sync ended, whether it read all that there was, and how many records could not be
-- parsed.
select
    (select max(coalesce(finished_at, started_at)) from sync_runs) as synced_at,
    exists (
        select 1
        from (
            select finished_at, error
            from sync_runs
            order by id desc
            limit 1
        ) last
        where last.finished_at is not null and last.error is null
    ) as is_complete,
    (select count(*) from issues) as issues

-- name: coverage
-- What is not in the index yet
-- Files that were read, and have grown since, and records that could not be parsed. A file of which
-- nothing is ever read, such as one with credentials, does not count, unless it is a transcript.
select
    count(*) as files,
    coalesce(sum(f.size - f.offset), 0) as bytes,
    (select count(*) from issues where quarantined = 1) as unparsed
from files f
where f.gone_at is null
  and f.offset < f.size
  and (f.offset > 0 or f.kind = 'transcript')

-- name: indexed_files
-- What was read
-- How many files were read, how many of them are no longer on the disk, how many pieces of them
-- could not be read at all (unread), and how many only with loss.
select
    (select count(*) from files) as files,
    (select count(*) from files where gone_at is not null) as gone,
    (select count(*) from issues where quarantined = 1) as unread,
    (select count(*) from issues where quarantined = 0) as lossy

-- name: new_lines
-- Types of lines that are new
-- How many lines there are of the types in :unknown, a JSON list of [source, type, subtype], by the
-- version of the agent that wrote the first of them in each file.
select
    n.source,
    n.label,
    n.type,
    n.subtype,
    sum(n.lines) as lines,
    n.version
from (
    select
        r.kind as source,
        coalesce(r.label, r.kind) as label,
        l.type,
        l.subtype,
        l.count as lines,
        coalesce((
            select c.value
            from contexts c
            where c.file_id = l.file_id
              and c.name = 'agent_version'
              and c.byte_offset <= l.first_offset
            order by c.byte_offset desc
            limit 1
        ), (
            select c.value
            from contexts c
            where c.file_id = l.file_id and c.name = 'agent_version'
            order by c.byte_offset
            limit 1
        ), x.agent_version) as version
    from json_each(coalesce(nullif(:unknown, ''), '[]')) u
    join sources r on r.kind = u.value ->> 0
    join files f on f.source_id = r.id
    join line_types l on l.file_id = f.id
        and l.type = u.value ->> 1 and l.subtype = u.value ->> 2 and l.first_offset is not null
    left join transcripts x on x.file_id = f.id
) n
group by n.source, n.label, n.type, n.subtype, n.version
order by n.source, n.type, n.subtype, n.version

-- name: agent_versions
-- Versions of agents
-- How many conversations each version of an agent wrote last.
select
    r.kind as source,
    s.agent_version as version,
    count(*) as sessions
from sessions s
join sources r on r.id = s.source_id
where s.agent_version is not null
group by r.kind, s.agent_version
order by r.kind, s.agent_version

-- What all machines have, as the tables and views of the local schema: the same queries run here.
--
-- An id is made of the origin and the key of a row. What two machines both have counts once, as it
-- does in one database that has read the homes of both: of a response the line with the most output
-- tokens counts, a message that another origin has pushed, too, is a copy of that of the first one,
-- and the counts of a session leave out what is in the same session of another origin.
--
-- Not here is what asks about one machine and travels as bytes only: hook events, changes in git,
-- runs of sync.

create index sessions_key on assoc.sessions (session_key);

create function assoc_read.id(origin integer, no integer) returns bigint
    language sql immutable strict parallel safe
    as $$ select (origin::bigint << 32) + no $$;
create function assoc_read.id(origin integer, no integer, key text) returns bigint
    language sql immutable strict parallel safe
    as $$ select hashtextextended(no::text || '/' || key, origin) $$;
create function assoc_read.id(origin integer, no integer, first text, second text) returns bigint
    language sql immutable parallel safe
    as $$
        select hashtextextended(no::text || '/' || coalesce(first, '') || '/' || second, origin)
    $$;
create function assoc_read.id(origin integer, no integer, byte_offset bigint, place integer)
    returns bigint
    language sql immutable strict parallel safe
    as $$
        select hashtextextended(no::text || '/' || byte_offset::text || '/' || place::text, origin)
    $$;

-- What a session has that the same session of an earlier origin has, too.
create type assoc_read.repetition as (
    lines bigint, prompts bigint, calls bigint, input_tokens bigint, output_tokens bigint,
    cache_read_tokens bigint, cache_write_tokens bigint
);
create function assoc_read.repeated(origin integer, no integer, key text)
    returns assoc_read.repetition
    language sql stable parallel safe
    as $$
        select m.lines, m.prompts, c.calls, r.*
        from (
            select
                count(distinct (file_no, byte_offset)) filter (
                    where role in ('user', 'assistant')
                ) as lines,
                count(distinct (file_no, byte_offset)) filter (
                    where kind in ('prompt', 'command', 'bash_input', 'queued_prompt')
                ) as prompts
            from assoc.messages m
            where m.origin_id = origin and m.source_no = no and m.session_key = key
              and m.is_copy = 0
              and m.agent_key is null
              and exists (
                select from assoc.messages o
                where o.uuid = m.uuid and o.block = m.block and o.is_copy = 0
                  and o.origin_id < m.origin_id
              )
        ) m
        cross join (
            select count(*) as calls
            from assoc.tool_calls t
            join assoc.messages m using (origin_id, file_no, byte_offset, block)
            where t.origin_id = origin and t.source_no = no and t.session_key = key
              and m.is_copy = 0
              and exists (
                select from assoc.messages o
                where o.uuid = m.uuid and o.block = m.block and o.is_copy = 0
                  and o.origin_id < m.origin_id
              )
        ) c
        cross join (
            select
                coalesce(sum(r.input_tokens), 0)::bigint,
                coalesce(sum(r.output_tokens), 0)::bigint,
                coalesce(sum(r.cache_read_tokens), 0)::bigint,
                coalesce(sum(r.cache_write_5m_tokens + r.cache_write_1h_tokens), 0)::bigint
            from assoc.responses r
            where r.origin_id = origin and r.source_no = no and r.session_key = key
              and exists (
                select from assoc.responses o
                where o.response_key = r.response_key and o.origin_id <> r.origin_id
                  and (o.output_tokens, r.origin_id) > (r.output_tokens, o.origin_id)
              )
        ) r
    $$;

create view assoc_read.files as
select
    path, kind, size, "offset", line_count, issue_count, mtime, first_seen_at, last_synced_at,
    gone_at, team_key, workflow, own_since, generation, file_key,
    assoc_read.id(origin_id, file_no) as id,
    stated_session_key as session_key,
    stated_agent_key as agent_key,
    stated_project_key as project_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id, file_no
from assoc.files
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.sources as
select
    kind, root, first_synced_at, last_synced_at, gone_at, cleanup_period_days, label, is_agent,
    lists_sessions, retention_days,
    assoc_read.id(origin_id, source_no) as id,
    origin_id
from assoc.sources
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.projects as
select
    name, path, key, is_worktree, on_disk, git_branch, is_dirty, head_branch, session_count,
    last_activity_at, gone_at, git_seen_at, change_count, repository, git_repository,
    assoc_read.id(origin_id, source_no, key) as id,
    assoc_read.id(origin_id, parent_source_no, parent_key) as parent_id,
    assoc_read.id(origin_id, source_no) as source_id,
    assoc_read.id(origin_id, same_source_no, same_key) as same_as,
    origin_id
from assoc.projects
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.agents as
select
    name, type, description, path, is_general, extra, agent_key, gone_at,
    assoc_read.id(origin_id, source_no, stated_project_key, agent_key) as id,
    nullif(stated_project_key, '') as project_key,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc.agents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.sessions as
select
    s.title, s.title_source, s.started_at, s.ended_at,
    s.message_count - coalesce((d).lines, 0) as message_count,
    s.copied_message_count + coalesce((d).lines, 0) as copied_message_count,
    s.prompt_count - coalesce((d).prompts, 0) as prompt_count,
    s.tool_call_count - coalesce((d).calls, 0) as tool_call_count,
    s.input_tokens - coalesce((d).input_tokens, 0) as input_tokens,
    s.output_tokens - coalesce((d).output_tokens, 0) as output_tokens,
    s.cache_read_tokens - coalesce((d).cache_read_tokens, 0) as cache_read_tokens,
    s.cache_write_tokens - coalesce((d).cache_write_tokens, 0) as cache_write_tokens,
    s.stated_cost_usd, s.models, s.git_branch, s.cwd, s.agent_version, s.kind, s.status,
    s.is_listed, s.context_tokens, s.context_window, s.permission_mode, s.ts_zone, s.slug,
    s.session_key, s.gone_at,
    assoc_read.id(origin_id, source_no, session_key) as id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, forked_source_no, forked_key) as forked_from,
    assoc_read.id(origin_id, linked_source_no, linked_key) as linked_session_id,
    assoc_read.id(origin_id, source_no) as source_id,
    assoc_read.id(origin_id, agent_source_no, agent_project_key, agent_key) as agent_id,
    origin_id
from (
    select
        s.*,
        case when k.session_key is not null
            then assoc_read.repeated(s.origin_id, s.source_no, s.session_key) end as d
    from assoc.sessions s
    left join ( -- those of several origins
        select session_key
        from assoc.sessions
        where origin_id = any ((select assoc.visible_origins())::integer[])
        group by session_key
        having min(origin_id) < max(origin_id)
    ) k on k.session_key = s.session_key
    where s.origin_id = any ((select assoc.visible_origins())::integer[])
    offset 0 -- else what is repeated would be counted once for each column
) s;

create view assoc_read.subagents as
select
    agent_type, description, kind, link_method, workflow, name, model, started_at, ended_at,
    message_count, tokens, agent_key, tool_call_count,
    assoc_read.id(origin_id, source_no, stated_session_key, agent_key) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, parent_source_no, parent_session_key, parent_key) as parent_id,
    nullif(stated_session_key, '') as session_key,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc.subagents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.teams as
select
    name, description, created_at, gone_at, lead_agent_key, key,
    assoc_read.id(origin_id, source_no, key) as id,
    stated_lead_session_key as lead_session_key,
    assoc_read.id(origin_id, lead_source_no, lead_session_key) as lead_session_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc.teams
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.team_members as
select
    name, agent_type, model, cwd, color, joined_at, prompt, subscriptions, backend_type,
    plan_mode_required, is_active, agent_id, gone_at, ordinal, extra,
    assoc_read.id(origin_id, 0, encode(file_key, 'hex'), member_key || '/' || ordinal::text) as id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    origin_id
from assoc.team_members
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tasks as
select
    subject, description, status, owner, active_form, metadata, task_number, task_key, list_key,
    gone_at, channel, stated_at, blocked_by, tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || channel) as id,
    assoc_read.id(origin_id, session_source_no, session_key) as session_id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc.tasks
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.task_dependencies as
select
    task_key, blocker_key, list_key,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || blocker_key) as id,
    assoc_read.id(origin_id, source_no, list_key, task_key || '/' || task_channel) as task_id,
    assoc_read.id(origin_id, source_no, list_key, blocker_key || '/' || blocker_channel)
        as blocker_id,
    assoc_read.id(origin_id, source_no) as source_id,
    origin_id
from assoc.task_dependencies
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.prices as
select
    model, valid_from, above_tokens, input, output, cache_read, cache_write_5m, cache_write_1h,
    web_search, origin,
    assoc_read.id(origin_id, 0, model, valid_from || '/' || above_tokens::text) as id,
    origin_id
from assoc.prices
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.messages as
select
    kind, text, tool_text, role, timestamp, model, uuid, parent_uuid, is_meta, is_sidechain,
    is_error, is_cut, has_cjk, byte_offset, byte_length, block, has_invisible, joined_text,
    joined_tool_text, is_superseded,
    assoc_read.id(origin_id, file_no, byte_offset, block) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    case when is_copy = 1 then 0 else ( -- 0: of another message of its origin
        select assoc_read.id(o.origin_id, o.file_no, o.byte_offset, o.block)
        from assoc.messages o
        where o.uuid = m.uuid and o.block = m.block and o.is_copy = 0 and o.origin_id < m.origin_id
          and o.origin_id = any ((select assoc.visible_origins())::integer[])
        order by o.origin_id
        limit 1
    ) end as copy_of,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.messages m
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tool_calls as
select
    name, target, status, started_at, ended_at, duration_ms, exit_code, output_file,
    tool_use_id, byte_offset, byte_length, block, search_count, response_key, action, paths,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    case when is_call = 1
        then assoc_read.id(origin_id, file_no, byte_offset, block) end as call_id,
    assoc_read.id(origin_id, file_no, result_offset, result_block) as result_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no, is_call, result_offset, result_block
from assoc.tool_calls
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.usage as
select
    response_key, api_message_id, request_id, stated_session_key, model, timestamp,
    input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, line_count, all_input_tokens,
    all_output_tokens, all_cache_read_tokens, all_cache_write_tokens, byte_offset, byte_length,
    stop_reason,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.usage
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.stated_usage as
select
    model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd,
    is_lower_bound, byte_offset, byte_length,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.stated_usage
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.responses as
select
    model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,
    cache_write_1h_tokens, web_searches, partial, stated_cost_usd, api_message_id, request_id,
    response_key, byte_offset, byte_length, stop_reason,
    hashtextextended(response_key, 0) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.responses r
where origin_id = any ((select assoc.visible_origins())::integer[])
  and not exists (
    select from assoc.responses o
    where o.response_key = r.response_key and o.origin_id <> r.origin_id
      and (o.output_tokens, r.origin_id) > (r.output_tokens, o.origin_id)
      and o.origin_id = any ((select assoc.visible_origins())::integer[])
);

create view assoc_read.prompts as
select
    text, timestamp, project_path, pasted, paste_hashes, byte_offset, byte_length, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_project_key as project_key,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.prompts
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.links as
select
    kind, url, title, timestamp, byte_offset, byte_length, gone_at, origin,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.links
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.documents as
select
    kind, title, text, path, project_path, modified_at, ordinal, gone_at, extra, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    stated_project_key as project_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, project_source_no, project_key) as project_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.documents
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.plans as
select
    title, text, name, status, modified_at, channel, tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.plans
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.todos as
select
    content, status, priority, active_form, position, gone_at, ordinal, channel, stated_at,
    tool_use_id, byte_offset, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    stated_agent_key as agent_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, source_no, agent_session_key, agent_key) as subagent_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.todos
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.inbox_items as
select
    text, sender, recipient, kind, summary, timestamp, is_read, color, payload, channel,
    gone_at, team_name, message_key, text_hash, tool_use_id, ordinal, byte_offset, byte_length,
    joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, team_source_no, team_key) as team_id,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    case when is_copy = 1 then 0 end as copy_of,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.inbox_items
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.tool_result_files as
select
    name, size, media_type, text, tool_use_id, joined,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    stated_session_key as session_key,
    assoc_read.id(origin_id, source_no, session_key) as session_id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.tool_result_files
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.issues as
select
    reason, quarantined, sample, byte_offset, byte_length,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.issues
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.line_types as
select
    type, subtype, count,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.line_types
where origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.agent_lines as
select
    agent_key, byte_offset,
    assoc_read.id(origin_id, file_no, byte_offset, row_no) as id,
    assoc_read.id(origin_id, file_no) as file_id,
    origin_id, file_no
from assoc.agent_lines
where origin_id = any ((select assoc.visible_origins())::integer[]);


-- As of when an answer is: the last push of each origin.
create view assoc_read.sync_runs as
select
    origin_id as id, pushed as started_at, pushed as finished_at, null::text as error
from (
    select
        origin_id,
        to_char(pushed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as pushed
    from assoc.origins
    where origin_id = any ((select assoc.visible_origins())::integer[])
) o;

-- The views of the local schema that reports ask.

create view assoc_read.coverage as
select l.type, l.subtype, sum(l.count) as lines, count(*) as files, r.kind as source
from assoc_read.line_types l
join assoc_read.files f on f.id = l.file_id
join assoc_read.sources r on r.id = f.source_id
group by r.kind, l.type, l.subtype;

create view assoc_read.orphaned_projects as
select p.name, p.path, p.last_activity_at, p.session_count, r.kind as source, p.id
from assoc_read.projects p
join assoc_read.sources r on r.id = p.source_id
where p.path is not null and p.on_disk = 0;

create view assoc_read.response_costs as
select
    r.model, r.timestamp,
    (
        select (
            r.input_tokens * p.input
            + r.output_tokens * p.output
            + r.cache_read_tokens * coalesce(p.cache_read, p.input)
            + r.cache_write_5m_tokens * coalesce(p.cache_write_5m, p.input)
            + r.cache_write_1h_tokens * coalesce(p.cache_write_1h, p.cache_write_5m, p.input)
            + (
                r.web_searches
                + coalesce((
                    select sum(searches)::bigint
                    from (
                        select max(c.search_count) as searches
                        from assoc.tool_calls c
                        where c.response_key = r.response_key and c.search_count is not null
                          and c.origin_id = any ((select assoc.visible_origins())::integer[])
                        group by c.tool_use_id
                    ) one
                ), 0)
            ) * coalesce(p.web_search, 0) * 1000
            + 500000
        ) / 1000000
        from assoc.prices p
        where p.origin_id = r.origin_id
          and p.model = r.model
          and p.valid_from <= coalesce(substr(r.timestamp, 1, 10), '9999')
          and (
              p.above_tokens = 0
              or p.above_tokens < r.input_tokens + r.cache_read_tokens
                  + r.cache_write_5m_tokens + r.cache_write_1h_tokens
          )
        order by p.valid_from desc, p.above_tokens desc
        limit 1
    ) as cost_microusd,
    r.partial, r.stated_cost_usd, r.input_tokens, r.output_tokens, r.cache_read_tokens,
    r.cache_write_5m_tokens + r.cache_write_1h_tokens as cache_write_tokens,
    s.title as session, p.name as project, s.session_key, o.kind as source,
    r.session_id, s.project_id, r.subagent_id, r.id
from assoc_read.responses r
left join assoc_read.sessions s on s.id = r.session_id
left join assoc_read.projects p on p.id = s.project_id
left join assoc_read.files f on f.id = r.file_id
left join assoc_read.sources o on o.id = f.source_id
where s.linked_session_id is null
   or not exists (select from assoc_read.responses o where o.session_id = s.linked_session_id);
create index tool_calls_searches on assoc.tool_calls (response_key) where search_count is not null;

create view assoc_read.retention as
select
    f.path, f.kind, s.title as session, p.name as project, f.size, f.mtime,
    case when f.gone_at is null then assoc_read.strftime(
        '%Y-%m-%dT%H:%M:%fZ', f.mtime, coalesce(r.cleanup_period_days, r.retention_days) || ' days'
    ) end as due_at,
    case when f.gone_at is null then trunc(
        assoc_read.julianday(f.mtime) + coalesce(r.cleanup_period_days, r.retention_days)
        - assoc_read.julianday('now')
    )::bigint end as days_left,
    (f.gone_at is not null)::integer as is_gone,
    f.gone_at, s.session_key, r.kind as source, f.session_id, f.project_id, f.id
from assoc_read.files f
join assoc_read.sources r on r.id = f.source_id and r.retention_days is not null
left join assoc_read.sessions s on s.id = f.session_id
left join assoc_read.projects p on p.id = f.project_id
where f.kind <> 'file_history';

create index files_session on assoc.files (origin_id, session_key);

create view assoc_read.session_ends as
select
    assoc_read.id(s.origin_id, s.source_no, s.session_key) as session_id,
    case coalesce((
        select m.kind
        from assoc.messages m
        where m.origin_id = s.origin_id
          and m.file_no = (
            select f.file_no
            from assoc.files f
            where f.origin_id = s.origin_id and f.source_no = s.source_no
              and f.session_key = s.session_key
              and f.kind = 'transcript' and f.agent_key is null
            order by f.gone_at is not null, f.mtime desc nulls last, f.file_no desc
            limit 1
          )
          and m.agent_key is null
          and m.kind in (
              'prompt', 'queued_prompt', 'text', 'tool_use', 'tool_result', 'error', 'interrupt'
          )
        order by m.byte_offset desc, m.block desc
        limit 1
    ), 'text')
        when 'text' then null
        when 'error' then 'ended with an error'
        when 'interrupt' then 'interrupted'
        else 'in the middle of a turn'
    end as state,
    s.ended_at as last_at, s.session_key, r.kind as source
from assoc.sessions s
join assoc.sources r using (origin_id, source_no)
where s.kind in ('main', 'background') and s.message_count > 0
  and s.origin_id = any ((select assoc.visible_origins())::integer[]);

create view assoc_read.stated_by_model as
select distinct on (f.session_id, u.model)
    u.model, u.input_tokens, u.output_tokens, u.cache_read_tokens, u.cache_write_tokens, u.cost_usd,
    u.is_lower_bound, u.timestamp,
    exists (
        select from assoc_read.responses r
        where r.file_id = u.file_id and r.byte_offset > u.byte_offset
    )::integer as is_followed,
    (select s.session_key from assoc_read.sessions s where s.id = f.session_id) as session_key,
    (select o.kind from assoc_read.sources o where o.id = f.source_id) as source,
    f.session_id, u.file_id, u.byte_offset
from assoc_read.stated_usage u
join assoc_read.files f on f.id = u.file_id
where f.kind = 'transcript'
  and u.byte_offset = (
    select max(o.byte_offset) from assoc_read.stated_usage o where o.file_id = u.file_id
  )
order by
    f.session_id, u.model, f.gone_at is not null, f.generation desc,
    (select max(o.cost_usd) from assoc_read.stated_usage o where o.file_id = u.file_id)
        desc nulls last,
    f.path, f.id;

create view assoc_read.stated_sessions as
select
    s.title, s.ended_at as last_at, coalesce(m.cost_usd, s.stated_cost_usd) as cost_usd,
    coalesce(m.input_tokens, case when n.session_id is null then s.input_tokens end)
        as input_tokens,
    coalesce(m.output_tokens, case when n.session_id is null then s.output_tokens end)
        as output_tokens,
    coalesce(m.cache_read_tokens, case when n.session_id is null then s.cache_read_tokens end)
        as cache_read_tokens,
    coalesce(m.cache_write_tokens, case when n.session_id is null then s.cache_write_tokens end)
        as cache_write_tokens,
    coalesce(m.is_lower_bound, 0) as is_lower_bound,
    s.session_key, o.kind as source, s.id as session_id,
    coalesce(s.linked_session_id, s.id) as counted_session_id
from assoc_read.sessions s
join assoc_read.sources o on o.id = s.source_id
left join assoc_read.stated_by_model m on m.session_id = s.id and m.model = ''
left join (select distinct session_id from assoc_read.responses) n on n.session_id = s.id
where s.stated_cost_usd is not null or m.session_id is not null;

create view assoc_read.usage_reconciliation as
with used as (
    select u.*, s.kind as agent
    from assoc_read.usage u
    join assoc_read.files f on f.id = u.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
),
counted as (
    select r.*, s.kind as agent
    from assoc_read.responses r
    join assoc_read.files f on f.id = r.file_id
    join assoc_read.sources s on s.id = f.source_id
    where s.is_agent = 1
)
select
    'every line' as counting,
    'adds up all lines of a response, and all copies of a conversation' as explanation,
    sum(line_count) as counted,
    sum(all_input_tokens) as input_tokens,
    sum(all_output_tokens) as output_tokens,
    sum(all_cache_read_tokens) as cache_read_tokens,
    sum(all_cache_write_tokens) as cache_write_tokens,
    null::double precision as cost_usd,
    sum(partial) as partial,
    null::bigint as unpriced,
    agent as source
from used
group by agent
union all
select
    'once in each file', 'takes a response once, and again in each forked or resumed copy',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from used
group by agent
union all
select
    'once, without subagents', 'takes a response once, of main conversations only',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
where subagent_id is null
group by agent
union all
select
    'once, without agents that have no file',
    'leaves out subagents whose messages only stand in the progress lines of their caller',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted c
where not exists (
    select from assoc.agent_lines l
    where l.origin_id = c.origin_id and l.file_no = c.file_no and l.byte_offset = c.byte_offset
)
group by agent
union all
select
    'once', 'takes each response once, subagents included: what this program counts',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_5m_tokens + cache_write_1h_tokens), null, sum(partial), null, agent
from counted
group by agent
union all
select
    'stated by the agent',
    'adds up what the agent, or the application, says of its sessions: the last time of each',
    count(*), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens),
    sum(cache_write_tokens), sum(cost_usd), sum(is_lower_bound), null, source
from assoc_read.stated_sessions
group by source
union all
select
    'once, where the agent states it', 'takes each response of these sessions once, to compare',
    count(*), sum(c.input_tokens), sum(c.output_tokens), sum(c.cache_read_tokens),
    sum(c.cache_write_tokens), assoc_read.round(sum(c.cost_microusd) / 1000000.0, 4),
    sum(c.partial), count(*) filter (where c.cost_microusd is null), t.source
from assoc_read.stated_sessions t
join assoc_read.response_costs c on c.session_id = t.counted_session_id
group by t.source;

-- Views read with the rights of their owner. Unless they are barriers, PostgreSQL may call a function
-- of the reader, or a cast that fails, on rows before it checks whether the reader may see them.
do $$
declare
    name text;
begin
    for name in select viewname from pg_views where schemaname = 'assoc_read' loop
        execute format('alter view assoc_read.%I set (security_barrier = true)', name);
    end loop;
end $$;

grant usage on schema assoc_read to assoc_reader, assoc_admin;
grant select on all tables in schema assoc_read to assoc_reader, assoc_admin;

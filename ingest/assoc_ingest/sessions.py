"""Sessions: titles, times and counts, from all that bears on them."""

from __future__ import annotations

import sqlite3

from .touched import Touched

_PROMPT_KINDS = "('prompt', 'command', 'bash_input', 'queued_prompt')"
_MAX_TITLE = 200


def refresh_summaries(connection: sqlite3.Connection) -> None:
    """Find the session that each summary line titles: the one that owns its leaf line."""
    connection.execute(
        "create temp table if not exists owners (id integer primary key, session_id integer)"
    )
    connection.execute("delete from owners")
    connection.execute(
        "insert into owners select u.id, ("
        " select m.session_id from messages m where m.uuid = u.leaf_uuid and m.copy_of is null"
        # Of each block one is the original: by the block, for ids follow the order of reading.
        " order by m.session_id is null, m.block limit 1) from summaries u"
        " where u.session_id is null or u.session_id in (select id from touched_sessions)"
        " or u.file_id in (select id from touched_files)"
    )
    for column in ("u.session_id", "o.session_id"):
        connection.execute(
            f"insert or ignore into touched_sessions select {column} from owners o"
            " join summaries u on u.id = o.id"
            f" where u.session_id is not o.session_id and {column} is not null"
        )
    connection.execute(
        "update summaries"
        " set session_id = (select o.session_id from owners o where o.id = summaries.id)"
        " where id in (select o.id from owners o cross join summaries u on u.id = o.id"
        "  where u.session_id is not o.session_id)"
    )


def refresh_sessions(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive the rows of touched sessions; drop those that nothing speaks of any more.

    A session's own transcript says most. What a program's lists state about it (`entries`) fills
    the gaps: a title, times and totals of a conversation that has no transcript here. What a list
    said that does not count, or no longer says, counts where no other of its kind says anything.
    """
    rows = connection.execute(  # one may be left for another
        "select distinct s.project_id from touched_sessions t cross join sessions s on s.id = t.id"
        " where s.project_id is not null"
    )
    touched.projects.update(project for (project,) in rows)
    connection.execute(
        "delete from sessions where id in (select id from touched_sessions)"
        " and not exists (select 1 from files f where f.session_id = sessions.id)"
        " and not exists (select 1 from session_entries e where e.session_id = sessions.id)"
    )
    connection.execute("drop table if exists temp.entries")
    connection.execute(
        "create temp table entries as select *, row_number() over ("
        "  partition by session_id order by kind, path, byte_offset) as place"
        " from (select *, min(is_gone) over (partition by session_id, kind) as are_gone"
        "  from (select e.*, f.path,"
        "   coalesce(e.gone_at, f.gone_at) is not null"
        "   or e.file_id in (select file_id from stale_lists) as is_gone"
        "   from touched_sessions t cross join session_entries e on e.session_id = t.id"
        "   join files f on f.id = e.file_id))"
        " where is_gone = are_gone"
    )
    connection.execute(f"""
        with main as materialized (
            select s.id as session_id, (
                select f.id from files f
                where f.session_id = s.id and f.kind = 'transcript'
                order by f.gone_at is not null, f.generation desc, f.path limit 1
            ) as file_id, coalesce((
                select f.project_id from files f
                where f.session_id = s.id and f.project_id is not null
                order by f.kind <> 'transcript', f.gone_at is not null, f.generation desc, f.path
                limit 1
            ), (select e.project_id from entries e
                where e.session_id = s.id and e.project_id is not null order by place limit 1)
            ) as own_project_id,
            (select e.project_id from entries e where e.session_id = s.id
                and e.kind in ('conversation', 'chat') and e.project_id is not null
                order by place limit 1) as listed_project_id,
            (select x.kind in ('chorus', 'ccinsights') from sources x where x.id = s.source_id)
                as has_list
            from touched_sessions t cross join sessions s on s.id = t.id
        ),
        tokens as (
            select r.session_id, sum(input_tokens) as input, sum(output_tokens) as output,
                sum(cache_read_tokens) as cache_read,
                sum(cache_write_5m_tokens + cache_write_1h_tokens) as cache_write,
                sum(stated_cost_usd) as cost
            from touched_sessions t cross join responses r on r.session_id = t.id
            group by r.session_id
        ),
        stated as (
            select session_id,
                {_first_stated("title", "i.kind in ('conversation', 'chat')")} as title,
                {_first_stated("title", "i.kind = 'index'")} as index_title,
                {_first_stated("title", "i.kind in ('job', 'registry')")} as job_title,
                {_first_stated("summary", "i.kind <> 'job'")} as summary,
                {_first_stated("first_prompt")} as first_prompt,
                min(started_at) as started_at, max(ended_at) as ended_at,
                max(message_count) as message_count,
                {_first_stated("git_branch")} as git_branch,
                {_first_stated("cwd")} as cwd,
                {_first_stated("model")} as model,
                {_first_stated("permission_mode")} as permission_mode,
                {_first_stated("status", "not (i.is_gone and i.kind = 'registry')")} as status,
                max(is_sidechain) as is_sidechain,
                max(kind in ('conversation', 'chat') and not is_gone) as is_listed,
                iif(count(*) = count(gone_at), max(gone_at), null) as gone_at,
                {_first_stated("linked_session_id")} as linked_session_id,
                max(input_tokens) as input, max(output_tokens) as output,
                max(cache_read_tokens) as cache_read, max(cache_write_tokens) as cache_write,
                max(cost_usd) as cost,
                {_first_stated("context_tokens")} as context_tokens,
                {_first_stated("context_window")} as context_window
            from entries o group by session_id
        ),
        fact as (
            select m.session_id, m.file_id, m.has_list,
                coalesce(m.listed_project_id, m.own_project_id) as project_id,
                coalesce(x.started_at, (
                    select min(y.started_at) from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id), e.started_at) as started_at,
                coalesce(x.ended_at, (
                    select max(y.ended_at) from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id), e.ended_at) as ended_at,
                coalesce(x.message_count, e.message_count, 0) as message_count,
                (select count(distinct p.byte_offset) from messages p
                    where p.session_id = m.session_id and p.kind in {_PROMPT_KINDS}
                    and p.file_id = m.file_id and p.subagent_id is null
                    and (p.kind <> 'queued_prompt' or p.uuid is not null or p.copy_of is null)
                ) as prompt_count,
                (select count(*) from tool_calls c
                    where c.session_id = m.session_id and c.name is not null
                ) - ( -- side agents repeat the calls of their session
                    select count(*) from messages b
                    cross join tool_calls c on c.call_id = b.id
                    cross join messages o on o.id = b.copy_of
                    where b.session_id = m.session_id and b.kind = 'tool_use'
                    and b.copy_of is not null and o.session_id = b.session_id
                ) as tool_call_count,
                nullif(x.custom_title, '') as custom_title,
                coalesce(nullif(x.ai_title, ''), nullif(e.title, '')) as ai_title,
                nullif(x.agent_name, '') as agent_name,
                nullif(e.index_title, '') as index_title,
                coalesce((select u.title from summaries u join files a on a.id = u.file_id
                    where u.session_id = m.session_id
                    order by a.kind = 'transcript' desc, a.path desc, u.byte_offset desc limit 1
                ), nullif(e.summary, '')) as summary,
                coalesce(x.first_prompt, nullif(e.first_prompt, '')) as first_prompt,
                coalesce((
                    select p.text from prompts p where p.session_id = m.session_id
                    order by p.timestamp, p.byte_offset limit 1
                ), nullif(e.job_title, '')) as history,
                nullif(x.slug, '') as slug,
                coalesce(x.git_branch, e.git_branch) as git_branch,
                coalesce(x.first_cwd, (
                    select y.first_cwd from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id and y.first_cwd is not null
                    order by a.path limit 1), e.cwd) as cwd,
                x.time_zone as ts_zone, x.agent_version,
                coalesce(x.permission_mode, e.permission_mode) as permission_mode,
                case
                    when m.file_id is not null and x.session_kind = 'bg' then 'background'
                    when x.message_count > 0 and x.sidechain_count = x.message_count
                        or m.file_id is null and e.is_sidechain = 1 then 'sidechain'
                    when m.file_id is not null then 'main'
                    when exists (select 1 from files a where a.session_id = m.session_id)
                    then 'side_files'
                    else 'listed'
                end as kind,
                (select o.session_id from messages o where o.id = (
                    select c.copy_of from messages c
                    where c.file_id = m.file_id and c.uuid is not null
                    order by c.byte_offset, c.block limit 1)
                ) as origin,
                e.model, e.status, coalesce(e.is_listed, 0) as is_listed, e.linked_session_id,
                e.input, e.output, e.cache_read, e.cache_write, e.cost,
                e.context_tokens, e.context_window,
                iif(exists (select 1 from files a where a.session_id = m.session_id),
                    null, e.gone_at) as gone_at
            from main m
            left join transcripts x on x.file_id = m.file_id
            left join stated e on e.session_id = m.session_id
        )
        update sessions set
            title = rtrim(substr(trim(replace(replace(replace(coalesce(
                x.custom_title, x.ai_title, x.agent_name, x.index_title, x.summary,
                x.first_prompt, x.history, x.slug, session_key
            ), char(13), ''), char(10), ' '), char(9), ' ')), 1, {_MAX_TITLE})),
            title_source = case
                when x.custom_title is not null then 'custom-title'
                when x.ai_title is not null then iif(x.has_list, 'list', 'ai-title')
                when x.agent_name is not null then 'agent-name'
                when x.index_title is not null then 'index'
                when x.summary is not null then 'summary'
                when x.first_prompt is not null then 'prompt'
                when x.history is not null then 'history'
                when x.slug is not null then 'slug'
                else 'id'
            end,
            project_id = x.project_id,
            started_at = x.started_at,
            ended_at = x.ended_at,
            message_count = x.message_count,
            prompt_count = x.prompt_count,
            tool_call_count = x.tool_call_count,
            input_tokens = coalesce(t.input, x.input),
            output_tokens = iif(t.session_id is null, x.output, t.output),
            cache_read_tokens = iif(t.session_id is null, x.cache_read, t.cache_read),
            cache_write_tokens = iif(t.session_id is null, x.cache_write, t.cache_write),
            stated_cost_usd = coalesce(x.cost, t.cost),
            context_tokens = x.context_tokens,
            context_window = x.context_window,
            models = coalesce((select nullif(json_group_array(model), '[]') from (
                select distinct model from responses r
                where r.session_id = sessions.id and model is not null order by model)),
                iif(x.model is null, '[]', json_array(x.model))),
            git_branch = x.git_branch,
            cwd = x.cwd,
            agent_version = x.agent_version,
            kind = x.kind,
            status = x.status,
            is_listed = iif(x.has_list, x.is_listed, null),
            permission_mode = x.permission_mode,
            ts_zone = x.ts_zone,
            slug = x.slug,
            gone_at = x.gone_at,
            linked_session_id = x.linked_session_id,
            forked_from = nullif(x.origin, sessions.id)
        from fact x left join tokens t on t.session_id = x.session_id
        where x.session_id = sessions.id
    """)


def _first_stated(column: str, condition: str = "1") -> str:
    """Return SQL for the first value of a column in the entries of one session `o.session_id`."""
    return (
        f"(select i.{column} from entries i where i.session_id = o.session_id"
        f" and i.{column} is not null and {condition} order by i.place limit 1)"
    )

"""Sessions: times, places, counts and titles, from everything that is known about them."""

from __future__ import annotations

import sqlite3

from .changeset import Touched
from .session_counts import count
from .titles import refresh_titles

_NEWEST = "is_gone, generation desc, ended_at desc, path, root"
"""The order of a session's transcripts for facts that change: the newest one counts."""


def refresh_sessions(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive the rows of changed sessions; delete those that are no longer referenced.

    The first steps make temporary tables with one row for each session, the last ones write:

    1. `entries`: what lists, registries and sidecars state, the best of each kind first;
    2. `mains`: the session's own transcripts. There is usually one; a session in two project
       directories, or exported twice, is described by all of them;
    3. `told`: what the transcripts say; `stated`: what the entries say, which fills the gaps;
    4. the session's row: what it is and where it was held, its counts, and its title.
    """
    rows = connection.execute(  # a session may leave one project for another
        "select distinct s.project_id from touched_sessions t cross join sessions s on s.id = t.id"
        " where s.project_id is not null"
    )
    touched.projects.update(project for (project,) in rows)
    _touch_forks(connection)
    connection.execute(
        "delete from sessions where id in (select id from touched_sessions)"
        " and not exists (select 1 from files f where f.session_id = sessions.id)"
        " and not exists (select 1 from session_entries e where e.session_id = sessions.id)"
    )
    _gather_entries(connection)
    _gather_transcripts(connection)
    _describe(connection)
    count(connection)
    refresh_titles(connection)


def _touch_forks(connection: sqlite3.Connection) -> None:
    """Mark sessions as changed that state to be forks of a session that is new or goes."""
    connection.execute(
        "insert or ignore into touched_sessions select f.session_id from touched_sessions t"
        " cross join sessions s on s.id = t.id"
        " cross join transcripts x on x.forked_from_key = s.session_key"
        " cross join files f on f.id = x.file_id and f.source_id = s.source_id"
        " where f.session_id is not null"
    )


def _make(connection: sqlite3.Connection, table: str, query: str, key: str) -> None:
    """Create a temporary table from a query, with a primary key."""
    connection.execute(f"drop table if exists temp.{table}")
    connection.execute(f"create temp table {table} as {query}")
    connection.execute(f"create index temp.{table}_key on {table} ({key})")


def _gather_entries(connection: sqlite3.Connection) -> None:
    """Gather what lists state; entries that are gone count only if nothing else is stated."""
    _make(
        connection,
        "entries",
        "select *, row_number() over ("
        "  partition by session_id order by kind, path, byte_offset) as place"
        " from (select *, min(is_gone) over (partition by session_id, kind) as are_gone"
        "  from (select e.*, f.path,"
        "   coalesce(e.gone_at, f.gone_at) is not null"
        "   or e.file_id in (select file_id from stale_lists) as is_gone"
        "   from touched_sessions t cross join session_entries e on e.session_id = t.id"
        "   join files f on f.id = e.file_id))"
        " where is_gone = are_gone",
        "session_id, place",
    )
    _make(
        connection,
        "stated",
        f"""
        select session_id,
            {_first_stated("title", "i.kind in ('conversation', 'chat')")} as title,
            coalesce({_first_stated("title", "i.kind = 'index'")},
                {_first_stated("title", "i.kind = 'meta'")}) as index_title,
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
            {_first_stated("project_id")} as project_id,
            {_first_stated("project_id", "i.kind in ('conversation', 'chat')")}
                as listed_project_id,
            {_first_stated("project_id", "i.kind = 'relocated'")} as new_project_id,
            {_first_stated("cwd", "i.kind = 'relocated'")} as new_cwd,
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
        """,
        "session_id",
    )


def _gather_transcripts(connection: sqlite3.Connection) -> None:
    """Gather what a session's transcripts say: for most facts the newest, for some the first."""
    _make(
        connection,
        "mains",
        f"""
        select *, row_number() over (partition by session_id order by {_NEWEST}) as place,
            row_number() over (
                partition by session_id order by is_gone, started_at is null, started_at, path, root
            ) as first_place
        from (
            select x.*, f.session_id, f.id as transcript_id, f.project_id, f.generation, f.path,
                f.gone_at is not null as is_gone,
                (select root from sources where id = f.source_id) as root
            from touched_sessions t cross join files f on f.session_id = t.id
            left join transcripts x on x.file_id = f.id -- none where no line could be read
            where f.kind = 'transcript'
        )
        """,
        "session_id, place",
    )
    newest = (
        "custom_title", "ai_title", "agent_name", "slug", "git_branch", "agent_version",
        "permission_mode", "session_kind", "time_zone", "project_id",
    )  # fmt: skip
    columns = [f"{_first_told(column)} as {column}" for column in newest]
    columns += [
        f"{_first_told(column, 'first_place')} as {column}"
        for column in ("first_prompt", "first_cwd", "forked_from_key")
    ]
    _make(
        connection,
        "told",
        f"""
        select session_id, {", ".join(columns)},
            min(started_at) as started_at, max(ended_at) as ended_at,
            -- Lines of subagents inside a transcript count there, unless it has no others.
            sum(message_count - repeated_count
                - iif(message_count > sidechain_count, sidechain_count, 0)) as message_count,
            sum(copied_count) as copied_count,
            sum(message_count) as line_count, sum(sidechain_count) as sidechain_count
        from mains o group by session_id
        """,
        "session_id",
    )


_KIND = """
    case
        when m.session_kind = 'bg' then 'background'
        when m.line_count > 0 and m.sidechain_count = m.line_count
            or m.session_id is null and e.is_sidechain = 1 then 'sidechain'
        when m.session_id is not null then 'main'
        when a.session_id is not null then 'side_files'
        else 'listed'
    end
"""
"""The kind of a session, from `told`, `stated` and its other files."""

_ORIGIN = """
    coalesce((
        select o.id from sessions o
        where o.source_id = s.source_id and o.session_key = m.forked_from_key and o.id <> s.id
    ), (
        select o.session_id from mains x
        join messages c on c.id = (
            select b.id from messages b
            where b.file_id = x.transcript_id and b.uuid is not null
            order by b.byte_offset, b.block limit 1
        )
        join messages o on o.id = c.copy_of and o.session_id <> s.id
        where x.session_id = s.id
        order by x.first_place limit 1
    ))
"""
"""The session that a session is a fork of: the one that its lines state, else the one whose line
its first line repeats."""

_SIDE_FILES = """
    select f.session_id, min(y.started_at) as started_at, max(y.ended_at) as ended_at,
        (
            select z.first_cwd from files b join transcripts z on z.file_id = b.id
            where b.session_id = f.session_id and z.first_cwd is not null
            order by b.path limit 1
        ) as first_cwd
    from touched_sessions t cross join files f on f.session_id = t.id
    left join transcripts y on y.file_id = f.id
    group by f.session_id
"""
"""What the other files of a session say, for a session without a transcript."""


def _describe(connection: sqlite3.Connection) -> None:
    """Write the kind of a session, where it was held, and what it is a fork of."""
    connection.execute(f"""
        update sessions set
            project_id = x.project_id,
            started_at = x.started_at,
            ended_at = x.ended_at,
            git_branch = x.git_branch,
            cwd = x.cwd,
            agent_version = x.agent_version,
            permission_mode = x.permission_mode,
            kind = x.kind,
            status = x.status,
            is_listed = x.is_listed,
            ts_zone = x.time_zone,
            slug = x.slug,
            gone_at = x.gone_at,
            linked_session_id = x.linked_session_id,
            forked_from = x.origin
        from (
            select s.id,
                coalesce(e.new_project_id, e.listed_project_id, m.project_id, (
                    select f.project_id from files f
                    where f.session_id = s.id and f.project_id is not null
                    order by f.gone_at is not null, f.generation desc, f.path limit 1
                ), e.project_id) as project_id,
                coalesce(m.started_at, a.started_at, e.started_at) as started_at,
                coalesce(m.ended_at, a.ended_at, e.ended_at) as ended_at,
                coalesce(m.git_branch, e.git_branch) as git_branch,
                coalesce(e.new_cwd, m.first_cwd, a.first_cwd, e.cwd) as cwd,
                m.agent_version, m.time_zone, nullif(m.slug, '') as slug,
                coalesce(m.permission_mode, e.permission_mode) as permission_mode,
                e.status, e.linked_session_id,
                iif(a.session_id is null, e.gone_at, null) as gone_at,
                iif(r.lists_sessions = 1, coalesce(e.is_listed, 0), null) as is_listed,
                {_KIND} as kind,
                {_ORIGIN} as origin
            from touched_sessions t cross join sessions s on s.id = t.id
            join sources r on r.id = s.source_id
            left join told m on m.session_id = s.id
            left join stated e on e.session_id = s.id
            left join ({_SIDE_FILES}) a on a.session_id = s.id
        ) x where x.id = sessions.id and sessions.id in (select id from touched_sessions)
    """)


def _first_stated(column: str, condition: str = "1") -> str:
    """Return SQL for the first value of a column in the entries of one session `o.session_id`."""
    return (
        f"(select i.{column} from entries i where i.session_id = o.session_id"
        f" and i.{column} is not null and {condition} order by i.place limit 1)"
    )


def _first_told(column: str, order: str = "place") -> str:
    """Return SQL for the first value of a column in the transcripts of one session."""
    return (
        f"(select i.{column} from mains i where i.session_id = o.session_id"
        f" and i.{column} is not null order by i.{order} limit 1)"
    )

"""Sessions: times, places, counts and titles, from everything that is known about them."""

from __future__ import annotations

import sqlite3

from .. import tags
from .changeset import Touched

# ------------------------------------------------------------------------------------------------
# Titles of sessions: the best one that is stated anywhere, and where it comes from.


_MAX_TITLE = 200
_READ = 4_000  # letters of a prompt that are looked at for its title
_PLAN = "implement the following plan"
"""How a prompt begins that an agent wrote itself, when its user accepted a plan."""

_TITLES = {
    "note": "note",
    "custom_title": "custom-title",
    "ai_title": "ai-title",
    "agent_name": "agent-name",
    "index_title": "index",
    "summary": "summary",
    "first_prompt": "prompt",
    "history": "history",
    "command": "command",
    "slug": "slug",
}
"""Candidates for the title of a session, the best first, each with the name of its source."""


def refresh_summaries(connection: sqlite3.Connection) -> None:
    """Find the session of each summary line: the one that has its leaf line."""
    connection.execute(
        "create temp table if not exists owners (id integer primary key, session_id integer)"
    )
    connection.execute("delete from owners")
    connection.execute(
        "insert into owners select u.id, ("
        " select m.session_id from messages m where m.uuid = u.leaf_uuid and m.copy_of is null"
        # Each block has one original. By block, not by id: ids follow the order of reading.
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


def of_prompt(text: str | None) -> str | None:
    """Return a prompt as a title: plain text, and of an accepted plan the plan's own title."""
    if text is None:
        return None
    text = text[:_READ].strip()
    text = tags.command(text) or text
    if text[: len(_PLAN)].lower() == _PLAN:
        plan = text[len(_PLAN) :].lstrip(": \t\r\n")
        heading = plan.partition("\n")[0] if plan.startswith("#") else plan
        kind, colon, title = heading.lstrip("# ").partition(":")
        is_named = colon and kind.strip().lower() in ("plan", "implementation plan")
        text = (title if is_named else heading.lstrip("# ")).strip() or text
    return text.lstrip("# ").replace("**", "").replace("`", "") or text


def refresh_titles(connection: sqlite3.Connection) -> None:
    """Write the titles of changed sessions, from `told` and `stated` (see `sessions`)."""
    connection.create_function("title_of_prompt", 1, of_prompt, deterministic=True)
    candidates = ", ".join(f"x.{column}" for column in _TITLES)
    sources = " ".join(
        f"when x.{column} is not null then '{name}'" for column, name in _TITLES.items()
    )
    connection.execute(f"""
        update sessions set
            title = rtrim(substr(trim(replace(replace(replace(coalesce(
                {candidates}, session_key
            ), char(13), ''), char(10), ' '), char(9), ' ')), 1, {_MAX_TITLE})),
            title_source = iif(x.is_list and coalesce(x.note, x.custom_title) is null
                and x.ai_title is not null, 'list', case {sources} else 'id' end)
        from (
            select s.id, r.lists_sessions = 1 as is_list,
                (
                    select n.title from notes n
                    where n.session_key = s.session_key and n.line_key is null
                    and n.title <> ''
                    order by n.origin is not null, n.noted_at desc, n.id limit 1
                ) as note,
                nullif(m.custom_title, '') as custom_title,
                coalesce(nullif(m.ai_title, ''), nullif(e.title, '')) as ai_title,
                nullif(m.agent_name, '') as agent_name,
                nullif(e.index_title, '') as index_title,
                coalesce((
                    select u.title from summaries u join files a on a.id = u.file_id
                    where u.session_id = s.id
                    order by a.kind = 'transcript' desc, a.path desc, u.byte_offset desc limit 1
                ), nullif(e.summary, '')) as summary,
                title_of_prompt(coalesce(
                    m.first_prompt, nullif(e.first_prompt, ''), {_first_typed("queued_prompt")}
                )) as first_prompt,
                coalesce(title_of_prompt((
                    select p.text from prompts p where p.session_id = s.id
                    order by p.timestamp, p.byte_offset limit 1
                )), nullif(e.job_title, '')) as history,
                iif(m.first_prompt is null, title_of_prompt({_first_typed("command")}), null)
                    as command,
                nullif(m.slug, '') as slug
            from touched_sessions t cross join sessions s on s.id = t.id
            join sources r on r.id = s.source_id
            left join told m on m.session_id = s.id
            left join stated e on e.session_id = s.id
        ) x where x.id = sessions.id and sessions.id in (select id from touched_sessions)
    """)


# ------------------------------------------------------------------------------------------------
# The counts of a session, without copies, its tokens, and the models that it used.
#
# A session of a hundred thousand messages may get another one each second. So the prompts and the
# tokens of an append are added to those before it. They are counted again in all other cases: if
# rows that were there before have changed, if much was added, and if costs are stated, since the
# sum of fractions depends on their order. Everything else is counted again.


_IS_PROMPT = """(
    p.kind = 'prompt' or p.kind = 'command' or p.kind = 'bash_input' or p.kind = 'queued_prompt'
)"""

_LINE_OF_PROMPT = "p.file_id, p.subagent_id, p.uuid, p.copy_of, p.byte_offset"
"""The line of a prompt, as a part of the index that begins with its session.

All but the file and the offset are the same in all blocks of a line; with these columns, and a plus
before those of a condition, SQLite counts in the order of the index and does not sort.
"""

_USED_MODELS = """
    with recursive used (model) as (
        select min(r.model) from responses r where r.session_id = t.id
        union all
        select (select min(r.model) from responses r where r.session_id = t.id
            and r.model > used.model)
        from used where used.model is not null
    )
    select json_group_array(model) from used where model is not null
"""
"""The models of a session, sorted: from one to the next in the index, not through all responses."""


def count(connection: sqlite3.Connection, touched: Touched) -> None:
    """Write the counts of a session, without copies, and its tokens."""
    connection.execute("delete from grown")
    if touched.is_append:
        _note_growth(connection, touched.first_message_id)
    connection.execute(f"""
        update sessions set
            message_count = x.message_count,
            copied_message_count = x.copied_count,
            prompt_count = iif(x.has_grown, sessions.prompt_count, 0) + x.prompt_count,
            tool_call_count = x.tool_call_count,
            input_tokens = iif(x.has_grown, sessions.input_tokens + x.used_input,
                coalesce(x.used_input, x.input)),
            output_tokens = iif(x.has_grown, sessions.output_tokens + x.used_output,
                iif(x.used_input is null, x.output, x.used_output)),
            cache_read_tokens = iif(x.has_grown, sessions.cache_read_tokens + x.used_cache_read,
                iif(x.used_input is null, x.cache_read, x.used_cache_read)),
            cache_write_tokens = iif(x.has_grown, sessions.cache_write_tokens + x.used_cache_write,
                iif(x.used_input is null, x.cache_write, x.used_cache_write)),
            stated_cost_usd = coalesce(x.cost, x.stated_cost, x.used_cost),
            context_tokens = x.context_tokens,
            context_window = x.context_window,
            models = coalesce(nullif(x.used_models, '[]'),
                iif(x.model is null, '[]', json_array(x.model)))
        from (
            select t.id, coalesce(m.message_count, e.message_count, 0) as message_count,
                coalesce(m.copied_count, 0) as copied_count,
                g.id is not null as has_grown,
                iif(g.id is not null, g.prompts, (
                    select count(*) from (
                        select distinct {_LINE_OF_PROMPT} from messages p
                        where p.session_id = t.id and {_IS_PROMPT}
                        and +p.copy_of is null and +p.subagent_id is null
                    )
                )) as prompt_count,
                (
                    select count(*) from tool_calls c
                    where c.session_id = t.id and c.name is not null
                ) - (
                    select coalesce(sum(y.repeated_call_count), 0)
                    from files f join transcripts y on y.file_id = f.id
                    where f.session_id = t.id
                ) as tool_call_count,
                e.input, e.output, e.cache_read, e.cache_write, e.cost, e.model,
                e.context_tokens, e.context_window,
                iif(g.id is not null, g.input, u.input) as used_input,
                iif(g.id is not null, g.output, u.output) as used_output,
                iif(g.id is not null, g.cache_read, u.cache_read) as used_cache_read,
                iif(g.id is not null, g.cache_write, u.cache_write) as used_cache_write,
                u.cost as used_cost,
                (
                    select y.cost_usd from stated_by_model y
                    where y.session_id = t.id and y.model = ''
                ) as stated_cost,
                ({_USED_MODELS}) as used_models
            from touched_sessions t
            left join told m on m.session_id = t.id
            left join stated e on e.session_id = t.id
            left join grown g on g.id = t.id
            left join (
                select t.id as session_id, sum(input_tokens) as input, sum(output_tokens) as output,
                    sum(cache_read_tokens) as cache_read,
                    sum(cache_write_5m_tokens + cache_write_1h_tokens) as cache_write,
                    sum(stated_cost_usd) as cost
                from touched_sessions t cross join responses r on r.session_id = t.id
                where t.id not in (select id from grown)
                group by t.id -- in whose order they come: those of one session need no sorting
            ) u on u.session_id = t.id
        ) x where x.id = sessions.id and sessions.id in (select id from touched_sessions)
    """)


def _note_growth(connection: sqlite3.Connection, first_message_id: int) -> None:
    """Put into `grown` what an append adds to sessions that have responses it did not change.

    So their sums are those of responses, not what an application states.
    """
    connection.execute(
        f"""
        insert into grown
        select t.id,
            (
                select count(*) from (
                    -- the pluses keep SQLite from going through an index of all messages
                    select distinct +p.file_id, +p.byte_offset from messages p
                    where p.id >= ? and +p.session_id = t.id and {_IS_PROMPT}
                    and p.copy_of is null and p.subagent_id is null
                )
            ),
            coalesce(sum(x.input), 0), coalesce(sum(x.output), 0), coalesce(sum(x.cache_read), 0),
            coalesce(sum(x.cache_write), 0)
        from touched_sessions t left join spent x on x.session_id = t.id
        where exists (
            select 1 from responses r
            where r.session_id = t.id and r.response_key not in (select unique_key from best)
        )
        and not exists (
            select 1 from responses r
            where r.session_id = t.id and r.stated_cost_usd is not null
        )
        group by t.id
        """,
        (first_message_id,),
    )


_NEWEST = "is_gone, generation desc, ended_at desc, path, root"
"""The order of a session's transcripts for facts that change: the newest one counts."""


def refresh_sessions(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive the rows of changed sessions; delete those that are no longer referenced.

    The first steps make temporary tables with one row for each session, the last ones write:

    1. `entries`: what lists, registries and sidecars state, the best of each kind first;
    2. `mains`: the session's own transcripts. There is usually one; a session in two project
       directories, or exported twice, is described by all of them;
    3. `told`: what the transcripts say; `stated`: what the entries say, which fills the gaps;
    4. the session's row: what it is and where it was held, its counts, what it only repeats, and
       its title.
    """
    rows = connection.execute(  # a session may leave one project for another
        "select distinct s.project_id from touched_sessions t cross join sessions s on s.id = t.id"
        " where s.project_id is not null"
    )
    touched.projects.update(project for (project,) in rows)
    _touch_forks(connection)
    connection.execute(  # the same conversation in another home
        "insert or ignore into touched_sessions select o.id from touched_sessions t"
        " cross join sessions s on s.id = t.id"
        " cross join sessions o on o.session_key = s.session_key where o.id <> s.id"
    )
    connection.execute(
        "delete from sessions where id in (select id from touched_sessions)"
        " and not exists (select 1 from files f where f.session_id = sessions.id)"
        " and not exists (select 1 from session_entries e where e.session_id = sessions.id)"
    )
    _gather_entries(connection)
    _gather_transcripts(connection)
    _describe(connection)
    count(connection, touched)
    _link_copies(connection)
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


def _link_copies(connection: sqlite3.Connection) -> None:
    """Link sessions of which everything is a copy to the same session in another home.

    Counts and costs of the other one are whole: lists show it alone.
    """
    connection.execute("""
        update sessions set linked_session_id = (
            select o.id from sessions o join sources p on p.id = o.source_id
            where o.session_key = sessions.session_key and o.message_count > 0
                and p.kind = (select r.kind from sources r where r.id = sessions.source_id)
            order by o.message_count desc, p.root limit 1
        )
        where id in (select id from touched_sessions) and linked_session_id is null
            and message_count = 0 and copied_message_count > 0
            and not exists (
                select 1 from messages m where m.session_id = sessions.id and m.copy_of is null
                and m.role in ('user', 'assistant')
            )
            and not exists (select 1 from responses u where u.session_id = sessions.id)
    """)


def _first_typed(kind: str) -> str:
    """Return SQL for the first message of a kind in the session `s.id` that may be its title."""
    return f"""(
        select p.text from messages p where p.session_id = s.id and p.kind = '{kind}'
        and p.subagent_id is null and trim(p.text) <> ''
        and p.text not like '%<command-name>/clear<%' and p.text not like '%<command-name>/exit<%'
        order by p.timestamp, p.byte_offset, p.block limit 1
    )"""


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

"""What follows from rows, refreshed for what a batch touched, in the batch's transaction.

Nothing here depends on the order in which files were read. A fact is computed again from all rows
that bear on it, so each step first finds what a change can reach, and then derives it anew:

1. sidechains: agents inside a main file (1.0.x) become subagents;
2. copies: forks repeat lines of other files; every block has one canonical occurrence;
3. queued prompts: one that was delivered is a copy of the row that delivered it;
4. subagents: their kind, times and counts, and the call that spawned them (`links`);
5. responses: one row per API response, from the best of its lines in all files;
6. sessions and projects: titles, times, counts, paths.

Sets of ids that a step hands to the next lie in temporary tables named `touched_*`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from . import links

TEMPORARY = """
create temp table if not exists touched_files (id integer primary key);
create temp table if not exists touched_uuids (uuid text primary key) without rowid;
create temp table if not exists touched_sessions (id integer primary key);
create temp table if not exists touched_responses (response_key text primary key) without rowid;
create temp table if not exists canonical (id integer primary key, copy_of integer);
"""

# Whose line is the original, where several files have it: a main file before an agent's, a
# foreground session before a background fork, the one that went its own way first, the path.
_FILE_RANK = """
    case f.kind when 'transcript' then 0 when 'agent' then 1 else 2 end,
    coalesce((select session_kind = 'bg' from transcripts where file_id = f.id), 0),
    coalesce(f.own_since, ''),
    f.path,
    f.generation,
    (select root from sources where id = f.source_id)
"""

_PROMPT_KINDS = "('prompt', 'command', 'bash_input', 'queued_prompt')"
_QUEUED = "kind in ('queued_prompt', 'task_notification') and uuid is null"
_MAX_TITLE = 200


@dataclass
class Touched:
    """What a batch changed, collected while it is written."""

    files: set[int] = field(default_factory=set)
    sessions: set[int] = field(default_factory=set)
    responses: set[str] = field(default_factory=set)
    sidechains: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)
    """Files that lost a partner: a rewritten file had lines that they have too."""
    first_message_id: int = 0

    def before_clearing(self, connection: sqlite3.Connection, file_id: int) -> None:
        """Remember what depends on the rows of a file that is about to be read anew."""
        self.responses.update(
            key
            for (key,) in connection.execute(
                "select response_key from usage where file_id = ?", (file_id,)
            )
        )
        self.shared.update(
            partner
            for (partner,) in connection.execute(
                "select distinct o.file_id from messages m"
                " join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
                " where m.file_id = ?",
                (file_id,),
            )
        )
        (session,) = connection.execute(
            "select session_id from files where id = ?", (file_id,)
        ).fetchone()
        if session is not None:
            self.sessions.add(session)


def refresh(connection: sqlite3.Connection, touched: Touched) -> None:
    """Derive again all that the batch can have changed. Runs inside the batch's transaction."""
    for statement in TEMPORARY.split(";"):
        connection.execute(statement)
    _assign_sidechains(connection, touched.sidechains)
    affected = _refresh_copies(connection, touched)
    _refresh_queued(connection, touched, affected)
    _collect_sessions(connection, touched, affected)
    _refresh_summaries(connection)
    links.refresh_subagents(connection)
    _refresh_responses(connection, touched, affected)
    _refresh_sessions(connection)
    _refresh_projects(connection)


def _fill(connection: sqlite3.Connection, table: str, values: Iterable[int | str]) -> None:
    connection.execute(f"delete from {table}")
    connection.executemany(f"insert into {table} values (?)", ((value,) for value in values))


# -- sidechains ----------------------------------------------------------------------------------


def _assign_sidechains(connection: sqlite3.Connection, files: Iterable[int]) -> None:
    """Give the sidechain lines of a main file to subagents: one per chain, named by its root.

    The chain of a line is found by following `parentUuid` as long as it names another sidechain
    line of the file. Lines may stand in any order, so the whole file is looked at again.
    """
    for file_id in files:
        rows = connection.execute(
            "select id, uuid, parent_uuid from messages"
            " where file_id = ? and is_sidechain = 1 and uuid is not null"
            " order by byte_offset, block",
            (file_id,),
        ).fetchall()
        parents: dict[str, str | None] = {}
        for _, uuid, parent in rows:
            parents.setdefault(uuid, parent)
        roots = _chain_roots(parents)
        source, session, key = connection.execute(
            "select source_id, session_id, session_key from files where id = ?", (file_id,)
        ).fetchone()
        ids: dict[str, int] = {}
        for root in dict.fromkeys(roots.values()):
            connection.execute(
                "insert into subagents (source_id, session_id, session_key, agent_key, kind)"
                " values (?, ?, ?, ?, 'sidechain') on conflict do nothing",
                (source, session, key, root),
            )
            (ids[root],) = connection.execute(
                "select id from subagents"
                " where source_id = ? and coalesce(session_key, '') = ? and agent_key = ?",
                (source, key or "", root),
            ).fetchone()
        connection.executemany(
            "update messages set subagent_id = ? where id = ?",
            ((ids[roots[uuid]], id_) for id_, uuid, _ in rows),
        )
        connection.execute(
            "update tool_calls set subagent_id = (select m.subagent_id from messages m"
            " where m.id = coalesce(call_id, result_id)) where file_id = ?",
            (file_id,),
        )


def _chain_roots(parents: dict[str, str | None]) -> dict[str, str]:
    """Return the root of each line's chain; in a cycle, its first line in the file."""
    roots: dict[str, str] = {}
    for start in parents:
        path: list[str] = []
        walked = set()
        uuid: str | None = start
        while uuid in parents and uuid not in roots and uuid not in walked:
            path.append(uuid)
            walked.add(uuid)
            uuid = parents[uuid]
        if uuid in roots:
            root = roots[uuid]
        elif uuid in walked:
            order = {name: place for place, name in enumerate(parents)}
            root = min(path, key=order.__getitem__)
        else:
            root = path[-1]
        roots.update(dict.fromkeys(path, root))
    return roots


# -- copies --------------------------------------------------------------------------------------


def _refresh_copies(connection: sqlite3.Connection, touched: Touched) -> set[int]:
    """Point every block that stands elsewhere too to its canonical occurrence.

    A file is *affected* when it has a line that another file has as well and one of the two has
    just changed: then the time since when it went its own way may have changed, and with it which
    of its lines are originals. Returns the affected files.
    """
    repeated, sharing = _new_lines_that_stand_twice(connection, touched)
    affected = touched.shared | sharing | _files_on_their_own_way(connection, touched)
    if touched.moved:
        affected.update(_partners(connection, touched.moved))
    _fill(connection, "touched_files", affected | touched.files)
    connection.execute(
        "update files set own_since = ("
        " select m.timestamp from messages m"
        " where m.file_id = files.id and m.uuid is not null and m.timestamp is not null"
        " and not exists (select 1 from messages o"
        "  where o.uuid = m.uuid and o.file_id <> m.file_id)"
        " order by m.byte_offset, m.block limit 1)"
        " where id in (select id from touched_files)"
        f" and (own_since is null or id in ({_ids(affected)}))"
    )
    if not affected and not repeated:
        return affected
    _fill(connection, "touched_files", affected)
    _fill(connection, "touched_uuids", repeated)
    connection.execute(
        "insert or ignore into touched_uuids"
        " select m.uuid from touched_files t cross join messages m on m.file_id = t.id"
        " where m.uuid is not null and (m.copy_of is not null or exists ("
        "  select 1 from messages o where o.uuid = m.uuid and o.id <> m.id))"
    )
    connection.execute("delete from canonical")
    connection.execute(
        "insert into canonical (id, copy_of) select id, nullif(first, id) from ("
        " select m.id, first_value(m.id) over ("
        f" partition by m.uuid, m.block order by {_FILE_RANK}, m.byte_offset) as first"
        " from touched_uuids u"
        " cross join messages m on m.uuid = u.uuid"
        " join files f on f.id = m.file_id)"
    )
    connection.execute(
        "update messages set copy_of = c.copy_of from canonical c"
        " where c.id = messages.id and messages.copy_of is not c.copy_of"
    )
    return affected


def _ids(values: Iterable[int]) -> str:
    """Return ids as SQL text; they are our own integers, and there may be more than variables."""
    return ", ".join(map(str, values))


def _new_lines_that_stand_twice(
    connection: sqlite3.Connection, touched: Touched
) -> tuple[set[str], set[int]]:
    """Look for the lines of this batch elsewhere.

    Returns the uuids that a file repeats (a compaction appends lines again), and the files, old
    and new, that share lines with each other.
    """
    rows = connection.execute(
        # Not indexed: the planner would scan an index of all messages for the sake of distinct.
        "select distinct n.file_id, o.file_id, iif(n.file_id = o.file_id, n.uuid, null)"
        " from messages n not indexed"
        " cross join messages o on o.uuid = n.uuid and o.id <> n.id"
        " where n.id >= ? and n.uuid is not null"
        " and (o.file_id <> n.file_id or o.byte_offset <> n.byte_offset)",
        (touched.first_message_id,),
    ).fetchall()
    repeated = {uuid for _, _, uuid in rows if uuid is not None}
    sharing = {file_id for *pair, uuid in rows if uuid is None for file_id in pair}
    return repeated, sharing


def _files_on_their_own_way(connection: sqlite3.Connection, touched: Touched) -> set[int]:
    """Return grown files that so far had no line of their own: they may have one now."""
    rows = connection.execute(
        f"select f.id from files f where f.id in ({_ids(touched.files)}) and f.own_since is null"
        " and exists (select 1 from messages m where m.file_id = f.id and m.id < ?"
        "  and m.uuid is not null)",
        (touched.first_message_id,),
    )
    return {file_id for (file_id,) in rows}


def _partners(connection: sqlite3.Connection, files: Iterable[int]) -> set[int]:
    rows = connection.execute(
        "select distinct m.file_id, o.file_id from messages m"
        " cross join messages o on o.uuid = m.uuid and o.file_id <> m.file_id"
        f" where m.file_id in ({_ids(files)}) and m.uuid is not null"
    )
    return {file_id for pair in rows for file_id in pair}


# -- queued prompts ------------------------------------------------------------------------------


def _refresh_queued(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    """Make each delivered queue entry a copy of the row that delivered it.

    An entry is delivered by the first row after it in the file that has the same text and that
    delivered none before. Rows are only ever appended, so an earlier match stays, and an entry
    that is still open can only be delivered by a new row; where originals may have changed, the
    file is matched from its beginning.
    """
    for file_id in touched.files | affected:
        is_anew = file_id in affected
        entries = connection.execute(
            f"select id, byte_offset, text from messages"
            f" where file_id = ? and {_QUEUED} and (copy_of is null or ?) order by byte_offset",
            (file_id, is_anew),
        ).fetchall()
        if not entries:
            continue
        rows = connection.execute(
            "select id, byte_offset, text, copy_of from messages"
            f" where file_id = ? and id >= ? and role = 'user' and text <> '' and not ({_QUEUED})"
            " order by byte_offset, block",
            (file_id, 0 if is_anew else touched.first_message_id),
        )
        open_entries: dict[str, list[tuple[int, int]]] = {}
        for entry_id, offset, text in reversed(entries):
            open_entries.setdefault(text, []).append((entry_id, offset))
        matches: dict[int, int | None] = dict.fromkeys((entry[0] for entry in entries), None)
        for row_id, offset, text, copy_of in rows:
            waiting = open_entries.get(text)
            if waiting and waiting[-1][1] < offset:
                matches[waiting.pop()[0]] = copy_of or row_id
        connection.executemany(
            "update messages set copy_of = ?1 where id = ?2 and copy_of is not ?1",
            ((target, entry_id) for entry_id, target in matches.items()),
        )


# -- what is touched -----------------------------------------------------------------------------


def _collect_sessions(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    _fill(connection, "touched_files", touched.files | affected | touched.moved)
    _fill(connection, "touched_sessions", touched.sessions)
    connection.execute(
        "insert or ignore into touched_sessions select f.session_id from touched_files t"
        " join files f on f.id = t.id where f.session_id is not null"
    )


def _refresh_summaries(connection: sqlite3.Connection) -> None:
    """Find the session that each summary line titles: the one that owns its leaf line."""
    connection.execute(
        "create temp table if not exists owners (id integer primary key, session_id integer)"
    )
    connection.execute("delete from owners")
    connection.execute(
        "insert into owners select u.id, ("
        " select m.session_id from messages m where m.uuid = u.leaf_uuid and m.copy_of is null"
        " order by m.session_id is null, m.id limit 1) from summaries u"
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
        "update summaries set session_id = o.session_id from owners o"
        " where o.id = summaries.id and summaries.session_id is not o.session_id"
    )


# -- responses -----------------------------------------------------------------------------------


def _refresh_responses(
    connection: sqlite3.Connection, touched: Touched, affected: set[int]
) -> None:
    """Write one row per API response that the batch touched.

    The line with the most output tokens counts, as a whole; of several, that of the canonical
    file, there the last. The response belongs to the session and the subagent of its canonical
    occurrence. Gateways use the same message id in several sessions, so an id that is not
    Anthropic's and comes without any request id is one response per session.
    """
    keys = set(touched.responses)
    if affected:
        rows = connection.execute(
            f"select distinct response_key from usage where file_id in ({_ids(affected)})"
        )
        keys.update(key for (key,) in rows)
    if touched.sidechains:  # the rows may have moved between subagents
        rows = connection.execute(
            f"select response_key from usage where file_id in ({_ids(touched.sidechains)})"
        )
        keys.update(key for (key,) in rows)
    if not keys:
        return
    _fill(connection, "touched_responses", keys)
    connection.execute(
        "create temp table if not exists best as"
        " select *, '' as unique_key, 0 as session_id, 0 as subagent_id from usage where 0"
    )
    connection.execute("delete from best")
    connection.execute(f"""
        insert into best
        select u.*, first_value(f.session_id) over canonical,
            first_value(coalesce(f.subagent_id, (
                select m.subagent_id from messages m
                where m.file_id = u.file_id and m.byte_offset = u.byte_offset limit 1
            ))) over canonical
        from (
            select usage.*, case
                when usage.response_key like 'msg\\_%' escape '\\' or usage.api_message_id is null
                    or max(usage.request_id) over (partition by usage.response_key) is not null
                then usage.response_key
                else usage.response_key || ' in ' || coalesce(usage.stated_session_key, '')
            end as unique_key
            from touched_responses t
            cross join usage on usage.response_key = t.response_key
        ) u
        join files f on f.id = u.file_id
        window canonical as (partition by u.unique_key order by {_FILE_RANK}, u.byte_offset)
    """)
    columns = (
        "model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,"
        " cache_write_1h_tokens, web_searches, partial, session_id, subagent_id, api_message_id,"
        " request_id, file_id, byte_offset, byte_length"
    )
    assignments = ", ".join(f"{name} = excluded.{name}" for name in columns.split(", "))
    connection.execute(
        "insert or ignore into touched_sessions"
        " select r.session_id from best b join responses r on r.response_key = b.unique_key"
        " where r.session_id is not null"
        " union select session_id from best where session_id is not null"
    )
    connection.execute(
        "delete from responses where id in (select r.id from touched_responses t"
        " cross join responses r on r.response_key = t.response_key"
        " or r.response_key between t.response_key || ' in ' and t.response_key || ' in!'"
        " where r.response_key not in (select unique_key from best))"
    )
    connection.execute(f"""
        insert into responses (response_key, {columns})
        select unique_key, {columns} from (
            select u.*, row_number() over (
                partition by u.unique_key
                order by u.output_tokens desc, {_FILE_RANK}, u.byte_offset desc
            ) as place
            from best u join files f on f.id = u.file_id
        )
        where place = 1
        on conflict (response_key) do update set {assignments}
    """)


# -- sessions and projects -----------------------------------------------------------------------


def _refresh_sessions(connection: sqlite3.Connection) -> None:
    """Derive the rows of touched sessions; drop those that nothing speaks of any more."""
    connection.execute(
        "delete from sessions where id in (select id from touched_sessions)"
        " and not exists (select 1 from files f where f.session_id = sessions.id)"
    )
    connection.execute(f"""
        with main as materialized (
            select s.id as session_id, (
                select f.id from files f
                where f.session_id = s.id and f.kind = 'transcript'
                order by f.gone_at is not null, f.generation desc, f.path limit 1
            ) as file_id, (
                select f.project_id from files f
                where f.session_id = s.id and f.project_id is not null
                order by f.kind <> 'transcript', f.gone_at is not null, f.generation desc, f.path
                limit 1
            ) as project_id
            from touched_sessions t join sessions s on s.id = t.id
        ),
        tokens as (
            select r.session_id, sum(input_tokens) as input, sum(output_tokens) as output,
                sum(cache_read_tokens) as cache_read,
                sum(cache_write_5m_tokens + cache_write_1h_tokens) as cache_write
            from touched_sessions t join responses r on r.session_id = t.id
            group by r.session_id
        ),
        fact as (
            select m.session_id, m.file_id, m.project_id,
                coalesce(x.started_at, (
                    select min(y.started_at) from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id)) as started_at,
                coalesce(x.ended_at, (
                    select max(y.ended_at) from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id)) as ended_at,
                coalesce(x.message_count, 0) as message_count,
                (select count(*) from messages p
                    where p.session_id = m.session_id and p.kind in {_PROMPT_KINDS}
                    and p.file_id = m.file_id and p.subagent_id is null
                    and (p.kind <> 'queued_prompt' or p.uuid is not null or p.copy_of is null)
                ) as prompt_count,
                (select count(*) from tool_calls c
                    where c.session_id = m.session_id and c.name is not null) as tool_call_count,
                x.custom_title, x.ai_title, x.agent_name, x.first_prompt,
                (select u.title from summaries u join files a on a.id = u.file_id
                    where u.session_id = m.session_id
                    order by a.kind = 'transcript' desc, a.path desc, u.byte_offset desc limit 1
                ) as summary,
                coalesce(x.slug, '') as slug, x.git_branch,
                coalesce(x.first_cwd, (
                    select y.first_cwd from files a join transcripts y on y.file_id = a.id
                    where a.session_id = m.session_id and y.first_cwd is not null
                    order by a.path limit 1)) as cwd,
                x.agent_version, x.permission_mode,
                case
                    when m.file_id is null then 'side_files'
                    when x.session_kind = 'bg' then 'background'
                    when x.message_count > 0 and x.sidechain_count = x.message_count
                    then 'sidechain'
                    else 'main'
                end as kind,
                (select o.session_id from messages o where o.id = (
                    select c.copy_of from messages c
                    where c.file_id = m.file_id and c.uuid is not null
                    order by c.byte_offset, c.block limit 1)
                ) as origin
            from main m
            left join transcripts x on x.file_id = m.file_id
        )
        update sessions set
            title = substr(trim(replace(replace(replace(coalesce(
                nullif(x.custom_title, ''), nullif(x.ai_title, ''), nullif(x.agent_name, ''),
                x.summary, x.first_prompt, nullif(x.slug, ''), session_key
            ), char(13), ''), char(10), ' '), char(9), ' ')), 1, {_MAX_TITLE}),
            title_source = case
                when x.custom_title <> '' then 'custom-title'
                when x.ai_title <> '' then 'ai-title'
                when x.agent_name <> '' then 'agent-name'
                when x.summary is not null then 'summary'
                when x.first_prompt is not null then 'prompt'
                when x.slug <> '' then 'slug'
                else 'id'
            end,
            project_id = x.project_id,
            started_at = x.started_at,
            ended_at = x.ended_at,
            message_count = x.message_count,
            prompt_count = x.prompt_count,
            tool_call_count = x.tool_call_count,
            input_tokens = (select input from tokens where session_id = sessions.id),
            output_tokens = (select output from tokens where session_id = sessions.id),
            cache_read_tokens = (select cache_read from tokens where session_id = sessions.id),
            cache_write_tokens = (select cache_write from tokens where session_id = sessions.id),
            models = (select json_group_array(model) from (
                select distinct model from responses r
                where r.session_id = sessions.id and model is not null order by model)),
            git_branch = x.git_branch,
            cwd = x.cwd,
            agent_version = x.agent_version,
            kind = x.kind,
            permission_mode = x.permission_mode,
            slug = nullif(x.slug, ''),
            forked_from = nullif(x.origin, sessions.id)
        from fact x
        where x.session_id = sessions.id
    """)


def _refresh_projects(connection: sqlite3.Connection) -> None:
    """Derive the rows of the projects of touched files and sessions."""
    rows = connection.execute(
        "select project_id from files where id in (select id from touched_files)"
        " union select project_id from sessions where id in (select id from touched_sessions)"
    )
    for project_id in [row[0] for row in rows if row[0] is not None]:
        path = connection.execute(
            "select coalesce(x.first_project_cwd, x.first_cwd) from files f"
            " join transcripts x on x.file_id = f.id where f.project_id = ?"
            " order by x.first_project_cwd is null, x.first_cwd is null,"
            " f.kind <> 'transcript', x.started_at, f.path limit 1",
            (project_id,),
        ).fetchone()
        path = path[0].replace("\\", "/") if path and path[0] else None
        name = re.split("/+", path.rstrip("/"))[-1] if path else None
        connection.execute(
            "update projects set path = ?1, name = coalesce(nullif(?2, ''), ?1, name),"
            " session_count = (select count(*) from sessions s"
            "  where s.project_id = projects.id and s.kind <> 'sidechain'),"
            " last_activity_at = (select max(s.ended_at) from sessions s"
            "  where s.project_id = projects.id),"
            " git_branch = (select s.git_branch from sessions s"
            "  where s.project_id = projects.id and s.git_branch is not null"
            "  order by s.ended_at desc, s.session_key limit 1)"
            " where id = ?3",
            (path, name, project_id),
        )

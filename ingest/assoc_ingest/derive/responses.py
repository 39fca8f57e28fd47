"""One row per API response, from the best of its lines in all files.

Copies of a line are one response. Most state the same id wherever they are. Where they do not, the
line tells: what gateways call a response is unique within a session only, so the copy of a message
in another session counts as its original.

Threads of some agents have no ids of responses: a response is a thread and its totals so far
(`<thread>:<totals>`). A fork may begin with those of its parent, and not every version says so: its
lines are `partial` then. From the first one on, they are inherited as long as the parent, or what
that is a fork of, has the same totals and counts. If no file has responses of the parent, its forks
are compared with each other: the first one owns what they share, in the order of their keys, which
begin with their time. All else is the fork's own, and partial only if there was nothing to compare
it with.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from typing import Any

from ..sql import id_list
from .changeset import FILE_RANK, Touched, fill

_COLUMNS = (
    "model, timestamp, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens,"
    " cache_write_1h_tokens, web_searches, partial, stated_cost_usd, session_id, subagent_id,"
    " api_message_id, request_id, stop_reason, file_id, byte_offset, byte_length"
)


_totals_of = re.compile(r"(.+):[0-9]+(?:\+[0-9]+){3}").fullmatch
_OF_THREAD = "u.response_key >= ?1 || ':' and u.response_key < ?1 || ';'"

_IS_REPEATED = """exists (
    select 1 from messages m join messages o on o.id = m.copy_of and o.file_id = m.file_id
    where m.file_id = u.file_id and m.byte_offset = u.byte_offset
)"""
"""Does the file have lines of the response again? Then what was written once is not known."""

_TOUCHED = (
    "from touched_responses t cross join responses r on r.response_key = t.response_key"
    " or r.response_key between t.response_key || ' in ' and t.response_key || ' in!'"
)
"""The stored responses of changed lines."""


def refresh_responses(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> None:
    """Write one row for each changed API response.

    The line with the most output tokens counts, as a whole; of several, the last one in the
    canonical file. The response has the time of its first line, and belongs to the session and the
    subagent of its canonical occurrence. Gateways use the same message id in several sessions, so
    an id that is not Anthropic's and comes without a request id is one response per session.
    """
    keys = _touched_keys(connection, touched, affected)
    of_forks = [
        row
        for family in _families(connection, touched, keys)
        for row in _compared(connection, family)
    ]
    keys.update(key for key, _, _ in of_forks)
    connection.execute("delete from best")
    connection.execute("delete from spent")
    if not keys:
        return
    fill(connection, "touched_responses", keys)
    connection.execute("delete from of_forks")
    connection.executemany(
        "insert into of_forks (response_key, counts_as, partial) values (?, ?, ?)", of_forks
    )
    _rank_files(connection)
    _find_best(connection)
    connection.execute(
        "insert or ignore into touched_sessions"
        " select r.session_id from best b join responses r on r.response_key = b.unique_key"
        " where r.session_id is not null"
        " union select session_id from best where session_id is not null"
        " union select r.session_id from of_forks x join responses r using (response_key)"
        " where x.counts_as <> x.response_key and r.session_id is not null"
    )
    if touched.is_append:
        _note_spent(connection, "-")
    connection.execute(
        f"delete from responses where id in (select r.id {_TOUCHED}"
        " where r.response_key not in (select unique_key from best))"
    )
    _write_best(connection)
    if touched.is_append:
        _note_spent(connection, "+")


def _note_spent(connection: sqlite3.Connection, sign: str) -> None:
    """Note what the changed responses add to their sessions; with a minus, what they did before."""
    connection.execute(
        f"insert into spent select r.session_id, {sign}r.input_tokens, {sign}r.output_tokens,"
        f" {sign}r.cache_read_tokens, {sign}(r.cache_write_5m_tokens + r.cache_write_1h_tokens)"
        f" {_TOUCHED} where r.session_id is not null"
    )


def _touched_keys(connection: sqlite3.Connection, touched: Touched, affected: set[int]) -> set[str]:
    """Return the keys of responses with new lines, or lines that may now count elsewhere."""
    keys = set(touched.responses)
    if affected:
        rows = connection.execute(
            f"select distinct response_key from usage where file_id in ({id_list(affected)})"
        )
        keys.update(key for (key,) in rows)
    if touched.sidechains:  # rows may have moved to other subagents
        rows = connection.execute(
            f"select response_key from usage where file_id in ({id_list(touched.sidechains)})"
        )
        keys.update(key for (key,) in rows)
    return keys


def _families(
    connection: sqlite3.Connection, touched: Touched, keys: set[str]
) -> list[dict[str, str | None]]:
    """Return the threads of each family of forks that was touched, with what each is a fork of."""
    threads = {match[1] for match in map(_totals_of, keys) if match} | touched.forked
    rows = connection.execute(
        "select coalesce(f.agent_key, f.session_key), x.forked_from_key"
        " from transcripts x cross join files f on f.id = x.file_id"
        f" where x.file_id in ({id_list(touched.files)}) and x.forked_from_key is not null"
    )
    threads.update(thread for row in rows for thread in row if thread)
    families = []
    while threads:
        family: dict[str, str | None] = {}
        pending = [threads.pop()]
        while pending:
            if (thread := pending.pop()) not in family:
                parent = family[thread] = _forked_from(connection, thread)
                pending += [*_forks(connection, thread), *([parent] if parent else [])]
        threads.difference_update(family)
        if len(family) > 1:
            families.append(family)
    return families


def _forked_from(connection: sqlite3.Connection, thread: str) -> str | None:
    """Return what a thread is a fork of, if it has responses."""
    (parent,) = connection.execute(
        "select min(x.forked_from_key) from ("
        f" select distinct u.file_id from usage u where {_OF_THREAD}"
        ") u cross join transcripts x on x.file_id = u.file_id where x.forked_from_key <> ?1",
        (thread,),
    ).fetchone()
    return parent if isinstance(parent, str) else None


def _forks(connection: sqlite3.Connection, thread: str) -> list[str]:
    rows = connection.execute(
        "select distinct coalesce(f.agent_key, f.session_key) from transcripts x"
        " cross join files f on f.id = x.file_id where x.forked_from_key = ?",
        (thread,),
    )
    return [fork for (fork,) in rows if fork and _forked_from(connection, fork) == thread]


def _compared(
    connection: sqlite3.Connection, family: dict[str, str | None]
) -> list[tuple[str, str, int]]:
    """Return the responses of a family of forks, what each counts as, and whether it is partial.

    Nothing if no line of the family may be inherited.
    """
    spent = {
        thread: connection.execute(
            "select u.response_key, min(u.partial), max(u.input_tokens), max(u.output_tokens),"
            " max(u.cache_read_tokens), max(u.cache_write_5m_tokens) from usage u"
            f" cross join files f on f.id = u.file_id where {_OF_THREAD}"
            " and instr(substr(u.response_key, length(?1) + 2), ':') = 0"
            " group by u.response_key order by min(f.path), min(u.byte_offset)",
            (thread,),
        ).fetchall()
        for thread in family
    }
    if not any(is_doubtful for rows in spent.values() for _, is_doubtful, *_ in rows):
        return []
    counts_as: dict[str, str] = {}
    seen: dict[str, dict[Any, str]] = defaultdict(dict)
    """What a thread and those above it spent; of a missing thread, what its forks did."""
    shared: set[str] = set()  # responses of a fork that another fork of the same has, too
    for thread in _parents_first(family, spent):
        parent = family[thread]
        known = seen[parent] if parent else {}
        own = {}
        is_inherited = True
        for key, is_doubtful, *counts in spent[thread]:
            totals = (key.rpartition(":")[2], *counts)
            is_inherited = bool(is_inherited and is_doubtful and totals in known)
            counts_as[key] = own[totals] = known[totals] if is_inherited else key
        seen[thread] = {**known, **own}
        if parent and not spent.get(parent):
            shared.update(key for totals, key in own.items() if known.get(totals) == key)
            known.update({**own, **known})
    results = []
    for thread, rows in spent.items():
        parent = family[thread]
        is_clear = parent is not None and (
            spent.get(parent) or any(counts_as[key] in shared for key, *_ in rows)
        )
        results += [
            (key, counts_as[key], int(is_doubtful and not is_clear))
            for key, is_doubtful, *_ in rows
        ]
    return results


def _parents_first(family: dict[str, str | None], spent: dict[str, list[Any]]) -> list[str]:
    """Return the threads that spent something; those that are as deep in the order of their keys.

    In a circle, the first one is the highest.
    """
    depths: dict[str, int] = {}
    for start in sorted(family):
        path: list[str] = []
        thread: str | None = start
        while thread is not None and spent.get(thread) and thread not in depths:
            depths[thread] = 0
            path.append(thread)
            thread = family[thread]
        depth = depths.get(thread or "", -1)
        for place, above in enumerate(reversed(path), 1):
            depths[above] = depth + place
    return sorted(depths, key=lambda thread: (depths[thread], thread))


def _rank_files(connection: sqlite3.Connection) -> None:
    """Rank the files of changed responses, once for all lines: ranking is slow."""
    connection.execute("delete from ranked")
    connection.execute(f"""
        insert into ranked (id, session_id, subagent_id, rank)
        select f.id, f.session_id, f.subagent_id, row_number() over (order by {FILE_RANK})
        from files f
        where f.id in (
            select u.file_id from touched_responses t
            cross join usage u on u.response_key = t.response_key
        )
    """)


def _find_best(connection: sqlite3.Connection) -> None:
    """Put every line of changed responses into `best`, with the response that it belongs to."""
    connection.execute("""
        insert into best (id, unique_key, partial, session_id, subagent_id, rank)
        select u.id, u.unique_key, u.partial, first_value(f.session_id) over canonical,
            first_value(coalesce(f.subagent_id, (
                select m.subagent_id from messages m
                where m.file_id = u.file_id and m.byte_offset = u.byte_offset limit 1
            ))) over canonical, f.rank
        from (
            select usage.id, usage.file_id, usage.byte_offset,
            coalesce(x.partial, usage.partial) as partial, case
                when x.counts_as is not null then x.counts_as
                when usage.response_key like 'msg\\_%' escape '\\' or usage.api_message_id is null
                    or max(usage.request_id) over (partition by usage.response_key) is not null
                then usage.response_key
                else usage.response_key || ' in ' || coalesce((
                    select o.stated_session_key from messages m
                    join messages c on c.id = m.copy_of
                    join usage o on o.response_key = usage.response_key and o.file_id = c.file_id
                    where m.file_id = usage.file_id and m.byte_offset = usage.byte_offset limit 1
                ), usage.stated_session_key, '')
            end as unique_key
            from touched_responses t
            cross join usage on usage.response_key = t.response_key
            left join of_forks x on x.response_key = t.response_key
        ) u
        cross join ranked f on f.id = u.file_id
        window canonical as (partition by u.unique_key order by f.rank, u.byte_offset)
    """)


def _write_best(connection: sqlite3.Connection) -> None:
    names = [*_COLUMNS.split(", "), "written_bytes"]
    values = _COLUMNS.replace(" partial", " b.partial")
    values = values.replace("timestamp", "first_timestamp as timestamp")
    assignments = ", ".join(f"{name} = excluded.{name}" for name in names)
    connection.execute(f"""
        insert into responses (response_key, {_COLUMNS}, written_bytes)
        select unique_key, {values},
            iif({_IS_REPEATED}, null, written_bytes)
        from (
            select b.*, row_number() over (
                partition by b.unique_key
                order by u.output_tokens desc, b.rank, u.byte_offset desc
            ) as place, first_value(u.timestamp) over (
                partition by b.unique_key order by u.timestamp is null, b.rank, u.byte_offset
            ) as first_timestamp
            from best b cross join usage u on u.id = b.id
        ) b cross join usage u on u.id = b.id
        where place = 1
        on conflict (response_key) do update set {assignments}
    """)


def refresh_tokens(connection: sqlite3.Connection) -> None:
    """Sum up the tokens of the subagents of changed sessions.

    If there are no responses of a subagent, the result of its call states the sum.
    """
    total = (
        "select sum(r.input_tokens + r.output_tokens + r.cache_read_tokens"
        " + r.cache_write_5m_tokens + r.cache_write_1h_tokens)"
        " from responses r where r.subagent_id = subagents.id"
    )
    stated = (
        "select max(t.tokens) from agent_totals t join files f on f.id = t.file_id"
        " where t.agent_key = subagents.agent_key and f.session_id = subagents.session_id"
    )
    tokens = f"coalesce(({total}), ({stated}))"
    connection.execute(
        f"update subagents set tokens = {tokens}"
        f" where session_id in (select id from touched_sessions) and tokens is not {tokens}"
    )

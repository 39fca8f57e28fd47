"""What the pages of `serve --remote` read: a few connections to the server, and conversations.

A conversation is copied into a small database, which the code for a local one reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from threading import local
from typing import Any, Generic, TypeVar, cast

from .. import sql
from ..errors import FleetError
from ..files.archive import CODEC
from ..store.fts import OF_MESSAGES
from . import connect
from .search import Central
from .server import MOST_OF_A_FRAME

_T = TypeVar("_T")
CONNECTIONS = 4


class Pages(Central):
    """A connection that can also copy a conversation."""

    def of_conversation(self, session_key: str) -> sqlite3.Connection:
        """Return a database with one conversation."""
        return excerpt(self, session_key)


class Pool:
    """A few connections to the server, for pages that ask at the same time.

    Each thread has its own connection. One that broke is replaced when the next page is asked for.
    """

    def __init__(self, destination: str) -> None:
        self._destination = destination
        self._own = local()
        self._open: set[Pages] = set()
        self.threads = ThreadPoolExecutor(CONNECTIONS, "fleet")

    def start(self, function: Callable[[sqlite3.Connection], _T], seconds: float) -> Call[_T]:
        """Return the call of a function with a connection, which is yet to be run in a thread."""
        return Call(self._connection, function, seconds)

    def _connection(self, seconds: float) -> Pages:
        """Return the connection of this thread at the start of a transaction."""
        held: Pages | None = getattr(self._own, "connection", None)
        if held is not None:
            try:
                held.begin_anew(seconds)
            except FleetError:  # the server was restarted
                self._open.discard(held)
                held.close()
            else:
                return held
        self._own.connection = None
        self._own.connection = opened = Pages(self._destination)
        self._open.add(opened)
        opened.begin_anew(seconds)
        return opened

    def close(self) -> None:
        """End what is running, and all connections."""
        for connection in tuple(self._open):
            connection.cancel()
        self.threads.shutdown(cancel_futures=True)
        for connection in self._open:
            connection.close()


class Call(Generic[_T]):
    """What one page reads, which may be given up."""

    def __init__(
        self,
        connection: Callable[[float], Pages],
        function: Callable[[sqlite3.Connection], _T],
        seconds: float,
    ) -> None:
        self._connect = connection
        self._function = function
        self._seconds = seconds
        self._running: Pages | None = None
        self._is_over = False

    def run(self) -> _T:
        """Raise FleetError if the server does not answer."""
        connection = self._connect(self._seconds)
        self._running = connection
        try:
            if self._is_over:
                raise FleetError("Nobody waits for this answer any more.")
            return self._function(cast(sqlite3.Connection, connection))
        except MemoryError as error:
            raise FleetError(connect.TOO_MUCH) from error
        finally:
            self._running = None
            with suppress(FleetError):
                connection.end()

    def give_up(self) -> None:
        """Cancel what the server is doing for it."""
        self._is_over = True
        if running := self._running:
            running.cancel()


# ------------------------------------------------------------------------------------------------
# The pages of a conversation ask a hundred questions about a few files, by ids for which the server
# has no index, in full-text indexes that it does not have, and in the archive. So the rows of the
# conversation are copied from the views of the server into a private database with the tables,
# views and indexes of a local one, and without its rules on what must be unique: two machines may
# have the same paths. What concerns all conversations is asked of the server.
#
# Not copied, since the server does not have it: commits of repositories. Of the originals of
# copied messages only the place is copied.


_OF_FILES = ("messages", "tool_calls", "responses", "stated_usage", "contexts", "transcripts")
"""Tables that are copied for the files of the conversation."""

_OF_SESSIONS = ("subagents", "links", "tasks", "todos", "plans", "tool_result_files")
"""Tables that are copied for its sessions."""

_OF_ALL = (
    "pages/agent_key_neighbours", "pages/key_neighbours", "pages/output_rates", "pages/project",
    "pages/project_names", "lists/sessions",
)  # fmt: skip
"""Queries that concern all conversations: how short a key may be, and what else there is."""

_CONTINUED = "url = :key and kind in ('continued_in', 'derived_from')"
_SESSION_FILES = (
    "select origin_id, file_no from files where session_id = any (cast(:ids as int8[]))"
)
_MESSAGE_FILES = """
    select distinct origin_id, file_no from assoc.messages
    where origin_id = any (cast(:origins as int4[])) and session_key = :session_key
"""
_ORIGINALS = """
    select id, file_id, session_id, subagent_id, kind, role, uuid, byte_offset, block, timestamp
    from messages
    where uuid = any (cast(:uuids as text[])) and copy_of is null
"""
_FRAMES = """
    select file_id, start, "end", data from archive
    where origin_id = :origin and file_no = any (cast(:files as int4[]))
"""
_AS_LOCAL = (
    # A copy is one of the first message with its uuid: here, only that has the place of a line.
    """
    update messages set copy_of = (
        select o.id from messages o
        where o.uuid = messages.uuid and o.block = messages.block and o.copy_of is null
        order by o.file_id, o.byte_offset limit 1
    )
    where copy_of = 0 and uuid is not null
    """,
    # A text of the queue has no uuid; it was delivered behind it, and that line repeats it.
    """
    update messages set copy_of = (
        select id from (
            select o.id, o.byte_offset, o.text is not messages.text as is_other
            from messages o
            where o.file_id = messages.file_id and o.byte_offset > messages.byte_offset
              and o.uuid is not null and o.role in ('user', 'system')
        )
        order by is_other, byte_offset limit 1
    )
    where copy_of = 0 and uuid is null
    """,
    """
    update subagents set spawned_by = (
        select t.id from tool_calls t join files f on f.id = t.file_id
        where t.tool_use_id = spawned_by_tool_use_id and f.file_key = spawned_by_file_key
        order by t.byte_offset limit 1
    )
    where spawned_by_tool_use_id is not null
    """,
    "update sources set label = coalesce(label, kind) || ' (' || machine || ')'",
)
_ALSO = {
    "subagents": ("spawned_by_file_key blob", "spawned_by_tool_use_id text"),
    "sources": ("machine text",),
}
"""Columns of the views that a local table does not have."""


_C = TypeVar("_C", bound=sqlite3.Connection)


class Excerpt(sqlite3.Connection):
    """A database with one conversation; the server answers what concerns all of them."""

    central: Central

    def execute(self, query: str, parameters: Any = ()) -> Any:
        """Run a query here, or on the server."""
        if isinstance(parameters, Mapping) and any(text in query for text in _of_all()):
            return self.central.execute(query, parameters)
        return super().execute(query, parameters)

    def machines(self) -> dict[int, str]:
        """Return the machine of each session."""
        query = "select s.id, r.machine from sessions s join sources r on r.id = s.source_id"
        return dict(map(tuple, self.execute(query)))


def excerpt(central: Central, session_key: str) -> Excerpt:
    """Return a database with the conversation, its subagents, and what it is related to."""
    copy = _empty(Excerpt)
    copy.central = central
    copy.row_factory = sqlite3.Row
    _Copying(central, copy).conversation(session_key)
    return copy


class _Copying:
    def __init__(self, central: Central, copy: Excerpt) -> None:
        self._central = central
        self._copy = copy

    def conversation(self, session_key: str) -> None:
        sessions = self._ask("select * from sessions where session_key = :key", key=session_key)
        self._insert("sessions", sessions)
        ids = [row["id"] for row in sessions]
        origins = sorted({row["origin_id"] for row in sessions})
        linked = [row[name] for row in sessions for name in ("forked_from", "linked_session_id")]
        self._some("links", _CONTINUED, key=session_key)
        linked += [row[0] for row in self._copy.execute("select session_id from links")]
        of_them = f"{_any('id')} or {_any('linked_session_id', 'own')}"
        self._some("sessions", of_them, ids=linked, own=ids)
        repeated = [row["linked_session_id"] for row in sessions]
        self._some("responses", _any("session_id"), ids=repeated)
        for table in _OF_SESSIONS:
            self._some(table, _any("session_id"), ids=ids)
        self._some("teams", _any("lead_session_id"), ids=ids)
        self._some("notes", "session_key = :key", key=session_key)
        for table, name in (("projects", "project_id"), ("agents", "agent_id")):
            self._some(table, _any("id"), ids=[row[name] for row in sessions])
        self._some("sources", "true")
        for origin in origins:
            self._some("prices", "origin_id = :origin", origin=origin)
        self._files(session_key, ids, origins)
        self._originals()
        for statement in _AS_LOCAL:
            self._copy.execute(statement)
        for table in OF_MESSAGES:
            self._copy.execute(f"insert into {table} ({table}) values ('rebuild')")

    def _files(self, session_key: str, ids: list[int], origins: list[int]) -> None:
        numbers: dict[int, set[int]] = {origin: set() for origin in origins}
        known = self._ask(_SESSION_FILES, ids=_array(ids))
        known += self._ask(_MESSAGE_FILES, origins=_array(origins), session_key=session_key)
        for origin, number in known:
            numbers[origin].add(number)
        for origin, files in numbers.items():
            given = {"origin": origin, "files": _array(sorted(files))}
            where = "origin_id = :origin and file_no = any (cast(:files as int4[]))"
            for table in ("files", *_OF_FILES):
                self._some(table, where, **given)
            self._copy.executemany(
                'insert into archive (file_id, start, "end", codec, data) values (?, ?, ?, ?, ?)',
                (
                    (row["file_id"], row["start"], row["end"], CODEC, row["data"])
                    for row in self._ask(_FRAMES, **given)
                    if row["data"] is not None and row["end"] - row["start"] <= MOST_OF_A_FRAME
                ),
            )

    def _originals(self) -> None:
        """Copy the places of messages of other conversations that this one repeats."""
        copied = "select distinct uuid from messages where copy_of is not null and uuid is not null"
        uuids = [row[0] for row in self._copy.execute(copied)]
        here = {row[0] for row in self._copy.execute("select id from messages")}
        rows = self._ask(_ORIGINALS, uuids=uuids) if uuids else []
        others = [row for row in rows if row["id"] not in here]
        self._insert("messages", others)
        for table, name in (("sessions", "session_id"), ("files", "file_id")):
            held = {row[0] for row in self._copy.execute(f"select id from {table}")}
            self._some(table, _any("id"), ids=[r[name] for r in others if r[name] not in held])

    def _some(self, table: str, where: str, **given: Any) -> None:
        """Copy the rows of a table for which a condition holds."""
        if "ids" in given:
            given["ids"] = _array(sorted({one for one in given["ids"] if one is not None}))
        if "own" in given:
            given["own"] = _array(given["own"])
        self._insert(table, self._ask(f"select * from {table} where {where}", **given))

    def _ask(self, query: str, **given: Any) -> list[Any]:
        return self._central.execute(query, given).fetchall()

    def _insert(self, table: str, rows: Sequence[Any]) -> None:
        """Insert rows whose ids are not there yet."""
        if not rows:
            return
        names = [name for name in rows[0].keys() if name in _columns()[table]]  # noqa: SIM118
        places = [rows[0].names.index(name) for name in names]
        listed = ", ".join(f'"{name}"' for name in names)
        self._copy.executemany(
            f"insert or ignore into {table} ({listed}) values ({', '.join('?' * len(names))})",
            ([row[place] for place in places] for row in map(tuple, rows)),
        )


def _any(name: str, given: str = "ids") -> str:
    return f"{name} = any (cast(:{given} as int8[]))"


def _array(numbers: Iterable[int]) -> str:
    """Return numbers as an array of PostgreSQL: a parameter is a text."""
    return "{" + ",".join(map(str, numbers)) + "}"


@cache
def _of_all() -> tuple[str, ...]:
    return tuple(sql.query(path).sql for path in _OF_ALL)


@cache
def _columns() -> dict[str, frozenset[str]]:
    """Return the columns of the tables of an excerpt."""
    empty = _empty(sqlite3.Connection)
    rows = empty.execute(
        "select t.name, c.name from sqlite_master t, pragma_table_info(t.name) c"
        " where t.type = 'table'"
    )
    columns: dict[str, set[str]] = {}
    for table, column in rows:
        columns.setdefault(table, set()).add(column)
    return {table: frozenset(names) for table, names in columns.items()}


def _empty(kind: type[_C]) -> _C:
    made = sqlite3.connect(":memory:", factory=kind)
    for statement in _schema():
        made.execute(statement)
    return made


@cache
def _schema() -> tuple[str, ...]:
    """Return the schema of a local database, its tables without rules."""
    local = sqlite3.connect(":memory:")
    sql.migrate(local)
    made = []
    for type_, name, text in sql.schema_of(local):
        if type_ == "table" and "virtual" not in text.lower().split()[:2]:
            rows = local.execute("select name, type from pragma_table_xinfo(?)", (name,))
            columns = [
                f'"{column}" {"integer primary key" if column == "id" else kind}'
                for column, kind in rows
            ]
            made.append(f"{text.partition('(')[0]}({', '.join([*columns, *_ALSO.get(name, ())])})")
        elif type_ != "trigger":
            made.append(text.replace("UNIQUE INDEX", "INDEX", 1))
    return tuple(made)

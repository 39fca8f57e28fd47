"""Notes which rows a transaction changes, for a second record that is kept equal to this one.

Temporary triggers of the writer's connection gather what changes, whatever statement does it: a
sync, a derived fact, `forget`, `prune`. `settle` notes it in `changes` and `changed_rows` within
the same transaction. That makes an append about 17 % slower, so nothing is noted if there is no
second record, and earlier notes are removed: a later push has to compare everything.

A row that was read from a file changes that file, from a place on: where the row's line begins.
Rows that outlive files (sessions, tasks ...) change by themselves. Not noted is what every sync
writes: when it looked, and what the disk says of a file beside its bytes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..sql import id_list

PLACED = {
    "archive": "start",
    "messages": "byte_offset",
    "tool_calls": "byte_offset",
    "usage": "byte_offset",
    "responses": "byte_offset",
    "prompts": "byte_offset",
    "links": "byte_offset",
    "plans": "byte_offset",
    "todos": "byte_offset",
    "inbox_items": "byte_offset",
    "issues": "byte_offset",
    "agent_lines": "byte_offset",
    "documents": "0",
    "tool_result_files": "0",
    "line_types": "null",
}
"""Tables of what was read from files, with the place of a row in its file; null: counts of it."""

_BULK = (
    *("messages", "tool_calls", "usage", "agent_lines", "line_types", "prompts", "links"),
    *("inbox_items", "documents", "tool_result_files"),
)
"""Tables into which only a batch inserts rows, of files that it has opened: it notes these itself,
because a trigger would cost each insert a savepoint. Nothing else counts lines (`line_types`)."""

KEYED = (
    *("sources", "projects", "sessions", "subagents", "teams", "team_members", "tasks"),
    *("task_dependencies", "agents", "prices", "notes"),
)
"""Tables whose rows outlive files, or are identified by a key instead of a place."""

SECOND_RECORD = ".push"
"""The name of a database with this behind it is that of the state of its second record."""

KEPT = 1_000
"""Changes that are kept."""

KEPT_ROWS = 50_000
"""Rows that are kept of what changed; after a change of more, everything is compared."""

_OFTEN_THE_SAME = ("files", "messages", "tool_calls", "sources", "projects", "teams", "prices")
"""Tables into which syncs write what is there already. To compare all columns of the others would
cost more: SQLite compiles the triggers of a table into each statement that may change it."""

_NOT_NOTED = {
    "sources": {"first_synced_at", "last_synced_at"},
    "files": {
        *("inode", "device", "mtime_ns", "ctime_ns", "head_hash", "tail_hash", "context"),
        "file_key",
    },
}

_TABLES = (
    "create temp table noted_last (name text primary key, row_id integer) without rowid",
    "create temp table noted_files (file_id integer primary key, start integer)",
    "create temp table noted_keys (name text, row_id integer, is_removed integer,"
    " primary key (name, row_id, is_removed)) without rowid",
    "create temp table noted_moves (name text, row_id integer, primary key (name, row_id))"
    " without rowid",
)

# Null is after every place: only the row of the file or its counts changed.
_EARLIEST = (
    " on conflict do update set start = excluded.start"
    " where excluded.start is not null and (start is null or excluded.start < start)"
)

# What belongs to which project decides what others may see, and of which copy they see the text. A
# file or session of the same transaction was never anywhere else.
_MOVES = {"files": ("session_id", "project_id"), "sessions": ("project_id",), "projects": ("path",)}
_MOVED = """
select m.row_id from noted_moves m join noted_last l on l.name = m.name
where m.name = '{}' and m.row_id <= l.row_id"""
_MOVED_FILES = f"""
with moved_projects as ({_MOVED.format("projects")}),
moved_sessions (id) as (
    {_MOVED.format("sessions")}
    union select id from sessions where project_id in moved_projects
),
moved_files (id) as (
    {_MOVED.format("files")}
    union select id from files where session_id in (select id from moved_sessions)
    union select id from files where project_id in moved_projects
)
insert into noted_files (file_id, start)
select id, 0 from moved_files
union
select c.file_id, 0 from moved_files f
cross join messages o on o.file_id = f.id
cross join messages c on c.copy_of = o.id
where true{_EARLIEST}"""

# With them, other rows may be seen that did not change: all of these tables are compared.
_MOVED_KEYS = f"""
insert into noted_keys
select name, 0, 1
from (select '{"' as name union all select '".join(KEYED)}')
where exists ({_MOVED.format("files")})
or exists ({_MOVED.format("sessions")})
or exists ({_MOVED.format("projects")})
on conflict do nothing"""

# A trigger for inserts would cost more. If the last row was removed and its id is used again, all
# rows of the table are compared, because one was removed.
_LAST = (
    "insert into noted_last select * from ("
    + " union all ".join(
        f"select '{table}', (select max(id) from {table})" for table in ("files", *KEYED)
    )
    + ") where true on conflict do update set row_id = excluded.row_id"
)
_ADDED_KEYS = (
    "insert into noted_keys select name, id, 0 from ("
    + " union all ".join(
        f"select '{table}' as name, id from {table} where id >"
        f" coalesce((select row_id from noted_last where name = '{table}'), 0)"
        for table in KEYED
    )
    + ") where true on conflict do nothing"
)

_NOTE = """
insert into changed_rows (name, row_id, start, change_id)
select 'files', file_id, start, :change from noted_files
where exists (select 1 from files where id = file_id)
union all
select distinct name, iif(is_removed, null, row_id), null, :change from noted_keys"""

_FORGET_OLD = """
delete from changes where id < :change and (id <= :change - :kept or id <= (
    select change_id from changed_rows where id <= (select max(id) from changed_rows) - :rows
    order by id desc limit 1
))"""


def start(connection: sqlite3.Connection) -> None:
    """Gather what the transaction changes that has just begun, if there is a second record.

    The triggers are made by the first one: many connections find nothing to write.
    """
    if not _has(connection, "noted_last"):
        if not has_second_record(connection):
            _forget_all(connection)
            return
        for statement in (*_TABLES, *_triggers(connection)):
            connection.execute(statement)
    connection.execute(_LAST)


def has_second_record(connection: sqlite3.Connection) -> bool:
    (path,) = connection.execute(  # as bytes: a directory may have a name that is not text
        "select cast(file as blob) from pragma_database_list where name = 'main'"
    ).fetchone()
    return bool(path) and Path(os.fsdecode(path) + SECOND_RECORD).exists()


def _forget_all(connection: sqlite3.Connection) -> None:
    """Remove all changes, so that no second record can seem to be up to date.

    Changes are then counted from 1 again. What was forgotten before is reported only to a
    push that compares everything.
    """
    if connection.execute("select 1 from changes limit 1").fetchone():
        # Not left to the cascade: a database is mended without foreign keys.
        connection.execute("delete from changed_rows")
        connection.execute("delete from changes")
        connection.execute("update forgotten_files set change_id = 0")


def _triggers(connection: sqlite3.Connection) -> Iterator[str]:
    for table, place in PLACED.items():
        if table not in _BULK:
            yield _trigger(table, "insert", _place("new", place))
        yield _trigger(table, "delete", _place("old", place))
        if table != "line_types":
            both = _place("new", place) + _place("old", place)
            yield _trigger(table, "update", both, _differs(connection, table))
    for table in KEYED:
        yield _trigger(table, "delete", _key(table, "old.id", 1))
        yield _trigger(table, "update", _key(table, "new.id", 0), _differs(connection, table))
    own = "insert into noted_files (file_id) values (new.id) on conflict do nothing;"
    yield _trigger("files", "insert", own)
    yield _trigger("files", "delete", _key("files", "old.id", 1))
    yield _trigger("files", "update", own, _differs(connection, "files"))
    for table, columns in _MOVES.items():
        names = ", ".join(columns)
        condition = " or ".join(f"old.{name} is not new.{name}" for name in columns)
        yield _trigger(table, f"update of {names}", _move(table), condition, "move")


def _trigger(
    table: str, event: str, body: str, condition: str = "1", name: str | None = None
) -> str:
    return (
        f"create temp trigger note_{name or event}_{table} after {event} on main.{table}"
        f" when {condition} begin {body} end"
    )


def _place(row: str, place: str) -> str:
    start = place if place in ("0", "null") else f"{row}.{place}"
    return f"insert into noted_files (file_id, start) values ({row}.file_id, {start}){_EARLIEST};"


def _key(table: str, id_: str, is_removed: int) -> str:
    values = f"('{table}', {id_}, {is_removed})"
    return f"insert into noted_keys values {values} on conflict do nothing;"


def _move(table: str) -> str:
    return f"insert into noted_moves values ('{table}', new.id) on conflict do nothing;"


def _differs(connection: sqlite3.Connection, table: str) -> str:
    """Return the condition that an update changes anything, for tables where many do not."""
    if table not in _OFTEN_THE_SAME:
        return "1"
    columns = connection.execute("select name from pragma_table_info(?)", (table,))
    compared = [name for (name,) in columns if name not in _NOT_NOTED.get(table, ())]
    return " or ".join(f'old."{name}" is not new."{name}"' for name in compared)


def settle(connection: sqlite3.Connection) -> None:
    """Note what the open transaction changed, if `start` found a second record."""
    if not _has(connection, "noted_last"):
        return
    connection.execute(_ADDED_KEYS)
    (is_changed,) = connection.execute(
        "select exists (select 1 from temp.noted_files) or exists (select 1 from temp.noted_keys)"
    ).fetchone()
    if not is_changed:
        return
    connection.execute(_MOVED_KEYS)
    connection.execute(_MOVED_FILES)
    (change,) = connection.execute(
        "insert into changes (mark) values (random()) returning id"
    ).fetchone()
    connection.execute(_NOTE, {"change": change})
    connection.execute(_FORGET_OLD, {"change": change, "kept": KEPT, "rows": KEPT_ROWS})
    for table in ("noted_files", "noted_keys", "noted_moves"):
        connection.execute(f"delete from temp.{table}")


def _has(connection: sqlite3.Connection, name: str) -> bool:
    """Has this connection a temporary table or trigger of this name?"""
    found = connection.execute("select 1 from temp.sqlite_master where name = ?", (name,))
    return found.fetchone() is not None


def note_files(connection: sqlite3.Connection, starts: Mapping[int, int]) -> None:
    """Note files with new rows, with the first changed place of each."""
    if _has(connection, "noted_files"):
        connection.executemany(
            f"insert into noted_files (file_id, start) values (?, ?){_EARLIEST}", starts.items()
        )


def note_forgotten(connection: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Keep the keys of files that are about to be forgotten."""
    connection.execute(
        "insert into forgotten_files (file_key, change_id)"
        " select file_key, coalesce((select max(id) from changes), 0) + 1 from files"
        f" where id in ({id_list(file_ids)})"
        " on conflict (file_key) do update set change_id = excluded.change_id"
    )


def complete(connection: sqlite3.Connection) -> None:
    """Give the database and its files the keys that they lack."""
    connection.execute("update files set file_key = randomblob(16) where file_key is null")
    connection.execute(
        "insert into identity (database_key) select randomblob(16)"
        " where not exists (select 1 from identity)"
    )


def begin_anew(connection: sqlite3.Connection) -> None:
    """Let everything be compared once, and note what changes from now on."""
    _forget_all(connection)
    connection.execute("insert into changes (mark) values (random())")


def renew(connection: sqlite3.Connection) -> None:
    """Give a database that replaces another the missing keys; none of its changes has been seen."""
    complete(connection)
    begin_anew(connection)

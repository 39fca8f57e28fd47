"""The full-text indexes as wholes: lists them, checks them against their tables, rebuilds them.

A user may have added virtual tables of other kinds, or with odd names: only those of FTS5 are
listed, and names are quoted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import is_damage
from .database import THROWN_AWAY, transaction

MESSAGE_COLUMNS = "text, tool_text, joined_text, joined_tool_text"
"""The indexed columns of messages: what was said, tool input and output, and both again without
invisible letters where there are any."""

OF_MESSAGES = ("messages_fts", "messages_cjk_fts")
"""The indexes into which `Batch` puts messages; triggers take care of all others."""

_SMALL = (
    *("inbox_items", "tasks", "todos", "plans", "documents", "prompts", "tool_result_files"),
    "notes",
)
OF_OTHERS = tuple(f"{table}_fts" for table in _SMALL)
"""The indexes that triggers keep as their tables are."""


def indexes(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute(
        "select name from sqlite_master where rootpage = 0 and sql like '% using fts5%'"
        " order by name"
    )
    return [name for (name,) in rows]


def fits(connection: sqlite3.Connection, index: str) -> bool:
    """Does an index contain exactly the words of its table?

    The check is an insert that inserts nothing. Raises sqlite3.Error if another process keeps the
    database busy, or if the disk fails.
    """
    name = _quoted(index)
    try:
        connection.execute(f"insert into {name} ({name}, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def rebuild_index(connection: sqlite3.Connection, index: str) -> None:
    """Rebuild an index from its table. Raises sqlite3.Error."""
    name = _quoted(index)
    connection.execute(f"insert into {name} ({name}) values ('rebuild')")


# -- indexes that are made at the end --------------------------------------------------------------

_KEPT_BY = ("insert", "delete", "update")  # the triggers of an index, each named after it


class PutOff:
    """Lets rows change without their indexes, which are rebuilt at the end.

    For a database that nobody else can see. A trigger indexes each row for itself, and takes a text
    out of the index word by word; to index all rows of a table at once takes two thirds of the time
    where rows are only added, and much less where they are also changed or removed.
    """

    def __init__(self, connection: sqlite3.Connection, names: Iterable[str]) -> None:
        """Remove the triggers of these indexes. Raises sqlite3.Error."""
        self._connection = connection
        self._indexes = sorted(set(names).intersection(indexes(connection)))
        with transaction(connection, is_noted=False):
            self._triggers = self._take()

    def catch_up(self) -> None:
        """Rebuild the indexes, and create the triggers again. Raises sqlite3.Error.

        If it was interrupted, it can be called again.
        """
        for index in self._indexes:
            rebuild_index(self._connection, index)
        with transaction(self._connection, is_noted=False):
            self._take()
            for statement in self._triggers:
                self._connection.execute(statement)

    def _take(self) -> list[str]:
        """Remove the triggers that are there; return the statements that create them."""
        names = {f"{index}_{event}" for index in self._indexes for event in _KEPT_BY}
        rows = self._connection.execute(
            "select type, name, sql from sqlite_master where type = 'trigger'"
        )
        there = [each for each in rows.fetchall() if each[1] in names]
        for type_, name, _ in there:
            self._connection.execute(f"drop {type_} {name}")
        return [statement for *_, statement in there]


# -- an index that is made in a database of its own ----------------------------------------------

_FILLED = ("data", "idx", "docsize")  # tables of an index; its settings are in a fourth
_ASIDE = ("page_size = 16384", *THROWN_AWAY, "temp_store = memory")


class Definition(NamedTuple):
    """What makes an index: its statement, and its settings."""

    statement: str
    settings: tuple[tuple[str, object], ...]


def definition(connection: sqlite3.Connection, index: str) -> Definition:
    (statement,) = connection.execute(
        "select sql from sqlite_master where name = ?", (index,)
    ).fetchone()
    settings = connection.execute(f"select k, v from {_quoted(index + '_config')}").fetchall()
    return Definition(statement, tuple((k, v) for k, v in settings if k != "version"))


def open_aside(path: str, index: str, made: Definition) -> sqlite3.Connection:
    """Make a database that has nothing but an empty index, without its table."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in _ASIDE:
        connection.execute(f"pragma {setting}").fetchall()
    connection.execute(made.statement)
    name = _quoted(index)
    connection.executemany(f"insert into {name} ({name}, rank) values (?, ?)", made.settings)
    return connection


def add_texts(
    connection: sqlite3.Connection, index: str, rows: Iterable[tuple[object, ...]]
) -> None:
    """Index messages: (id, text, tool_text), without invisible letters."""
    connection.executemany(
        f"insert into {_quoted(index)} (rowid, text, tool_text) values (?, ?, ?)", rows
    )


def add_rows(connection: sqlite3.Connection, index: str, ids: Iterable[int]) -> None:
    with transaction(connection):
        connection.executemany(
            f"insert into {_quoted(index)} (rowid, {MESSAGE_COLUMNS})"
            f" select id, {MESSAGE_COLUMNS} from messages where id = ?",
            ((id_,) for id_ in ids),
        )


def can_be_filled(connection: sqlite3.Connection, index: str) -> bool:
    """May the tables of an index be written directly? Some systems forbid it to all programs."""
    try:
        connection.execute(f"delete from {_quoted(index + '_docsize')} where id is null")
    except sqlite3.OperationalError:
        return False
    return True


def fill(connection: sqlite3.Connection, index: str, path: Path) -> None:
    """Replace an index by the one in another database. Raises sqlite3.Error."""
    connection.execute("attach ? as aside", (str(path),))
    try:
        with transaction(connection):
            for part in _FILLED:
                name = _quoted(f"{index}_{part}")
                connection.execute(f"delete from main.{name}")
                connection.execute(f"insert into main.{name} select * from aside.{name}")
    finally:
        connection.execute("detach aside")
    # SQLite keeps in memory how the index was laid out before.
    connection.execute("pragma writable_schema = reset").fetchall()


def complete(connection: sqlite3.Connection, index: str) -> None:
    """Make an index from its table if it does not have a row for each message."""
    name = _quoted(f"{index}_docsize")
    (is_whole,) = connection.execute(
        f"select (select count(*) from {name}) = (select count(*) from messages)"
    ).fetchone()
    if not is_whole:
        rebuild_index(connection, index)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

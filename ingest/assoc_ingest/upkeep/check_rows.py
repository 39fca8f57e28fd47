"""Compares the rows of a file with the records that its archived bytes make.

The bytes are parsed again, and the store writes their records into an empty database, as a rebuild
would. Then the rows of each table are read from both databases in the same order, and compared in
all columns that records have. What depends on other files (references, copies) is not compared
here; `check_database` checks some of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import zip_longest
from typing import Any, NamedTuple

from ..derive import unnamed_results
from ..derive.changeset import Touched
from ..files import lost
from ..files.exclusions import REASONS
from ..files.parsing import RAN_AWAY
from ..files.replay import Replayed
from ..records import (
    Document,
    Issue,
    LineType,
    Plan,
    Prompt,
    Record,
    Task,
    Todo,
    ToolResultFile,
)
from ..source import LOG, Source
from ..store import upserts
from ..store.file_rows import FileRows, OpenFile
from ..store.inserts import COLUMNS, ODD_TIME, TABLES
from ..store.row_buffer import RowBuffer
from ..store.transaction import snapshot

_NOT_COMPARED: dict[type, set[str]] = {
    # They depend on the file's stat, the messages of a JSON library, or other files.
    Plan: {"modified_at"},
    Document: {"modified_at"},
    Prompt: {"pasted"},
    ToolResultFile: {"size", "tool_use_id"},
    Issue: {"reason", "sample"},
}
_TIMES = {"timestamp", "started_at", "ended_at", "duration_ms"}

_IDS = ("call_id", "result_id")
"""Columns of ids of messages, which are compared by the places of the messages."""
_PLACE = "(select byte_offset << 20 | block from messages where id = o.{})"

_ALSO_IN_TRANSCRIPTS = (Plan, Task, Todo)
"""Types whose tables also have rows that follow from transcripts, which are not compared here."""


class Difference(NamedTuple):
    """The first row of a table that differs from the file's records."""

    table: str
    byte_offset: int | None


@dataclass(slots=True)
class Compared:
    """What a comparison found."""

    differences: list[Difference] = field(default_factory=list)
    """The first difference of each table that differs."""
    unaccounted: int | None = None
    """Where lines begin that are in no row, count or issue; None if there are none."""
    message_count: int = 0
    context: str | None = None
    """The context after the last line, as it is stored."""


@contextmanager
def scratch(schema: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield an empty database with the tables of `schema` and their unique indexes.

    SQLite keeps it in a temporary file if it does not fit into a few pages.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = memory")
        schema.backup(connection)
        costly = connection.execute(
            "select type, name from sqlite_master"
            " where type = 'trigger' or type = 'index' and sql not like 'create unique%'"
        )
        for type_, name in costly.fetchall():
            connection.execute(f"drop {type_} {name}")
        yield connection


def compare(
    connection: sqlite3.Connection,
    scratch: sqlite3.Connection,
    source: Source,
    file: OpenFile,
    stretches: Iterable[Replayed],
) -> Compared:
    """Compare the rows of a file with its replayed stretches. Raises what reading these raises."""
    compared, touched = Compared(), Touched()
    is_log = source.shape(file.claim) == LOG
    file.is_empty = True  # in the empty database
    with snapshot(scratch):
        file_rows = FileRows(scratch, touched, "")
        file_rows.refer(file)
        buffer = RowBuffer(scratch, touched, file_rows, "")
        for stretch in stretches:
            buffer.add(file, stretch.records, stretch.end - stretch.start)
            compared.context = stretch.context
            is_short = is_log and _pieces(stretch.records) < stretch.line_count
            if is_short and compared.unaccounted is None:
                compared.unaccounted = stretch.start
        buffer.flush()
        unnamed_results.pair(scratch, file.id)
        compared.differences += _differences(connection, scratch, source, file)
    compared.message_count = buffer.written.rows
    return compared


def _differences(
    connection: sqlite3.Connection, scratch: sqlite3.Connection, source: Source, file: OpenFile
) -> Iterator[Difference]:
    """Yield the first difference of each table."""
    is_log = source.shape(file.claim) == LOG
    filled = _filled(connection, file.id) | _filled(scratch, file.id)
    for kind, table in TABLES.items():
        if table not in filled:
            continue
        columns, query = _query(kind, is_log, source.reads_local_times)
        values = {"file": file.id, "gone_at": file.gone_at}
        rows: Iterable[Any] = connection.execute(query, values)
        expected: Iterable[Any] = scratch.execute(query, values)
        if kind is Task:
            expected = filter(partial(_is_here, connection, file), expected)
        for pair in zip_longest(rows, expected):
            if pair[0] != pair[1]:
                offsets = (row[0] for row in pair if row is not None)
                yield Difference(table, min(offsets) if columns[0] == "byte_offset" else None)
                break


def _filled(connection: sqlite3.Connection, file_id: int) -> set[str]:
    """Return the tables with rows of a file. Most have none, and a query for each costs more."""
    found = connection.execute(_FILLED, {"file": file_id}).fetchone()
    return {table for table, has_rows in zip(_TABLES, found, strict=True) if has_rows}


_TABLES = sorted(set(TABLES.values()))
_FILLED = "select " + ", ".join(
    f"exists (select 1 from {table} where file_id = :file)" for table in _TABLES
)


@cache
def _query(kind: type, is_log: bool, hides_times: bool) -> tuple[list[str], str]:
    """Return the columns that are compared, and the query for the rows of a file, in order."""
    hidden = _NOT_COMPARED.get(kind, set()) | (_TIMES if hides_times else set())
    columns = [name for name in COLUMNS[kind] if name not in hidden]
    columns.sort(key=lambda name: (name != "byte_offset", name != "block"))
    values = (_PLACE.format(name) if name in _IDS else name for name in columns)
    condition = "channel = 'file'" if kind in _ALSO_IN_TRANSCRIPTS else "true"
    if kind in upserts.ENTRIES:
        # An entry that the last version of a list did not contain was gone before the list was.
        condition += " and (gone_at is null or gone_at = :gone_at)"
    if kind is Issue:
        # Quarantined issues of a document belong to a later version, which is not archived.
        others = ", ".join(
            f"'{reason}'" for reason in (*REASONS, ODD_TIME, RAN_AWAY, *lost.REASONS)
        )
        condition = f"reason not in ({others}) and {'true' if is_log else 'quarantined = 0'}"
    return columns, (
        f"select {', '.join(values)} from {TABLES[kind]} o where file_id = :file and {condition}"
        f" order by {', '.join(str(place + 1) for place in range(len(columns)))}"
    )


def _is_here(connection: sqlite3.Connection, file: OpenFile, task: Sequence[Any]) -> bool:
    """Is this the file of the task's row? Several files can state the same task."""
    row = connection.execute(
        "select file_id from tasks where task_key = ? and list_key = ? and source_id = ?"
        " and channel = 'file'",
        (*task[:2], file.source_id),
    ).fetchone()
    return row is None or row[0] == file.id


def _pieces(records: Iterable[Record]) -> int:
    """Count the objects and the quarantined pieces among records."""
    return sum(
        record.objects if isinstance(record, LineType) else record.quarantined
        for record in records
        if isinstance(record, LineType | Issue)
    )

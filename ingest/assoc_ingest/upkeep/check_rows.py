"""Compares the rows of a file with the records that its archived bytes make.

Messages are compared stretch by stretch, in all columns that come from a line. Rows of all other
tables are merged from several lines, so the records are inserted into tables of a scratch database,
with the statements of the store, and the rows of both databases are compared in order. What depends
on other files (references, copies) is not compared here; `check_database` checks some of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

from ..derive import unnamed_results
from ..files import lost
from ..files.exclusions import REASONS
from ..files.replay import Replayed
from ..records import Issue, LineType, Message, Plan, Prompt, Task, Todo, ToolCall, UnmatchedResult
from ..source import LOG, KnownFile, Source
from ..store import upserts
from ..store.inserts import CONTEXT, INSERTS, ODD_TIME, tool_call_row, write_tool_calls
from ..store.transaction import snapshot

_TABLES = {kind: sql.split()[2] for kind, sql in INSERTS.items() if kind is not Message} | {
    Task: "tasks"
}
_IN_MESSAGES = ", ".join(Message._fields)
_OFFSET = Message._fields.index("byte_offset")
_BLOCK = Message._fields.index("block")
_PLACE_BITS = 20  # bits of the block in a position that is one number: offset, then block

_NOT_COMPARED = {
    # They depend on the file's stat, the messages of a JSON library, or other files.
    "plans": {"modified_at"},
    "documents": {"modified_at"},
    "tool_result_files": {"size", "tool_use_id"},
    "issues": {"reason", "sample"},
}
_TIMES = {"timestamp", "started_at", "ended_at", "duration_ms"}


class Difference(NamedTuple):
    """The first row of a table that differs from the file's records."""

    table: str
    byte_offset: int | None


@contextmanager
def scratch(schema: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield an empty database with the tables of `schema` and their unique indexes.

    SQLite keeps it in a temporary file if it does not fit into a few pages.
    """
    connection = sqlite3.connect("", isolation_level=None)
    try:
        rows = schema.execute(
            "select tbl_name, sql from sqlite_master where type = 'table'"
            " or type = 'index' and sql like 'create unique%' order by type desc"
        )
        wanted = set(_TABLES.values())
        for table, statement in rows.fetchall():
            if table in wanted:
                connection.execute(statement)
        with snapshot(connection):
            yield connection
    finally:
        connection.close()


class Comparison:
    """Takes the stretches of one file in order, and finds out where its rows differ."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        scratch: sqlite3.Connection,
        known: KnownFile,
        source: Source,
        shape: str,
    ) -> None:
        self._connection = connection
        self._scratch = scratch
        self._known = known
        self._is_log = shape == LOG
        self._hidden = _TIMES if source.reads_local_times else set()
        self._filled: set[type] = set()
        self._difference: Difference | None = None
        self._unaccounted: int | None = None
        self.message_count = 0

    def take(self, stretch: Replayed) -> None:
        """Compare the messages of a stretch, and keep its other records for `finish`."""
        by_type: dict[type, list[Any]] = {}
        for record in stretch.records:
            by_type.setdefault(record.__class__, []).append(record)
        messages = by_type.pop(Message, [])
        self.message_count += len(messages)
        if self._difference is None:
            self._compare_messages(stretch, messages)
        if self._is_log and self._unaccounted is None and _pieces(by_type) < stretch.line_count:
            self._unaccounted = stretch.start
        places = {
            (message.byte_offset, message.block)
            for message in messages
            if message.kind in ("tool_use", "tool_result")
        }
        for kind in _TABLES:
            if records := by_type.get(kind):
                self._filled.add(kind)
                if kind in upserts.ENTRIES:
                    entries, others = upserts.split(records)
                    records = [*entries, *others]
                self._insert(kind, records, places)

    def finish(self) -> list[Difference]:
        """Return the first difference of each table that differs."""
        found = [self._difference] if self._difference is not None else []
        if UnmatchedResult in self._filled:
            place = f"u.byte_offset << {_PLACE_BITS} | u.block"
            unnamed_results.pair(self._scratch, self._known.id, place)
        for kind, table in _TABLES.items():
            difference = self._compare_table(kind, table)
            if difference is not None:
                found.append(difference)
        for kind in self._filled:
            self._scratch.execute(f"delete from {_TABLES[kind]}")
        return found

    @property
    def unaccounted(self) -> int | None:
        """Where lines begin that are in no row, count or issue; None if there are none."""
        return self._unaccounted

    # -- messages --------------------------------------------------------------------------------

    def _compare_messages(self, stretch: Replayed, messages: list[Message]) -> None:
        rows = self._connection.execute(
            f"select {_IN_MESSAGES} from messages"
            " where file_id = ? and byte_offset >= ? and byte_offset < ?"
            " order by byte_offset, block",
            (self._known.id, stretch.start, max(stretch.end, stretch.start + 1)),
        )
        expected = sorted(messages, key=lambda record: (record.byte_offset, record.block))
        shown = self._visible("messages", Message._fields)
        for row, record in zip_longest(rows, expected):
            is_same = row == record or (
                row is not None
                and record is not None
                and all(row[place] == record[place] for place in shown)
            )
            if not is_same:
                offsets: list[Any] = [item[_OFFSET] for item in (row, record) if item is not None]
                self._difference = Difference("messages", min(offsets))
                return

    def _visible(self, table: str, columns: Sequence[str]) -> list[int]:
        hidden = self._hidden | _NOT_COMPARED.get(table, set())
        return [place for place, column in enumerate(columns) if column not in hidden]

    # -- all other tables ------------------------------------------------------------------------

    def _insert(self, kind: type, records: list[Any], places: set[tuple[int, int]]) -> None:
        if kind is ToolCall:
            write_tool_calls(self._scratch, [self._tool_call(call, places) for call in records])
            return
        if kind is Task:
            rows: Iterable[Any] = [
                (self._known.id, *task) for task in records if self._is_here(task)
            ]
        else:
            references = [0] * len(CONTEXT.get(kind, ()))
            rows = ((self._known.id, *references, *record) for record in records)
        self._scratch.executemany(_INSERT_TASK if kind is Task else INSERTS[kind], rows)

    def _tool_call(self, call: ToolCall, places: set[tuple[int, int]]) -> tuple[object, ...]:
        call_id, result_id = (
            _number(*place) if place in places else None for place in (call.call, call.result)
        )
        return tool_call_row(call, (call_id, result_id), (self._known.id, None, None))

    def _is_here(self, task: Task) -> bool:
        """Is this the file of the task's row? Several files can state the same task."""
        row = self._connection.execute(
            "select file_id from tasks where list_key = ? and task_key = ? and channel = 'file'"
            " and source_id = (select source_id from files where id = ?)",
            (task.list_key, task.task_key, self._known.id),
        ).fetchone()
        return row is None or row[0] == self._known.id

    def _compare_table(self, kind: type, table: str) -> Difference | None:
        columns, condition = self._columns(kind, table), self._condition(kind)
        has_offset = "byte_offset" in columns
        order = ", ".join(["byte_offset"] * has_offset + [str(n + 1) for n in range(len(columns))])
        rows, expected = (
            connection.execute(
                f"select {', '.join(shown)} from {table} o"
                f" where file_id = ? and ({condition}) order by {order}",
                (self._known.id,),
            )
            for connection, shown in (
                (self._connection, columns.values()),
                (self._scratch, columns),
            )
        )
        for pair in zip_longest(rows, expected):
            if pair[0] != pair[1]:
                if not has_offset:
                    return Difference(table, None)
                place = list(columns).index("byte_offset")
                return Difference(table, min(row[place] for row in pair if row is not None))
        return None

    def _columns(self, kind: type, table: str) -> dict[str, str]:
        """Return the columns that are compared, each with SQL for its value in the database."""
        names: list[str] = list(kind._fields)  # type: ignore[attr-defined]
        if kind is LineType:
            names[names.index("objects")] = "count"
        if kind is ToolCall:
            names = [name for name in names if name not in ("call", "result")]
        columns = {names[place]: names[place] for place in self._visible(table, names)}
        if kind is ToolCall:
            for half in ("call_id", "result_id"):
                columns[half] = (
                    f"(select m.byte_offset << {_PLACE_BITS} | m.block"
                    f" from messages m where m.id = o.{half})"
                )
        if kind is Prompt:  # pasted texts from other files are filled in later
            del columns["pasted"]
        return columns

    def _condition(self, kind: type) -> str:
        """Return the condition for the rows that are compared."""
        if kind is Issue:
            # Quarantined issues of a document belong to a later version, which is not archived.
            is_read = "1" if self._is_log else "quarantined = 0"
            others = ", ".join(f"'{reason}'" for reason in (*REASONS, ODD_TIME, *lost.REASONS))
            return f"{is_read} and reason not in ({others})"
        of_file = "channel = 'file'" if kind in _ALSO_IN_TRANSCRIPTS else "1"
        if kind in upserts.ENTRIES:
            # An entry that the last version of a list did not contain was gone before the list was.
            since = self._known.gone_at
            there = "gone_at is null" + (f" or gone_at = '{since}'" if since is not None else "")
            return f"({there}) and {of_file}"
        return of_file


_ALSO_IN_TRANSCRIPTS = (Plan, Task, Todo)
"""Types whose tables also have rows that follow from transcripts, which are not compared here."""

_INSERT_TASK = (
    f"insert into tasks (file_id, source_id, {', '.join(Task._fields)})"
    f" values (?, 0, {', '.join('?' * len(Task._fields))})"
)


def _number(byte_offset: int, block: int) -> int:
    return byte_offset << _PLACE_BITS | block


def _pieces(by_type: dict[type, list[Any]]) -> int:
    """Count the objects and the quarantined pieces among records."""
    objects = sum(record.objects for record in by_type.get(LineType, ()))
    return int(objects + sum(issue.quarantined for issue in by_type.get(Issue, ())))

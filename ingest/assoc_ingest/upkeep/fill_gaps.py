"""Adds missing rows to files that cannot be derived again as a whole; no rows are removed.

These are logs whose archive has gaps, since their rows may be all that is left of the lines there,
and documents that are gone, since some of their rows are older than the last version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..files import archive
from ..files.replay import replay
from ..files.tail import Prefix
from ..records import Issue, LineType, Message, Record, TaskChange, ToolCall, Transcript, Usage
from ..source import LOG, Claim, KnownFile, Source
from ..store.batch import Batch


def fill_in(
    batch: Batch,
    source: Source,
    source_id: int,
    claim: Claim,
    known: KnownFile,
    gaps: list[tuple[int, int]],
) -> None:
    """Add the rows of a file's archived bytes that are missing."""
    connection = batch.connection
    file = batch.open_archived(source_id, claim, known, keeps_rows=True)
    is_log = source.shape(claim) == LOG
    if not known.checkpoint.offset:  # it is not archived
        return
    if (gaps and not is_log) or sum(end - start for start, end in gaps) > archive.MOST_BLANK:
        return
    present = _Present(connection, known.id)
    calls: list[ToolCall] = []
    pieces = archive.read_around_gaps(connection, known.id, known.checkpoint.offset)
    for stretch in replay(source, claim, pieces):
        calls += [record for record in stretch.records if isinstance(record, ToolCall)]
        lacking = [record for record in stretch.records if present.lacks(record)]
        batch.add(file, lacking, (), Prefix(), stretch.end - stretch.start)
    batch.touch(known.id)
    _join_calls(connection, known.id, calls)


def _join_calls(connection: sqlite3.Connection, file_id: int, calls: Iterable[ToolCall]) -> None:
    """Link tool calls to their blocks, where a block or the call itself was missing."""
    for column in ("call", "result"):
        connection.executemany(
            f"update tool_calls set {column}_id = (select id from messages"
            "  where file_id = ?1 and byte_offset = ?3 and block = ?4)"
            f" where file_id = ?1 and tool_use_id = ?2 and {column}_id is null",
            (
                (file_id, call.tool_use_id, *place)
                for call in calls
                if (place := getattr(call, column)) is not None
            ),
        )


class _Present:
    """The existing rows of a file, for types that must not be inserted twice."""

    def __init__(self, connection: sqlite3.Connection, file_id: int) -> None:
        def keys(columns: str, table: str) -> set[tuple[object, ...]]:
            rows = connection.execute(
                f"select {columns} from {table} where file_id = ?", (file_id,)
            )
            return set(map(tuple, rows))

        self._keys = {
            Message: keys("byte_offset, block", "messages"),
            ToolCall: keys("tool_use_id, byte_offset * (tool_use_id is null)", "tool_calls"),
            Usage: keys("response_key", "usage"),
            LineType: keys("type, subtype", "line_types"),
            Issue: keys("reason, byte_offset", "issues"),
            TaskChange: keys("byte_offset", "task_changes"),
            Transcript: keys("file_id - file_id", "transcripts"),
        }

    def lacks(self, record: Record) -> bool:
        """Is there no row for this record? For types whose insert does not check that itself."""
        keys = self._keys.get(record.__class__)
        return keys is None or _key(record) not in keys


def _key(record: Record) -> tuple[object, ...]:
    if isinstance(record, Message):
        return record.byte_offset, record.block
    if isinstance(record, ToolCall):
        return record.tool_use_id, record.byte_offset * (record.tool_use_id is None)
    if isinstance(record, Usage):
        return (record.response_key,)
    if isinstance(record, LineType):
        return record.type, record.subtype
    if isinstance(record, Issue):
        return record.reason, record.byte_offset
    return (record.byte_offset if isinstance(record, TaskChange) else 0,)

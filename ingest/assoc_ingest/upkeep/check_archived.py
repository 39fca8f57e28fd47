"""Checks one file after the other: its archive, and the rows that were read from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..errors import ArchiveError
from ..files import archive, lost
from ..files.agent_files import AgentFiles
from ..files.exclusions import is_left_out
from ..files.replay import claim_of, replay
from ..files.tail import CHUNK, Prefix
from ..source import LOG, PRIVATE, UNREAD, KnownFile, Source
from ..sources import SOURCES
from ..store.file_rows import OpenFile, archived
from ..store.inserts import COLUMNS, ISSUE_COUNT, LINE_COUNT, TABLES
from ..store.known_files import known_file
from ..store.transaction import snapshot
from ..workers.reading import LineLengths
from .archive_gaps import comes_back
from .check_rows import compare
from .findings import REBUILD, SYNC, Finding

_LOST = "These bytes cannot be recovered, because the file is gone. Its rows are kept."
_OTHER_BYTES = "The archived bytes do not match the checksum of the file."
_PLACED = [
    table for kind, table in TABLES.items() if {"byte_offset", "byte_length"} <= {*COLUMNS[kind]}
]
_BEYOND = " union all ".join(
    f"select '{table}', min(byte_offset) from {table}"
    " where file_id = :file and byte_offset + byte_length > :end"
    " having min(byte_offset) is not null"
    for table in _PLACED
)


class Listed(NamedTuple):
    """A file to be checked, and its root."""

    id: int
    path: str
    kind: str
    root: str
    source_id: int
    size: int
    """The number of its archived bytes."""


class Checked(NamedTuple):
    """What was found in a file, and what was looked at."""

    findings: list[Finding]
    files: int = 1
    """0 if it is not in the database any more."""
    messages: int = 0
    archived_bytes: int = 0


def listed(connection: sqlite3.Connection) -> list[Listed]:
    """Return all files, in the order in which they are checked."""
    rows = connection.execute(
        "select f.id, f.path, s.kind, s.root, s.id, f.offset from files f"
        " join sources s on s.id = f.source_id order by f.source_id, f.path, f.generation"
    )
    return [Listed(*row) for row in rows]


class FileCheck:
    """Checks files, each in its own read transaction."""

    def __init__(self, connection: sqlite3.Connection, tables: sqlite3.Connection) -> None:
        self.connection = connection
        self._tables = tables
        self._agents = AgentFiles(connection)
        self._messages = self._archived_bytes = 0

    def checked(self, file: Listed) -> Checked:
        """Return what is wrong with a file. Raises sqlite3.Error."""
        self._messages = self._archived_bytes = 0
        with snapshot(self.connection):
            known = known_file(self.connection, file.id)
            if known is None:
                return Checked([], files=0)
            findings = list(self._findings(known, file.kind, file.root, file.source_id))
        return Checked(findings, 1, self._messages, self._archived_bytes)

    def has_long_line(self, file: Listed) -> bool:
        """Has a file a line that would take too much memory in each worker?"""
        if file.size <= CHUNK:
            return False
        lengths = LineLengths()
        pieces = archive.sound_pieces(self.connection, file.id)
        return any(lengths.is_too_much(data) for _, data in pieces)

    def _findings(
        self, known: KnownFile, kind: str, root: str, source_id: int
    ) -> Iterable[Finding]:
        """Return what is wrong with a file, according to the first check that fails."""

        def found(check: str, problem: str, offset: int | None = None) -> Finding:
            remedy = REBUILD
            if check == "archive" and known.checkpoint.head_hash == b"":
                # A rebuild has marked it, so that the next sync reads all of it, if it exists.
                remedy = SYNC if comes_back(self.connection, root, known) else _LOST
            elif check == "archive" and known.gone_at is not None:
                remedy = _LOST
            return Finding(check, problem, remedy, root, known.path, offset)

        source = SOURCES.get(kind)
        claim = claim_of(source, known) if source is not None else None
        if source is not None and claim is not None:
            claim = self._agents.with_files(source, source_id, claim)
        try:
            if lost.is_unnamed(known.path) and claim is None:
                return self._wrong_bytes(known, found)  # they cannot be parsed
            if source is None or claim is None or claim.kind != known.kind:
                return [found("rows", "This version reads such files differently, or not at all.")]
            is_log = source.shape(claim) == LOG
            if is_log and (place := self._beyond(known)) is not None:
                problem = f"A row of {place[0]} is beyond the {known.checkpoint.offset} bytes read."
                return [found("offset", problem, place[1])]
            file = archived(source_id, claim, known)
            return self._read_again(known, source, file, found) or self._wrong_counts(known, found)
        except ArchiveError as error:
            gaps = archive.gaps(self.connection, known.id, known.checkpoint.offset)
            missing = sum(end - start for start, end in gaps)
            problem = "The archived bytes are damaged."
            if missing:
                problem = f"{missing:,} of {known.checkpoint.offset:,} archived bytes are lost."
            return [found("archive", problem, error.byte_offset)]

    def _wrong_bytes(self, known: KnownFile, found: Callable[..., Finding]) -> list[Finding]:
        """Compare the archived bytes of a file with its checksum. Raises ArchiveError."""
        pieces = _Checked(self.connection, known)
        for _ in pieces:
            pass
        self._archived_bytes += pieces.prefix.offset
        return [] if pieces.are_as_stored else [found("archive", _OTHER_BYTES)]

    def _read_again(
        self, known: KnownFile, source: Source, file: OpenFile, found: Callable[..., Finding]
    ) -> list[Finding]:
        """Parse the archived bytes of a file and compare the rows. Raises ArchiveError."""
        shape = source.shape(file.claim)
        pieces = _Checked(self.connection, known)
        if shape in (PRIVATE, UNREAD) or (known.checkpoint.offset == 0 and shape != LOG):
            return [found("archive", "This file should not be in the archive.") for _ in pieces][:1]
        stretches = replay(source, file.claim, pieces)
        compared = compare(self.connection, self._tables, source, file, stretches)
        self._archived_bytes += pieces.prefix.offset
        self._messages += compared.message_count
        if not pieces.are_as_stored:
            return [found("archive", _OTHER_BYTES)]
        if compared.unaccounted is not None:
            problem = "Lines after this byte are neither stored, counted nor reported as issues."
            return [found("lines", problem, compared.unaccounted)]
        if not compared.differences and compared.context != known.context:
            return [found("context", "The stored context differs from the archived file.")]
        if not compared.differences and pieces.miscounted is not None:
            problem = "The archive after this byte has more or fewer lines than recorded."
            return [found("counts", problem, pieces.miscounted)]
        return [
            found("rows", f"The rows in {table} differ from the archived file.", offset)
            for table, offset in compared.differences
        ]

    def _beyond(self, known: KnownFile) -> tuple[str, int] | None:
        """Return (table, byte offset) of a row that lies after the bytes that were read."""
        values = {"file": known.id, "end": known.checkpoint.offset}
        found: tuple[str, int] | None = self.connection.execute(_BEYOND, values).fetchone()
        return found

    def _wrong_counts(self, known: KnownFile, found: Callable[..., Finding]) -> list[Finding]:
        row = self.connection.execute(
            f"select line_count, issue_count, {LINE_COUNT}, {ISSUE_COUNT} from files where id = ?",
            (known.id,),
        ).fetchone()
        if row[:2] == row[2:]:
            return []
        return [
            found(
                "counts",
                f"Recorded: {row[0]} records, {row[1]} issues; found: {row[2]} and {row[3]}.",
            )
        ]


class _Checked:
    """Yields the archived bytes of a file; computes their prefix and counts their lines."""

    def __init__(self, connection: sqlite3.Connection, known: KnownFile) -> None:
        self._connection = connection
        self._known = known
        self.prefix = Prefix()
        self.miscounted: int | None = None
        """Where the first frame begins whose recorded number of lines is wrong."""

    def __iter__(self) -> Iterator[bytes]:
        known = self._known
        recorded = archive.line_counts(self._connection, known.id)
        for data in archive.read_whole(self._connection, known.id, known.checkpoint.offset):
            start = self.prefix.offset
            if recorded.get(start) not in (None, data.count(b"\n")) and self.miscounted is None:
                self.miscounted = start
            self.prefix = self.prefix.extended(data)
            yield data

    @property
    def are_as_stored(self) -> bool:
        """Do the bytes match the stored checksums? With forgotten parts, they need not."""
        stored = self._known.checkpoint
        if stored.head_hash is None or self.prefix.checkpoint() == stored:
            return True
        return is_left_out(self._connection, self._known.id)

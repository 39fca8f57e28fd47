"""Derives the rows of files again from their archived bytes.

A file whose archive is complete is derived as a whole: its rows go, and its bytes are parsed again
as a sync would. If bytes are missing, or if some rows never followed from the archive, no row is
removed: only those that are missing are added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import ArchiveError
from ..files import archive, walk
from ..files.changes import Replayed, replay
from ..files.exclusions import (
    AgentFiles,
    agents_with_files,
    as_listed,
    doubtful_logs,
    is_left_out,
    issues_outside_archive,
    repeating,
)
from ..files.stores import opened
from ..files.tail import CHUNK, Prefix, lines_in_parts, read_at
from ..files.walk import original_parts, original_root
from ..paths import is_there
from ..records import (
    AddedLine,
    Issue,
    LineType,
    Message,
    Record,
    TaskChange,
    ToolCall,
    Transcript,
    Usage,
)
from ..source import (
    FOREIGN_DOCUMENT,
    LOG,
    PRIVATE,
    UNREAD,
    Claim,
    KnownFile,
    Source,
    claim_at,
    entry_names,
)
from ..sources import SOURCES
from ..sql import id_list
from .batch import Batch
from .database import Clock
from .known_files import known_file
from .rows import COUNTS, TABLES

# ------------------------------------------------------------------------------------------------
# The archive of a file: what is missing in it, and whether the rest is what a sync read.

_HEAD = 1024
_COMPARED = 50  # lines


class ArchivedBytes:
    """Yields the archived bytes of a file, without damaged frames, and says what they lack."""

    def __init__(self, connection: sqlite3.Connection, known: KnownFile) -> None:
        self.prefix = Prefix()
        self.miscounted: list[tuple[int, int]] = []
        """The frames whose recorded number of lines is wrong: where they begin, and the number."""
        self.uncounted: list[tuple[int, int]] = []
        """The same of frames without a recorded number."""
        self._connection = connection
        self._known = known
        self._covered: list[tuple[int, int]] = []
        self._frames = 0

    def __iter__(self) -> Iterator[bytes]:
        (self._frames,) = self._connection.execute(
            "select count(*) from archive where file_id = ?", (self._known.id,)
        ).fetchone()
        recorded = archive.line_counts(self._connection, self._known.id)
        for start, data in archive.sound_pieces(self._connection, self._known.id):
            self._covered.append((start, start + len(data)))
            if recorded[start] != (count := data.count(b"\n")):
                wrong = self.uncounted if recorded[start] is None else self.miscounted
                wrong.append((start, count))
            self.prefix = self.prefix.extended(data)
            yield data

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """What is missing; like all that follows, after the bytes were read."""
        return archive.uncovered(self._covered, self._known.checkpoint.offset)

    @property
    def damaged_at(self) -> int | None:
        """Where the archive is not exactly the bytes up to the offset, None if it is."""
        if gaps := self.gaps:
            return gaps[0][0]
        position = 0
        rows = self._connection.execute(
            'select start, "end" from archive where file_id = ? order by start', (self._known.id,)
        )
        for start, end in rows:
            if start != position:
                return position
            position = end
        return None if position == self._known.checkpoint.offset else position

    @property
    def have_checksum(self) -> bool:
        """Do they have the checksum of what was read? Without forgotten parts, they need not."""
        mark = self._known.checkpoint
        if mark.head_hash is None or self.prefix.checkpoint() == mark:
            return True
        return is_left_out(self._connection, self._known.id)

    @property
    def are_as_read(self) -> bool:
        """Are they what was read, but for gaps? If one is missing, there is no checksum of them."""
        mark = self._known.checkpoint
        is_marked = bool(mark.head_hash) and mark.offset > 0
        # Without a mark, it is to be read again, or was never archived.
        return len(self._covered) == self._frames and (not is_marked or self.have_checksum)


def comes_back(connection: sqlite3.Connection, root: str, known: KnownFile) -> bool:
    """Is a file on disk, so that a sync can read it again?

    If it was gone, the file at its path may be another one, which does not count. An entry is as
    long there as its store.
    """
    if (names := entry_names(known.path)) is not None:
        return known.gone_at is None and is_there(original_root(root) / names[0])
    try:
        with opened(str(original_root(root).joinpath(*original_parts(known.path)))) as descriptor:
            return known.gone_at is None or has_its_bytes(connection, known, descriptor)
    except OSError:
        return False


def has_its_bytes(connection: sqlite3.Connection, known: KnownFile, descriptor: int) -> bool:
    """Does a file on disk have the remaining bytes of this one, at the same offsets?

    Raises OSError.
    """
    has_any = False
    for start, data in archive.sound_pieces(connection, known.id):
        for low in (0, *range(_HEAD, len(data), CHUNK)):  # most files differ early
            part = data[low : _HEAD if low == 0 else low + CHUNK]
            if read_at(descriptor, len(part), start + low) != part:
                return False
        has_any = True
    return has_any or _has_its_lines(connection, known, descriptor)


def _has_its_lines(connection: sqlite3.Connection, known: KnownFile, descriptor: int) -> bool:
    """If nothing of the archive is left: are the lines where the rows say they were?"""
    rows = connection.execute(
        "select byte_offset, byte_length, uuid from messages"
        f" where file_id = ? and uuid is not null limit {_COMPARED}",
        (known.id,),
    ).fetchall()
    return bool(rows) and all(
        uuid.encode() in read_at(descriptor, length, offset) for offset, length, uuid in rows
    )


def note_losses(connection: sqlite3.Connection, file_id: int, issues: Iterable[Issue]) -> None:
    """Record what is lost of a file, in place of its earlier issues with the same reasons."""
    new = list(issues)
    connection.executemany(
        "delete from issues where file_id = ? and reason = ?",
        {(file_id, issue.reason) for issue in new},
    )
    connection.executemany(
        "insert into issues (file_id, reason, quarantined, sample, byte_offset, byte_length)"
        " values (?, ?, ?, ?, ?, ?)",
        ((file_id, *issue) for issue in new),
    )
    connection.execute(f"update files set {COUNTS} where id = ?", (file_id,))


def _read_again_later(connection: sqlite3.Connection, file_id: int) -> None:
    """Make the next sync read the whole file again, if it still exists."""
    connection.execute(
        "update files set mtime_ns = 0, head_hash = iif(head_hash is null, null, x'') where id = ?",
        (file_id,),
    )


# ------------------------------------------------------------------------------------------------
# Which files can be derived as a whole.


class ArchivedFile(NamedTuple):
    """A file of the database, and the source that reads it."""

    source: Source
    source_id: int
    known: KnownFile


class Plan(NamedTuple):
    """What can be derived of a file."""

    claim: Claim | None
    gaps: list[tuple[int, int]]
    """What is missing in its archive."""
    is_as_read: bool
    """The rest is what was read."""
    is_whole: bool
    """All of its rows can be derived from the archive."""
    issues: list[Record]
    """Issues that do not follow from the archive."""

    @property
    def is_damaged(self) -> bool:
        return bool(self.gaps) or not self.is_as_read


def files_of(connection: sqlite3.Connection, which: str = "true") -> Iterator[ArchivedFile]:
    """Yield the files of the sources that this version knows, in the order of their ids."""
    rows = connection.execute(
        "select f.id, f.source_id, s.kind from files f join sources s on s.id = f.source_id"
        f" where {which} order by f.id"
    ).fetchall()
    for file_id, source_id, kind in rows:
        known = known_file(connection, file_id)
        if known is not None and kind in SOURCES:
            yield ArchivedFile(SOURCES[kind], source_id, known)


def plan_of(connection: sqlite3.Connection, file: ArchivedFile) -> Plan:
    """Look at the archive of a file, before any of its rows are removed.

    Frames whose recorded number of lines is wrong or missing get the right one.
    """
    source, _, known = file
    archived = ArchivedBytes(connection, known)
    for _ in archived:
        pass
    connection.executemany(
        "update archive set line_count = ?3 where file_id = ?1 and start = ?2",
        ((known.id, *count) for count in (*archived.miscounted, *archived.uncounted)),
    )
    gaps, is_as_read = archived.gaps, archived.are_as_read
    claim = claim_by_lines(connection, source, known, is_sound=is_as_read and not gaps)
    is_whole = (
        not gaps
        and is_as_read
        and claim is not None
        and is_archived(source, claim, known)
        and not walk.is_unnamed(known.path)
    )
    issues = []
    if is_whole and claim is not None:
        is_log = source.shape(claim) == LOG
        issues = issues_outside_archive(connection, known.id, is_log=is_log)
    return Plan(claim, gaps, is_as_read, is_whole, issues)


def claim_by_lines(
    connection: sqlite3.Connection, source: Source, known: KnownFile, *, is_sound: bool = False
) -> Claim | None:
    """Return the claim of a file, from its path and, if that is not enough, its first lines or a
    list of sessions.

    If its archive `is_sound`, no more of it is unpacked than is needed.
    """
    if walk.is_unnamed(known.path):
        claim = walk.claim_of_unnamed(source.name, known)
        return claim and walk.with_places(connection, claim, known.id)
    claim = claim_at(source, known.path)
    if claim is None or source.shape(claim) != LOG:
        return claim
    if known.kind == FOREIGN_DOCUMENT:  # it is not archived
        return source.as_kind(claim, known.kind)
    read = archive.read_beginning if is_sound else archive.read
    claim = as_listed(connection, known.id, claim)
    try:
        return source.classify(claim, lines_in_parts(read(connection, known.id)))
    except ArchiveError:
        return source.as_kind(claim, known.kind)


def is_archived(source: Source, claim: Claim, known: KnownFile) -> bool:
    """Can the rows of the file be derived from the archive alone?"""
    shape = source.shape(claim)
    if shape == LOG:
        return True
    return shape not in (PRIVATE, UNREAD) and known.checkpoint.offset > 0


# ------------------------------------------------------------------------------------------------
# Some files as part of a batch, because what others decide about them has changed.


def derive_again(connection: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Derive some files again from their archive, and what follows from their rows.

    Raises sqlite3.Error.
    """
    wanted = list(file_ids)
    if wanted:
        with Batch(connection, Clock(connection).now()) as batch:
            derive_in(batch, wanted)


def derive_in(batch: Batch, file_ids: Iterable[int]) -> None:
    """Derive some files again as part of a larger batch."""
    agents = AgentFiles(batch.connection)
    for file in files_of(batch.connection, f"f.id in ({id_list(file_ids)})"):
        derive(batch, file, agents, plan_of(batch.connection, file))


def misjudged(connection: sqlite3.Connection) -> list[int]:
    """Return the logs that a list of sessions makes transcripts, or no longer does."""
    doubtful = doubtful_logs(connection)
    return [
        known.id
        for source, _, known in files_of(connection, f"f.id in ({id_list(doubtful)})")
        if (claim := claim_by_lines(connection, source, known)) and claim.kind != known.kind
    ]


@contextmanager
def agents_may_change(batch: Batch) -> Iterator[None]:
    """Derive again what repeats lines of agents that have a file after the block and had none
    before, or the other way round, and logs that a list of sessions judges otherwise; see
    `exclusions`."""
    before = agents_with_files(batch.connection)
    yield
    derive_in(batch, repeating(batch.connection, before ^ agents_with_files(batch.connection)))
    derive_in(batch, misjudged(batch.connection))


# ------------------------------------------------------------------------------------------------
# One file.


@dataclass(slots=True)
class LostBytes:
    """Archived bytes of a file that are lost for good."""

    root: str
    path: str
    bytes: int


def derive(
    batch: Batch,
    file: ArchivedFile,
    agents: AgentFiles,
    plan: Plan,
    stretches: Iterable[Replayed] | None = None,
    *,
    is_cleared: bool = False,
) -> LostBytes | None:
    """Replace the rows of a file by those of its archived bytes, or add those that are missing.

    `stretches` are what a worker made of its bytes, if one has. If it `is_cleared`, the rows of a
    file that is derived as a whole are already removed. Returns what is lost of the file.
    """
    source, source_id, known = file
    claim = plan.claim and agents.with_files(source, source_id, plan.claim)
    if not plan.is_whole or claim is None:
        return _keep(batch, file, claim, plan)
    if stretches is None:
        pieces = archive.read_whole(batch.connection, known.id, known.checkpoint.offset)
        stretches = replay(source, claim, pieces)
    opened = batch.open_archived(source_id, claim, known, is_cleared=is_cleared)
    opened.context = None
    for stretch in stretches:
        batch.add(opened, stretch.records, (), Prefix(), stretch.end - stretch.start)
        opened.context = stretch.context
    batch.add(opened, plan.issues, (), Prefix(), 0)
    return None


def _keep(batch: Batch, file: ArchivedFile, claim: Claim | None, plan: Plan) -> LostBytes | None:
    """Keep the rows of a file whose archive does not have all of it; only add what is missing."""
    connection, known = batch.connection, file.known
    lost = None
    if plan.is_damaged:
        batch.touch(known.id)
        lost = _note_gaps(connection, file, plan.gaps)
    if claim is not None and (plan.gaps or not plan.is_damaged):
        _add_missing_rows(batch, file, claim, plan.gaps)
    is_named = not walk.is_unnamed(known.path)  # otherwise it is found by its bytes
    if not plan.is_damaged and known.gone_at is None and is_named:
        _read_again_later(connection, known.id)
    return lost


def _note_gaps(
    connection: sqlite3.Connection, file: ArchivedFile, gaps: list[tuple[int, int]]
) -> LostBytes | None:
    """Record which bytes of a file are not in its archive; return what is lost for good.

    A file that is still on disk is not lost: it is marked, and the next sync reads it again.
    """
    known = file.known
    issues = [Issue(walk.BYTES_LOST, 0, None, start, end - start) for start, end in gaps]
    note_losses(connection, known.id, issues)
    (root,) = connection.execute(
        "select root from sources where id = ?", (file.source_id,)
    ).fetchone()
    if comes_back(connection, root, known):
        _read_again_later(connection, known.id)
        return None
    count = sum(issue.byte_length for issue in issues) or known.checkpoint.offset
    return LostBytes(root, known.path, count) if count else None


# -- missing rows ----------------------------------------------------------------------------------
#
# No rows are removed of logs whose archive has gaps, since their rows may be all that is left of
# the lines there, and of documents that are gone, since some of their rows are older than the last
# version.

_KEYS: dict[type, tuple[str, Callable[[Any], tuple[object, ...]]]] = {
    Message: ("byte_offset, block", lambda record: (record.byte_offset, record.block)),
    ToolCall: (
        "tool_use_id, byte_offset * (tool_use_id is null)",
        lambda record: (record.tool_use_id, record.byte_offset * (record.tool_use_id is None)),
    ),
    AddedLine: (
        "line_hash, byte_offset, block",
        lambda record: (record.line_hash, record.byte_offset, record.block),
    ),
    Usage: ("response_key", lambda record: (record.response_key,)),
    LineType: ("type, subtype", lambda record: (record.type, record.subtype)),
    Issue: ("reason, byte_offset", lambda record: (record.reason, record.byte_offset)),
    TaskChange: ("byte_offset", lambda record: (record.byte_offset,)),
    Transcript: ("0", lambda record: (0,)),
}
"""What identifies a row in its file, in SQL and of a record, where an insert does not check it."""


def _add_missing_rows(
    batch: Batch, file: ArchivedFile, claim: Claim, gaps: list[tuple[int, int]]
) -> None:
    """Add the rows of a file's archived bytes that are missing."""
    connection, (source, source_id, known) = batch.connection, file
    opened = batch.open_archived(source_id, claim, known, keeps_rows=True)
    is_log = source.shape(claim) == LOG
    is_plausible = sum(end - start for start, end in gaps) <= archive.MOST_BLANK
    if not known.checkpoint.offset or (gaps and not (is_log and is_plausible)):
        return
    present = {
        kind: set(
            connection.execute(f"select {key} from {TABLES[kind]} where file_id = ?", (known.id,))
        )
        for kind, (key, _) in _KEYS.items()
    }

    def is_missing(record: Record) -> bool:
        kind = record.__class__
        return kind not in _KEYS or _KEYS[kind][1](record) not in present[kind]

    calls: list[ToolCall] = []
    pieces = archive.read_around_gaps(connection, known.id, known.checkpoint.offset)
    for stretch in replay(source, claim, pieces):
        calls += [record for record in stretch.records if isinstance(record, ToolCall)]
        missing = [record for record in stretch.records if is_missing(record)]
        batch.add(opened, missing, (), Prefix(), stretch.end - stretch.start)
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

"""Derives all tables again from the archive: which files can be, in what order, and what fills the
rest.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ..derive import refresh_everything
from ..errors import ArchiveError, DamagedError, OutdatedError
from ..files import archive, walk
from ..files.changes import Replayed, replay
from ..files.exclusions import (
    AgentFiles,
    agents_with_files,
    as_listed,
    doubtful_logs,
    issues_outside_archive,
    repeating,
)
from ..files.tail import Prefix, lines_in_parts
from ..records import Issue, LineType, Message, Record, TaskChange, ToolCall, Transcript, Usage
from ..source import FOREIGN_DOCUMENT, LOG, PRIVATE, UNREAD, Claim, KnownFile, Source, claim_at
from ..sources import SOURCES
from ..sql import id_list
from ..store import database, fts
from ..store.batch import Batch, clear_all_rows, known_file
from ..store.database import Clock, transaction
from ..store.swap import has_room, replaced
from ..terminal import Progress
from ..workers import reading, started_ahead, worker_count
from ..workers.index_aside import index_aside
from . import recover
from .recover import (
    LostBytes,
    check,
    checked_meanwhile,
    damage_is_told,
    examined,
    note_gaps,
    only_here,
    read_again_later,
)

# ------------------------------------------------------------------------------------------------
# Adds missing rows to files that cannot be derived again as a whole; no rows are removed.
#
# These are logs whose archive has gaps, since their rows may be all that is left of the lines
# there, and documents that are gone, since some of their rows are older than the last version.


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


# ------------------------------------------------------------------------------------------------
# The files of a database as a rebuild takes them, and the stretches of lines in their archive.
#
# Worker processes parse the archive ahead of the rebuild if there is enough of it for that to
# pay.


class ArchivedFile(NamedTuple):
    """A file of the database, and the source that reads it."""

    source: Source
    source_id: int
    known: KnownFile


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


def parsed(
    connection: sqlite3.Connection,
    files: Iterable[ArchivedFile],
    agents: AgentFiles,
    count: int,
    claims: Mapping[int, Claim | None] | None = None,
) -> Generator[tuple[ArchivedFile, list[bytes] | None], None, None]:
    """Yield the files with what workers made of their archive, None if they made nothing.

    `claims` are those of the files, if they are known; None for one that no worker should parse.
    """
    if count == 1:
        yield from ((file, None) for file in files)
        return
    waiting: deque[ArchivedFile] = deque()

    def sent() -> Iterator[reading.Archived]:
        for file in files:
            waiting.append(file)
            claim = _claim_to_parse(connection, file) if claims is None else claims[file.known.id]
            yield _to_parse(connection, file, claim, agents)

    with closing(reading.replayed(sent(), count)) as results:
        for pieces in results:
            yield waiting.popleft(), pieces


def _claim_to_parse(connection: sqlite3.Connection, file: ArchivedFile) -> Claim | None:
    """Return the claim of a file that a worker may parse, None of one that it may not."""
    source, _, known = file
    if walk.is_unnamed(known.path):
        return None
    claim = claim_of(connection, source, known)
    return claim if claim is not None and is_archived(source, claim, known) else None


def _to_parse(
    connection: sqlite3.Connection, file: ArchivedFile, claim: Claim | None, agents: AgentFiles
) -> reading.Archived:
    """Return what a worker needs to parse a file; nothing for one that it should not parse."""
    source, source_id, known = file
    frames = []
    if claim is not None and reading.worth_sending(known.checkpoint.offset):
        claim = agents.with_files(source, source_id, claim)
        frames = archive.stored_frames(connection, known.id)
    return reading.Archived(known.id, source.name, claim, tuple(frames))


def stretches_of(
    connection: sqlite3.Connection,
    source: Source,
    claim: Claim,
    known: KnownFile,
    pieces: list[bytes] | None,
) -> Iterable[Replayed]:
    """Yield the stretches that a worker has made of a file, or make them here."""
    if pieces is not None:
        return reading.stretches(pieces)
    archived = archive.read_whole(connection, known.id, known.checkpoint.offset)
    return replay(source, claim, archived)


def claim_of(
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
# Decides which files a rebuild can derive again as a whole.


class Plan(NamedTuple):
    """What a rebuild can do for a file."""

    claim: Claim | None
    gaps: list[tuple[int, int]]
    """What is missing in its archive."""
    is_as_read: bool
    """The rest is what was read."""
    is_whole: bool
    """All of its rows can be derived from the archive."""
    issues: list[Record]
    """Issues that do not follow from the archive."""
    is_endless: bool = False
    """Its parser does not come to an end."""


def plan_of(connection: sqlite3.Connection, file: ArchivedFile) -> Plan:
    """Look at the archive of a file, before any of its rows are removed."""
    source, _, known = file
    gaps, is_as_read = examined(connection, known)
    claim = claim_of(connection, source, known, is_sound=is_as_read and not gaps)
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


# ------------------------------------------------------------------------------------------------
# Derives all tables again from the archive.
#
# For use when a parser has learned something, or when rows are damaged: the archive has the
# original bytes.
#
# 1. The database is copied (`store/replacing`). Nobody sees the copy, so the next steps need no
#   log.
# 2. The rows of all files whose archive is complete are removed, and their bytes are parsed again,
#   as
#    in a first sync.
# 3. Everything that follows from rows is derived again, all at once, and the full-text indexes are
#    rebuilt.
# 4. The content of the copy replaces that of the database in one transaction: a reader sees the old
#    rows or the new ones, never a mixture, and a rebuild that ends early has changed nothing.
#
# If the disk has no room for a copy, rows are replaced in the database itself, file by file.
#
# Rows without archived bytes are kept: entries that are gone from lists, changes of tasks that
# syncs saw, and rows of files that are not archived, which the next sync reads again if they are
# still on disk. Rows of a file whose archive has gaps are kept, too, since they may be all that
# is left of the lines there; only missing rows are added (`fill_gaps`). If SQLite cannot read a
# page, or a table is not as it should be, `recover` runs first.


@dataclass(slots=True)
class Rebuilt:
    """What a rebuild did."""

    files: int = 0
    """Files that were derived again."""
    files_kept: int = 0
    """Files without archived bytes, whose rows stay."""
    files_damaged: list[str] = field(default_factory=list)
    """Files whose archived bytes are damaged or incomplete; their rows stay."""
    files_unnamed: list[str] = field(default_factory=list)
    """Placeholder paths of files whose own path is unknown."""
    lost: list[LostBytes] = field(default_factory=list)
    """Bytes that are missing from the archive and from the disk."""
    bytes_lost: int = 0
    """The number of these bytes."""
    rows_lost: dict[str, int] = field(default_factory=dict)
    """The number of places where rows could not be read, by table."""
    only_here: list[str] = field(default_factory=list)
    """Tables that lost rows which no file contains."""
    kept_aside: str | None = None
    """Where the damaged database was put, or one that could not be updated in place."""
    is_outdated: bool = False
    """It was not damaged, but could not be updated in place."""
    bytes_read: int = 0
    rows: int = 0
    issues: int = 0
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Can a sync bring back everything that was lost?"""
        return not self.lost and not self.only_here


def rebuild(path: Path, progress: Progress | None = None, jobs: int | None = None) -> Rebuilt:
    """Derive all tables of the database again, in up to `jobs` processes; None: one for each core.

    Raises DatabaseError if there is none or it cannot be opened, BusyError if another process
    writes, sqlite3.Error if the disk fails; what was committed before stays.
    """
    if not path.exists():
        raise database.no_index(path)
    try:
        with database.writing(path) as connection, damage_is_told():
            return rebuild_into(connection, progress, jobs, checks_pages=True)
    except DamagedError as error:
        is_outdated = isinstance(error, OutdatedError)
    with database.locked(path):
        salvaged = recover.replace_by_sound_copy(path)
    with database.writing(path) as connection:
        rebuilt = rebuild_into(connection, progress, jobs)
        rebuilt.kept_aside = str(salvaged.kept)
        rebuilt.is_outdated = is_outdated
        rebuilt.rows_lost = salvaged.holes
        rebuilt.only_here = only_here(connection, salvaged)
        return rebuilt


def rebuild_into(
    connection: sqlite3.Connection,
    progress: Progress | None = None,
    jobs: int | None = None,
    *,
    checks_pages: bool = False,
) -> Rebuilt:
    """Rebuild on the writer's connection. Raises BusyError and sqlite3.Error as `rebuild` does.

    If it `checks_pages`, it does so before anything is removed; DamagedError if one is bad.
    """
    started = time.monotonic()
    count = worker_count(jobs, _archived_bytes(connection))
    if has_room(connection):
        rebuilt = _rebuild_in_copy(connection, progress, count, checks_pages=checks_pages)
    else:
        if checks_pages:
            check(connection)
        _repair_indexes(connection, fts.indexes(connection))
        rebuilt = _rebuild(connection, progress, count)
    rebuilt.seconds = time.monotonic() - started
    return rebuilt


def _rebuild_in_copy(
    connection: sqlite3.Connection, progress: Progress | None, count: int, *, checks_pages: bool
) -> Rebuilt:
    endless: set[int] = set()
    while True:
        try:
            with started_ahead(count), replaced(connection) as copy:
                with checked_meanwhile(connection) if checks_pages else nullcontext():
                    plans = {file.known.id: plan_of(copy, file) for file in files_of(copy)}
                for file_id in endless:
                    plans[file_id] = plans[file_id]._replace(is_whole=False, is_endless=True)
                made_anew = {*fts.OF_MESSAGES, *fts.OF_OTHERS}
                _repair_indexes(copy, set(fts.indexes(copy)) - made_anew)
                put_off = fts.PutOff(copy, fts.OF_OTHERS)
                clear_all_rows(copy, (id_ for id_, plan in plans.items() if plan.is_whole))
                rebuilt = _rebuild(copy, progress, count, plans)
                put_off.catch_up()
                return rebuilt
        except _EndlessError as error:  # its rows were removed from the copy, and have to stay
            endless.add(error.file_id)
            checks_pages = False


def _rebuild(
    connection: sqlite3.Connection,
    progress: Progress | None,
    count: int,
    plans: Mapping[int, Plan] | None = None,
) -> Rebuilt:
    """Rebuild this database, in so many processes.

    With `plans`, it is a copy without the rows that come anew.
    """
    rebuilt = Rebuilt()
    clock = Clock(connection)
    total = _archived_bytes(connection)
    agents = AgentFiles(connection)
    done = 0
    claims = None
    if plans is not None:
        claims = {id_: plan.claim if plan.is_whole else None for id_, plan in plans.items()}
    with (
        index_aside(connection) if plans is not None and count > 1 else nullcontext() as aside,
        closing(parsed(connection, files_of(connection), agents, count, claims)) as files,
    ):
        for first in files:
            with Batch(connection, clock.now(), aside, is_derived_later=plans is not None) as batch:
                for file, pieces in chain([first], files):
                    plan = plans[file.known.id] if plans is not None else None
                    _derive(batch, file, rebuilt, agents, pieces, plan)
                    done += file.known.checkpoint.offset
                    if progress is not None:
                        progress(done, total)
                    if batch.is_full:
                        break
            rebuilt.rows += batch.written.rows
            rebuilt.issues += batch.written.issues
        with transaction(connection):
            refresh_everything(connection)
        if aside is not None:
            aside.put_in_place()  # by now it has caught up
    derive_again(connection, misjudged(connection))
    connection.execute(f"pragma user_version = {database.DERIVATION}")
    return rebuilt


def _archived_bytes(connection: sqlite3.Connection) -> int:
    (total,) = connection.execute("select coalesce(sum(offset), 0) from files").fetchone()
    return int(total)


def derive_again(connection: sqlite3.Connection, file_ids: Iterable[int]) -> None:
    """Derive some files again from their archive, and what follows from their rows.

    Raises sqlite3.Error.
    """
    wanted = list(file_ids)
    if not wanted:
        return
    with Batch(connection, Clock(connection).now()) as batch:
        derive_in(batch, wanted)


def derive_in(batch: Batch, file_ids: Iterable[int]) -> None:
    """Derive some files again as part of a larger batch."""
    agents, rebuilt = AgentFiles(batch.connection), Rebuilt()
    for file in files_of(batch.connection, f"f.id in ({id_list(file_ids)})"):
        _derive(batch, file, rebuilt, agents)


def misjudged(connection: sqlite3.Connection) -> list[int]:
    """Return the logs that a list of sessions makes transcripts, or no longer does."""
    doubtful = doubtful_logs(connection)
    return [
        known.id
        for source, _, known in files_of(connection, f"f.id in ({id_list(doubtful)})")
        if (claim := claim_of(connection, source, known)) and claim.kind != known.kind
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


def _repair_indexes(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    for name in names:
        if not fts.fits(connection, name):
            fts.rebuild_index(connection, name)


# -- one file ------------------------------------------------------------------------------------


class _EndlessError(Exception):
    """The parser of a file does not come to an end, and its rows are already removed."""

    def __init__(self, file_id: int) -> None:
        super().__init__(file_id)
        self.file_id = file_id


def _derive(
    batch: Batch,
    file: ArchivedFile,
    rebuilt: Rebuilt,
    agents: AgentFiles,
    pieces: list[bytes] | None = None,
    plan: Plan | None = None,
) -> None:
    """Replace the rows of a file by those of its archived bytes, if these are complete.

    `pieces` are what a worker made of them, if one has. If there is a `plan`, the rows of a file
    that can be derived as a whole are already removed.
    """
    connection = batch.connection
    source, source_id, known = file
    is_cleared = plan is not None
    plan = plan or plan_of(connection, file)
    if walk.is_unnamed(known.path):
        rebuilt.files_unnamed.append(known.path)
    if plan.is_endless:
        rebuilt.files_kept += 1
    elif not plan.is_whole or plan.claim is None:
        claim = plan.claim and agents.with_files(source, source_id, plan.claim)
        _keep(batch, file, plan._replace(claim=claim), rebuilt)
    elif pieces == reading.GIVEN_UP:
        if is_cleared:
            raise _EndlessError(known.id)
        rebuilt.files_kept += 1
    else:
        claim = agents.with_files(source, source_id, plan.claim)
        opened = batch.open_archived(source_id, claim, known, is_cleared=is_cleared)
        opened.context = None
        for stretch in stretches_of(connection, source, claim, known, pieces):
            batch.add(opened, stretch.records, (), Prefix(), stretch.end - stretch.start)
            opened.context = stretch.context
        batch.add(opened, plan.issues, (), Prefix(), 0)
        rebuilt.files += 1
        rebuilt.bytes_read += known.checkpoint.offset


def _keep(batch: Batch, file: ArchivedFile, plan: Plan, rebuilt: Rebuilt) -> None:
    """Keep the rows of a file whose archive does not have all of it; only add what is missing."""
    connection = batch.connection
    source, source_id, known = file
    if plan.gaps or not plan.is_as_read:
        rebuilt.files_damaged.append(known.path)
        batch.touch(known.id)
        if missing := note_gaps(connection, source_id, known, plan.gaps):
            rebuilt.lost.append(missing)
            rebuilt.bytes_lost += missing.bytes
        if plan.claim is not None and plan.gaps:
            fill_in(batch, source, source_id, plan.claim, known, plan.gaps)
        return
    rebuilt.files_kept += 1
    if plan.claim is not None:
        fill_in(batch, source, source_id, plan.claim, known, [])
    is_named = not walk.is_unnamed(known.path)  # otherwise it is found by its bytes
    if known.gone_at is None and is_named:
        read_again_later(connection, known.id)

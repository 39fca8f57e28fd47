"""Derives all tables again from the archive."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from ..derive import refresh_everything
from ..errors import DamagedError, OutdatedError, is_damage
from ..files import archive, walk
from ..files.exclusions import AgentFiles
from ..store import database, fts
from ..store.batch import Batch, clear_all_rows
from ..store.database import Clock, transaction
from ..store.replay import (
    ArchivedFile,
    LostBytes,
    Plan,
    derive,
    derive_again,
    files_of,
    misjudged,
    plan_of,
)
from ..store.swap import has_room, replaced
from ..terminal import Progress
from ..workers import reading, started_ahead, worker_count
from ..workers.index_aside import index_aside
from .recover import only_here, recover
from .verify import REBUILD, check_references, check_schema, fresh_schema

# For use when a parser has learned something, or when rows are damaged: the archive has the
# original bytes.
#
# 1. The database is copied (`store/swap`). Nobody sees the copy, so the next steps need no log.
# 2. The rows of all files whose archive is complete are removed, and their bytes are parsed again
#    (`store/replay`), as in a first sync. Worker processes parse them ahead if there is enough of
#    it for that to pay.
# 3. Everything that follows from rows is derived again, all at once, and the full-text indexes are
#    rebuilt.
# 4. The content of the copy replaces that of the database in one transaction: a reader sees the old
#    rows or the new ones, never a mixture, and a rebuild that ends early has changed nothing.
#
# If the disk has no room for a copy, rows are replaced in the database itself, file by file.
#
# Rows without archived bytes are kept: entries that are gone from lists, changes of tasks that
# syncs saw, and rows of files that are not archived, which the next sync reads again if they are
# still on disk. Rows of a file whose archive has gaps are kept, too; only missing rows are added.
# If SQLite cannot read a page, or a table is not as it should be, `recover` runs first.


_Plans = dict[int, Plan | None]
"""What can be derived of each file, by its id; None if its parser does not come to an end."""


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
        with database.writing(path) as connection, damage_as_our_error():
            return rebuild_into(connection, progress, jobs, checks_pages=True)
    except DamagedError as error:
        is_outdated = isinstance(error, OutdatedError)
    with database.locked(path):
        recovered = recover(path)
    with database.writing(path) as connection:
        rebuilt = rebuild_into(connection, progress, jobs)
        rebuilt.kept_aside = str(recovered.kept)
        rebuilt.is_outdated = is_outdated
        rebuilt.rows_lost = recovered.holes
        rebuilt.only_here = only_here(connection, recovered)
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
            _check(connection)
        with transaction(connection):
            plans: _Plans = {
                file.known.id: plan_of(connection, file) for file in files_of(connection)
            }
        _repair_indexes(connection, fts.indexes(connection))
        rebuilt = _rebuild(connection, progress, count, plans, is_copy=False)
    rebuilt.seconds = time.monotonic() - started
    return rebuilt


def _rebuild_in_copy(
    connection: sqlite3.Connection, progress: Progress | None, count: int, *, checks_pages: bool
) -> Rebuilt:
    endless: set[int] = set()
    plans: _Plans
    while True:
        try:
            with started_ahead(count), replaced(connection) as copy:
                with checked_meanwhile(connection) if checks_pages else nullcontext():
                    plans = {file.known.id: plan_of(copy, file) for file in files_of(copy)}
                for file_id in endless:
                    plans[file_id] = None
                made_anew = {*fts.OF_MESSAGES, *fts.OF_OTHERS}
                _repair_indexes(copy, set(fts.indexes(copy)) - made_anew)
                put_off = fts.PutOff(copy, fts.OF_OTHERS)
                clear_all_rows(copy, (id_ for id_, plan in plans.items() if plan and plan.is_whole))
                rebuilt = _rebuild(copy, progress, count, plans, is_copy=True)
                put_off.catch_up()
                return rebuilt
        except _EndlessError as error:  # its rows were removed from the copy, and have to stay
            endless.add(error.file_id)
            checks_pages = False


def _rebuild(
    connection: sqlite3.Connection,
    progress: Progress | None,
    count: int,
    plans: _Plans,
    *,
    is_copy: bool,
) -> Rebuilt:
    """Rebuild this database, in so many processes; a copy without the rows that come anew."""
    rebuilt = Rebuilt()
    clock = Clock(connection)
    total = _archived_bytes(connection)
    agents = AgentFiles(connection)
    done = 0
    with (
        index_aside(connection) if is_copy and count > 1 else nullcontext() as aside,
        closing(_parsed(connection, agents, count, plans)) as files,
    ):
        for first in files:
            with Batch(connection, clock.now(), aside, is_derived_later=is_copy) as batch:
                for file, pieces in chain([first], files):
                    plan = plans[file.known.id]
                    _derive(batch, file, agents, plan, pieces, rebuilt, is_cleared=is_copy)
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


def _repair_indexes(connection: sqlite3.Connection, names: Iterable[str]) -> None:
    for name in names:
        if not fts.fits(connection, name):
            fts.rebuild_index(connection, name)


# -- damage, before or while a rebuild looks at the rows -------------------------------------------


_DAMAGED = "The database is damaged - run: assoc-ingest rebuild"
_PATIENCE = 0.01  # seconds


def _check(connection: sqlite3.Connection) -> None:
    """Check all pages and indexes, the schema, and that every reference leads to a row.

    Raises DamagedError if something is wrong, and sqlite3.Error if the disk fails.
    """
    with damage_as_our_error(), fresh_schema() as schema:
        (first,) = connection.execute("pragma integrity_check(1)").fetchone()
        problems = [*check_schema(connection, schema), *check_references(connection)]
    if first != "ok" or any(problem.remedy == REBUILD for problem in problems):
        raise DamagedError(_DAMAGED)


@contextmanager
def checked_meanwhile(connection: sqlite3.Connection) -> Iterator[None]:
    """Let a thread `_check` the database through a connection that is not used meanwhile.

    If it is damaged, that is raised in place of any other error, which may be what it led to.
    """
    with ThreadPoolExecutor(1, "check") as thread:
        checked = thread.submit(_check, connection)
        try:
            yield
        except Exception:
            checked.result()
            raise
        except BaseException:
            while wait([checked], _PATIENCE).not_done:  # the user wants to stop now
                connection.interrupt()  # only ends a statement that runs at this moment
            raise
        checked.result()
    connection.execute("pragma shrink_memory")  # of the pages that it read


@contextmanager
def damage_as_our_error() -> Iterator[None]:
    """Turn SQLite's error that the database is damaged into ours; let other errors through."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise DamagedError(_DAMAGED) from error


# -- one file ------------------------------------------------------------------------------------


class _EndlessError(Exception):
    """The parser of a file does not come to an end, and its rows are already removed."""

    def __init__(self, file_id: int) -> None:
        super().__init__(file_id)
        self.file_id = file_id


def _derive(
    batch: Batch,
    file: ArchivedFile,
    agents: AgentFiles,
    plan: Plan | None,
    pieces: list[bytes] | None,
    rebuilt: Rebuilt,
    *,
    is_cleared: bool,
) -> None:
    """Derive a file and count what was done; `pieces` are what a worker made of it, if one has."""
    known = file.known
    if walk.is_unnamed(known.path):
        rebuilt.files_unnamed.append(known.path)
    if plan is None or (plan.is_whole and pieces == reading.GIVEN_UP):
        if is_cleared and plan is not None:
            raise _EndlessError(known.id)
        rebuilt.files_kept += 1
        return
    stretches = None if pieces is None else reading.stretches(pieces)
    lost = derive(batch, file, agents, plan, stretches, is_cleared=is_cleared)
    if plan.is_whole:
        rebuilt.files += 1
        rebuilt.bytes_read += known.checkpoint.offset
    elif plan.is_damaged:
        rebuilt.files_damaged.append(known.path)
    else:
        rebuilt.files_kept += 1
    if lost is not None:
        rebuilt.lost.append(lost)
        rebuilt.bytes_lost += lost.bytes


# -- workers -------------------------------------------------------------------------------------


def _parsed(
    connection: sqlite3.Connection, agents: AgentFiles, count: int, plans: _Plans
) -> Generator[tuple[ArchivedFile, list[bytes] | None], None, None]:
    """Yield all files with what workers made of their archive, None if they made nothing."""
    if count == 1:
        yield from ((file, None) for file in files_of(connection))
        return
    waiting: deque[ArchivedFile] = deque()

    def sent() -> Iterator[reading.Archived]:
        for file in files_of(connection):
            waiting.append(file)
            yield _to_parse(connection, file, plans[file.known.id], agents)

    with closing(reading.replayed(sent(), count)) as results:
        for pieces in results:
            yield waiting.popleft(), pieces


def _to_parse(
    connection: sqlite3.Connection, file: ArchivedFile, plan: Plan | None, agents: AgentFiles
) -> reading.Archived:
    """Return what a worker needs to parse a file; nothing for one that it should not parse."""
    source, source_id, known = file
    claim, frames = None, []
    if plan is not None and plan.is_whole and plan.claim is not None:
        claim = plan.claim
        if reading.worth_sending(known.checkpoint.offset):
            claim = agents.with_files(source, source_id, claim)
            frames = archive.stored_frames(connection, known.id)
    return reading.Archived(known.id, source.name, claim, tuple(frames))

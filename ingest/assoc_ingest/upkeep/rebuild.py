"""Derives all tables again from the archive.

For use when a parser has learned something, or when rows are damaged: the archive has the original
bytes.

1. The database is copied (`store/replacing`). Nobody sees the copy, so the next steps need no log.
2. The rows of all files whose archive is complete are removed, and their bytes are parsed again, as
   in a first sync.
3. Everything that follows from rows is derived again, all at once, and the full-text indexes are
   rebuilt.
4. The content of the copy replaces that of the database in one transaction: a reader sees the old
   rows or the new ones, never a mixture, and a rebuild that ends early has changed nothing.

If the disk has no room for a copy, rows are replaced in the database itself, file by file.

Rows without archived bytes are kept: entries that are gone from lists, changes of tasks that syncs
saw, and rows of files that are not archived, which the next sync reads again if they are still on
disk. Rows of a file whose archive has gaps are kept, too, since they may be all that is left of the
lines there; only missing rows are added (`fill_gaps`). If SQLite cannot read a page, or a table is
not as it should be, `recover` runs first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from ..derive.refresh import refresh_everything
from ..errors import DamagedError, DatabaseError
from ..files import lost
from ..files.agent_files import AgentFiles
from ..files.tail import Prefix
from ..sql import id_list
from ..store import database, fts, location
from ..store.batch import Batch
from ..store.clock import Clock
from ..store.delete import clear_all_rows
from ..store.replacing import has_room, replaced
from ..store.report import Progress
from ..store.transaction import transaction
from ..workers import pool, replaying
from ..workers.amount import worker_count
from ..workers.index_aside import index_aside
from . import recover
from .archive_gaps import LostBytes, note_gaps, read_again_later
from .archived_files import File, files_of, parsed, stretches_of
from .damage import check, checked_meanwhile, damage_is_told
from .fill_gaps import fill_in
from .lost_tables import only_here
from .rebuild_plan import Plan, plan_of


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
    """Where the damaged database was put."""
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
        raise DatabaseError(f"No index at {path} - run: assoc-ingest sync")
    # If it is damaged, it is repaired first.
    with suppress(DamagedError), database.writing(path) as connection, damage_is_told():
        return rebuild_into(connection, progress, jobs, checks_pages=True)
    with location.locked(path):
        salvaged = recover.replace_by_sound_copy(path)
    with database.writing(path) as connection:
        rebuilt = rebuild_into(connection, progress, jobs)
        rebuilt.kept_aside = str(salvaged.kept)
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
            with pool.started_ahead(count), replaced(connection) as copy:
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
    file: File,
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
    if lost.is_unnamed(known.path):
        rebuilt.files_unnamed.append(known.path)
    if plan.is_endless:
        rebuilt.files_kept += 1
    elif not plan.is_whole or plan.claim is None:
        claim = plan.claim and agents.with_files(source, source_id, plan.claim)
        _keep(batch, file, plan._replace(claim=claim), rebuilt)
    elif pieces == replaying.GIVEN_UP:
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


def _keep(batch: Batch, file: File, plan: Plan, rebuilt: Rebuilt) -> None:
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
    is_named = not lost.is_unnamed(known.path)  # otherwise it is found by its bytes
    if known.gone_at is None and is_named:
        read_again_later(connection, known.id)

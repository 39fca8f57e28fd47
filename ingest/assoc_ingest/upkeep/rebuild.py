"""Derives all tables again from the archive, in place.

For use when a parser has learned something, or when rows are damaged: the archive has the original
bytes.

1. A full-text index that differs from its table is rebuilt: otherwise rows could not be removed.
2. File by file, the archived bytes are parsed again and the rows replaced, in transactions of about
   16 MB of input. A reader sees the old rows of a file or the new ones, never a mixture.
3. Everything that follows from rows is derived again, all at once.

Rows without archived bytes are kept: entries that are gone from lists, changes of tasks that syncs
saw, and rows of files that are not archived, which the next sync reads again if they are still on
disk. Rows of a file whose archive has gaps are kept, too, since they may be all that is left of the
lines there; only missing rows are added (`fill_gaps`). If SQLite cannot read a page, or a table is
not as it should be, `recover` runs first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from ..derive.changeset import Touched
from ..derive.refresh import refresh
from ..derive.statements import all_groups
from ..errors import DamagedError, DatabaseError
from ..failures import is_damage
from ..files import lost
from ..files.agent_files import AgentFiles
from ..files.exclusions import issues_outside_archive
from ..files.tail import Prefix
from ..source import LOG
from ..sql import id_list
from ..store import database, fts, location
from ..store.batch import Batch
from ..store.clock import Clock
from ..store.report import Progress
from ..store.transaction import transaction
from ..workers import replaying
from ..workers.amount import worker_count
from . import recover
from .archive_gaps import LostBytes, examined, note_gaps, read_again_later
from .archived_files import File, claim_of, files_of, is_archived, parsed, stretches_of
from .fill_gaps import fill_in
from .lost_tables import only_here


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
    salvaged = _repair(path)
    with database.writing(path) as connection:
        rebuilt = rebuild_into(connection, progress, jobs)
        if salvaged is not None:
            rebuilt.kept_aside = str(salvaged.kept)
            rebuilt.rows_lost = salvaged.holes
            rebuilt.only_here = only_here(connection, salvaged)
        return rebuilt


def _repair(path: Path) -> recover.Salvaged | None:
    """Replace the database by a repaired copy if it is damaged."""
    try:
        with database.writing(path) as connection:
            if recover.is_sound(connection):
                return None
    except DamagedError:
        pass
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    with location.locked(path):
        return recover.replace_by_sound_copy(path)


def rebuild_into(
    connection: sqlite3.Connection, progress: Progress | None = None, jobs: int | None = None
) -> Rebuilt:
    """Rebuild on the writer's connection. Raises sqlite3.Error."""
    started = time.monotonic()
    rebuilt = Rebuilt()
    _repair_indexes(connection)
    clock = Clock(connection)
    (total,) = connection.execute("select coalesce(sum(offset), 0) from files").fetchone()
    agents = AgentFiles(connection)
    done = 0
    count = worker_count(jobs, total)
    with closing(parsed(connection, files_of(connection), agents, count)) as files:
        for first in files:
            with Batch(connection, clock.now()) as batch:
                for file, pieces in chain([first], files):
                    _derive(batch, file, rebuilt, agents, pieces)
                    done += file.known.checkpoint.offset
                    if progress is not None:
                        progress(done, total)
                    if batch.is_full:
                        break
            rebuilt.rows += batch.written.rows
            rebuilt.issues += batch.written.issues
    _refresh_everything(connection)
    connection.execute(f"pragma user_version = {database.DERIVATION}")
    rebuilt.seconds = time.monotonic() - started
    return rebuilt


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


def _repair_indexes(connection: sqlite3.Connection) -> None:
    for name in fts.indexes(connection):
        if not fts.fits(connection, name):
            fts.rebuild_index(connection, name)


# -- one file ------------------------------------------------------------------------------------


def _derive(
    batch: Batch,
    file: File,
    rebuilt: Rebuilt,
    agents: AgentFiles,
    pieces: list[bytes] | None = None,
) -> None:
    """Replace the rows of a file by those of its archived bytes, if these are complete.

    `pieces` are what a worker made of them, if one has.
    """
    connection = batch.connection
    source, source_id, known = file
    if lost.is_unnamed(known.path):
        rebuilt.files_unnamed.append(known.path)
    claim = claim_of(connection, source, known)
    gaps, is_as_read = examined(connection, known)
    if gaps or not is_as_read:
        rebuilt.files_damaged.append(known.path)
        batch.touch(known.id)
        if missing := note_gaps(connection, source_id, known, gaps):
            rebuilt.lost.append(missing)
            rebuilt.bytes_lost += missing.bytes
        if claim is not None and gaps:
            fill_in(batch, source, source_id, claim, known, gaps)
        return
    if claim is None or not is_archived(source, claim, known) or lost.is_unnamed(known.path):
        rebuilt.files_kept += 1
        if claim is not None:
            fill_in(batch, source, source_id, claim, known, [])
        if known.gone_at is None and not lost.is_unnamed(
            known.path
        ):  # otherwise it is found by its bytes
            read_again_later(connection, known.id)
        return
    claim = agents.with_files(source, source_id, claim)
    kept = issues_outside_archive(connection, known.id, is_log=source.shape(claim) == LOG)
    if pieces == replaying.GIVEN_UP:
        rebuilt.files_kept += 1
        return
    opened = batch.open_archived(source_id, claim, known)
    opened.context = None
    for stretch in stretches_of(connection, source, claim, known, pieces):
        batch.add(opened, stretch.records, (), Prefix(), stretch.end - stretch.start)
        opened.context = stretch.context
    batch.add(opened, kept, (), Prefix(), 0)
    rebuilt.files += 1
    rebuilt.bytes_read += known.checkpoint.offset


# -- what follows --------------------------------------------------------------------------------


def _refresh_everything(connection: sqlite3.Connection) -> None:
    """Derive all facts again, as if every file had just been read."""

    def ids(query: str) -> set[int]:
        return {id_ for (id_,) in connection.execute(query)}

    with transaction(connection):
        files = ids("select id from files")
        touched = Touched(files=files, shared=set(files))
        touched.sessions = ids("select id from sessions")
        touched.projects = ids("select id from projects")
        rows = connection.execute(
            "select response_key from usage union select response_key from responses"
        )
        touched.responses = {key for (key,) in rows}
        touched.groups = all_groups(connection)
        (last,) = connection.execute("select max(id) from messages").fetchone()
        touched.first_message_id = (last or 0) + 1
        refresh(connection, touched)

"""Rewrites the database without free pages and without traces of removed data.

1. Every full-text index is rebuilt from its table: an index keeps the words of deleted rows until
   its segments are merged.
2. VACUUM copies everything that is in use to a temporary file and back, through the write-ahead
   log. The file is next to the database, or in the directory that SQLITE_TMPDIR names.
3. Every index is checked against its table.
4. The log is copied into the database and emptied. This is not possible while a reader holds an old
   snapshot: old pages then stay on disk, an error says so, and the command has to be run again.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import BusyError, DatabaseError, DatabaseIOError, Failure, kind_of
from ..store import fts
from ..store.database import (
    log_of,
    open_reader,
    resolved,
    temporary_directory,
    transaction,
    writing,
)
from ..terminal import size as shown


@dataclass(frozen=True, slots=True)
class Compaction:
    """The size of the database on disk in bytes, including its log, before and after."""

    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Unused:
    """What a rewrite could gain: bytes of the database and its log, and of its free pages."""

    size: int
    free: int
    has_traces: bool
    """Something was forgotten that may still be in the file."""


def unused(database: Path) -> Unused:
    """Return what `compact` would gain at least. Raises DatabaseError if there is no database."""
    with closing(open_reader(database)) as connection:
        (pages,) = connection.execute("pragma freelist_count").fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
        (has_traces,) = connection.execute(
            "select exists (select 1 from forgotten where is_pending = 1)"
            " or exists (select 1 from forgotten_secrets where is_pending = 1)"
        ).fetchone()
    return Unused(on_disk(database), pages * size, bool(has_traces))


def compact(database: Path) -> Compaction:
    """Make the database as small as possible; row ids stay the same.

    Raises DatabaseIOError if the disk is too full, BusyError if another process writes or a reader
    keeps old pages in use, and DatabaseError if the database is missing or an index is wrong.
    """
    open_reader(database).close()  # raises if there is no database; `writing` would create one
    before = on_disk(database)
    with writing(database) as connection:
        check_room(database)
        rewrite(connection, database)
    return Compaction(before, on_disk(database))


def on_disk(database: Path) -> int:
    """Return the bytes of the database and its log."""
    beside = (resolved(database), log_of(resolved(database)))
    return sum(path.stat().st_size for path in beside if path.exists())


def check_room(database: Path) -> None:
    """Raise DatabaseIOError if there is no room for the copies that VACUUM makes."""
    size, beside = on_disk(database), resolved(database).parent
    log, copy = size + size // 5, size  # the log also has the rebuilt indexes
    place = _place_of_copy(beside)
    is_one_disk = place.stat().st_dev == beside.stat().st_dev
    for where, alone in ((beside, log), (place, copy)):
        needed = log + copy if is_one_disk else alone
        free = shutil.disk_usage(where).free
        if free < needed:
            raise DatabaseIOError(
                f"Rewriting the database needs {shown(needed)} in {where}, but only {shown(free)} "
                "are free. Nothing was changed. Free some space, or set SQLITE_TMPDIR to a "
                "directory on another disk: half of the space is then needed there."
            )


def rewrite(connection: sqlite3.Connection, database: Path) -> None:
    """Do the four steps on the writer's connection, and record that nothing forgotten is left.

    Raises BusyError if old pages had to stay, DatabaseError if an index differs from its table.
    """
    indexes = fts.indexes(connection)
    with _busy_means_a_writer():
        for name in indexes:
            fts.rebuild_index(connection, name)
        with _copied_where_checked(connection, database):
            connection.execute("vacuum")
        for name in indexes:
            if not fts.fits(connection, name):
                raise DatabaseError(
                    f"The full-text index {name} differs from its table - run: assoc-ingest rebuild"
                )
        (is_busy, _, _) = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        if is_busy:
            _end_if_another_writes(connection)
            raise BusyError(_kept(database))
        for table in ("forgotten", "forgotten_secrets"):
            connection.execute(f"update {table} set is_pending = 0 where is_pending = 1")


# -- where the copy is made ----------------------------------------------------------------------


@contextmanager
def _copied_where_checked(connection: sqlite3.Connection, database: Path) -> Iterator[None]:
    """Make SQLite create its temporary files where `check_room` looked for space."""
    beside = resolved(database).parent
    place = _place_of_copy(beside)
    with temporary_directory(database) as directory:
        if _can_be_set(beside):
            name = str(directory if place == beside else place).replace("'", "''")
            connection.execute(f"pragma temp_store_directory = '{name}'").fetchall()
        connection.execute("pragma temp_store = file")  # the copy may be larger than memory
        try:
            yield
        finally:  # the setting applies to the whole process
            with suppress(sqlite3.Error):
                connection.execute("pragma temp_store_directory = ''").fetchall()


def _place_of_copy(beside: Path) -> Path:
    """Return the directory in which SQLite will copy a database in the directory `beside`."""
    named = os.environ.get("SQLITE_TMPDIR", "")
    if _can_be_set(beside):
        return Path(named) if _is_usable(named) else beside
    if os.name != "posix":
        return Path(tempfile.gettempdir())
    # These are in the order in which SQLite tries them.
    names = (named, os.environ.get("TMPDIR", ""), "/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108
    return next((Path(name) for name in names if _is_usable(name)), Path())


def _can_be_set(beside: Path) -> bool:
    """Can SQLite be given this directory? Not if its path is not UTF-8, or without the pragma."""
    if not _is_text(str(beside)):
        return False
    with closing(sqlite3.connect(":memory:")) as connection:
        return ("OMIT_DEPRECATED",) not in connection.execute("pragma compile_options").fetchall()


def _is_usable(name: str) -> bool:
    may_be_used = bool(name) and os.access(name, os.W_OK | os.X_OK) and Path(name).is_dir()
    return may_be_used and _is_text(name)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # it has bytes that are not UTF-8
        return False
    return True


# -- other processes -----------------------------------------------------------------------------


@contextmanager
def _busy_means_a_writer() -> Iterator[None]:
    """If the database is too busy to be written, say that another writer is the reason."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if kind_of(error) is not Failure.BUSY:
            raise
        raise BusyError(
            "Another program, such as verify, is writing to the database. Removed data may still "
            "be on the disk. When that program has ended, run: assoc-ingest compact"
        ) from error


def _end_if_another_writes(connection: sqlite3.Connection) -> None:
    """Raise SQLite's error if another connection is writing."""
    connection.execute("pragma busy_timeout = 0").fetchall()
    with transaction(connection):
        pass


def _kept(database: Path) -> str:
    log = log_of(resolved(database))
    size = log.stat().st_size if log.exists() else 0
    return (
        f"Another program is reading the database and keeps old pages in use ({shown(size)} in "
        f"{log.name}). Removed data may still be on the disk. "
        "Close other readers, such as Datasette, and run: assoc-ingest compact"
    )

"""Writing the database anew, without free pages and without traces of what was removed.

The steps, in this order:

1. every full-text index is built again from its table: an index keeps the words of deleted rows
   until its segments are merged;
2. VACUUM copies all that is in use into a fresh file and back, through the write-ahead log;
3. every index is checked against its rows;
4. the log is written into the database and emptied. While a reader holds an old snapshot that
   cannot be done, and old pages stay on the disk: then this says so, and is to be run again.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import full_text
from .database import open_reader, writing
from .display import size as shown
from .errors import BusyError, DatabaseError, DatabaseIOError


@dataclass(frozen=True, slots=True)
class Compaction:
    """Bytes that the database takes on the disk, its log included, before and after."""

    before: int
    after: int


def compact(database: Path) -> Compaction:
    """Make the database as small as it can be; ids of rows stay.

    Raises DatabaseIOError if the disk has not enough room, BusyError if another process writes or
    a reader keeps old pages in use, DatabaseError if the database is missing or an index is wrong.
    """
    open_reader(database).close()  # says so if there is none: writing would make one
    before = on_disk(database)
    with writing(database) as connection:
        check_room(database)
        rewrite(connection, database)
    return Compaction(before, on_disk(database))


def on_disk(database: Path) -> int:
    """Return the bytes of the database and its log."""
    beside = (Path(f"{database}{ending}") for ending in ("", "-wal"))
    return sum(path.stat().st_size for path in beside if path.exists())


def check_room(database: Path) -> None:
    """Raise DatabaseIOError if there is no room for the copies that VACUUM makes."""
    needed = on_disk(database)
    for place in (database.resolve().parent, Path(tempfile.gettempdir())):
        free = shutil.disk_usage(place).free
        if free < needed:
            raise DatabaseIOError(
                f"Writing the database anew takes {shown(needed)} in {place}, and {shown(free)} "
                "are free. Nothing was changed. Make room, or name another place for temporary "
                "files with the variable TMPDIR."
            )


def rewrite(connection: sqlite3.Connection, database: Path) -> None:
    """Do the four steps on the writer's connection, and note that nothing forgotten is left.

    Raises BusyError if old pages had to stay, DatabaseError if an index does not fit its table.
    """
    indexes = full_text.indexes(connection)
    with _busy_means(database):
        for name in indexes:
            full_text.make_anew(connection, name)
        connection.execute("pragma temp_store = file")  # the copy may be larger than memory
        connection.execute("vacuum")
        for name in indexes:
            if not full_text.fits(connection, name):
                raise DatabaseError(f"The full-text index {name} does not fit its table.")
        (is_busy, _, _) = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    if is_busy:
        raise BusyError(_kept(database))
    connection.execute("update forgotten set is_pending = 0 where is_pending = 1")


@contextmanager
def _busy_means(database: Path) -> Iterator[None]:
    """Say of a database that another process keeps busy what is left to be done."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        raise BusyError(_kept(database)) from error


def _kept(database: Path) -> str:
    log = Path(f"{database}-wal")
    size = log.stat().st_size if log.exists() else 0
    return (
        f"Another program reads the database and keeps its old pages: {shown(size)} may still be "
        f"in {log.name}, and what was removed may still be on the disk. "
        "Close readers (Datasette ...) and run: assoc-ingest compact"
    )

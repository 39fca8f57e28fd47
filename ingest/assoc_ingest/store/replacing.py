"""Changes a whole database in a private copy, whose content then replaces it in one transaction.

What touches every row is several times faster where nobody else reads: without a log, and without
keeping what it would take to undo it. The database itself stays open to readers, who see the old
content until the new one is complete. It is never replaced as a file, which would cut off whoever
has it open: the pages of the copy are written to its log, as VACUUM does it. If the process is
killed before all of them are there, the log ends without a commit, and the old content stays. The
next writer removes the copy (`location`).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import BusyError
from . import changes
from .bulk import THROWN_AWAY
from .database import open_writer
from .location import log_of, temporary_directory

_COPIES = 3  # the private one with what grows in it, and the log of the database
_BUSY = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED
_OTHER_WRITER = "Another program is writing to {}. Nothing was changed. Run the command again."


def has_room(connection: sqlite3.Connection) -> bool:
    """Is there room for the copies?"""
    path = _path_of(connection)
    size = sum(each.stat().st_size for each in (path, log_of(path)) if each.exists())
    return shutil.disk_usage(path.parent).free > _COPIES * size


@contextmanager
def replaced(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a copy of this database, whose content replaces it at the end.

    The caller holds the writer's lock. After an error, the database is as it was. Raises BusyError
    if another program writes meanwhile, and sqlite3.Error if the disk fails.
    """
    path = _path_of(connection)
    with temporary_directory(path) as directory:
        new = directory / path.name
        before = _version(connection)
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(new)) as empty:
            connection.backup(empty)
        connection.execute("pragma shrink_memory")  # of the pages that it read
        with closing(open_writer(new, THROWN_AWAY)) as copy:
            yield copy
            changes.renew(copy)  # what changed in a copy is not noted
            if _version(connection) != before:  # a program that does not know the lock
                raise BusyError(_OTHER_WRITER.format(path))
            copy.backup(connection, progress=lambda status, *_: _check(status, path))


def _path_of(connection: sqlite3.Connection) -> Path:
    (path,) = connection.execute(
        "select file from pragma_database_list where name = 'main'"
    ).fetchone()
    return Path(path)


def _version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection has written."""
    (version,) = connection.execute("pragma data_version").fetchone()
    return int(version)


def _check(status: int, path: Path) -> None:
    """Give up after SQLite has waited: `backup` itself would try again for ever."""
    if status in _BUSY:
        raise BusyError(_OTHER_WRITER.format(path))

"""Builds a database aside and puts it in place: a first sync, or a rebuild in a private copy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import BusyError
from ..stopping import kept_at_the_end
from . import changes
from .database import (
    THROWN_AWAY,
    UNJOURNALED,
    kept_private,
    log_of,
    open_writer,
    roll_back,
    temporary_directory,
)
from .fts import OF_OTHERS, PutOff, complete

# ------------------------------------------------------------------------------------------------
# Changes a whole database in a private copy, whose content then replaces it in one transaction.
#
# A change of every row is several times faster where nobody else reads: without a log, and without
# what it would take to undo the change. The database itself stays open to readers, who see the old
# content until the new one is complete. It is never replaced as a file, which would cut off
# everyone who has it open: the pages of the copy are written to its log, as VACUUM does. If the
# process is killed before all of them are there, the log ends without a commit, and the old content
# stays. The next writer removes the copy (`database.temporary_directory`).


_COPIES = 3  # the private one with what grows in it, and the log of the database
_BUSY = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED
_OTHER_WRITER = "Another program is writing to {}. Nothing was changed. Run the command again."


def has_room(connection: sqlite3.Connection) -> bool:
    from shutil import disk_usage  # takes 2 ms

    path = _path_of(connection)
    size = sum(each.stat().st_size for each in (path, log_of(path)) if each.exists())
    return disk_usage(path.parent).free > _COPIES * size


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


# ------------------------------------------------------------------------------------------------
# Builds a new database next to its final path, and moves it there when it is complete.
#
# Nobody reads a database that does not exist yet, and a crash costs only the time to read the
# files again. So the rollback journal is kept in memory, and nothing waits for the disk: a third
# of the bytes is written, and a large first sync takes a tenth less time. The smaller full-text
# indexes are made at the end.
#
# The database never replaces another one, even where locks have no effect. A killed process
# leaves its file, which the next writer removes (`database.temporary_directory`). After any other
# end, by an error or an interruption, what was committed is checked and kept.


_STEPS = 10_000  # instructions of SQLite between two checks for signals
_MEANWHILE = "Another process has created {} in the meantime. Run sync again."


@contextmanager
def building(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold the writer's lock and yield a connection to a new database, later moved to `path`.

    Raises BusyError if another process writes, or has created the database in the meantime, and
    DatabaseError if something else is at `path`.
    """
    with kept_private(path) as place, kept_at_the_end() as keeping:
        if place.exists():
            raise BusyError(_MEANWHILE.format(place))
        with temporary_directory(place) as directory:
            new = directory / place.name
            with closing(open_writer(new, UNJOURNALED)) as connection:
                put_off = PutOff(connection, OF_OTHERS)
                try:
                    yield connection
                    put_off.catch_up()
                    keeping.end()
                except BaseException:
                    if not keeping.is_given_up and _is_usable(connection, put_off):
                        _put_in_place(connection, new, place)
                    raise
                _put_in_place(connection, new, place)


def _is_usable(connection: sqlite3.Connection, put_off: PutOff) -> bool:
    """Roll back what was not committed, and index the rest. Is it intact, and has it any file?"""
    try:
        roll_back(connection)
        connection.set_progress_handler(_check_signals, _STEPS)
        (verdict,) = connection.execute("pragma quick_check(1)").fetchone()
        (files,) = connection.execute("select count(*) from files").fetchone()
        complete(connection, "messages_fts")
        put_off.catch_up()
    except sqlite3.Error:
        return False
    return bool(verdict == "ok" and files > 0)


def _check_signals() -> None:
    """Let Python handle signals during a check that takes seconds: it does so whenever it runs a
    Python function."""


def _put_in_place(connection: sqlite3.Connection, new: Path, path: Path) -> None:
    connection.execute("pragma journal_mode = wal").fetchall()
    connection.close()
    try:
        with new.open("rb") as file:
            os.fsync(file.fileno())
        _link(new, path)
    except (FileExistsError, FileNotFoundError):  # the lock had no effect on another process
        raise BusyError(_MEANWHILE.format(path)) from None


def _link(new: Path, path: Path) -> None:
    """Give the file its name, unless another file has it."""
    try:
        os.link(new, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links; the lock keeps others away
        new.rename(path)

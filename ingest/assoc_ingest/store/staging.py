"""Builds a new database next to its final path, and moves it there when it is complete.

Nobody reads a database that does not exist yet, and a crash costs only the time to read the files
again. So the rollback journal is kept in memory, and nothing waits for the disk: a third of the
bytes is written, and a large first sync takes a tenth less time. The smaller full-text indexes are
made at the end.

The database never replaces another one, even where locks have no effect. A killed process leaves
its file, which the next writer removes (`location`). After any other end, by an error or an
interruption, what was committed is checked and kept.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import BusyError
from ..stopping import kept_at_the_end
from .bulk import UNJOURNALED
from .database import kept_private, open_writer
from .fts import OF_OTHERS, PutOff, complete
from .location import temporary_directory
from .transaction import roll_back

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

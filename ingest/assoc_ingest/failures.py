"""What kind of failure an error of SQLite is: each kind asks for something else to be done."""

from __future__ import annotations

import sqlite3
from enum import Enum, auto


class Failure(Enum):
    """The kinds that anything here tells apart."""

    BUSY = auto()
    """Another process reads or writes, and does not let go in time."""
    DAMAGED = auto()
    """The file's content is not what SQLite wrote."""
    NOT_TEXT = auto()
    """A text has bytes that are none, which this program never writes."""
    FULL = auto()
    """The disk has no room."""
    IO = auto()
    """The disk failed, or the file system between."""
    DENIED = auto()
    """This user may not read or write it where it lies."""
    INTERRUPTED = auto()
    """Somebody ended the statement: it took too long, or is not needed any more."""
    OTHER = auto()
    """A statement that makes no sense, a broken constraint: a bug, or an odd input."""


_KINDS = {
    sqlite3.SQLITE_BUSY: Failure.BUSY,
    sqlite3.SQLITE_LOCKED: Failure.BUSY,
    sqlite3.SQLITE_CORRUPT: Failure.DAMAGED,
    sqlite3.SQLITE_NOTADB: Failure.DAMAGED,
    sqlite3.SQLITE_FULL: Failure.FULL,
    sqlite3.SQLITE_IOERR: Failure.IO,
    sqlite3.SQLITE_READONLY: Failure.DENIED,
    sqlite3.SQLITE_CANTOPEN: Failure.DENIED,
    sqlite3.SQLITE_INTERRUPT: Failure.INTERRUPTED,
}

PASSING = frozenset([Failure.BUSY, Failure.FULL, Failure.IO, Failure.DENIED])
"""What a database may suffer from without being damaged: it may be gone in a while."""


def kind_of(error: sqlite3.Error) -> Failure:
    """Return the kind of a failure, whatever the extended part of its code says of the details."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # of Python's module, not of SQLite
        return Failure.NOT_TEXT if str(error).startswith("Could not decode") else Failure.OTHER
    return _KINDS.get(code & 0xFF, Failure.OTHER)


def is_damage(error: sqlite3.Error) -> bool:
    """Does the error say that the file's content is not what this program wrote?

    If not, the disk failed or another process is at work.
    """
    return kind_of(error) in (Failure.DAMAGED, Failure.NOT_TEXT)

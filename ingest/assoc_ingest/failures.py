"""Classifies errors of SQLite by what can be done about them."""

from __future__ import annotations

import sqlite3
from enum import Enum, auto


class Failure(Enum):
    """The kinds of failures that are handled differently."""

    BUSY = auto()
    """Another process reads or writes, and does not finish in time."""
    DAMAGED = auto()
    """The file's content is not what SQLite wrote."""
    NOT_TEXT = auto()
    """A text is not valid UTF-8, which this program never writes."""
    FULL = auto()
    """The disk is full."""
    IO = auto()
    """The disk or its file system failed."""
    DENIED = auto()
    """This user has no permission to read or write the file or its directory."""
    INTERRUPTED = auto()
    """The statement was interrupted: it took too long, or is no longer needed."""
    OTHER = auto()
    """An invalid statement or a violated constraint: a bug, or unexpected input."""


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
"""Temporary failures, which do not mean that the database is damaged."""


def kind_of(error: sqlite3.Error) -> Failure:
    """Return the kind of a failure; the extended part of the error code does not matter."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # an error of Python's module, not of SQLite
        return Failure.NOT_TEXT if str(error).startswith("Could not decode") else Failure.OTHER
    return _KINDS.get(code & 0xFF, Failure.OTHER)


def is_damage(error: sqlite3.Error) -> bool:
    """Does the error mean that the file's content is not what this program wrote?

    If not, the disk failed or another process is using the file.
    """
    return kind_of(error) in (Failure.DAMAGED, Failure.NOT_TEXT)

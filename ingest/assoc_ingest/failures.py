"""Classifies errors of SQLite and of the disk by what can be done about them."""

from __future__ import annotations

import errno
import sqlite3
from enum import Enum, auto

from .errors import AssocIngestError, BusyError, DatabaseError, DatabaseIOError, ResourcesError


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

_DISK_ERRORS = {
    getattr(errno, name)
    for name in (
        "ENOSPC",
        "EDQUOT",
        "EFBIG",
        "EIO",
        "EROFS",
        "EACCES",
        "EPERM",
        "ENOTDIR",
        "EEXIST",
    )
    if hasattr(errno, name)
}
"""Errors of a disk, or of permissions on it."""

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


def _is_lack_of_resources(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOMEM, errno.EAGAIN)
    cannot_start = isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    # The loader of a library that does not fit says so in words only.
    cannot_load = isinstance(error, ImportError) and "cannot allocate memory" in str(error).lower()
    cannot_load |= isinstance(error, ImportError) and "failed to map segment" in str(error)
    return isinstance(error, MemoryError) or cannot_start or cannot_load


def as_known(error: Exception) -> AssocIngestError | None:
    """Return the error as one that the user can act on, None if it is an internal error."""
    if isinstance(error, AssocIngestError):
        return error
    if _is_lack_of_resources(error):
        return ResourcesError(
            "This process may not have enough memory or threads. What was committed is intact. "
            "Raise its limits (ulimit -v, ulimit -u), or end other programs, and try again."
        )
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return DatabaseIOError(f"Writing failed: {error}.")
    if not isinstance(error, sqlite3.Error):
        return None
    kind = kind_of(error)
    if kind is Failure.BUSY:
        return BusyError(
            "Another process keeps the database locked. Try again when it has finished."
        )
    if kind is Failure.DAMAGED:
        return DatabaseError(f"The database is damaged ({error}) - run: assoc-ingest rebuild")
    if kind is Failure.NOT_TEXT:
        return DatabaseError(
            f"The database contains invalid text ({error}): another program has changed it. "
            "Give another file: --db FILE"
        )
    if kind in PASSING:
        return DatabaseIOError(
            f"The database could not be read or written: {error}. Committed data is intact. "
            "Check that the disk works, has free space and is writable, then try again."
        )
    return None

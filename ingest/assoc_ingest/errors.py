"""Errors the user can act on, one class each.

An exception is raised with the sentence that the user reads; it says what is wrong and what
to do next. `exit_code` is the status of the process:

1 nothing found, or a problem was found · 2 usage · 3 busy · 4 not a usable database ·
5 database I/O failed · 6 the server of the fleet
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

ERROR_CODES = {
    "not_found": "nothing was found (exit code 1)",
    "usage": "an argument is invalid (2)",
    "busy": "another process is writing to the database (3)",
    "database": "the database is missing, damaged, too new, or of another program (4)",
    "io": "the database could not be read or written (5)",
    "server": "the fleet server cannot be reached, or refuses (6)",
    "error": "anything else that the user can act on (1)",
    "internal": "a bug in the program (70)",
}
"""The error codes in JSON: `code` of the classes below."""


class AssocIngestError(Exception):
    """Base of all errors that end a command with one clear sentence and no traceback."""

    exit_code = 1
    code = "error"
    """Names the kind of error for programs."""
    candidates: tuple[str, ...] = ()
    """What may have been meant, for programs: keys or names that can be given instead."""


class NotFoundError(AssocIngestError):
    """Nothing was found: no home, no such session, no hits."""

    exit_code = 1
    code = "not_found"


class UsageError(AssocIngestError):
    """An argument cannot be used: a path that is not recognised, an ambiguous prefix."""

    exit_code = 2
    code = "usage"


class NothingAllowedError(UsageError):
    """No project may leave this machine yet."""


class AmbiguousHomeError(UsageError):
    """A directory that looks like the home of several agents."""

    def __init__(self, path: Path, sources: Sequence[tuple[str, str]]) -> None:
        """`sources` are names and labels of these agents."""
        labels = " and of ".join(label for _, label in sources)
        self.reason = (
            f"it looks like a home of {labels}; say which one it is,"
            f" for example with --source {sources[0][0]}"
        )
        super().__init__(f"{path} was not read: {self.reason}")


class UnreadableError(UsageError):
    """A directory that should be a home cannot be read: no permission, or its disk fails."""

    def __init__(self, path: Path, place: Path, reason: str) -> None:
        where = "" if place == path else f" ({place})"
        super().__init__(
            f"{path} cannot be read: {reason}{where}. Make it readable, or give another directory."
        )
        self.place = place
        self.reason = reason


class BusyError(AssocIngestError):
    """Another process is writing to the database."""

    exit_code = 3
    code = "busy"


class DatabaseError(AssocIngestError):
    """The database is missing, damaged, newer than this version, or belongs to another program."""

    exit_code = 4
    code = "database"


class DamagedError(DatabaseError):
    """It is an assoc-ingest database, but SQLite can no longer open it."""


class OutdatedError(DamagedError):
    """It was created by an older version, and migrations do not make it one of this version."""


class ArchiveError(DatabaseError):
    """The archived bytes of a file are not those that were read."""

    def __init__(self, message: str, byte_offset: int) -> None:
        super().__init__(message)
        self.byte_offset = byte_offset


class DatabaseIOError(AssocIngestError):
    """The database could not be read or written: disk full, I/O error, read-only."""

    exit_code = 5
    code = "io"


class ResourcesError(DatabaseIOError):
    """The system gives this process too little memory, or too few threads or processes."""


class FleetError(AssocIngestError):
    """The server of the fleet cannot be reached, or refuses; what is local is not affected."""

    exit_code = 6
    code = "server"


class QuotaError(FleetError):
    """The login may not store more on the server."""


def with_hint(text: str) -> tuple[str, str | None]:
    """Take the sentence of an error apart: what is wrong, and what to do next if it says that."""
    first, _, others = text.strip().partition("\n")
    end = first.find(". ")
    while end >= 0 and first[end + 2 : end + 3].islower():  # an abbreviation
        end = first.find(". ", end + 1)
    if end < 0:
        return first, others or None
    return first[: end + 1], "\n".join(filter(None, (first[end + 2 :], others)))


# ------------------------------------------------------------------------------------------------
# Classifies errors of SQLite and of the disk by what can be done about them.


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


@cache
def _kinds() -> dict[int, Failure]:
    import sqlite3  # not every command needs it

    return {
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
    """Classify a failure by its primary error code."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # an error of Python's module, not of SQLite
        return Failure.NOT_TEXT if str(error).startswith("Could not decode") else Failure.OTHER
    return _kinds().get(code & 0xFF, Failure.OTHER)


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
    """Turn an error into one that the user can act on; None if it is a bug."""
    if isinstance(error, AssocIngestError):
        return error
    if _is_lack_of_resources(error):
        return ResourcesError(
            "This process may not have enough memory or threads. What was committed is intact. "
            "Raise its limits (ulimit -v, ulimit -u), or end other programs, and try again."
        )
    if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
        return DatabaseIOError(f"Writing failed: {error}.")
    import sqlite3

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


# ------------------------------------------------------------------------------------------------
# Suggests names for one that does not exist: "Did you mean ...?".


_LEAST = 3  # letters; fewer are part of too many names
_LONGEST = 200  # letters that are compared: comparing takes the square of them
_CONTAINING = 3


def nearest(name: str, known: Iterable[str], most: int = 1, *, cutoff: float = 0.6) -> list[str]:
    """Return the names that are most like this one in any case, else some that contain it."""
    from difflib import get_close_matches

    names = {other[:_LONGEST].casefold(): other for other in known}
    wanted = name[:_LONGEST].casefold()
    near = get_close_matches(wanted, names, most, cutoff)
    if not near and len(wanted) >= _LEAST:
        near = [other for other in names if wanted in other][:_CONTAINING]
    return [names[other] for other in near]


def did_you_mean(
    name: str, known: Iterable[str], most: int = 1, *, show: Callable[[str], str] = str
) -> str:
    """Return a question with the nearest names, and a space before it; '' if none is near."""
    near = nearest(name, known, most)
    *others, last = map(show, near or [""])
    return f" Did you mean {', '.join(others)}{' or ' if others else ''}{last}?" if near else ""

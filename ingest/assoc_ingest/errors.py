"""Errors the user can act on, one class each.

An exception is raised with the sentence that the user reads; it says what is wrong and what
to do next. `exit_code` is the status of the process:

1 nothing found, or a problem was found · 2 usage · 3 busy · 4 not a usable database ·
5 database I/O failed · 6 the server of the fleet
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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


def with_hint(text: str) -> tuple[str, str | None]:
    """Take the sentence of an error apart: what is wrong, and what to do next if it says that."""
    first, _, others = text.strip().partition("\n")
    end = first.find(". ")
    while end >= 0 and first[end + 2 : end + 3].islower():  # an abbreviation
        end = first.find(". ", end + 1)
    if end < 0:
        return first, others or None
    return first[: end + 1], "\n".join(filter(None, (first[end + 2 :], others)))

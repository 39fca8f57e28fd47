"""Converts names, times and numbers of files to what SQLite can store, and back.

A name is bytes on POSIX systems, and text in the database. UTF-8 is kept; any other byte becomes
`\xff`. If a name contains such an escape literally, its backslash becomes `\x5c`. So no two names
are stored alike, and each can be converted back to its bytes.

A time is nanoseconds since 1970. SQLite can store the years 1677 to 2262; file systems have others,
too. Zero means no time: that of a file that was not read to its end.
"""

from __future__ import annotations

import os
import re
import sqlite3
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from ..source import Claim, KnownFile

# ------------------------------------------------------------------------------------------------
# How losses of a damaged database are stored: as placeholder paths and as issues.
#
# A file whose row is lost, and whose path cannot be derived, is kept under a placeholder path,
# with its kind if its rows show it. No source claims such a path. Issues describe other losses,
# so that lists and the status show them; they do not affect the counts of a file.


UNNAMED = "recovered"
"""Kind of a file whose kind is not known."""

_DIRECTORY = "recovered/"
_FIRST, _LAST = _DIRECTORY, "recovered0"  # '0' follows '/' in ASCII

PATH_LOST = "path is not known: its row was lost with a damaged page of the database"
PATH_FROM_LINES = (
    "path is derived from its lines: its row was lost with a damaged page of the database"
)
BYTES_LOST = "archived bytes are missing or damaged"
PACKED_DAMAGED = "it is packed, and damaged"
PACKED_TOO_LARGE = "it is packed, and unpacks to more than a log can be"
UNOPENED = (PACKED_DAMAGED, PACKED_TOO_LARGE)
"""Reasons why the content of a file is not read again until its stat changes."""

REASONS = (PATH_LOST, PATH_FROM_LINES, BYTES_LOST, *UNOPENED)
"""Reasons of issues that do not follow from the lines of a file."""


def placeholder(file_id: int) -> str:
    return f"{_DIRECTORY}{file_id}"


def root_placeholder(source_id: int) -> str:
    """Return the placeholder of a lost root, a directory that does not exist."""
    return f"/{_DIRECTORY}root-{source_id}"


def is_unnamed(path: str) -> bool:
    return path.startswith(_DIRECTORY)


def unnamed_files(connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the files whose paths are lost. Costs one index search for each root."""
    rows = connection.execute(
        "select f.id from sources s cross join files f on f.source_id = s.id"
        " and f.path > ? and f.path < ? order by f.id",
        (_FIRST, _LAST),
    )
    return [file_id for (file_id,) in rows]


def unnamed_roots(connection: sqlite3.Connection, kind: str) -> list[tuple[int, str]]:
    """Return the roots of a kind whose directories are lost: their ids and placeholders."""
    rows = connection.execute("select id, root from sources where kind = ? order by id", (kind,))
    return [row for row in rows.fetchall() if row[1] == root_placeholder(row[0])]


def claim_of_unnamed(source: str, known: KnownFile) -> Claim | None:
    """Return the claim of a file whose path is lost, from its row; None if that says too little.

    For the lines of a conversation the row is enough; other kinds need the path.
    """
    if known.kind not in ("transcript", "agent", "side_agent"):
        return None
    return Claim(source, known.kind, known.session_key, known.agent_key)


def with_places(connection: sqlite3.Connection, claim: Claim, file_id: int) -> Claim:
    """Return the claim with the project, team and workflow that the row of the file names."""
    project, team, workflow = connection.execute(
        "select project_key, team_key, workflow from files where id = ?", (file_id,)
    ).fetchone()
    return replace(claim, project_key=project, team_key=team, workflow=workflow)


def clear_path_issues(connection: sqlite3.Connection, file_id: int) -> None:
    """Remove the issues about the path of a file that a sync has found, and about opening it."""
    connection.execute(
        "delete from issues where file_id = ? and reason in (?, ?, ?, ?)",
        (file_id, PATH_LOST, PATH_FROM_LINES, *UNOPENED),
    )


NO_TIME = 0
"""The stored time of a file that was not read to its end."""

_BITS = 64
_LATEST = 2 ** (_BITS - 1) - 1
_EARLIEST = -(2 ** (_BITS - 1))
_EPOCH = 1  # stored for the time 0, as 0 means no time

_ambiguous = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_escape = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")


def stored_name(name: str) -> str:
    """Return a name or a path as text that SQLite can store."""
    if "\\" in name:
        name = _ambiguous.sub(r"\\x5c", name)
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def original_name(stored: str) -> str:
    """Return the name that became `stored`, as the system knows it."""
    if stored.isascii() and "\\" not in stored:
        return stored
    raw = stored.encode("utf-8", "replace")
    return os.fsdecode(_escape.sub(lambda found: bytes([int(found[1], 16)]), raw))


def original_parts(path: str) -> tuple[str, ...]:
    """Return the components of a stored path, as the system knows them."""
    return tuple(map(original_name, path.split("/")))


def stored_root(path: Path) -> str:
    """Return an absolute path as `sources.root` has it."""
    return str(path) if os.sep == "\\" else stored_name(str(path))  # no escapes on Windows


def original_root(stored: str) -> Path:
    """Return the absolute path that became `stored`."""
    return Path(stored if os.sep == "\\" else original_name(stored))


def stored_time(nanoseconds: int) -> int:
    """Return a file's time as an integer of SQLite; one out of range becomes the nearest."""
    if 0 < nanoseconds <= _LATEST:
        return nanoseconds
    return min(max(nanoseconds, _EARLIEST), _LATEST) or _EPOCH


def original_time(stored: int) -> int | None:
    """Return the time that became `stored`, None if it is not known."""
    if stored in (NO_TIME, _EARLIEST, _LATEST):
        return None
    return 0 if stored == _EPOCH else stored


def stored_number(number: int) -> int:
    """Return an inode or a device number as an integer of SQLite, which is signed.

    Some file systems have inodes of 128 bits, of which neither half is unique: those become a
    digest.
    """
    if 0 <= number <= _LATEST:
        return number
    if number.bit_length() > _BITS:
        data = number.to_bytes(number.bit_length() // 8 + 1)
        number = int.from_bytes(blake2b(data, digest_size=_BITS // 8).digest())
    return number if number <= _LATEST else number - 2**_BITS

"""Damaged databases are kept unchanged until the user deletes them.

Such a copy is next to the repaired database, equally private, under a name that says when it was
put aside. Data that could not be recovered may still be in it.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ..errors import DatabaseIOError
from ..store.location import log_of
from ..when import now

KEPT = ".damaged-"
"""The part between the name of a database and the time when it was moved aside."""

_COPIES = 3  # on disk at the same time: the damaged copy, the repaired database, and the log
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def kept_aside(path: Path) -> list[Path]:
    """Return the damaged databases that were put aside next to a database."""
    start = f"{path.name}{KEPT}"
    try:
        return sorted(
            other
            for other in path.parent.iterdir()
            if other.name.startswith(start) and not other.name.endswith(("-wal", "-shm"))
        )
    except OSError:  # a directory that can be entered but not listed
        return []


def _files_of(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a database in the order in which they can be copied while others read.

    What is written to the first file in the meantime is also in the second, the log, which is not
    started over while a transaction is open.
    """
    for ending in ("", "-wal"):
        file = Path(f"{path}{ending}")
        if file.exists():
            yield file, ending


def check_room(path: Path) -> None:
    """Raise DatabaseIOError if there is no room to repair a database and keep the damaged copy."""
    needed = _COPIES * sum(file.stat().st_size for file, _ in _files_of(path))
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DatabaseIOError(
            f"{path} is damaged. Repairing it while keeping the damaged copy needs"
            f" {_megabytes(needed)} in {path.parent}, but only {_megabytes(free)} are free. Nothing"
            " was changed. Free some space, then run: assoc-ingest rebuild"
        )


def _megabytes(size: int) -> str:
    return f"{-(-size // 10**6):,} MB"


def copy_files(path: Path, copy: Path) -> None:
    """Copy a database with its log, while it is locked. Raises DatabaseIOError and OSError."""
    try:
        for file, ending in _files_of(path):
            target = os.open(f"{copy}{ending}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(target, "wb") as stream, file.open("rb") as source:
                shutil.copyfileobj(source, stream, 1024 * 1024)
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DatabaseIOError(
            f"{path} is damaged, and {path.parent} has no room for the copy that a repair needs. "
            "Nothing was changed. Free some space, then run: assoc-ingest rebuild"
        ) from error


def put_aside(copy: Path, path: Path) -> Path:
    """Rename a copy to the name under which it is kept."""
    moment = now()[:19].replace("-", "").replace(":", "") + "Z"
    kept = Path(f"{path}{KEPT}{moment}")
    number = 1
    while kept.exists():
        number += 1
        kept = Path(f"{path}{KEPT}{moment}-{number}")
    return copy.rename(kept)


def kept_beside(connection: sqlite3.Connection) -> list[str]:
    """Return the damaged copies of the database that a repair has kept next to it."""
    (name,) = connection.execute(
        "select file from pragma_database_list where name = 'main'"
    ).fetchone()
    files = (file for kept in kept_aside(Path(name)) for file in (kept, log_of(kept)))
    return [str(file) for file in files if file.exists()]

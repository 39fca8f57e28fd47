"""Warnings about the location of the database and the version of SQLite: risks, not errors.

They concern who else can read the database, what might copy it elsewhere, and which file systems
and versions of SQLite are known to damage databases.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..paths import is_there, real_path
from ..store.location import has_second_name, lock_of, log_of, unfinished
from .findings import Finding

_SYNCED = re.compile(
    r"dropbox|onedrive|icloud ?drive|mobile documents|com~apple~clouddocs|google ?drive|nextcloud"
    r"|owncloud|pclouddrive",
    re.IGNORECASE,
)
_SYNC_MARKERS = (".stfolder", ".dropbox.cache")
_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "lustre"}
_NETWORK |= {"glusterfs", "beegfs", "gpfs", "ncpfs", "coda", "vboxsf", "prl_fs", "davfs", "fuse"}
_MOUNTS = Path("/proc/self/mountinfo")


def check_environment(database: Path) -> Iterator[Finding]:
    """Yield warnings about the location of a database and the version of SQLite."""
    path = real_path(database)
    if os.name == "posix":
        yield from _modes(path)
    if has_second_name(path):
        yield Finding(
            "names",
            f"{path} has a second hard link. No command writes to it until one is removed.",
            f"Remove one of the links; to find both: find / -xdev -samefile '{path}'",
        )
    if unfinished(path).exists():
        yield Finding(
            "copies",
            f"{unfinished(path)} may hold a copy of the database: the command that made it is "
            "still running or was killed.",
            "If it was killed, the next sync removes the copy: assoc-ingest sync",
        )
    yield from _in_copied_places(path)
    kind = file_system(path)
    if kind is not None and (kind in _NETWORK or kind.startswith("fuse.")):
        yield Finding(
            "file system",
            f"The database is on a {kind} file system, where SQLite's write-ahead log is not safe.",
            "Stop all commands, move it to a local disk and give its new path: --db FILE",
        )
    if is_wal_reset_version(sqlite3.sqlite_version_info):
        yield Finding(
            "sqlite",
            f"SQLite {sqlite3.sqlite_version} can, in rare cases, damage a database that two"
            " processes write to at the same time.",
            "Use a Python with SQLite 3.51.3 or newer. Until then, the lock ensures that only one"
            " assoc-ingest command writes at a time.",
        )


def is_wal_reset_version(version: tuple[int, ...]) -> bool:
    """Has this version of SQLite the WAL-reset bug of 3.7.0 to 3.51.2?

    It was also fixed in two older release lines: 3.44.6 and 3.50.7.
    """
    is_repaired = version[:2] == (3, 44) and version >= (3, 44, 6)
    is_repaired = is_repaired or (version[:2] == (3, 50) and version >= (3, 50, 7))
    return (3, 7, 0) <= version < (3, 51, 3) and not is_repaired


def _modes(database: Path) -> Iterator[Finding]:
    files = [database, log_of(database), Path(f"{database}-shm"), lock_of(database)]
    for path, mode in [*((file, 0o600) for file in files), (database.parent, 0o700)]:
        try:
            found = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue
        if found & 0o077:
            yield Finding(
                "mode",
                f"{path} has mode {found:04o}: other users may be able to read private data.",
                f"chmod {mode:o} '{path}'",
            )


def _in_copied_places(database: Path) -> Iterator[Finding]:
    for place in database.parents:
        if is_there(place / ".git"):
            yield Finding(
                "git",
                f"The database is in the git work tree {place}: a commit could publish it.",
                "Move it elsewhere (--db FILE) or add it to .gitignore.",
            )
        if _SYNCED.match(place.name) or any(is_there(place / name) for name in _SYNC_MARKERS):
            yield Finding(
                "synced folder",
                f"The database is in {place}, which looks like a synced folder: it would be"
                " uploaded, and copies taken during a sync are corrupt.",
                "Move it elsewhere and give its new path: --db FILE",
            )
            return


def file_system(path: Path, mounts: Iterable[str] | None = None) -> str | None:
    """Return the type of the file system that `path` (absolute) is on, None if unknown."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text("utf-8", "surrogateescape").split("\n")
        except OSError:  # this is not Linux
            return None
    best, kind = -1, None
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4]))
        if (
            path.is_relative_to(point) and len(point.parts) >= best
        ):  # a later mount hides earlier ones
            best, kind = len(point.parts), after.split(" ")[0]
    return kind

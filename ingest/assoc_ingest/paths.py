"""Paths: the database, checks that raise no error, project directories as agents encode them, roots
of pulled files.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from .errors import UsageError

# ------------------------------------------------------------------------------------------------
# The database that a command without `--db` opens.


DATABASE = "ASSOC_INGEST_DB"
"""The environment variable that names it."""


def default_database() -> Path:
    """Return the path where nothing names another: in the platform's data directory."""
    from platformdirs import user_data_path

    try:
        directory = user_data_path("assoc-ingest", appauthor=False)
    except RuntimeError:
        directory = None
    if directory is None or not directory.is_absolute():  # relative to wherever one happens to be
        raise UsageError(
            "Cannot determine your data directory: set HOME, or give the database file: --db FILE"
        )
    return directory / "assoc.db"


def for_database(command: str, database: Path) -> str:
    """Return a command to copy, with `--db` where it would open another database."""
    try:
        named = Path(os.environ.get(DATABASE) or default_database())
    except UsageError:
        named = None
    if named is not None and os.path.realpath(named) == os.path.realpath(database):
        return command
    from .terminal import to_copy

    return f"{command} --db {to_copy(str(database))}"


# ------------------------------------------------------------------------------------------------
# The roots of files that were pulled from another machine: names, and SQL that knows them.


PULLED = "fleet/"
"""How these roots begin; no absolute path does."""


def pulled_root(label: str, root: str) -> str:
    """Return the root of files that were pulled: of the machine with a label, from its root."""
    return f"{PULLED}{label.replace('/', '_')}/{root.lstrip('/')}"


def is_pulled(root: str) -> str:
    """Return the SQL condition that the column `root` is the root of pulled files."""
    return f"substr({root}, 1, {len(PULLED)}) = '{PULLED}'"


# ------------------------------------------------------------------------------------------------
# Project directories, as agents state them and as they encode them in directory names.
#
# Paths that differ only in case are two directories on most systems, and one on Windows. A
# database can have homes of several systems, so the path decides, not this machine: a path with a
# drive letter or of a network share is a Windows path.


_windows_path = re.compile(r"[A-Za-z]:(?:[\\/]|$)|[\\/]{2}").match
_in_repository = re.compile(r"(.+?)/(?:\.claude/worktrees|\.worktrees)/.").match
_named_after_drive = re.compile(r"[A-Za-z]--").match


def slashed(path: str) -> str:
    """Return a directory with forward slashes, and without one at its end.

    In a path that begins with a slash, a backslash is an ordinary letter.
    """
    if not path.startswith("/"):
        path = path.replace("\\", "/")
    return path.rstrip("/") or "/"


def is_windows(path: str) -> bool:
    """Is this a Windows path, where the case of names does not matter?"""
    return _windows_path(path) is not None


def comparable(path: str) -> str:
    """Return a path in a form that is the same for all spellings of one directory."""
    place = slashed(path)
    return place.casefold() if is_windows(path) else place


def comparable_name(directory: str) -> str:
    """Return a project directory's name in a form that is the same for all its spellings.

    `D:\\work` becomes `D--work` in one editor and `d--work` in another.
    """
    return directory.casefold() if _named_after_drive(directory) else directory


def repository_around(path: str) -> str | None:
    """Return the repository that has a directory among its worktrees, None if there is none.

    Claude Code creates worktrees in `.claude/worktrees/`, people in `.worktrees/`.
    """
    found = _in_repository(slashed(path))
    return found[1] if found else None


def in_repository(path: str) -> str:
    """Return the path that a file in a worktree below its repository has in the repository."""
    place = slashed(path)
    found = _in_repository(place)
    if found is None:
        return place
    inside = place[found.end() - 1 :].partition("/")[2]
    return f"{found[1]}/{inside}" if inside else place


# ------------------------------------------------------------------------------------------------
# Checks what is at a path, without raising errors.
#
# A path can come from a transcript, an environment variable or a database: it can lead through a
# directory that this user may not enter, to a disk that is not mounted, in a circle, or not be a
# valid path. `Path.is_dir` and the like raise for some of these, and one such path would end a
# sync.


_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)


def is_absolute(path: str) -> bool:
    """Is it a path from the root? A `Path` would cost more than looking whether it exists."""
    return os.path.isabs(path)  # noqa: PTH117


def is_directory(path: str | Path) -> bool:
    """Does the path lead to a directory? One that cannot be accessed does not count."""
    return os.path.isdir(path)  # noqa: PTH112 — pathlib's method raises


def is_file(path: str | Path) -> bool:
    """Does the path lead to a regular file?"""
    return os.path.isfile(path)  # noqa: PTH113


def is_there(path: str | Path) -> bool:
    """Does the path lead to anything?"""
    return os.path.exists(path)  # noqa: PTH110


def is_real_directory(path: str | Path) -> bool:
    """Is there a directory, not a link to one?"""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and the inode of what a path leads to, None if it leads to nothing."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def real_path(path: str | Path) -> Path:
    """Return the path without links, as far as it can be followed."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # the current directory was removed, or the path has a NUL
        return Path(path)


def home() -> Path | None:
    """Return the user's home directory, None if it cannot be determined."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def here() -> Path | None:
    """Return the current directory, None if it was removed or cannot be accessed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def why_unknown(path: str | Path) -> str | None:
    """Return why it cannot be found out what is at a path; None if it can, even if that is nothing.

    A directory may exist and still be impossible to list, see `unlisted`.
    """
    return _why(os.stat, path)


def unlisted(path: str | Path) -> str | None:
    """Return why a directory cannot be listed, None if it can or does not exist."""
    return _why(_list, path)


def obstacle(path: Path) -> tuple[Path, str] | None:
    """Return what makes a path impossible to examine, and why; None if nothing does.

    That is a directory that this user may not enter, or a disk that does not answer.
    """
    found = None
    for place in (path, *path.parents):
        why = why_unknown(place)
        if why is None:
            break
        found = place, why
    if found is not None and found[1] == os.strerror(errno.EACCES):
        return found[0].parent, found[1]
    return found


def _list(path: str | Path) -> None:
    with os.scandir(path) as entries:
        next(entries, None)


def _why(ask: Callable[[str | Path], object], path: str | Path) -> str | None:
    try:
        ask(path)
    except ValueError:  # a NUL, or an invalid letter: no file has such a name
        return None
    except OSError as error:
        return None if error.errno in _NOT_THERE else error.strerror or str(error)
    return None

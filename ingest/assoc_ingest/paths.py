"""Checks what is at a path, without raising errors.

A path may come from a transcript, from an environment variable or from a database: it may lead
through a directory that must not be entered, to a disk that is not there, in a circle, or be no
path at all. `Path.is_dir` and its like raise for some of these, and one such path would end a sync.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)


def is_directory(path: str | Path) -> bool:
    """Does the path lead to a directory? One that cannot be accessed does not count."""
    return os.path.isdir(path)  # noqa: PTH112 — that of pathlib raises


def is_file(path: str | Path) -> bool:
    """Does the path lead to a regular file?"""
    return os.path.isfile(path)  # noqa: PTH113


def is_there(path: str | Path) -> bool:
    """Does the path lead to anything?"""
    return os.path.exists(path)  # noqa: PTH110


def is_real_directory(path: str | Path) -> bool:
    """Is there a directory, and no link to one?"""
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
    """Return the user's home directory, None if nothing says which it is."""
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


def hindrance(path: str | Path) -> str | None:
    """Return why it is unknown what is at a path; None if it is known, even if nothing is there.

    A directory that is there may still be one that cannot be listed, see `unlisted`.
    """
    return _why(os.stat, path)


def unlisted(path: str | Path) -> str | None:
    """Return why a directory cannot be listed, None if it can, or if nothing is there."""
    return _why(_list, path)


def obstacle(path: Path) -> tuple[Path, str] | None:
    """Return the place that prevents looking at a path, and why, if there is one.

    That is a directory that may not be entered, or a disk that does not answer.
    """
    found = None
    for place in (path, *path.parents):
        why = hindrance(place)
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
    except ValueError:  # a NUL, or a letter that no name has: there is no such file
        return None
    except OSError as error:
        return None if error.errno in _NOT_THERE else error.strerror or str(error)
    return None

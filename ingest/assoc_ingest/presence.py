"""What is at a path, asked so that no answer is an error.

A path may come from a transcript, from an environment variable or from a database: it may lead
through a directory that must not be entered, to a disk that is not there, in a circle, or be no
path at all. `Path.is_dir` and its like raise for some of these, and one such path would end a sync.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL)


def is_directory(path: str | Path) -> bool:
    """Does the path lead to a directory? One that nobody can look at is none."""
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


def resolved(path: str | Path) -> Path:
    """Return the path without links, as far as it can be followed."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # the current directory was removed, or the path has a NUL
        return Path(path)


def hindrance(path: str | Path) -> str | None:
    """Return why nobody can tell what is at a path, None if that is known: also that it is nothing.

    That something is there does not mean that it can be read, see `unlisted`.
    """
    try:
        os.stat(path)  # noqa: PTH116
    except ValueError:
        return None
    except OSError as error:
        return None if error.errno in _NOT_THERE else _reason(error)
    return None


def unlisted(path: str | Path) -> str | None:
    """Return why what is in a directory cannot be listed, None if it can or nothing is there."""
    try:
        with os.scandir(path) as entries:
            next(entries, None)
    except ValueError:
        return None
    except OSError as error:
        return None if error.errno in _NOT_THERE else _reason(error)
    return None


def _reason(error: OSError) -> str:
    return error.strerror or str(error)

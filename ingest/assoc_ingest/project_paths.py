"""Project directories, as agents state them and as they encode them in directory names.

Two directories that differ in case are two on most systems and one on Windows. Homes of several
systems may be in one database, so the disk of this machine cannot say which: the path does. One
with a drive letter, or of a share, is a Windows path.
"""

from __future__ import annotations

import re

_windows_path = re.compile(r"[A-Za-z]:(?:[\\/]|$)|[\\/]{2}").match
_in_repository = re.compile(r"(.+?)/(?:\.claude/worktrees|\.worktrees)/.").match
_named_after_drive = re.compile(r"[A-Za-z]--").match


def slashed(path: str) -> str:
    """Return a directory with forward slashes, and none at its end.

    In a path that begins with a slash, a backslash is a letter like any other.
    """
    if not path.startswith("/"):
        path = path.replace("\\", "/")
    return path.rstrip("/") or "/"


def is_windows(path: str) -> bool:
    """Does a path come from a system where the case of names does not matter?"""
    return _windows_path(path) is not None


def comparable(path: str) -> str:
    """Return what is the same for all ways of writing one directory's path."""
    place = slashed(path)
    return place.casefold() if is_windows(path) else place


def comparable_name(directory: str) -> str:
    """Return what is the same for all names that one working directory gives to a project's.

    `D:\\work` becomes `D--work` in one editor and `d--work` in another.
    """
    return directory.casefold() if _named_after_drive(directory) else directory


def repository_around(path: str) -> str | None:
    """Return the repository in which a directory lies as one of its worktrees, None if in none.

    Claude Code makes them in `.claude/worktrees/`, people in `.worktrees/`.
    """
    found = _in_repository(slashed(path))
    return found[1] if found else None

"""Project directories, as agents state them and as they encode them in directory names.

Paths that differ only in case are two directories on most systems, and one on Windows. A database
can have homes of several systems, so the path decides, not this machine: a path with a drive letter
or of a network share is a Windows path.
"""

from __future__ import annotations

import re

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

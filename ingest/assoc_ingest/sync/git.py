"""The state of a project's git repository: what is checked out, what differs, which branches exist.

Git is run only on request (`sync --git`), as `git_program` runs it. Changes and branches are
limited in number.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from .. import git as git_program
from ..derive.projects import refresh_named
from ..store.transaction import transaction
from ..when import now

MOST_ENTRIES = 1000
"""The number of changes and of branches that are kept for a project."""

_SECONDS = 5.0
_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--untracked-files=normal",
    "--ignore-submodules=all",
    "--",
    ".",
)
_BRANCHES_AND_PATHS = (
    "rev-parse",
    "--symbolic",
    "--branches",
    "--show-toplevel",
    "--absolute-git-dir",
    "--git-common-dir",
)
_HEAD = "# branch.head "


class Change(NamedTuple):
    """A file that differs: staged, unstaged or untracked, with git's letter for the change."""

    path: str
    status: str
    letter: str


class Branch(NamedTuple):
    """A branch, and whether it is checked out in the project's directory."""

    name: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class GitFacts:
    """The branch that is checked out (None when detached), what differs from it, all branches."""

    branch: str | None
    change_count: int
    """The number of changes that git listed; `changes` has the first of them."""
    changes: tuple[Change, ...] = ()
    branches: tuple[Branch, ...] = ()
    repository: str | None = None
    """The directory of the repository, if this is a worktree."""

    @property
    def is_dirty(self) -> bool:
        """Does anything differ from what is checked out?"""
        return self.change_count > 0


def look_at(directory: str) -> GitFacts | None:
    """Return what git says about a directory, None if it cannot be asked safely or takes too long.

    `directory` is the absolute path of an existing directory.
    """
    if not git_program.is_repository(directory):
        return None
    deadline = time.monotonic() + _SECONDS
    without_filters = git_program.without_filters(directory, deadline)
    if without_filters is None:
        return None
    status = git_program.ask(directory, (*without_filters, *_STATUS), deadline)
    answer = git_program.ask(directory, _BRANCHES_AND_PATHS, deadline)
    if status is None or answer is None:
        return None
    entries, lines = _entries(status, "\0"), _entries(answer, "\n")
    heads = [entry.removeprefix(_HEAD) for entry in entries if entry.startswith(_HEAD)]
    head = heads[0] if heads and heads[0] != "(detached)" else None
    changes = list(_changes(entries))
    names = list(takewhile(lambda line: not os.path.isabs(line), lines))  # noqa: PTH117
    branches = [Branch(name, name == head) for name in sorted(names, key=lambda name: name != head)]
    return GitFacts(
        head,
        len(changes),
        tuple(changes[:MOST_ENTRIES]),
        tuple(branches[:MOST_ENTRIES]),
        _repository(directory, lines[len(names) :]),
    )


# -- parsing git's output ------------------------------------------------------------------------


def _entries(answer: bytes, end: str) -> list[str]:
    """Return the complete entries of an output; bytes that are not text become escapes, `\\xff`."""
    return answer.decode("utf-8", "backslashreplace").split(end)[:-1]


def _repository(directory: str, places: list[str]) -> str | None:
    """Return the repository of a worktree, None for any other directory, even one in a worktree.

    For a bare repository that is the git directory itself.
    """
    if len(places) != 3:  # an older git, or a path with a line break
        return None
    top, own, common = (os.path.realpath(Path(directory, place)) for place in places)
    if own == common or top != os.path.realpath(directory):
        return None
    return Path(common.removesuffix("/.git")).as_posix()


def _changes(entries: Iterable[str]) -> Iterator[Change]:
    """Yield the changes in a status; a file that is staged and changed again has two."""
    following = iter(entries)
    for entry in following:
        kind = entry[:2]
        if kind == "? ":
            yield Change(entry[2:], "untracked", "?")
        elif kind == "u ":
            yield Change(entry.split(" ", 10)[-1], "unstaged", "U")
        elif kind in ("1 ", "2 "):
            path = entry.split(" ", 8 if kind == "1 " else 9)[-1]
            for status, letter in zip(("staged", "unstaged"), entry[2:4], strict=True):
                if letter != ".":
                    yield Change(path, status, letter)
        if kind == "2 ":
            next(following, None)  # the old name, which may look like an entry


# ------------------------------------------------------------------------------------------------
# What git says about the projects on this machine: branches and uncommitted changes.


def ask_git(connection: sqlite3.Connection) -> None:
    """Record what git says about each project on this disk: branches and uncommitted changes.

    If git does not answer, its last answer is kept, with its time. If there is no longer a
    repository, nothing is kept.
    """
    rows = connection.execute(
        "select id, path, head_branch, git_repository from projects where on_disk = 1"
    ).fetchall()
    facts = {path: look_at(path) for path in dict.fromkeys(path for _, path, *_ in rows)}
    seen_at = now()
    changed = set()
    with transaction(connection):
        for project_id, path, *before in rows:
            fact = facts[path]
            connection.execute(
                "update projects set git_branch = coalesce(?1, git_branch), head_branch = ?1,"
                " is_dirty = ?2, git_repository = iif(?3, ?4, git_repository) where id = ?5",
                (
                    fact.branch if fact else None, fact.is_dirty if fact else None,
                    fact is not None, fact.repository if fact else None, project_id,
                ),
            )  # fmt: skip
            if fact is not None and before != [fact.branch, fact.repository]:
                changed.add(project_id)
            if fact is not None:
                _replace(connection, project_id, fact, seen_at)
            elif not git_program.is_repository(path):
                _replace(connection, project_id, None, None)
        if changed:
            refresh_named(connection, changed)


def _replace(
    connection: sqlite3.Connection, project_id: int, fact: GitFacts | None, seen_at: str | None
) -> None:
    """Replace the changes and branches of a project by those that git has just listed."""
    for table in ("git_changes", "git_branches"):
        connection.execute(f"delete from {table} where project_id = ?", (project_id,))
    connection.execute(
        "update projects set git_seen_at = ?, change_count = ? where id = ?",
        (seen_at, fact.change_count if fact else None, project_id),
    )
    if fact is None:
        return
    connection.executemany(  # two names can become the same text: a byte, and its escape
        "insert into git_changes (path, status, letter, project_id, seen_at)"
        " values (?, ?, ?, ?, ?) on conflict do nothing",
        [(*change, project_id, seen_at) for change in fact.changes],
    )
    connection.executemany(
        "insert into git_branches (name, is_current, project_id, seen_at)"
        " values (?, ?, ?, ?) on conflict do nothing",
        [(*branch, project_id, seen_at) for branch in fact.branches],
    )

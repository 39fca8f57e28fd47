"""The state of a project's git repository: what is checked out, what differs, which branches exist.

Git is run only on request (`sync --git`). A repository may come from someone else, and its
configuration can name programs that git starts. So whatever could start one is switched off:

- the file system monitor, hooks, the pager, and submodules;
- filters. They can be switched off only by name, so git is asked first for their names. If a name
  cannot be passed on the command line, the repository is skipped;
- fetching objects that a partial clone lacks, which starts a program that connects to the remote.

Git's environment variables are not passed on: if a hook started this program, they name another
repository. Git itself refuses directories that belong to another user.

The output of git is limited in time, in bytes and in entries.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import IO, NamedTuple

MOST_ENTRIES = 1000
"""The number of changes and of branches that are kept for a project."""

_SECONDS = 5.0
_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILTERS = 100
_SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
)
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
_KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
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


def is_installed() -> bool:
    """Is git installed?"""
    return shutil.which("git") is not None


def is_repository(directory: str) -> bool:
    """Does a directory, or one above it, contain a repository?"""
    path = Path(directory)
    return any(os.path.lexists(place / ".git") for place in (path, *path.parents))


def look_at(directory: str) -> GitFacts | None:
    """Return what git says about a directory, None if it cannot be asked safely or takes too long.

    `directory` is the absolute path of an existing directory.
    """
    if not is_repository(directory):
        return None
    deadline = time.monotonic() + _SECONDS
    without_filters = _without_filters(directory, deadline)
    if without_filters is None:
        return None
    status = _ask(directory, (*without_filters, *_STATUS), deadline)
    answer = _ask(directory, _BRANCHES_AND_PATHS, deadline)
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


# -- running git safely --------------------------------------------------------------------------


def _without_filters(directory: str, deadline: float) -> list[str] | None:
    """Return arguments that switch off all filters, None if that is not possible."""
    answer = _ask(directory, ("config", "--list", "-z", "--name-only"), deadline)
    if answer is None or len(answer) > _MOST_BYTES:
        return None
    keys = answer.decode("utf-8", "surrogateescape").split("\0")
    names = {key.split(".", 1)[1].rpartition(".")[0] for key in keys if key.startswith("filter.")}
    if len(names) > _MOST_FILTERS or any("=" in name or "\n" in name for name in names):
        return None
    return [
        argument
        for name in sorted(names)
        for setting in ("clean=", "smudge=", "process=", "required=false")
        for argument in ("-c", f"filter.{name}.{setting}")
    ]


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # versions that do not know the line above
    }


def _ask(directory: str, arguments: Iterable[str], deadline: float) -> bytes | None:
    """Return the output of git, None if it fails or takes too long.

    Output beyond the limit is truncated, one byte after the limit.
    """
    try:
        process = subprocess.Popen(  # noqa: S603
            ["git", "-C", directory, *_SAFE, *arguments],  # noqa: S607
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    answer: list[bytes] = []
    # In a thread: a program that git started can hold the pipe open after git has ended.
    reader = threading.Thread(target=_read, args=(process.stdout, answer), daemon=True)
    try:
        reader.start()
        reader.join(max(0.0, deadline - time.monotonic()))
        if not answer:
            return None
        if len(answer[0]) > _MOST_BYTES:
            return answer[0]
        return answer[0] if process.wait(max(0.0, deadline - time.monotonic())) == 0 else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _read(pipe: IO[bytes] | None, answer: list[bytes]) -> None:
    if pipe is not None:
        with pipe:
            answer.append(pipe.read(_MOST_BYTES + 1))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that is still running, with everything that it has started."""
    if process.returncode is None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


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

"""A project's git repository: what is checked out, what differs, branches, the last commits.

Git is run only on request (`sync --git`), as `git_program` runs it. Changes, branches and commits
are limited in number, and diffs in size. Credentials in a diff are covered before it is stored: no
report would name them, because reports look at what agents wrote.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from .. import git as git_program
from ..derive.projects import refresh_named
from ..fields import from_milliseconds, now
from ..files.exclusions import load_secrets
from ..remotes import remote_of
from ..secrets.forget import ForgottenSecrets
from ..store.database import transaction

MOST_ENTRIES = 1000
"""The number of changes and of branches that are kept for a project."""

MOST_COMMITS = 1000
"""The number of commits of a project whose files are kept, the newest first."""

MOST_DIFF_BYTES = 512 * 1024
"""The bytes that are read of the diffs of all staged changes of a project, and of all others."""

MOST_DIFF_LINES = 1000
"""The lines that are kept of the diff of a file."""

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
_DIFF = (
    *("-c", "core.quotePath=false", "-c", "core.bigFileThreshold=8m", "-c", "diff.relative=false"),
    *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--find-renames", "--diff-algorithm=myers"),
    *("--unified=3", "--inter-hunk-context=0", f"-O{os.devnull}"),
    # Of a file with conflicts: what differs from our side.
    *("--diff-filter=u", "--patch"),
)
_DIFFS = {"staged": ("--cached",), "unstaged": ("--ours",)}
_BRANCHES_AND_PATHS = (
    "rev-parse",
    "--symbolic",
    "--branches",
    "--show-toplevel",
    "--absolute-git-dir",
    "--git-common-dir",
)
_COMMITS = (
    *("-c", "core.quotePath=false", "log", f"-{MOST_COMMITS}", "--no-merges", "-z"),
    *("--format=%x01%H %at", "--name-only", "--relative", "--no-renames"),
    *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
)
_REMOTE = ("ls-remote", "--get-url", "origin")  # of what the configuration says, without asking it
_FIRST_COMMITS = ("rev-list", "--max-parents=0", "HEAD")
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


class CommittedFile(NamedTuple):
    """A file that a commit changed, relative to the project's directory."""

    path: str
    hash: str
    authored_at: str


class Diff(NamedTuple):
    """What git prints of a change: its lines, and whether there are more."""

    lines: tuple[tuple[str, str], ...]
    """Kind and text of each."""
    is_cut: bool


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
    remote: str | None = None
    """Host and name of the remote `origin`."""
    first_commit: str | None = None
    """The first commit, if there is no such remote."""
    diffs: Mapping[tuple[str, str], Diff] = field(default_factory=dict)
    """By path and status of staged and unstaged changes."""
    commits: tuple[CommittedFile, ...] = ()
    """Files of the commits since the time that was asked for."""

    @property
    def is_dirty(self) -> bool:
        """Does anything differ from what is checked out?"""
        return self.change_count > 0


def look_at(
    directory: str, forgotten: ForgottenSecrets | None = None, since: str | None = None
) -> GitFacts | None:
    """Return what git says about a directory, None if it cannot be asked safely or takes too long.

    `directory` is the absolute path of an existing directory. Names and diffs are without the
    credentials that are `forgotten`. Commits are listed from a time on, or not at all.
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
    diffs = _diffs_of(directory, without_filters, changes[:MOST_ENTRIES], forgotten)
    names = list(takewhile(lambda line: not os.path.isabs(line), lines))  # noqa: PTH117
    branches = [Branch(name, name == head) for name in sorted(names, key=lambda name: name != head)]
    repository = _repository(directory, lines[len(names) :])
    remote = remote_of(_text(git_program.ask(directory, _REMOTE, deadline)).strip())
    first = None if remote else git_program.ask(directory, _FIRST_COMMITS, deadline)

    def known(name: str) -> str:
        return _without(name, forgotten) if forgotten else name

    return GitFacts(
        head and known(head),
        len(changes),
        tuple(change._replace(path=known(change.path)) for change in changes[:MOST_ENTRIES]),
        tuple(branch._replace(name=known(branch.name)) for branch in branches[:MOST_ENTRIES]),
        repository and known(repository),
        remote and known(str(remote)),
        min(_text(first).split(), default=None),
        {(known(path), status): diff for (path, status), diff in diffs.items()},
        tuple(
            one._replace(path=known(one.path))
            for one in _commits_of(directory, without_filters, since)
        ),
    )


def _without(name: str, forgotten: ForgottenSecrets) -> str:
    """Return a name with spaces in place of forgotten credentials, as `forget` leaves it."""
    data, _ = forgotten.without(name.encode("utf-8", "surrogateescape"), is_log=False)
    return data.decode("utf-8", "surrogateescape")


def _diffs_of(
    directory: str,
    without_filters: list[str],
    changes: Iterable[Change],
    forgotten: ForgottenSecrets | None,
) -> dict[tuple[str, str], Diff]:
    """Return the diffs of changes; of what was not reached, or cannot be told, an empty one."""
    wanted = [change for change in changes if change.status in _DIFFS]
    deadline = time.monotonic() + _SECONDS
    diffs = {}
    for status in dict.fromkeys(change.status for change in wanted):
        arguments = (*without_filters, *_DIFF, *_DIFFS[status], "--", ".")
        answer = git_program.ask(directory, arguments, deadline, MOST_DIFF_BYTES)
        is_truncated = answer is None or len(answer) > MOST_DIFF_BYTES
        lines_of: dict[str | None, _Lines] = {}
        for path, lines in _patches(answer or b""):
            lines_of.setdefault(path, []).extend(lines)  # a link that became a file has two patches
        last = next(reversed(lines_of), None) if is_truncated else None
        is_whole = not is_truncated and None not in lines_of
        for change in wanted:
            if change.status == status:
                lines = lines_of.get(change.path, [])
                is_cut = len(lines) > MOST_DIFF_LINES or change.path == last
                is_cut = is_cut or not (lines or is_whole)
                shown = _covered(lines[:MOST_DIFF_LINES], forgotten)
                diffs[change.path, status] = Diff(tuple(shown), is_cut)
    return diffs


def _commits_of(
    directory: str, without_filters: list[str], since: str | None
) -> Iterator[CommittedFile]:
    """Yield the files of the last commits; of an output that is too long, those at its beginning.

    There are none if git does not answer in time, or nothing was committed.
    """
    if since is None:
        return
    deadline = time.monotonic() + _SECONDS
    arguments = (*without_filters, *_COMMITS, f"--since={since}", "HEAD", "--", ".")
    commit, authored_at = "", None
    for entry in _entries(git_program.ask(directory, arguments, deadline) or b"", "\0"):
        if head := _commit_head(entry):
            commit, authored_at = head[1], from_milliseconds(int(head[2]) * 1000)
        elif authored_at is not None and (path := entry.removeprefix("\n")):
            yield CommittedFile(path, commit, authored_at)


# -- parsing git's output ------------------------------------------------------------------------


def _text(answer: bytes | None) -> str:
    """Return an output; bytes that are not text become escapes, `\\xff`."""
    return (answer or b"").decode("utf-8", "backslashreplace")


def _entries(answer: bytes, end: str) -> list[str]:
    """Return the complete entries of an output."""
    return _text(answer).split(end)[:-1]


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


_commit_head = re.compile(r"\x01([0-9a-f]{40,64}) (\d{1,11})").fullmatch
_hunk = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@").match
_SIGNS = {b"+": "add", b"-": "remove", b" ": "context", b"": "context"}
_Lines = list[tuple[str, bytes]]


def _patches(answer: bytes) -> Iterator[tuple[str | None, _Lines]]:
    """Yield each patch in an output: the path, None if it cannot be told, and its whole lines.

    What a hunk counts is the file's, whatever it looks like; all else is git's.
    """
    lines: _Lines = []
    removed = added = 0
    for line in answer.split(b"\n")[:-1]:
        kind = _SIGNS.get(line[:1])
        if kind and (removed or added):
            removed -= bool(removed) and kind != "add"
            added -= bool(added) and kind != "remove"
            lines.append((kind, line[1:]))
            continue
        if line.startswith(b"diff --"):
            if lines:
                yield _path(lines), lines
            lines = []
            removed = added = 0
        hunk = _hunk(line)
        if hunk:
            removed, added = (int(count) if count is not None else 1 for count in hunk.groups())
        lines.append(("hunk" if hunk else "header", line))
    if lines:
        yield _path(lines), lines


_escape = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))


def _path(lines: _Lines) -> str | None:
    """Return the path that the header of a patch names: the new one, if the file was renamed."""
    header = [line for _, line in takewhile(lambda line: line[0] == "header", lines)]
    renamed = [line for line in header if line.startswith((b"rename to ", b"copy to "))]
    if renamed:
        name = _unquoted(renamed[0].split(b" ", 2)[2])
    else:  # both names are the same
        names = header[0].removeprefix(b"diff --git ") if header else b""
        half = len(names) // 2
        before, after = _unquoted(names[:half]), _unquoted(names[half + 1 :])
        name = after[2:]
        if (before, after) != (b"a/" + name, b"b/" + name):
            return None
    return name.decode("utf-8", "backslashreplace")


def _unquoted(name: bytes) -> bytes:
    """Return a name without the quotes and escapes that git gives it if it has odd letters."""
    if not (len(name) > 1 and name.startswith(b'"') and name.endswith(b'"')):
        return name

    def meant(match: re.Match[bytes]) -> bytes:
        code = match[1]
        value = int(code, 8) & 255 if len(code) == 3 else _ESCAPES.get(code[0], code[0])
        return bytes([value])

    return _escape.sub(meant, name[1:-1])


def _covered(lines: _Lines, forgotten: ForgottenSecrets | None) -> Iterator[tuple[str, str]]:
    """Yield lines with stars in place of what looks like a credential, and without forgotten ones.

    They are looked at together: a private key has several.
    """
    from ..secrets.mask import redact_bytes  # the rules take a while to compile

    text = b"\n".join(line for _, line in lines)
    if forgotten:
        text, _ = forgotten.without(text, is_log=False)
    text, _ = redact_bytes(text, is_log=False)
    for (kind, _), line in zip(lines, text.split(b"\n"), strict=False):
        yield kind, line.decode("utf-8", "backslashreplace")


# ------------------------------------------------------------------------------------------------
# What git says about the projects on this machine: branches, uncommitted changes, commits.


def ask_git(connection: sqlite3.Connection) -> None:
    """Record what git says about each project on this disk: branches, uncommitted changes, commits.

    If git does not answer, its last answer is kept, with its time. If there is no longer a
    repository, nothing is kept.
    """
    rows = connection.execute(
        "select id, path, head_branch, git_repository, git_remote, git_first_commit"
        " from projects where on_disk = 1"
    ).fetchall()
    since = dict(
        connection.execute(
            "select p.path, min(s.started_at) from projects p"
            " join sessions s on s.project_id = p.id where p.on_disk = 1 group by p.path"
        )
    )
    forgotten = load_secrets(connection)
    facts = {
        path: look_at(path, forgotten, since.get(path))
        for path in dict.fromkeys(path for _, path, *_ in rows)
    }
    seen_at = now()
    changed = set()
    with transaction(connection):
        for project_id, path, *before in rows:
            fact = facts[path]
            connection.execute(
                "update projects set git_branch = coalesce(?1, git_branch), head_branch = ?1,"
                " is_dirty = ?2 where id = ?3",
                (fact.branch if fact else None, fact.is_dirty if fact else None, project_id),
            )
            if fact is not None:
                stated = (fact.repository, fact.remote, fact.first_commit)
                if before != [fact.branch, *stated]:
                    changed.add(project_id)
                connection.execute(
                    "update projects set git_repository = ?, git_remote = ?, git_first_commit = ?"
                    " where id = ?",
                    (*stated, project_id),
                )
                _replace(connection, project_id, fact, seen_at)
            elif not git_program.is_repository(path):
                _replace(connection, project_id, None, None)
        if changed:
            refresh_named(connection, changed)


def _replace(
    connection: sqlite3.Connection, project_id: int, fact: GitFacts | None, seen_at: str | None
) -> None:
    """Replace what is kept of a project's repository by what git has just listed."""
    for table in ("git_changes", "git_branches", "git_diff_lines", "git_commits"):
        connection.execute(f"delete from {table} where project_id = ?", (project_id,))
    connection.execute(
        "update projects set git_seen_at = ?, change_count = ? where id = ?",
        (seen_at, fact.change_count if fact else None, project_id),
    )
    if fact is None:
        return
    connection.executemany(  # two names can become the same text: a byte, and its escape
        "insert into git_changes (path, status, letter, is_diff_cut, project_id, seen_at)"
        " values (?, ?, ?, ?, ?, ?) on conflict do nothing",
        [
            (*change, diff.is_cut if diff else None, project_id, seen_at)
            for change in fact.changes
            for diff in [fact.diffs.get(change[:2])]
        ],
    )
    connection.executemany(
        "insert into git_diff_lines (path, status, position, kind, text, project_id, seen_at)"
        " values (?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
        (
            (*change, position, *line, project_id, seen_at)
            for change, diff in fact.diffs.items()
            for position, line in enumerate(diff.lines, 1)
        ),
    )
    connection.executemany(
        "insert into git_branches (name, is_current, project_id, seen_at)"
        " values (?, ?, ?, ?) on conflict do nothing",
        [(*branch, project_id, seen_at) for branch in fact.branches],
    )
    connection.executemany(
        "insert into git_commits (path, hash, authored_at, project_id, seen_at)"
        " values (?, ?, ?, ?, ?) on conflict do nothing",
        [(*one, project_id, seen_at) for one in fact.commits],
    )

"""What git says of a repository on this disk: a commit, a line, earlier names, pull requests.

Nothing here is needed for an answer: where git, the repository or the commit is missing, or git
takes too long, the answer is None or empty.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .. import git
from ..edits import telling
from ..fields import from_milliseconds, milliseconds
from ..paths import is_directory, real_path

_SECONDS = 4.0
_FORMAT = "%H%x00%P%x00%at%x00%ct%x00%s"
_FIELDS = 5
_HASH_LENGTHS = (40, 64)
_MOST_RENAMES = 50
_MOST_FILES = 100
_MOST_MERGES = 20
_MOST_MERGED = 200
_MOST_TWINS = 10
_DAY = 24 * 3600  # by which the clock of whoever committed may be behind that of the author

_merge_of = re.compile(r"Merge pull request #(\d{1,9}) from ([^\s/]{1,100})/(\S{1,250})").match
_branch_merged = re.compile(r"Merge branch '([^'\s]{1,250})'").match
_bitbucket_merge = re.compile(r"Merged in (\S{1,250}) \(pull request #(\d{1,9})\)").match
_azure_merge = re.compile(r"Merged PR (\d{1,9}): ").match
_squash_of = re.compile(r"(.{1,500}) \([#!](\d{1,9})\)").fullmatch
_merge_request = re.compile(r"^See merge request \S{0,250}!(\d{1,9})$", re.MULTILINE).search
_remote = re.compile(
    r"(?:[a-z+]{1,10}://)?(?:[^\s@/]{1,100}@)?([^\s/:]{1,253})(?::\d{1,5})?[/:]+(\S{1,250}?)(?:\.git)?/?"
).fullmatch


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, as its repository has it."""

    hash: str
    subject: str
    authored_at: str
    """UTC; an amended, rebased or picked commit keeps it."""
    committed_at: str
    is_merge: bool


class PullRequestName(NamedTuple):
    """What the message of a commit says of the pull request that it merged."""

    number: str
    branch: str | None = None
    """Its head branch; a squashed commit does not name it."""
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """The commit with which a pull request came into a repository."""

    commit: Commit
    name: PullRequestName
    commits: tuple[Commit, ...]
    """Those of its branch; none if it was squashed."""

    @property
    def since(self) -> str:
        """When the first of its commits was written."""
        return min(commit.authored_at for commit in (self.commit, *self.commits))


def pull_request_in(subject: str, body: str = "") -> PullRequestName | None:
    """Return the pull request that a commit says it merged, None if it names none."""
    if found := _merge_of(subject):
        return PullRequestName(found[1], found[3], body.strip().partition("\n")[0] or None)
    if found := _bitbucket_merge(subject):
        return PullRequestName(found[2], found[1])
    if found := _azure_merge(subject):
        return PullRequestName(found[1], title=subject[found.end() :])
    if (found := _branch_merged(subject)) and (number := _merge_request(body)):
        return PullRequestName(number[1], found[1])
    if found := _squash_of(subject):
        return PullRequestName(found[2], title=found[1])
    return None


class GitHistory:
    """One repository. All questions together take a few seconds at most."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._deadline = time.monotonic() + _SECONDS
        self._filters: list[str] | None = None

    def top(self) -> str | None:
        """Return the directory of the working tree."""
        found = self._ask("rev-parse", "--show-toplevel")
        return found.rstrip("\n") if found else None

    def commit(self, name: str) -> Commit | None:
        """Return the commit that a hash names, or the beginning of one that only it has."""
        found = self._ask("log", "-1", f"--format={_FORMAT}", "--end-of-options", name, "--")
        parts = found.rstrip("\n").split("\0") if found else []
        return _commit(*parts) if len(parts) == _FIELDS else None

    def files(self, name: str) -> list[str]:
        """Return the files that a commit changed, relative to the top; of a merge, none."""
        found = self._ask(
            "diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z",
            "--no-ext-diff", "--no-textconv", "--end-of-options", name, "--",
        )  # fmt: skip
        return [path for path in (found or "").split("\0") if path][:_MOST_FILES]

    def added_lines(self, commit: Commit) -> list[str] | None:
        """Return the telling lines that a commit added, or of a merge, its branch; each once.

        None if nobody can say, because the diff is too large.
        """
        options = ("-p", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "-M")
        if commit.is_merge:
            found = self._ask("diff", *options, f"{commit.hash}^1...{commit.hash}^2", "--")
        else:
            found = self._ask("diff-tree", "--root", *options, commit.hash, "--")
        return list(dict.fromkeys(telling(_added(found)))) if found is not None else None

    def twins(self, commit: Commit) -> list[Commit]:
        """Return the other commits that have its changes, written at the same time.

        A commit that is rebased, picked or given another message keeps both. Those that no branch
        has any more are looked for in the log of references.
        """
        seconds = milliseconds(commit.authored_at) // 1000
        found = self._ask(
            "log", "--all", "--reflog", "--no-merges", "--format=%at %H",
            f"--since={seconds - _DAY}", "--",
        )  # fmt: skip
        lines = (line.split(" ") for line in (found or "").split("\n") if line)
        hashes = {hash_ for written, hash_ in lines if written == str(seconds)}
        others = sorted(hashes - {commit.hash})[:_MOST_TWINS]
        own = self._changes(commit.hash) if others else []
        alike = (name for name in others if own and self._changes(name) == own)
        return [twin for name in alike if (twin := self.commit(name)) is not None]

    def _changes(self, name: str) -> list[str]:
        """Return the lines that a commit changed, with the names of their files."""
        found = self._ask(
            "diff-tree", "--root", "-p", "--unified=0", "--no-color", "--no-ext-diff",
            "--no-textconv", "--no-renames", name, "--",
        )  # fmt: skip
        return [line for line in (found or "").split("\n") if line.startswith(("+", "-"))]

    def line(self, path: str, number: int) -> tuple[str, str] | None:
        """Return the commit that a line of a file comes from, and the text of the line.

        Of a line that is not committed, the hash is all zeros. `path` is absolute.
        """
        found = self._ask(
            "blame", "--porcelain", "--no-textconv", "-L", f"{number},{number}", "--", path
        )
        lines = (found or "").split("\n")
        head = lines[0].split(" ")[0]
        text = next((line[1:] for line in lines[1:] if line.startswith("\t")), "")
        return (head, text) if len(head) in _HASH_LENGTHS else None

    def earlier_names(self, path: str) -> list[str]:
        """Return the names that a file had before it was renamed, relative to the top."""
        found = self._ask(
            "log", "--follow", "--diff-filter=R", "--name-status", "--format=", "-z",
            f"-{_MOST_RENAMES}", "--no-ext-diff", "--no-textconv", "--", path,
        )  # fmt: skip
        parts = (found or "").lstrip("\0\n").split("\0")
        return [
            old
            for status, old in zip(parts[0::3], parts[1::3], strict=False)
            if status.strip().startswith("R")
        ]

    def remotes(self) -> set[tuple[str, str]]:
        """Return the hosts and names of the repositories that this one is a clone of."""
        found = self._ask("config", "--get-regexp", r"^remote\..*\.url$") or ""
        addresses = (line.partition(" ")[2].casefold() for line in found.split("\n"))
        return {(match[1], match[2]) for url in addresses if (match := _remote(url))}

    def merge(self, number: str) -> Merge | None:
        """Return how the pull request with a number came into the repository."""
        found = self._ask(
            "log", "--all", f"-{_MOST_MERGES}", "-z", f"--format={_FORMAT}%x00%b",
            "--extended-regexp",
            f"--grep=^Merge pull request #{number} from ",
            f"--grep=^.* \\([#!]{number}\\)$",
            f"--grep=^Merged in .* \\(pull request #{number}\\)$",
            f"--grep=^Merged PR {number}: ",
            f"--grep=^See merge request .*!{number}$",
        )  # fmt: skip
        parts = (found or "").split("\0")
        for *fields, body in zip(*[iter(parts)] * (_FIELDS + 1), strict=False):
            commit = _commit(*fields)
            name = pull_request_in(commit.subject, body) if commit is not None else None
            if commit is not None and name is not None and name.number == number:
                return self._merge(commit, name)
        return None

    def merge_of(self, commit: Commit) -> Merge | None:
        """Return the pull request that a commit merged, if its message names one."""
        body = self._ask("log", "-1", "--format=%b", "--end-of-options", commit.hash, "--")
        name = pull_request_in(commit.subject, body or "")
        return self._merge(commit, name) if name is not None else None

    def _merge(self, commit: Commit, name: PullRequestName) -> Merge:
        found = self._ask(
            "log", f"-{_MOST_MERGED}", "--no-merges", "-z", f"--format={_FORMAT}",
            f"{commit.hash}^1..{commit.hash}^2", "--",
        )  # fmt: skip
        parts = (found or "").split("\0")
        commits = (_commit(*fields) for fields in zip(*[iter(parts)] * _FIELDS, strict=False))
        return Merge(commit, name, tuple(one for one in commits if one is not None))

    def _ask(self, *arguments: str) -> str | None:
        if self._filters is None:
            self._filters = git.without_filters(self.directory, self._deadline)
        if self._filters is None:
            return None
        found = git.ask(self.directory, (*self._filters, *arguments), self._deadline)
        if found is None or len(found) > git.MOST_BYTES:
            return None
        return found.decode("utf-8", "backslashreplace")


def _added(diff: str) -> Iterator[str]:
    """Yield the added lines of a diff without context."""
    is_head = True
    for line in diff.split("\n"):
        if line.startswith(("diff ", "@@")):
            is_head = line.startswith("diff ")
        elif line.startswith("+") and not is_head:
            yield line[1:]


def _commit(hash_: str, parents: str, authored: str, committed: str, subject: str) -> Commit | None:
    if not authored.isdigit() or not committed.isdigit():
        return None
    times = [from_milliseconds(int(part) * 1000) for part in (authored, committed)]
    if times[0] is None or times[1] is None:
        return None
    return Commit(hash_, subject, times[0], times[1], is_merge=" " in parents)


def history_at(directory: str | Path | None) -> GitHistory | None:
    """Return the history of the repository around a directory, None if there is none to ask."""
    if directory is None or not Path(directory).is_absolute() or not is_directory(directory):
        return None
    if not git.is_repository(str(directory)) or not git.is_installed():
        return None
    return GitHistory(str(real_path(directory)))

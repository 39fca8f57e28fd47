"""What git says of a repository on this disk: a commit, the commit of a line, earlier names.

Nothing here is needed for an answer: where git, the repository or the commit is missing, or git
takes too long, the answer is None or empty.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from .. import git_program
from ..paths import is_directory, real_path
from ..when import from_milliseconds

_SECONDS = 4.0
_FORMAT = "%H%x00%at%x00%ct%x00%s"
_HASH_LENGTHS = (40, 64)
_MOST_RENAMES = 50
_MOST_FILES = 100


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, as its repository has it."""

    hash: str
    subject: str
    authored_at: str
    """UTC; an amended, rebased or picked commit keeps it."""
    committed_at: str


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
        if len(parts) != 4 or not parts[1].isdigit() or not parts[2].isdigit():
            return None
        authored, committed = (from_milliseconds(int(part) * 1000) for part in parts[1:3])
        if authored is None or committed is None:
            return None
        return Commit(parts[0], parts[3], authored, committed)

    def files(self, name: str) -> list[str]:
        """Return the files that a commit changed, relative to the top; of a merge, none."""
        found = self._ask(
            "diff-tree", "--root", "--no-commit-id", "--name-only", "-r", "-z",
            "--no-ext-diff", "--no-textconv", "--end-of-options", name, "--",
        )  # fmt: skip
        return [path for path in (found or "").split("\0") if path][:_MOST_FILES]

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

    def _ask(self, *arguments: str) -> str | None:
        if self._filters is None:
            self._filters = git_program.without_filters(self.directory, self._deadline)
        if self._filters is None:
            return None
        found = git_program.ask(self.directory, (*self._filters, *arguments), self._deadline)
        if found is None or len(found) > git_program.MOST_BYTES:
            return None
        return found.decode("utf-8", "backslashreplace")


def history_at(directory: str | Path | None) -> GitHistory | None:
    """Return the history of the repository around a directory, None if there is none to ask."""
    if directory is None or not Path(directory).is_absolute() or not is_directory(directory):
        return None
    if not git_program.is_repository(str(directory)) or not git_program.is_installed():
        return None
    return GitHistory(str(real_path(directory)))

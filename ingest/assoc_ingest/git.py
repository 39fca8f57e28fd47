"""What git says of a project's directory: the branch that is checked out, and whether it is clean.

Asked only on request (`sync --git`), one bounded call a directory. A repository's own configuration
can name programs that git starts, so what could start one is switched off: the file system monitor,
hooks, and looking into submodules. Git itself refuses directories that belong to another user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

_SECONDS = 5
_ARGUMENTS = (
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=normal",
    "--ignore-submodules=all",
)
_BRANCH = "# branch.head "


@dataclass(frozen=True, slots=True)
class GitFacts:
    """The branch that is checked out (None when detached), and whether anything differs from it."""

    branch: str | None
    is_dirty: bool


def is_installed() -> bool:
    """Is there a git to ask?"""
    return shutil.which("git") is not None


def look_at(directory: str) -> GitFacts | None:
    """Return what git says of a directory, None if it says nothing in time.

    `directory` is an absolute path of a directory that exists.
    """
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        answer = subprocess.run(  # noqa: S603
            ["git", "-C", directory, *_ARGUMENTS],  # noqa: S607
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.split("\n")
    heads = [line.removeprefix(_BRANCH) for line in lines if line.startswith(_BRANCH)]
    branch = heads[0] if heads and heads[0] != "(detached)" else None
    return GitFacts(branch, any(line and not line.startswith("#") for line in lines))

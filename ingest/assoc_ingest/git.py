"""Runs git on repositories that may come from anyone.

The configuration of a repository can name programs that git starts. So whatever could start one is
switched off:

- the file system monitor, hooks, the pager, signatures, and submodules;
- programs that show differences (`blame`, `sync --git` and their arguments);
- filters. They can be switched off only by name, so git is asked first for their names. If a name
  cannot be passed on the command line, the repository is skipped;
- fetching objects that a partial clone lacks, which starts a program that connects to the remote.

Git's environment variables are not passed on: if a hook started this program, they name another
repository. Git itself refuses directories that belong to another user.

The output of git is limited in time and in bytes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

MOST_BYTES = 4 * 1024 * 1024
"""Output beyond is truncated, one byte after the limit, unless `ask` is given another one."""

_MOST_FILTERS = 100
_SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    f"core.hooksPath={os.devnull}",
    "-c",
    "log.showSignature=false",
)

KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


def is_installed() -> bool:
    return shutil.which("git") is not None


def is_repository(directory: str) -> bool:
    """Does a directory, or one above it, contain a repository?"""
    path = Path(directory)
    return any(os.path.lexists(place / ".git") for place in (path, *path.parents))


def without_filters(directory: str, deadline: float) -> list[str] | None:
    """Return arguments that switch off all filters, None if that is not possible.

    `deadline` is a time of `time.monotonic`, here and below.
    """
    answer = ask(directory, ("config", "--list", "-z", "--name-only"), deadline)
    if answer is None or len(answer) > MOST_BYTES:
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
        if not name.startswith("GIT_") or name in KEPT_VARIABLES
    }
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",  # versions that do not know the line above
    }


def ask(
    directory: str, arguments: Iterable[str], deadline: float, most: int | None = None
) -> bytes | None:
    """Return the output of git, None if it fails or takes too long.

    Output beyond the limit is truncated, one byte after the limit.
    """
    most = MOST_BYTES if most is None else most
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
    reader = threading.Thread(target=_read, args=(process.stdout, answer, most), daemon=True)
    try:
        reader.start()
        reader.join(max(0.0, deadline - time.monotonic()))
        if not answer:
            return None
        if len(answer[0]) > most:
            return answer[0]
        return answer[0] if process.wait(max(0.0, deadline - time.monotonic())) == 0 else None
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _read(pipe: IO[bytes] | None, answer: list[bytes], most: int) -> None:
    if pipe is not None:
        with pipe:
            answer.append(pipe.read(most + 1))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that is still running, with everything that it has started."""
    if process.returncode is None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()

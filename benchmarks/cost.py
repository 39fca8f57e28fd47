"""What a process costs: seconds on the clock, seconds of processor, bytes of memory.

Everything that is measured runs in a process of its own. Other work on the machine only ever makes
a run slower, so the best of some runs counts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.homes import ROOT

PATIENCE = 120.0
"""Seconds to wait for what should take a moment."""


class Cost(NamedTuple):
    """Seconds on the clock, seconds of processor, bytes of memory at the highest."""

    wall: float
    cpu: float
    memory: int


class Line(NamedTuple):
    """One thing that was measured: its name, what it cost, the bytes that it went through."""

    what: str
    cost: Cost
    bytes: int | None = None
    note: str = ""


class Answer(NamedTuple):
    """A question that was asked: its name and scope, milliseconds cold and warm, rows."""

    name: str
    scope: str
    cold: float
    warm: float
    rows: int


def measure(
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    given: str = "",
) -> Cost:
    """Run a command with `given` as its input and return its cost. Raises CalledProcessError if it
    fails.

    The kernel counts the memory of this process as the new one's first, so keep this one small.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as source:
        source.write(given.encode())
        source.seek(0)
        started = time.perf_counter()
        process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, cwd=cwd,
            stdin=source, stdout=output, stderr=output,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def best(costs: Iterable[Cost]) -> Cost:
    """Return the least of each cost over some runs, and the most memory."""
    walls, cpus, memories = zip(*costs, strict=True)
    return Cost(min(walls), min(cpus), max(memories))


@dataclass(frozen=True, slots=True)
class Program:
    """Our program as it stands in a checkout. It is never shown the user's home."""

    home: Path
    """A directory that stands in for the user's home."""
    checkout: Path = ROOT

    def environment(self) -> dict[str, str]:
        """Return what a process needs to import this checkout's program, and our modules."""
        paths = os.pathsep.join((str(self.checkout / "ingest"), str(ROOT)))
        own = {name: str(self.home) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        return {**own, "PYTHONPATH": paths, "CLAUDE_CONFIG_DIR": str(self.home / ".claude")}

    def command(self, *arguments: str | Path) -> list[str | Path]:
        """Return the command line that runs the program."""
        return [sys.executable, "-m", "assoc_ingest", *arguments]

    def run(self, *arguments: str | Path, given: str = "") -> Cost:
        """Run the program with `given` as its input, and return what it cost."""
        command, environment = self.command(*arguments), self.environment()
        return measure(*command, environment=environment, cwd=self.home, given=given)

    @contextmanager
    def running(self, *arguments: str | Path) -> Iterator[None]:
        """Run the program beside what the caller does, and end it as its user would."""
        process = subprocess.Popen(
            self.command(*arguments),
            env={**os.environ, **self.environment()},
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)

    def module(self, name: str, *arguments: str | Path) -> bytes:
        """Run one of our modules beside the program's, and return what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", name, *arguments],
            env={**os.environ, **self.environment()},
            cwd=self.home,
            check=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout


@contextmanager
def scratch(build: Path) -> Iterator[Path]:
    """Yield a new directory below `build`, removed at the end."""
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=build) as place:
        yield Path(place)

"""Measures what a sync costs, beside what the same work costs at least.

    python -m benchmarks.bench                          homes of 20 MB and 200 MB
    python -m benchmarks.bench --sizes 1GB --repeat 1
    python -m benchmarks.bench --sizes '' --one-file 400MB

For each home: the floors (see `floors`), the first sync, a sync that finds nothing new, and a sync
after ten lines were appended to a transcript of 7 MB. Everything runs in a process of its own, and
the best of some runs counts: other work on the machine only ever makes a run slower. Generated
homes are kept in the directory for temporary files and used again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.floors import STEPS, transcripts
from benchmarks.generate import parse_size

ROOT = Path(__file__).parents[1]

_GROWING = 7_000_000  # bytes of the transcript that is appended to
_APPENDED = 10  # lines
_FLOORS = {
    "read": "read the files",
    "parse": "+ parse each line (orjson)",
    "insert": "+ insert, no index",
    "index": "+ full-text index",
}


class Cost(NamedTuple):
    """What a process took: seconds on the clock, seconds of processor, bytes of memory."""

    wall: float
    cpu: float
    memory: int


class Line(NamedTuple):
    """A line of the report."""

    what: str
    cost: Cost
    bytes: int | None = None
    note: str = ""


# -- measuring -----------------------------------------------------------------------------------


def measure(*command: str | Path) -> Cost:
    """Run a command and return its cost. Raises CalledProcessError if it fails.

    The kernel counts the memory of this process as the new one's first, so keep this one small.
    """
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'ingest'}{os.pathsep}{ROOT}"}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.stderr.write(output.read().decode(errors="replace"))
            raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def best(repeat: int, run: Callable[[], Cost]) -> Cost:
    """Return the least of each cost over some runs, and the most memory."""
    costs = [run() for _ in range(repeat)]
    return Cost(
        min(cost.wall for cost in costs),
        min(cost.cpu for cost in costs),
        max(cost.memory for cost in costs),
    )


def program(*arguments: str | Path) -> Cost:
    """Run our program."""
    return measure(sys.executable, "-m", "assoc_ingest", *arguments)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a new directory, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="assoc-ingest-bench-") as place:
        yield Path(place)


# -- homes ---------------------------------------------------------------------------------------


def home_of(size: int, *, is_one_file: bool = False) -> Path:
    """Return a generated home of a size, made now if it was not made before."""
    code = hashlib.sha256()
    for path in sorted((ROOT / "benchmarks" / "synthetic").glob("*.py")):
        code.update(path.read_bytes())
    kind = "file" if is_one_file else "home"
    name = f"{kind}-{size}-{code.hexdigest()[:12]}"
    place = Path(tempfile.gettempdir()) / "assoc-ingest-homes" / name
    if not place.exists():
        new = place.with_name(f"{name}.new")
        shutil.rmtree(new, ignore_errors=True)
        measure(
            *(sys.executable, ROOT / "benchmarks" / "generate.py", new),
            *("--one-file" if is_one_file else "--bytes", str(size)),
        )
        new.rename(place)
    return place


def size_of(home: Path) -> int:
    """Return the bytes of the transcripts of a home."""
    return sum(path.stat().st_size for path in transcripts(home))


# -- what is measured ----------------------------------------------------------------------------


def floors(home: Path, size: int, repeat: int) -> Iterator[Line]:
    """Yield the cost of each floor."""
    for step in STEPS:
        yield Line(_FLOORS[step], best(repeat, partial(_floor, step, home)), size)


def _floor(step: str, home: Path) -> Cost:
    with scratch() as place:
        return measure(sys.executable, "-m", "benchmarks.floors", step, home, place / "floor.db")


def first_sync(home: Path, repeat: int) -> Line:
    """Return the cost of a sync into a new database, and its size."""
    files = read = stored = 0

    def run() -> Cost:
        nonlocal files, read, stored
        with scratch() as place:
            database = place / "assoc.db"
            cost = program("sync", home, "--db", database)
            stored = database.stat().st_size
            with closing(sqlite3.connect(database)) as connection:
                files, read = connection.execute(
                    "select files_read, bytes_read from sync_runs"
                ).fetchone()
            return cost

    cost = best(repeat, run)
    note = f"{files:,} file{'' if files == 1 else 's'}, database {stored / read:.2f} x source"
    return Line("first sync", cost, read, note)


def later_syncs(home: Path, repeat: int) -> Iterator[Line]:
    """Yield the cost of a sync that finds nothing, and of one that finds ten lines."""
    with scratch() as place:
        database = place / "assoc.db"
        growing = place / "growing"
        shutil.copytree(home_of(_GROWING, is_one_file=True), growing)
        (path,) = transcripts(growing)
        held = _cut_off(path, repeat)
        program("sync", home, growing, "--db", database)

        def nothing() -> Cost:
            return program("sync", home, growing, "--db", database)

        def appended() -> Cost:
            with path.open("ab") as file:
                file.write(held.pop(0))
            return program("sync", home, growing, "--db", database)

        files = len(transcripts(home))
        yield Line("no-op sync", best(2 * repeat, nothing), None, f"{files:,} transcripts")
        yield Line(f"{_APPENDED} lines appended", best(repeat, appended), None, "to 7 MB")


def _cut_off(path: Path, times: int) -> list[bytes]:
    """Cut the last lines off a file, and return them in the pieces in which they come back."""
    lines = path.read_bytes().split(b"\n")
    lines = [line + b"\n" for line in lines if line]
    first = len(lines) - _APPENDED * times
    path.write_bytes(b"".join(lines[:first]))
    starts = range(first, len(lines), _APPENDED)
    return [b"".join(lines[start : start + _APPENDED]) for start in starts]


def startup(repeat: int) -> Iterator[Line]:
    """Yield what it costs to start."""
    for arguments in (("--version",), ("--help",), ("sync", "--help")):
        yield Line(" ".join(arguments), best(3 * repeat, partial(program, *arguments)))


# -- the report ----------------------------------------------------------------------------------


def facts() -> str:
    """Return what one needs to know of the machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{time.strftime('%Y-%m-%d')}, {cores} cores, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def table(title: str, lines: Iterator[Line]) -> str:
    """Return a Markdown table; the first sync is compared with the floor above it."""
    rows = [f"{title}\n", "| | wall | CPU | MB/s | CPU s/GB | peak | x floor | |"]
    rows.append("|---|--:|--:|--:|--:|--:|--:|---|")
    floor = 0.0
    for what, cost, size, note in lines:
        speed = per_gb = ratio = ""
        if size is not None:
            each = cost.cpu / size * 1e9
            speed, per_gb = f"{size / 1e6 / cost.wall:.1f}", f"{each:.1f}"
            if floor and what == "first sync":
                ratio = f"{each / floor:.2f}"
            floor = each
        cells = [what, f"{cost.wall:.2f} s", f"{cost.cpu:.2f} s", speed, per_gb]
        cells += [f"{cost.memory / 1e6:.0f} MB", ratio, note]
        rows.append(f"| {' | '.join(cells)} |")
        print(rows[-1], file=sys.stderr)
    return "\n".join([*rows, ""])


def report(home: Path, repeat: int, *, is_one_file: bool) -> Iterator[Line]:
    """Yield all lines about one home."""
    size = size_of(home)
    yield from floors(home, size, repeat)
    yield first_sync(home, repeat)
    if not is_one_file:
        yield from later_syncs(home, repeat)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what a sync costs.")
    parser.add_argument("--sizes", default="20MB,200MB", help="homes, a comma list")
    parser.add_argument("--one-file", type=parse_size, metavar="SIZE", help="one huge transcript")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="the best of N counts")
    given = parser.parse_args(arguments)
    tables = [f"{facts()}; best of {given.repeat}\n"]
    for name in filter(None, given.sizes.split(",")):
        home = home_of(parse_size(name))
        title = f"A home of {name}"
        tables.append(table(title, report(home, given.repeat, is_one_file=False)))
    if given.one_file:
        home = home_of(given.one_file, is_one_file=True)
        title = f"One transcript of {given.one_file / 1e6:.0f} MB"
        tables.append(table(title, report(home, given.repeat, is_one_file=True)))
    tables.append(table("Starting", startup(given.repeat)))
    print("\n".join(tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())

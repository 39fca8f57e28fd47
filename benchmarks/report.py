"""Measurements as Markdown: tables, the facts of the machine, the file that keeps the results."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import subprocess
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import orjson

from benchmarks.cost import Answer, Line
from benchmarks.homes import BUILD, ROOT
from benchmarks.parts import PARTS
from benchmarks.syncs import FIRST, Run, middle_and_worst

RESULTS = ROOT / "benchmarks" / "results.md"

HEADER = """# Results

Written by `make bench ARGS=--write`, newest first; the [README](README.md) says what is measured.
Machines differ: compare what stands in one section.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all programs of this directory have."""
    parser.add_argument("--build", type=Path, default=BUILD, help="where homes are kept")
    parser.add_argument("--write", action="store_true", help="keep the report in results.md")
    parser.add_argument("--results", type=Path, default=RESULTS, help=argparse.SUPPRESS)
    parser.add_argument("--remark", default="", help="what else one needs to know of the run")


def show(given: argparse.Namespace, about: str, sections: Iterable[str]) -> None:
    """Print the sections below a heading, each as soon as it is there; keep them if asked to."""
    remark = ", ".join(filter(None, (about, given.remark)))
    said = []
    for section in chain([f"{heading()}\n\n{facts(remark)}\n"], sections):
        said.append(section)
        print(section, flush=True)
    if given.write:
        write("\n".join(said), given.results)


def facts(remark: str = "") -> str:
    """Return the line that says on what machine was measured, and what else one needs to know."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    said = [
        f"{cores} cores",
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
        f"orjson {orjson.__version__}",
        *([remark] if remark else []),
    ]
    return ", ".join(said)


def heading() -> str:
    """Return the title of a section of the results: the day and the commit."""
    return f"## {time.strftime('%Y-%m-%d %H:%M')}, {commit()}"


def commit(checkout: Path = ROOT) -> str:
    """Return the commit that is measured, with a + if files were changed since."""
    known = _git(checkout, "rev-parse", "--short=10", "HEAD")
    if not known:
        return "no commit"
    changed = _git(checkout, "status", "--porcelain", "--", "ingest", "schema", "queries")
    return known + "+" * bool(changed)


def _git(checkout: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", checkout, *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the columns with a name are numbers."""
    aligned = ["--:" if name else "---" for name in columns]
    lines = [f"### {title}", "", _row(columns), f"|{'|'.join(aligned)}|"]
    return "\n".join([*lines, *map(_row, rows), ""])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def costs(title: str, floors: Sequence[Line], lines: Sequence[Line]) -> str:
    """Return the table of what was run, the floors first, with ratios to the last of them."""
    columns = ("", "wall", "CPU", "MB/s", "CPU s/GB", "peak", "x floor", "")
    floor = per_gb(floors[-1]) if floors else None
    rows = []
    for line in [*floors, *lines]:
        each = per_gb(line)
        is_ratio = floor and each and line.what in (FIRST, "rebuild", "verify")
        rows.append(
            (
                line.what,
                f"{line.cost.wall:.2f} s",
                f"{line.cost.cpu:.2f} s",
                f"{line.bytes / 1e6 / line.cost.wall:.1f}" if line.bytes else "",
                f"{each:.1f}" if each else "",
                f"{line.cost.memory / 1e6:.0f} MB",
                f"{each / floor:.2f}" if is_ratio and each and floor else "",
                line.note,
            )
        )
    return table(title, columns, rows)


def per_gb(line: Line) -> float | None:
    """Return seconds of processor per GB, None for what has no bytes."""
    return line.cost.cpu / line.bytes * 1e9 if line.bytes else None


def ratios(floors: Sequence[Line], lines: Sequence[Line]) -> str:
    """Return a sentence with the first sync as a multiple of each floor."""
    first = next(line for line in lines if line.what == FIRST)
    whole = per_gb(first) or 0.0
    said = [f"{whole / (per_gb(line) or whole):.1f} x {line.what}" for line in floors]
    clock = floors[-1].cost.wall / (floors[-1].bytes or 1) if floors else 0.0
    on_clock = first.cost.wall / (first.bytes or 1) / clock if clock else 0.0
    return (
        f"The first sync, in seconds of processor per byte: {', '.join(said)}."
        f" On the clock {on_clock:.2f} x the last floor.\n"
    )


def answers(title: str, found: Sequence[Answer]) -> str:
    """Return the table of the questions."""
    rows = [
        (f"{name}, {scope}" if scope else name, f"{cold:.1f}", f"{warm:.2f}", str(count))
        for name, scope, cold, warm, count in found
    ]
    return table(title, ("", "cold ms", "warm ms", "rows"), rows)


def waits(found: Run) -> str:
    """Return the sentence about the watch."""
    middle, worst = middle_and_worst(found.latencies)
    return (
        f"Under `watch`, from an append to its row in the index, {len(found.latencies)} times:"
        f" middle {middle:.0f} ms, worst {worst:.0f} ms.\n"
    )


def sizes(found: Run, source: int) -> str:
    """Return the sentence about the parts of the database, as multiples of the source."""
    if found.parts is None:
        return "This SQLite cannot tell the parts of a database (it is built without dbstat).\n"
    said = [f"{part} {found.parts[part] / source:.2f}" for part in PARTS]
    total = sum(found.parts.values())
    return f"Bytes of the database per byte read: {total / source:.2f} ({', '.join(said)}).\n"


def write(section: str, path: Path = RESULTS) -> None:
    """Put a section above all others in the file of results, which is made if it is missing."""
    old = path.read_text("utf-8").removeprefix(HEADER) if path.exists() else ""
    path.write_text(f"{HEADER}\n{section.strip()}\n{old}", "utf-8")

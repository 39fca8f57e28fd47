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

from benchmarks.homes import BUILD, ROOT

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


def write(section: str, path: Path = RESULTS) -> None:
    """Put a section above all others in the file of results, which is made if it is missing."""
    old = path.read_text("utf-8").removeprefix(HEADER) if path.exists() else ""
    path.write_text(f"{HEADER}\n{section.strip()}\n{old}", "utf-8")

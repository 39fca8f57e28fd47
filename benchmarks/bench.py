"""Measures what everything costs, beside what the same work costs at least.

    python -m benchmarks.bench                          homes of 20 MB and 200 MB
    python -m benchmarks.bench --sizes 1GB --repeat 1
    python -m benchmarks.bench --sizes '' --small-files 10000 --one-file 800MB --write

For each home the floors (see `floors`), and then a whole run (see `syncs`). `--hard` runs the
corpora that have one thing in excess (see `hard`). Prints Markdown; `--write` keeps it in
`results.md`, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import hard, report
from benchmarks.cost import Line, Program, best, measure, scratch
from benchmarks.floors import STEPS
from benchmarks.generate import parse_size
from benchmarks.homes import Homes, size_of
from benchmarks.syncs import Scale, amount, folded, run

_FLOORS = {
    "read": "read the files",
    "parse": "+ parse each line (orjson)",
    "insert": "+ insert, no index",
    "index": "+ full-text index",
}


def floors(homes: Homes, home: Path, repeat: int) -> Iterator[Line]:
    """Yield the cost of each floor."""
    size = size_of(home)
    for step in STEPS:
        with scratch(homes.build) as place:
            costs = [
                measure(
                    *(sys.executable, "-m", "benchmarks.floors", step, home),
                    place / f"floor-{number}.db",
                )
                for number in range(repeat)
            ]
        yield Line(_FLOORS[step], best(costs), size)


def measured(title: str, homes: Homes, home: Path, scale: Scale, repeat: int) -> str:
    """Measure one home, and return its part of the report."""
    least = list(floors(homes, home, repeat))
    with scratch(homes.build) as user:
        program = Program(user)
        found = folded([run(program, homes, home, scale) for _ in range(repeat)])
    source = found.lines[0].bytes or 1
    return "\n".join(
        (
            report.costs(title, least, found.lines),
            report.ratios(least, found.lines),
            report.sizes(found, source),
            report.waits(found),
            report.answers(f"Questions to {title[0].lower()}{title[1:]}", found.answers),
        )
    )


def sections(given: argparse.Namespace) -> Iterator[str]:
    """Yield the parts of the report, each as soon as it is known."""
    homes, scale, repeat = Homes(given.build), scale_of(given), given.repeat
    for name in filter(None, given.sizes.split(",")):
        home = homes.of_size(parse_size(name))
        yield measured(f"A home of {name}", homes, home, scale, repeat)
    if given.small_files:
        home = homes.small_files(given.small_files)
        yield measured(f"{given.small_files:,} files of ten lines", homes, home, scale, repeat)
    if given.one_file:
        home = homes.one_file(given.one_file)
        yield measured(f"One file of {amount(given.one_file)}", homes, home, scale, repeat)
    if given.hard:
        yield hard.report_of(homes, given.hard_share)


def scale_of(given: argparse.Namespace) -> Scale:
    """Return the scale that the options say."""
    return Scale(given.growing, given.chat, given.shown, watched=given.watched)


def scale_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how much is measured."""
    usual = Scale()
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="the best of N counts")
    parser.add_argument("--growing", type=parse_size, default=usual.growing, metavar="SIZE")
    parser.add_argument("--chat", type=int, default=usual.chat, metavar="MESSAGES")
    parser.add_argument("--shown", type=int, default=usual.shown, metavar="MESSAGES")
    parser.add_argument("--watched", type=int, default=usual.watched, metavar="N")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    options = argparse.ArgumentParser(description="Measure what everything costs.")
    options.add_argument("--sizes", default="20MB,200MB", help="homes, a comma list")
    options.add_argument("--small-files", type=int, metavar="N", help="N files of ten lines")
    options.add_argument("--one-file", type=parse_size, metavar="SIZE", help="one huge file")
    options.add_argument("--hard", action="store_true", help="corpora with one thing in excess")
    options.add_argument("--hard-share", type=float, default=1.0, metavar="X", help="of their size")
    scale_options(options)
    report.add_options(options)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep if asked to."""
    given = parser().parse_args(arguments)
    report.show(given, f"best of {given.repeat}", sections(given))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures what everything costs.

    python -m benchmarks.bench                          homes of 20 MB and 200 MB
    python -m benchmarks.bench --sizes 1GB --repeat 1
    python -m benchmarks.bench --sizes 200MB --profile real
    python -m benchmarks.bench --sizes '' --small-files 10000 --one-file 800MB --write

Prints Markdown: for each home, what a whole run costs (see `syncs`). `--write` keeps it in
`results.md`, too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks import report
from benchmarks.cost import Answer, Line, Program, scratch
from benchmarks.generate import PROFILES, parse_size
from benchmarks.homes import Homes
from benchmarks.syncs import Scale, amount, folded, run


def measured(title: str, homes: Homes, home: Path, given: argparse.Namespace) -> str:
    """Measure one home, and return its part of the report."""
    with scratch(homes.build) as user:
        program, scale = Program(user), scale_of(given)
        found = folded([run(program, homes, home, scale) for _ in range(given.repeat)])
    waits = [1000 * seconds for seconds in found.latencies]
    return "\n".join(
        (
            costs(title, found.lines),
            f"Under `watch`, from an append to its row in the index, {len(waits)} times:"
            f" middle {median(waits):.0f} ms, worst {max(waits):.0f} ms.\n",
            answers(f"Questions to {title[0].lower()}{title[1:]}", found.answers),
        )
    )


def costs(title: str, lines: Sequence[Line]) -> str:
    """Return the table of what was run."""
    rows = [
        (
            line.what,
            f"{line.cost.wall:.2f} s",
            f"{line.cost.cpu:.2f} s",
            f"{line.bytes / 1e6 / line.cost.wall:.1f}" if line.bytes else "",
            f"{line.cost.cpu / line.bytes * 1e9:.1f}" if line.bytes else "",
            f"{line.cost.memory / 1e6:.0f} MB",
            line.note,
        )
        for line in lines
    ]
    return report.table(title, ("", "wall", "CPU", "MB/s", "CPU s/GB", "peak", ""), rows)


def answers(title: str, found: Sequence[Answer]) -> str:
    """Return the table of the questions."""
    rows = [
        (f"{name}, {scope}" if scope else name, f"{cold:.1f}", f"{warm:.2f}", str(count))
        for name, scope, cold, warm, count in found
    ]
    return report.table(title, ("", "cold ms", "warm ms", "rows"), rows)


def sections(given: argparse.Namespace) -> Iterator[str]:
    """Yield the parts of the report, each as soon as it is known."""
    homes = Homes(given.build)
    for name in filter(None, given.sizes.split(",")):
        title = f"A home of {name}" + f", profile {given.profile}" * (given.profile != "usual")
        yield measured(title, homes, homes.of_size(parse_size(name), given.profile), given)
    if given.small_files:
        title = f"{given.small_files:,} files of ten lines"
        yield measured(title, homes, homes.small_files(given.small_files), given)
    if given.one_file:
        title = f"One file of {amount(given.one_file)}"
        yield measured(title, homes, homes.one_file(given.one_file), given)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep if asked to."""
    parser = argparse.ArgumentParser(description="Measure what everything costs.")
    parser.add_argument("--sizes", default="20MB,200MB", help="homes, a comma list")
    parser.add_argument("--profile", choices=PROFILES, default="usual", help="of the homes")
    parser.add_argument("--small-files", type=int, metavar="N", help="N files of ten lines")
    parser.add_argument("--one-file", type=parse_size, metavar="SIZE", help="one huge file")
    scale_options(parser)
    report.add_options(parser)
    given = parser.parse_args(arguments)
    report.show(given, f"best of {given.repeat}", sections(given))
    return 0


if __name__ == "__main__":
    sys.exit(main())

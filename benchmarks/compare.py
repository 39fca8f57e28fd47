"""Compares two commits: the same homes, the same measurements, runs in turn.

    make bench-compare BASE=v0.1.0
    make bench-compare BASE=main SIZE=1GB ARGS='--repeat 5'

BASE is checked out into a temporary worktree; what is measured beside it is this checkout as it
stands, changes that are not committed included. Both run with the Python and the libraries that run
this. The two take turns, so that what else the machine does hits both alike; the spread (the worst
run as a multiple of the best, less one) tells how far a ratio can be believed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import report
from benchmarks.bench import scale_of, scale_options
from benchmarks.cost import Cost, Program, measure, scratch
from benchmarks.generate import parse_size
from benchmarks.homes import ROOT, Homes
from benchmarks.syncs import Run, Scale, amount, run


@contextmanager
def checked_out(commit: str, place: Path) -> Iterator[Path]:
    """Yield a worktree of a commit, removed at the end. Raises CalledProcessError if it is none."""
    git = ["git", "-C", str(ROOT), "worktree"]
    adding = [*git, "add", "--quiet", "--detach", str(place), commit]
    subprocess.run(adding, check=True, stdout=subprocess.DEVNULL)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def alternated(
    base: Program, head: Program, homes: Homes, home: Path, scale: Scale, repeat: int
) -> tuple[list[Run], list[Run]]:
    """Return the runs of both; which of them goes first changes every time."""
    runs: tuple[list[Run], list[Run]] = ([], [])
    for number in range(repeat):
        for turn in (0, 1) if number % 2 == 0 else (1, 0):
            runs[turn].append(run((base, head)[turn], homes, home, scale))
    return runs


def compared(base: list[Run], head: list[Run]) -> str:
    """Return the tables: each command and question of both, with ratios and spreads."""
    commands = []
    for place, line in enumerate(head[0].lines):
        costs = [[run.lines[place].cost for run in runs] for runs in (base, head)]
        commands.append([line.what, *_cells(costs[0], costs[1])])
    columns = ["", "base wall", "wall", "x", "spread", "base CPU", "CPU", "x", "spread", "peak x"]
    tables = [report.table("Commands", columns, commands)]
    questions = []
    for place, (name, scope, *_) in enumerate(head[0].answers):
        warm = [[run.answers[place][3] for run in runs] for runs in (base, head)]
        cells = _compared(warm[0], warm[1], "{:.2f}")
        questions.append([f"{name}, {scope}" if scope else name, *cells])
    columns = ["", "base warm ms", "warm ms", "x", "spread"]
    tables.append(report.table("Questions", columns, questions))
    return "\n".join([*tables, "x below 1: this checkout is better than the base.\n"])


def _cells(base: list[Cost], head: list[Cost]) -> tuple[str, ...]:
    peaks = [max(cost.memory for cost in costs) for costs in (base, head)]
    return (
        *_compared([cost.wall for cost in base], [cost.wall for cost in head], "{:.2f} s"),
        *_compared([cost.cpu for cost in base], [cost.cpu for cost in head], "{:.2f} s"),
        f"{peaks[1] / peaks[0]:.2f}",
    )


def _compared(base: list[float], head: list[float], form: str) -> tuple[str, str, str, str]:
    """Return the best of both, their ratio, and the larger of their spreads."""
    spread = max(max(values) / min(values) - 1 for values in (base, head))
    ratio = min(head) / min(base)
    return form.format(min(base)), form.format(min(head)), f"{ratio:.2f}", f"{spread:.0%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description="Compare a commit with this checkout.")
    parser.add_argument("base", help="a commit, branch or tag")
    parser.add_argument("--size", type=parse_size, default="200MB", help="of the home")
    scale_options(parser)
    report.add_options(parser)
    given = parser.parse_args(arguments)
    homes = Homes(given.build)
    home = homes.of_size(given.size)
    with scratch(given.build) as place, checked_out(given.base, place / "base") as checkout:
        for name in ("base", "head"):
            (place / f"{name}-user").mkdir()
        base = Program(place / "base-user", checkout)
        head = Program(place / "head-user")
        for program in (base, head):  # else the first run pays for compiling
            measure(sys.executable, "-m", "compileall", "-q", program.checkout / "ingest")
        runs = alternated(base, head, homes, home, scale_of(given), given.repeat)
        title = f"{report.commit()} against {report.commit(checkout)}, {amount(given.size)}"
        about = f"{title}, best of {given.repeat} runs in turn"
        report.show(given, about, [compared(*runs)])
    return 0


if __name__ == "__main__":
    sys.exit(main())

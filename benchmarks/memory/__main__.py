"""`python -m benchmarks.memory`: measure this program or another one, build a set of cases."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.homes import ROOT

from . import ours
from .case import Case, read, tables, write, wrong
from .published import SOURCES, build, is_repository

SETS = ROOT / "build" / "memory"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, or build a set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    asking = commands.add_parser("ask", help="measure this program")
    asking.add_argument("sets", nargs="*", type=Path, metavar="SET", help="sets that were built")
    asking.add_argument("--most", type=int, metavar="N", help="N cases of each kind of a set")
    asking.add_argument("--answers", type=Path, metavar="FILE", help="keep what was answered, too")
    report.add_options(asking)

    scoring = commands.add_parser("score", help="measure the answers of another program")
    scoring.add_argument("answers", nargs="+", type=Path, metavar="ANSWERS")
    report.add_options(scoring)

    building = commands.add_parser("build", help="make a set of a repository with its transcripts")
    building.add_argument("source", metavar="OWNER/NAME", help=f"such as {', '.join(SOURCES)}")
    building.add_argument("--from", dest="given", type=Path, metavar="CLONE",
                          help="a clone that has all branches; else it is cloned now")  # fmt: skip
    building.add_argument("--to", type=Path, default=SETS, metavar="DIRECTORY")

    given = parser.parse_args(arguments)
    if given.command == "build":
        if not is_repository(given.source):
            parser.error(f"{given.source} is no OWNER/NAME, such as {SOURCES[0]}.")
        try:
            place = build(given.source, given.to, given.given)
        except subprocess.CalledProcessError as failed:
            parser.exit(1, f"Nothing was built: {shlex.join(map(str, failed.cmd))} failed.\n")
        print(f"{place}: {_counted(read(place / 'cases.jsonl'))}")
    elif given.command == "score":
        _show(given, {path.stem: read(path) for path in given.answers})
    else:
        answers = {"by hand": ours.by_hand(given.build)}
        answers |= {place.name: ours.of_set(place, given.build, given.most) for place in given.sets}
        if given.answers:
            write(given.answers, [one for some in answers.values() for one in some])
        _show(given, answers)
    return 0


def _show(given: argparse.Namespace, answers: dict[str, list[Case]]) -> None:
    """Print what answers are worth, and which of those that a person can look at are wrong."""
    about = "; ".join(f"{name}: {_counted(some)}" for name, some in answers.items())
    pages = [page for name, some in answers.items() for page in tables(name, some)]
    report.show(given, about, [*pages, _wrong(next(iter(answers.values())))])


def _counted(cases: Sequence[Case]) -> str:
    kinds = list(dict.fromkeys(case.kind for case in cases))
    return ", ".join(f"{sum(one.kind == kind for one in cases)} {kind}" for kind in kinds)


def _wrong(answers: Sequence[Case]) -> str:
    rows = [
        [one.kind, f"`{one.query.splitlines()[0]}`", str(one.rank or "not found")]
        for one in wrong(answers)
    ]
    return report.table("Wrong", ["", "", "rank"], rows)


if __name__ == "__main__":
    sys.exit(main())

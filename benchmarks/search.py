"""How well searches answer: questions with known answers, asked through the program's own search.

    make bench-search                               a table by kind, and what failed
    make bench-search ARGS='--beside 200MB'         among the conversations of a generated home

The cases are the lines of `questions/cases.jsonl`; the README says how they were written. They are
asked over the demonstration homes of the tests, and over the published transcripts below the
directory that ASSOC_REAL_CORPUS names; without it, the cases about those are skipped and counted.
Exits with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from assoc_ingest.ask import matches
from assoc_ingest.ask.search import find
from assoc_ingest.store.database import open_reader
from benchmarks import report
from benchmarks.asking import measured
from benchmarks.cost import Program, scratch
from benchmarks.generate import parse_size
from benchmarks.homes import ROOT, Homes

NOTHING = "nothing"
"""Questions whose honest answer is that nothing is known of it."""
CASES = ROOT / "benchmarks" / "questions" / "cases.jsonl"
KINDS = ("question", "identifier", "keyword", "cjk", "filter", NOTHING)
TARGETS = {
    ("question", "recall@5"): 0.9,
    ("question", "MRR"): 0.75,
    ("question", "certain"): 0.9,
    ("identifier", "verbatim"): 0.95,
    (NOTHING, "certain"): 0.8,
}

Ranking = list[tuple[str, str]]
"""Conversations, best first: the session key, and the text that the first hit shows."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query and what has to be found."""

    kind: str
    query: str
    home: str
    """Where its conversations are: `demo` or `corpus`."""
    right: tuple[str, ...] = ()
    """Keys of the sessions that answer it."""
    also: tuple[str, ...] = ()
    """Keys of sessions that have something to do with it."""
    absent: tuple[str, ...] = ()
    """Keys of sessions that must not be among the first ten."""
    literal: str = ""
    """What the first hit of an identifier must show; the query, if nothing is given."""
    held_out: bool = False
    """Not looked at while the search is tuned."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search answered to a case."""

    case: Case
    ranking: Ranking
    evidence: str = "strong"
    cold: float = 0.0
    """Milliseconds on a new connection, with the database out of the page cache."""
    warm: float = 0.0
    """Milliseconds of the best repetition."""

    @property
    def keys(self) -> list[str]:
        """Return the session keys, best first."""
        return [key for key, _ in self.ranking]

    @property
    def rank(self) -> int | None:
        """Return the place of the first right conversation, from 1."""
        return next((n for n, key in enumerate(self.keys, 1) if key in self.case.right), None)

    def recall(self, first: int) -> float:
        """Return the share of the right conversations among the `first`, as far as they fit."""
        found = set(self.keys[:first]) & set(self.case.right)
        return len(found) / min(first, len(self.case.right)) if found else 0.0

    @property
    def gain(self) -> float:
        """Return NDCG@10; a right conversation counts two, one that has to do with it one."""
        grades = dict.fromkeys(self.case.also, 1) | dict.fromkeys(self.case.right, 2)
        best = sorted(grades.values(), reverse=True)
        found = [grades.get(key, 0) for key in self.keys]
        return _discounted(found[:10]) / _discounted(best[:10]) if best else 0.0

    @property
    def is_certain(self) -> bool:
        """Whether the search calls the evidence strong just where there is an answer."""
        return (self.evidence == "strong") == bool(self.case.right)

    @property
    def is_verbatim(self) -> bool:
        """Whether the first hit shows the literal; case and line breaks don't matter."""
        shown = self.ranking[0][1] if self.ranking else ""
        return _folded(self.case.literal or self.case.query) in _folded(shown)

    @property
    def has_failed(self) -> bool:
        """Whether a user would say that the search did not find it."""
        if self.case.kind == "identifier":
            return not self.is_verbatim
        if not self.case.right:
            return not self.is_certain
        is_wrong = not set(self.keys[:10]).isdisjoint(self.case.absent)
        return is_wrong or self.rank is None or self.rank > 5


def _discounted(grades: Iterable[int]) -> float:
    return sum(grade / math.log2(place + 1) for place, grade in enumerate(grades, 1))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def cases(path: Path = CASES) -> list[Case]:
    """Return all cases. Raises TypeError for a field that a case does not have."""
    return [_case(json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def _case(line: dict[str, Any]) -> Case:
    lists = {name: tuple(value) for name, value in line.items() if isinstance(value, list)}
    return Case(**{**line, **lists})


def conversations(connection: sqlite3.Connection, query: str) -> tuple[Ranking, str]:
    """Return what the user of `search` is shown for a query, by conversation, and the evidence.

    A hit that belongs to no conversation is left out.
    """
    result = find(connection, query).read(10)
    ranking = [
        (group.session_key, matches.plain(group.best.snippet)[0])
        for group in result.groups
        if group.session_key
    ]
    return ranking, result.evidence


def homes() -> dict[str, list[Path]]:
    """Return the homes that are there, by the name that cases have for them."""
    known = {"demo": ROOT / "tests" / "demo"}
    if corpus := os.environ.get("ASSOC_REAL_CORPUS"):
        known["corpus"] = Path(corpus) / "homes"
    return {name: sorted(place.iterdir()) for name, place in known.items() if place.is_dir()}


def outcomes_of(database: Path, some: Sequence[Case]) -> list[Outcome]:
    """Ask each case: once for the answer, and again for what it costs, cold and warm."""

    def counting(case: Case) -> Callable[[sqlite3.Connection], int]:
        return lambda connection: len(conversations(connection, case.query)[0])

    with closing(open_reader(database)) as connection:
        answers = [conversations(connection, case.query) for case in some]
    costs = measured(database, {(case.query, case.kind): counting(case) for case in some})
    return [
        Outcome(case, *answer, cost.cold, cost.warm)
        for case, answer, cost in zip(some, answers, costs, strict=True)
    ]


def summary(some: Sequence[Outcome]) -> dict[str, int | float]:
    """Return what is measured, of at least one outcome."""
    return {
        "cases": len(some),
        **{f"recall@{n}": mean(one.recall(n) for one in some) for n in (1, 5, 10)},
        "MRR": mean(1 / one.rank if one.rank else 0.0 for one in some),
        "NDCG@10": mean(one.gain for one in some),
        "verbatim": mean(float(one.is_verbatim) for one in some),
        "certain": mean(float(one.is_certain) for one in some),
        "empty": sum(not one.ranking for one in some),
        "failed": sum(one.has_failed for one in some),
        "cold ms": median(one.cold for one in some),
        "worst cold": max(one.cold for one in some),
        "warm ms": median(one.warm for one in some),
        "worst warm": max(one.warm for one in some),
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a row for each kind, and below it one for those of its cases that are held out."""
    rows = []
    for kind in KINDS:
        of_kind = [one for one in outcomes if one.case.kind == kind]
        held_out = [one for one in of_kind if one.case.held_out]
        for what, some in ((kind, of_kind), (f"{kind}, held out", held_out)):
            if some:
                cells = (_cell(kind, *pair) for pair in summary(some).items())
                rows.append([what, *cells])
    return report.table("Searches", ["", *(summary(outcomes) if outcomes else ())], rows)


def _cell(kind: str, name: str, value: float) -> str:
    if name == "verbatim" and kind != "identifier":
        return ""
    if kind == NOTHING and name in ("recall@1", "recall@5", "recall@10", "MRR", "NDCG@10"):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.2f}"


def failures(outcomes: Sequence[Outcome]) -> str:
    """Return the cases that failed, without those that are held out."""
    rows = [
        [one.case.kind, f"`{one.case.query}`", str(one.rank or "not found")]
        for one in outcomes
        if one.has_failed and not one.case.held_out
    ]
    return report.table("Failed, but for what is held out", ["", "", "rank"], rows)


def missed(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each target that is missed; a kind without cases misses none.

    How certain a search is depends on rare words. The demonstration alone has too few messages.
    """
    found = []
    has_rare_words = any(one.case.kind == NOTHING for one in outcomes)
    for (kind, name), target in TARGETS.items():
        some = [one for one in outcomes if one.case.kind == kind]
        if name == "certain" and not has_rare_words:
            continue
        if some and (value := summary(some)[name]) < target:
            found.append(f"Missed: {name} of {kind}s is {value:.2f}, and should be {target:.2f}.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print, and keep if asked to; return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description="Measure how well searches answer.")
    parser.add_argument("--beside", type=parse_size, metavar="SIZE", help="a generated home, too")
    report.add_options(parser)
    given = parser.parse_args(arguments)
    known = homes()
    roots = [root for some in known.values() for root in some]
    if given.beside:
        roots.append(Homes(given.build).of_size(given.beside))
    all_cases = cases()
    asked = [case for case in all_cases if case.home in known]
    with scratch(given.build) as user, scratch(given.build) as place:
        Program(user).run("sync", *roots, "--db", place / "assoc.db")
        outcomes = outcomes_of(place / "assoc.db", asked)
    skipped = len(all_cases) - len(asked)
    report.show(
        given,
        f"{len(asked)} cases, {skipped} skipped because their homes are not there",
        [table(outcomes), failures(outcomes), *missed(outcomes)],
    )
    return 1 if missed(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())

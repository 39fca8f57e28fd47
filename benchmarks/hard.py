"""Corpora that have one thing in excess: what a tool meets once, and then never forgets.

Each is synced in half its size and whole. Memory must stay below `LIMIT`, and time must grow with
the bytes: a whole corpus takes twice as long as half of it, not four times.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks import report
from benchmarks.cost import Cost, Program, scratch
from benchmarks.homes import Homes, size_of

LIMIT = 300_000_000
"""Bytes of memory that a sync of any of them may take."""


class Hard(NamedTuple):
    """A corpus: what it is, the kind and the amount for `plain`."""

    what: str
    kind: str
    amount: int


CORPORA = (
    Hard("one line of words", "line", 60_000_000),
    Hard("files of one line", "files", 100_000),
    Hard("messages of one word", "words", 1_000_000),
    Hard("one text without a space", "solid", 20_000_000),
)


def report_of(homes: Homes, share: float = 1.0) -> str:
    """Sync all of them, scaled by `share`, and return the table."""
    rows = []
    for corpus in CORPORA:
        amount = int(corpus.amount * share)
        (half, small), (whole, size) = (
            _synced(homes, corpus.kind, amount // part) for part in (2, 1)
        )
        rows.append(
            (
                f"{corpus.what}: {amount:,}",
                f"{size / 1e6:.1f} MB",
                f"{whole.wall:.2f} s",
                f"{whole.cpu:.2f} s",
                f"{size / 1e6 / whole.wall:.1f}",
                f"{whole.cpu / half.cpu / (size / small):.2f}",
                f"{half.memory / 1e6:.0f} MB",
                f"{whole.memory / 1e6:.0f} MB",
                "" if whole.memory <= LIMIT else f"over {LIMIT / 1e6:.0f} MB",
            )
        )
    columns = (
        "", "source", "wall", "CPU", "MB/s", "CPU a byte, whole : half", "peak of half", "peak", "",
    )  # fmt: skip
    return report.table("Hard corpora, first sync", columns, rows)


def _synced(homes: Homes, kind: str, amount: int) -> tuple[Cost, int]:
    home = homes.plain(kind, amount)
    with scratch(homes.build) as place:
        cost = Program(place).run("sync", home, "--db", place / "assoc.db")
    return cost, size_of(home)

"""Keeps the generated home on its measured shares.

Two kinds of book-keeping.  *Owed* lines: the share of each line kind in its era is a target, and
whoever stands at a place where such a line may come asks how many are missing.  *Due* events: a
thing that happens at some rate is asked for each time it could happen; it happens early once, so
that the smallest home has it, and then evenly at its rate.
"""

from __future__ import annotations

import zlib
from collections import Counter

from . import shapes


class Ledger:
    """Counts lines and events, and says what is missing."""

    def __init__(self, profile: shapes.Profile) -> None:
        self._weights = profile.eras
        self._shares = profile.lines
        self.lines: dict[str, Counter[str]] = {era.name: Counter() for era in shapes.ERAS}
        self.bytes: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self._totals: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._given: Counter[str] = Counter()

    def count(self, era: str, kind: str, size: int) -> None:
        """Book a line of *size* bytes."""
        self.lines[era][kind] += 1
        self._totals[era] += 1
        self.bytes[era] += size

    def owed(self, era: str, kind: str, most: int = 1) -> int:
        """How many lines of *kind* its era lacks, at most *most*."""
        share = self._shares[era].get(kind, 0.0) / 100
        missing = share * self._totals[era] - self.lines[era][kind]
        return min(most, int(missing) + 1) if missing > 0 else 0

    def due(self, event: str, rate: float, spread: int = 3) -> bool:
        """Whether *event* happens now; its first time is among the first *spread* questions."""
        if rate <= 0:
            return False
        self._asked[event] += 1
        first = 1 + zlib.crc32(event.encode()) % spread
        asked = self._asked[event]
        if asked < first or self._given[event] > rate * (asked - first):
            return False
        self._given[event] += 1
        return True

    def totals(self) -> dict[str, int]:
        """Lines by era."""
        return dict(self._totals)

    def next_era(self) -> shapes.Era:
        """The era whose bytes are furthest behind their share."""
        return min(
            shapes.ERAS, key=lambda era: (self.bytes[era.name] + 1) / self._weights[era.name]
        )

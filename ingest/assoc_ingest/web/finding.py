"""Find in a conversation, over all its pages: where the page stands among the matches, and marks.

A match is a message that holds all words of the query. Those of subagents come behind those of the
conversation itself, and lead to the pages of the subagents.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..ask.find_within import Found
from .entries import Entry
from .marks import marked
from .permalinks import Place

LONGEST = 300
"""Letters of a query: it is in every link of the page."""

_MOST_MARKED = 500_000  # letters of a page that are looked through for words to mark

Order = tuple[int, int, int, int]


class Finding(NamedTuple):
    """What a page says of what was looked for."""

    total: int
    number: int | None
    """Which of the matches the page was opened at, from 1."""
    before: str | None
    """What opens the match before this place."""
    behind: str | None
    notes: Sequence[str]


class Finder:
    """Knows the order of the matches in a conversation with these files, and what opens each."""

    def __init__(self, found: Found, files: Sequence[int], address: Callable[[Place], str]) -> None:
        self._found = found
        self._address = address
        self._ranks = {file: rank for rank, file in enumerate(files)}
        self._orders = sorted(self._order(match[:3]) for match in found.matches)
        self._ids = {match.id for match in found.matches}

    def at(self, place: Place, *, is_line: bool) -> Finding:
        """Return what a page says that was opened at a place, of which the block may be unknown."""
        order = self._order(place)
        first = bisect_left(self._orders, order)
        here = self._orders[first] if first < len(self._orders) else None
        is_here = here is not None and (here == order or (is_line and here[:3] == order[:3]))
        return Finding(
            len(self._orders),
            first + 1 if is_here else None,
            self._opens(first - 1),
            self._opens(first + is_here),
            self._found.notes,
        )

    def behind(self, place: Place | None) -> str | None:
        """Return what opens the first match behind a place, or the first of all."""
        number = bisect_right(self._orders, self._order(place)) if place else 0
        return self._opens(number) or self._opens(0)

    def mark(self, entries: Iterable[Entry]) -> None:
        """Mark what was looked for in those of the entries that are matches; they are unfolded."""
        room = _MOST_MARKED
        look = self._found.marker.spans
        for entry in entries:
            if self._ids.isdisjoint((entry.id, *entry.ids)):
                continue
            entry.is_open = True
            room -= len(entry.body) + len(entry.result or "")
            if room < 0:
                continue
            entry.body = marked(entry.body, look)
            entry.summary = marked(entry.summary, look)
            if entry.result is not None:
                entry.result = marked(entry.result, look)

    def _opens(self, number: int) -> str | None:
        if not 0 <= number < len(self._orders):
            return None
        return self._address(Place(*self._orders[number][1:]))

    def _order(self, place: Place | tuple[int, int, int]) -> Order:
        file, offset, block = place
        return self._ranks.get(file, len(self._ranks)), file, offset, block

"""Find in a conversation, over all its pages: the matches before and after the page.

A match is a message that contains all words of the query. Its words are marked. Matches in
subagents come after those in the conversation itself, and link to the pages of the subagents.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ..ask.excerpt import FindResult
from .entries import Entry
from .html import marked_html
from .urls import BlockPlace

LONGEST = 300
"""Letters of a query: it is in every link of the page."""

_MOST_MARKED = 500_000  # letters of a page that are looked through for words to mark

Order = tuple[int, int, int, int]


class Finding(NamedTuple):
    """The matches of a search in the conversation, as its page shows them."""

    total: int
    number: int | None
    """The number of the match that the page was opened at, from 1."""
    before: str | None
    """The address of the match before this place."""
    behind: str | None
    notes: Sequence[str]


class Finder:
    """The matches in a conversation in order, with the address of each."""

    def __init__(
        self, matches: FindResult, files: Sequence[int], address: Callable[[BlockPlace], str]
    ) -> None:
        self._found = matches
        self._address = address
        self._ranks = {file: rank for rank, file in enumerate(files)}
        self._orders = sorted(self._order(match[:3]) for match in matches.matches)
        self._ids = {match.id for match in matches.matches}

    def at(self, place: BlockPlace, *, is_line: bool) -> Finding:
        """Return the matches around a place, whose block may be unknown."""
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

    def behind(self, place: BlockPlace | None) -> str | None:
        """Return the address of the first match after a place, or of the first of all."""
        number = bisect_right(self._orders, self._order(place)) if place else 0
        return self._opens(number) or self._opens(0)

    def mark(self, entries: Iterable[Entry]) -> None:
        """Unfold the entries that are matches, and mark the words in them."""
        room = _MOST_MARKED
        look = self._found.marker.spans
        for entry in entries:
            if self._ids.isdisjoint((entry.id, *entry.ids)):
                continue
            entry.is_open = True
            room -= len(entry.body) + len(entry.result or "")
            if room < 0:
                continue
            entry.body = marked_html(entry.body, look)
            entry.summary = marked_html(entry.summary, look)
            if entry.result is not None:
                entry.result = marked_html(entry.result, look)

    def _opens(self, number: int) -> str | None:
        if not 0 <= number < len(self._orders):
            return None
        return self._address(BlockPlace(*self._orders[number][1:]))

    def _order(self, place: BlockPlace | tuple[int, int, int]) -> Order:
        file, offset, block = place
        return self._ranks.get(file, len(self._ranks)), file, offset, block

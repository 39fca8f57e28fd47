"""Limits how much one page shows: conversations can be huge, and any part may be hostile.

A page has as many letters, as much Markdown and as many comparisons of lines as a browser and a
reader can bear. Each text on it takes its share; what finds nothing left is shown shorter or
plainer, and the page says so. The rest is a click away, in the row.
"""

from __future__ import annotations

LETTERS = 1_500_000
"""Of stored text on a page."""

PIECES = 20_000
"""Lines of differences, values and other pieces, which cost more than their letters."""

LAID_OUT = 200_000
"""Letters of Markdown, and cells of tables in it, that are laid out on a page."""

COMPARISONS = 4_000_000
"""Pairs of lines that are compared on a page."""


class Budget:
    """What is left for a page."""

    context: int = 3
    """Unchanged lines around each change of a difference."""

    def __init__(self) -> None:
        self._letters = LETTERS
        self._pieces = PIECES
        self._laid_out = LAID_OUT
        self._comparisons = COMPARISONS

    def beginning(self, text: str, most: int) -> str:
        """Return the beginning of a text, at most so many letters and what the page has left."""
        shown = text[: min(most, self._letters)]
        self._letters -= len(shown)
        return shown

    def pieces(self, count: int, most: int) -> int:
        """Return how many pieces of so many may be shown, at most `most`; they are taken."""
        some = min(count, most, self._pieces)
        self._pieces -= some
        return some

    def lays_out(self, cost: int) -> bool:
        """May Markdown of this cost be laid out? If so, it is taken."""
        if cost > self._laid_out:
            return False
        self._laid_out -= cost
        return True

    def compares(self, pairs: int) -> bool:
        """May so many more pairs of lines be compared?"""
        self._comparisons -= pairs
        return self._comparisons >= 0


class WholeText(Budget):
    """The budget of a file to keep: every text is whole; only what is laid out is bounded."""

    context = 1_000_000

    def __init__(self) -> None:
        super().__init__()
        self._laid_out = 20 * LAID_OUT

    def beginning(self, text: str, most: int) -> str:
        """Return the text."""
        return text

    def pieces(self, count: int, most: int) -> int:
        """Return the count."""
        return count

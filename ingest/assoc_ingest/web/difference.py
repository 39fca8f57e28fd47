"""What changed between two texts, line by line, with a few lines around it.

Comparing takes time that grows with the square of lines that are alike, or worse: three edits of
some hundred equal lines are tens of millions of comparisons. They are counted while they are made,
and where there are too many, old and new lines stand one behind the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import Match, SequenceMatcher
from itertools import accumulate, chain

from .budget import Budget

MOST_LINES = 1_500
"""Lines of both texts together that are compared."""

Row = tuple[str, str]
"""A sign and a line: `-` what was, `+` what is, a space what stayed, `…` what is left out."""


class TooMuchError(Exception):
    """The two texts are too long or too much alike to compare."""


def compared(before: list[str], after: list[str], budget: Budget) -> list[Row]:
    """Return what changed. Raises TooMuchError."""
    if not before or not after:
        return one_behind_the_other(before, after)
    if len(before) + len(after) > MOST_LINES:
        raise TooMuchError
    rows = list(_rows(before, after, _Matcher(before, after, budget), budget.context))
    return rows or [(" ", line) for line in before]  # nothing changed


def one_behind_the_other(before: list[str], after: list[str]) -> list[Row]:
    """Return all lines that were, and all that are."""
    return list(chain((("-", line) for line in before), (("+", line) for line in after)))


def _rows(
    before: list[str], after: list[str], matcher: SequenceMatcher[str], context: int
) -> Iterator[Row]:
    for number, group in enumerate(matcher.get_grouped_opcodes(context)):
        if number:
            yield "…", ""
        for kind, first, last, start, stop in group:
            if kind == "equal":
                yield from ((" ", line) for line in before[first:last])
            else:
                yield from (("-", line) for line in before[first:last])
                yield from (("+", line) for line in after[start:stop])


class _Matcher(SequenceMatcher[str]):
    """Counts what it compares before it does."""

    def __init__(self, before: list[str], after: list[str], budget: Budget) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._budget = budget
        # A line is held against each equal line of the other text, wherever that stands.
        alike = Counter(after)
        self._pairs_before = [0, *accumulate(1 + alike[line] for line in before)]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> Match:
        pairs = self._pairs_before[-1 if ahi is None else ahi] - self._pairs_before[alo]
        if not self._budget.compares(pairs):
            raise TooMuchError
        return super().find_longest_match(alo, ahi, blo, bhi)

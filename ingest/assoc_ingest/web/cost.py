"""What responses cost together, as pages show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .. import humanize


class Cost(NamedTuple):
    """The cost of responses, of which some may be unpriced or partial. Its text is for people."""

    dollars: float = 0.0
    """Of those with a price."""
    responses: int = 0
    unpriced: int = 0
    partial: int = 0

    def __str__(self) -> str:
        if self.responses and self.unpriced == self.responses:
            return humanize.money(None)
        return humanize.money(self.dollars, self.partial, self.unpriced)


def together(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    return Cost(*map(sum, zip(*costs, strict=True)))

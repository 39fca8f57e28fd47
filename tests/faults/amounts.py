"""How much is tried: `make faults` tries a hundred times as much, `FUZZ_SECONDS` fuzzes longer."""

from __future__ import annotations

import os

SCALE = float(os.environ.get("ASSOC_FAULTS", "0.1"))
"""By how much every number of kills, faults and images is multiplied."""

NEAR = range(-1, 2) if SCALE < 1 else range(-3, 4)
"""Statements around the begin or the end of a transaction before which something is killed."""

FUZZ_SECONDS = float(os.environ.get("FUZZ_SECONDS", "1"))
"""Seconds that each parser is fuzzed."""


def times(number: int, least: int = 2) -> int:
    """Return how often to try something that is tried `number` times with `ASSOC_FAULTS=1`."""
    return max(least, round(number * SCALE))


def spread(last: int, number: int) -> list[int]:
    """Return up to `number` whole numbers from 1 to `last`, evenly spread, both ends included."""
    if number >= last:
        return list(range(1, last + 1))
    return sorted({1 + round(step * (last - 1) / (number - 1)) for step in range(number)})

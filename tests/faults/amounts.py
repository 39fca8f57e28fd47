"""How much is tried: `ASSOC_FAULTS=10` makes it ten times as much, `FUZZ_SECONDS` a long fuzz."""

from __future__ import annotations

import os

SCALE = int(os.environ.get("ASSOC_FAULTS", "1"))
"""By how much every number of kills, faults and images is multiplied."""

FUZZ_SECONDS = float(os.environ.get("FUZZ_SECONDS", "10"))
"""Seconds that each parser is fuzzed."""


def times(number: int) -> int:
    """Return the number of times to try something that CI tries `number` times."""
    return number * SCALE


def spread(last: int, number: int) -> list[int]:
    """Return up to `number` whole numbers from 1 to `last`, evenly spread, both ends included."""
    if number >= last:
        return list(range(1, last + 1))
    return sorted({1 + round(step * (last - 1) / (number - 1)) for step in range(number)})

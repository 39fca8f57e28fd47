"""The files of the golden cases, whose lines are damaged by `assoc_ingest.testing.damage`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assoc_ingest.sources import SOURCES
from assoc_ingest.testing.damage import Fixture, fixtures_in

TESTS = Path(__file__).parents[1]


@cache
def fixtures(name: str) -> tuple[Fixture, ...]:
    """Return all files of all golden cases that a source reads."""
    homes = [*sorted(TESTS.glob("sources/*/*/home")), TESTS / "demo" / name]
    return tuple(file for home in homes if home.is_dir() for file in fixtures_in(home, name))


FUZZED = [name for name in SOURCES if fixtures(name)]
"""The sources of which golden cases have lines."""

IN_FILES = [name for name in FUZZED if not any(one.claim.within for one in fixtures(name))]
"""Those whose lines are in files as they are."""

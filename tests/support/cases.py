"""The golden cases: a small home for each thing that a format knows, and what its tables are.

`tests/sources/<source>/<case>/home` is what lies on disk; the folder's name says what it shows.
`expected.json` beside it holds the rows: without ids, without columns that are null, flags that
are 0, and references that repeat the file's own session and subagent. Rows of a file are listed
under its path, and a place in the same file is written without it. A database is the SQL that makes
it: `opencode.db.sql`.

`tests/sources/<source>/source.json` says what the tests of all sources need to know of this one:
`private`, what is never opened in its home; `expressions`, the texts of `hostile.py` that are worst
for its regular expressions; `is_called_like_a_word`, that its name is found in any text;
`states_no_tokens`, that its agent writes none down.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assoc_ingest.testing.promises import copied

DEMO = Path(__file__).parents[1] / "demo"
"""A home of each system, as the documentation shows them."""

SOURCES = Path(__file__).parents[1] / "sources"
CASES = sorted(
    (str(case.parent.relative_to(SOURCES)) for case in SOURCES.glob("*/*/home")), key=str.lower
)

SHOWN = "demonstration"
"""The case of a source that shows what it is for, with `answers.json` beside it."""

_GROUP = 13  # cases: enough that the fixed cost of a sync is shared, few enough for all processes

GROUPS = {
    f"{source}-{first}": cases[first : first + _GROUP]
    for source, cases in (
        (source, [case for case in CASES if case.split("/")[0] == source])
        for source in sorted({case.split("/")[0] for case in CASES})
    )
    for first in range(0, len(cases), _GROUP)
}
"""Cases of one source whose homes are the roots of one sync, for what must hold of any home: a
sync of one small home costs as much as one of ten. What a case itself shows is compared case by
case (`test_golden`)."""

_FEW = ("claude-52", "cortex-0", "opencode-0")

of_groups = pytest.mark.parametrize(
    "group",
    [pytest.param(group, marks=() if group in _FEW else pytest.mark.slow) for group in GROUPS],
)
"""Tests all groups, of which a run without slow tests has a few: logs, documents, a database."""


def told_by_sources(key: str) -> dict[str, Any]:
    """Return what the `source.json` of each source says under this key, by source."""
    told = {}
    for path in sorted(SOURCES.glob("*/source.json")):
        facts = json.loads(path.read_text("utf-8"))
        if key in facts:
            told[path.parent.name] = facts[key]
    return told


def home_of(case: str, place: Path, name: str = "home") -> Path:
    """Copy the home of a case to `place` and return where it is."""
    return copied(SOURCES / case, place / name)


def homes_of(group: str, place: Path) -> list[Path]:
    """Copy the homes of a group to `place` and return where they are, each named after its case."""
    return [home_of(case, place, case.replace("/", "-")) for case in GROUPS[group]]


def expected(case: str) -> Path:
    return SOURCES / case / "expected.json"

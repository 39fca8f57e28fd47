"""What lies on disk becomes the rows that the format reference says.

The cases and what they show: `tests/sources`. After `pytest --golden`, read the difference: it is
right when the format says so, and not because the program does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cases import CASES, expected, home_of, readable
from tests.dump import check, dump

from assoc_ingest.sync import sync


@pytest.mark.parametrize("case", CASES)
def test_a_home_becomes_the_expected_rows(
    case: str, fresh: Callable[[], Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    home, database = home_of(case, tmp_path), fresh()
    sync(database, [home])
    check(database, home)
    shown = readable(dump(database))
    if request.config.getoption("--golden"):
        expected(case).write_text(shown, "utf-8")
    assert json.loads(shown) == json.loads(expected(case).read_text("utf-8"))
    assert shown == expected(case).read_text("utf-8"), "only the layout differs: run --golden"

"""What lies on disk becomes the rows that the format reference says.

The cases and what they show: `tests/sources`. After `pytest --golden`, read the difference: it is
right when the format says so, and not because the program does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cases import CASES, expected, home_of

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect, dump, readable

SECRETS = "claude/secrets-stay-in-the-archive"


@pytest.mark.parametrize("case", CASES)
def test_a_home_becomes_the_expected_rows(
    case: str, fresh: Callable[[], Path], place: Path, request: pytest.FixtureRequest
) -> None:
    home, database = home_of(case, place), fresh()
    sync(database, [home])
    check(database, home)
    shown = readable(dump(database))
    if request.config.getoption("--golden"):
        expected(case).write_text(shown, "utf-8")
    assert json.loads(shown) == json.loads(expected(case).read_text("utf-8"))
    assert shown == expected(case).read_text("utf-8"), "only the layout differs: run --golden"


def test_no_secret_is_anywhere_but_in_the_archive(fresh: Callable[[], Path], place: Path) -> None:
    home, database = home_of(SECRETS, place), fresh()
    assert b"SECRET" in b"".join(path.read_bytes() for path in home.rglob("*.jsonl"))
    sync(database, [home])
    connection = connect(database)
    tables = [name for (name,) in connection.execute("select name from pragma_table_list")]
    for table in ("archive", "sqlite_schema", "_sqlite_migrations"):  # a table is called so
        tables.remove(table)
    for table in tables:
        for row in connection.execute(f'select * from "{table}"'):
            assert "secret" not in repr(tuple(row)).lower(), table
    connection.close()

"""What follows from rows is tested on rows: a handful, in an empty database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.support.rows import Rows


@pytest.fixture
def empty(template: Path) -> Iterator[Callable[[], Rows]]:
    """Makes empty databases, for what must not depend on the order of rows."""
    with ExitStack() as stack:

        def make() -> Rows:
            connection = sqlite3.connect(":memory:", isolation_level=None)
            stack.enter_context(closing(connection))
            with closing(sqlite3.connect(template)) as migrated:
                migrated.backup(connection)
            connection.execute("pragma foreign_keys = on")
            return Rows(connection)

        yield make


@pytest.fixture
def rows(empty: Callable[[], Rows]) -> Rows:
    """One empty database."""
    return empty()


@pytest.fixture
def file(rows: Rows) -> int:
    """The transcript of a session."""
    return rows.session("one")[1]

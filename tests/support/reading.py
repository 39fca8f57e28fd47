"""A small index to read from: rows are inserted as they would be after a sync.

The reading side is tested against these rows and not against transcripts, so that a test says
exactly what is in the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.rows import Rows

from assoc_ingest.store.database import open_reader, writing
from assoc_ingest.store.fts import MESSAGE_COLUMNS


@contextmanager
def index(path: Path) -> Iterator[Rows]:
    """Make a database at `path`, let the caller fill it, and index its messages."""
    with writing(path) as connection:
        yield Rows(connection)
        for statement in (
            f"insert into messages_fts (rowid, {MESSAGE_COLUMNS})"
            f" select id, {MESSAGE_COLUMNS} from messages",
            f"insert into messages_cjk_fts (rowid, {MESSAGE_COLUMNS})"
            f" select id, {MESSAGE_COLUMNS} from messages_cjk",
        ):
            connection.execute(statement)


def reader(path: Path) -> sqlite3.Connection:
    """Open the database as the commands do."""
    return open_reader(path)

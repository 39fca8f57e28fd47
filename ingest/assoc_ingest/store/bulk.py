"""How much a writer's connection keeps in memory and in the log, for few changes and for many.

Each batch of a large sync changes most pages of the indexes of random keys. So a large sync keeps
more pages in memory, and copies back what is in the log less often: when it is as large as it may
stay (`database.LOG_LIMIT`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

USUAL = ("cache_size = -32768", "wal_autocheckpoint = 1000")
"""Settings of every writer: KiB of pages in memory, as a negative number, and pages of 16 KiB in
the log from which on they are copied back."""

_IN_BULK = ("cache_size = -65536", "wal_autocheckpoint = 4096")


_PRIVATE = (
    "synchronous = off",
    "locking_mode = exclusive",
    # Some builds of SQLite overwrite what is freed. To empty the index of 4 GB of transcripts, they
    # would keep all of its pages, 790 MB, in memory. What is forgotten is overwritten anyway.
    "secure_delete = off",
)

UNJOURNALED = ("journal_mode = memory", *_PRIVATE)
"""Settings of a database that nobody else can see, and of which batches can be rolled back."""

THROWN_AWAY = ("journal_mode = off", *_PRIVATE)
"""Settings of one that is thrown away after any error, so that nothing has to be undone.

To derive everything that follows from 4 GB of transcripts in one transaction, a journal would keep
460 MB in memory.
"""


@contextmanager
def in_bulk(connection: sqlite3.Connection) -> Iterator[None]:
    """Use a writer's connection for very many changes, outside a transaction."""
    _set(connection, _IN_BULK)
    try:
        yield
    finally:
        _set(connection, USUAL)


def _set(connection: sqlite3.Connection, settings: tuple[str, ...]) -> None:
    for setting in settings:
        connection.execute(f"pragma {setting}").fetchall()

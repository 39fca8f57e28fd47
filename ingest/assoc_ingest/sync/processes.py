"""Reads files and indexes messages in one process or in several.

What several processes need is imported only then.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ..files.changes import read
from ..files.steps import Step, Work
from ..workers.amount import worker_count

if TYPE_CHECKING:
    from ..workers.index_aside import IndexAside


def steps(work: Sequence[Work], *, thorough: bool, count: int) -> Generator[Step, None, None]:
    """Yield the steps for each file, read in so many processes.

    With `thorough`, every byte read before is compared.
    """
    if count == 1:
        return read(work, thorough=thorough)
    from ..workers import reading

    return reading.read(work, thorough=thorough, count=count)


def index_aside(
    connection: sqlite3.Connection, *, is_wanted: bool
) -> AbstractContextManager[IndexAside | None]:
    """Let another process index the messages of a database that nobody can see yet."""
    if not is_wanted:
        return nullcontext()
    from ..workers import index_aside as aside

    return aside.index_aside(connection)


def started_ahead(jobs: int | None, size: int) -> AbstractContextManager[None]:
    """Start the workers that read so many bytes while the database is being prepared."""
    count = worker_count(jobs, size)
    if count == 1:
        return nullcontext()
    from ..workers import pool

    return pool.started_ahead(count)

"""Finds out whether a database is damaged, before or while its rebuild looks at its rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from ..errors import DamagedError
from ..failures import is_damage
from .check_database import check_references, check_schema, fresh_schema
from .findings import REBUILD

_DAMAGED = "The database is damaged - run: assoc-ingest rebuild"
_PATIENCE = 0.01  # seconds


def check(connection: sqlite3.Connection) -> None:
    """Check all pages and indexes, the schema, and that every reference leads to a row.

    Raises DamagedError if something is wrong, and sqlite3.Error if the disk fails.
    """
    with damage_is_told(), fresh_schema() as schema:
        (first,) = connection.execute("pragma integrity_check(1)").fetchone()
        problems = [*check_schema(connection, schema), *check_references(connection)]
    if first != "ok" or any(problem.remedy == REBUILD for problem in problems):
        raise DamagedError(_DAMAGED)


@contextmanager
def checked_meanwhile(connection: sqlite3.Connection) -> Iterator[None]:
    """Let a thread `check` the database through a connection that is not used meanwhile.

    If it is damaged, that is raised in place of any other error, which may be what it led to.
    """
    with ThreadPoolExecutor(1, "check") as thread:
        checked = thread.submit(check, connection)
        try:
            yield
        except Exception:
            checked.result()
            raise
        except BaseException:
            while wait([checked], _PATIENCE).not_done:  # the user wants to stop now
                connection.interrupt()  # only ends a statement that runs at this moment
            raise
        checked.result()
    connection.execute("pragma shrink_memory")  # of the pages that it read


@contextmanager
def damage_is_told() -> Iterator[None]:
    """Turn SQLite's error that the database is damaged into ours; let other errors through."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        raise DamagedError(_DAMAGED) from error

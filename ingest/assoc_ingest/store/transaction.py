"""Transactions: how one begins, and how it ends when something in it fails.

Connections that write are in autocommit mode: whatever is not in a transaction from here commits by
itself. A transaction that an error leaves open would take along what is written after it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all that is written within, or nothing of it after an error."""
    begin(connection)
    try:
        yield
        commit(connection)
    except BaseException:
        roll_back(connection)
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Read one state of the database in many statements; what is written within is undone."""
    connection.execute("begin")
    try:
        yield
    finally:
        roll_back(connection)


def begin(connection: sqlite3.Connection) -> None:
    """Begin to write: a deferred transaction that reads before it writes fails beside others."""
    connection.execute("begin immediate")


def commit(connection: sqlite3.Connection) -> None:
    """Make what was written permanent. Raises sqlite3.Error; it is then not."""
    connection.execute("commit")


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was not committed. When the disk is full, SQLite has done so already."""
    if connection.in_transaction:
        connection.execute("rollback")

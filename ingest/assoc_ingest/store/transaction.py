"""Transactions: begin, commit, and roll back after an error.

Connections that write are in autocommit mode: a statement outside these transactions commits by
itself. If an error left a transaction open, it would include whatever is written later. What is
written outside is not noted (`changes`), so no table that `changes` watches is written there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from . import changes


@contextmanager
def transaction(connection: sqlite3.Connection, *, is_noted: bool = True) -> Iterator[None]:
    """Commit everything that is written within, or nothing after an error.

    Not noted is what changes the schema: the triggers of `changes` know the tables as they were.
    """
    begin(connection, is_noted=is_noted)
    try:
        yield
        commit(connection)
    except BaseException:
        roll_back(connection)
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let many statements read one state of the database; what is written within is rolled back."""
    connection.execute("begin")
    try:
        yield
    finally:
        roll_back(connection)


def begin(connection: sqlite3.Connection, *, is_noted: bool = True) -> None:
    """Begin to write: a deferred transaction that reads first can fail when it comes to write."""
    connection.execute("begin immediate")
    try:
        if is_noted:
            changes.start(connection)
    except BaseException:
        roll_back(connection)
        raise


def commit(connection: sqlite3.Connection) -> None:
    """Make what was written permanent, and note what it changed. Raises sqlite3.Error if that
    fails."""
    changes.settle(connection)
    connection.execute("commit")


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was not committed. SQLite may already have done so, as it does on a full disk."""
    if connection.in_transaction:
        connection.execute("rollback")

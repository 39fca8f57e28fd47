"""Finds out which lost rows of a damaged database cannot be derived from any file.

Most rows follow from archived bytes, and come back when everything is derived again. Some rows were
only in this database: what was forgotten, what a list contained before it was rewritten, a price
that the user set. What the indexes say about lost rows (`lost_rows`) shows whether such rows are
among them.
"""

from __future__ import annotations

import sqlite3

from .lost_rows import Told
from .recover import Salvaged

_MESSAGE_KEY = ("file_id", "byte_offset", "timestamp", "sender", "text_hash", "ordinal")


def only_here(connection: sqlite3.Connection, salvaged: Salvaged) -> list[str]:
    """Return the tables that lost rows which no file contains. All tables have been derived again.

    If no index shows which rows there were, such rows are assumed to be lost.
    """
    return [
        table
        for table, is_lost in _NOT_DERIVED.items()
        if table in salvaged.holes
        and (not salvaged.told[table].is_complete or is_lost(connection, table, salvaged.told))
    ] + [
        table
        for table in salvaged.holes
        if table not in _NOT_DERIVED and _lacks_what_was_never_archived(connection, table, salvaged)
    ]


def _lacks_what_was_never_archived(
    connection: sqlite3.Connection, table: str, salvaged: Salvaged
) -> bool:
    """Did a file that is gone and was never archived lose rows?"""
    rows = connection.execute("select id from files where gone_at is not null and offset = 0")
    files = {file_id for (file_id,) in rows}
    told = salvaged.told.get(table, Told())
    return any(row.get("file_id") in files for row in told.rows.values())


def _lacks_a_row(connection: sqlite3.Connection, table: str, told: dict[str, Told]) -> bool:
    ids = {id_ for (id_,) in connection.execute(f"select id from {table}")}
    return not told[table].rows.keys() <= ids


def _lacks_a_task(connection: sqlite3.Connection, table: str, told: dict[str, Told]) -> bool:
    rows = connection.execute(
        "select id from tasks where coalesce(subject, description, owner, active_form) is null"
        " and channel = 'file'"
    )
    return not told[table].rows.keys().isdisjoint(id_ for (id_,) in rows)


def _lacks_a_change_that_was_seen(
    connection: sqlite3.Connection, table: str, told: dict[str, Told]
) -> bool:
    return any(row.get("file_id") is None for row in told[table].rows.values())


def _lacks_a_message(connection: sqlite3.Connection, table: str, told: dict[str, Told]) -> bool:
    rows = connection.execute(f"select {', '.join(_MESSAGE_KEY)} from {table}")
    there = {tuple(row) for row in rows}
    return any(
        tuple(row.get(name) for name in _MESSAGE_KEY) not in there
        for row in told[table].rows.values()
    )


_NOT_DERIVED = {
    "forgotten": _lacks_a_row,
    "forgotten_secrets": _lacks_a_row,
    "tasks": _lacks_a_task,
    "task_changes": _lacks_a_change_that_was_seen,
    "inbox_items": _lacks_a_message,
    "prices": _lacks_a_row,
}
"""Tables with rows that no file contains, each with the function that says whether one is lost."""

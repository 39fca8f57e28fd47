"""Finds the project or team that an address names by id, name or key."""

from __future__ import annotations

import sqlite3

from . import pages
from .pages import PageError


def named_row(
    connection: sqlite3.Connection, query: str, wanted: str, word: str, address: str
) -> pages.Row:
    """Return the one row that `query` finds.

    Raises PageError: 404 where there is none, 300 with links below `address` where there are more.
    """
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < 19
    number = int(wanted) if is_number else None
    rows = pages.ask(connection, query, id=number, name=wanted)
    if not rows:
        raise PageError(404, f"No {word} matches {wanted!r}.")
    if len(rows) > 1:
        links = [
            (f"{row['name']} in {row['root']} ({row['key']})", f"{address}/{row['id']}")
            for row in rows
        ]
        raise PageError(300, f"{len(rows)} {word}s are named {wanted!r}.", links)
    return rows[0]

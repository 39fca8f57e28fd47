"""The full-text indexes as wholes: lists them, checks them against their tables, rebuilds them.

A user may have added virtual tables of other kinds, or with odd names: only those of FTS5 are
listed, and names are quoted.
"""

from __future__ import annotations

import sqlite3

from ..failures import is_damage

MESSAGE_COLUMNS = "text, tool_text, joined_text, joined_tool_text"
"""The indexed columns of messages: what was said, tool input and output, and both again without
invisible letters where there are any."""


def indexes(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the full-text indexes."""
    rows = connection.execute(
        "select name from sqlite_master where rootpage = 0 and sql like '% using fts5%'"
        " order by name"
    )
    return [name for (name,) in rows]


def fits(connection: sqlite3.Connection, index: str) -> bool:
    """Does an index contain exactly the words of its table?

    The check is an insert that inserts nothing. Raises sqlite3.Error if another process keeps the
    database busy, or if the disk fails.
    """
    name = _quoted(index)
    try:
        connection.execute(f"insert into {name} ({name}, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def rebuild_index(connection: sqlite3.Connection, index: str) -> None:
    """Rebuild an index from its table. Raises sqlite3.Error."""
    name = _quoted(index)
    connection.execute(f"insert into {name} ({name}) values ('rebuild')")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

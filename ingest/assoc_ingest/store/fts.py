"""The full-text indexes as wholes: which there are, do they fit their tables, how to mend them.

A user may have added virtual tables of other kinds, or with odd names: only those of FTS5 are
meant, and names are quoted.
"""

from __future__ import annotations

import sqlite3

from ..failures import is_damage

MESSAGE_COLUMNS = "text, tool_text, joined_text, joined_tool_text"
"""What the indexes of messages have of each: what was said and what tools gave, and both again
without invisible letters where there are any."""


def indexes(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the full-text indexes."""
    rows = connection.execute(
        "select name from sqlite_master where rootpage = 0 and sql like '% using fts5%'"
        " order by name"
    )
    return [name for (name,) in rows]


def fits(connection: sqlite3.Connection, index: str) -> bool:
    """Has an index the words of its table, and no others?

    The check is an insert that inserts nothing: sqlite3.Error is raised when another process keeps
    the database busy, or when the disk fails.
    """
    name = _quoted(index)
    try:
        connection.execute(f"insert into {name} ({name}, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def make_anew(connection: sqlite3.Connection, index: str) -> None:
    """Derive an index from its table. Raises sqlite3.Error."""
    name = _quoted(index)
    connection.execute(f"insert into {name} ({name}) values ('rebuild')")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

"""What the bytes of a database are: rows, indexes, full text, archive."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

PARTS = ("messages", "other tables", "indexes", "full text", "archive", "free pages")
"""In the order in which they are printed."""


def parts(database: Path) -> dict[str, int] | None:
    """Return the bytes of each part; None if this SQLite cannot tell (it has no `dbstat`)."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        try:
            sizes = dict(
                connection.execute("select name, pgsize from dbstat where aggregate = true")
            )
        except sqlite3.OperationalError:
            return None
        kinds = dict(connection.execute("select name, type from sqlite_schema"))
        (pages,) = connection.execute("pragma page_count").fetchone()
        (page_size,) = connection.execute("pragma page_size").fetchone()
    counted = Counter(dict.fromkeys(PARTS, 0))
    for name, size in sizes.items():
        counted[_part(name, kinds.get(name, "table"))] += size
    counted["free pages"] = pages * page_size - sum(sizes.values())
    return dict(counted)


def _part(name: str, kind: str) -> str:
    if "_fts" in name:
        return "full text"
    if kind == "index":
        return "indexes"
    return name if name in PARTS else "other tables"

"""Writes what all migrations add up to, from which new databases are made.

`make schema` runs it.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from assoc_ingest import sql

FILE = Path(__file__).parents[1].joinpath(*sql.NEW_SCHEMA)

_HEAD = (
    "-- What the migrations add up to: new databases are made from it. Written by: make schema\n"
)


def one_by_one() -> sqlite3.Connection:
    """Return a database in memory to which all migrations were applied one by one."""
    connection = sqlite3.connect(":memory:")
    sql.migrations().apply(Database(connection, execute_plugins=False))
    return connection


def written_out(connection: sqlite3.Connection) -> str:
    """Return what makes a database with this schema and record of migrations, without its views."""
    *files, _ = sql.migration_names()
    views = sql.views()
    rows = ",\n".join(
        f"  ('{sql.MIGRATION_SET}', '{name}', strftime('%Y-%m-%d %H:%M:%f+00:00', 'now'))"
        for name in files
    )
    return (
        _HEAD
        + "".join(f"{text};\n" for _, name, text in sql.schema_of(connection) if name not in views)
        + f"insert into {sql.RECORD_OF_MIGRATIONS} (migration_set, name, applied_at) values\n"
        + f"{rows};\n"
    )


def main() -> int:
    """Write the file."""
    with closing(one_by_one()) as connection:
        FILE.write_text(written_out(connection), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Copying what can be read of a damaged database into a sound one, in its place.

SQLite refuses a page that it cannot understand, and every row that lies in it. All other rows are
copied into a new database, table by table in the order of their ids; where the reading fails, it
goes on behind the damaged place. Then the new database is written over the old one by SQLite's
backup, which works while others read: they see the old pages or the new ones.

What was lost comes back from the archive (`rebuild`), or from the files at the next sync.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from . import database, full_text
from .errors import DamagedError
from .full_text import is_damage
from .invariants import check_references, check_schema, fresh_schema
from .place import temporary_directory
from .verdict import REBUILD

_FARTHEST = 2**40  # no table has ids beyond; behind a damaged end there is nothing to look for


def is_sound(connection: sqlite3.Connection) -> bool:
    """Can every page be read, does every index fit its table, is the schema that of this version?

    Reads the whole database. Raises sqlite3.Error if the disk fails.
    """
    try:
        (first,) = connection.execute("pragma integrity_check(1)").fetchone()
        with fresh_schema() as schema:
            problems = [*check_schema(connection, schema), *check_references(connection)]
        return first == "ok" and not any(problem.remedy == REBUILD for problem in problems)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False


def replace_by_sound_copy(path: Path) -> dict[str, int]:
    """Replace a damaged database of ours, whose writer's lock is held, by a sound copy.

    Returns in how many places of which tables rows were lost. Raises DamagedError if not even its
    tables can be named, sqlite3.Error if the disk has no room; the database is then as it was.
    """
    with (
        temporary_directory(path) as directory,
        closing(database.open_writer(directory / path.name)) as sound,
        closing(sqlite3.connect(path, isolation_level=None)) as damaged,
    ):
        # SQLite then takes the tables that it finds listed, and a file that is too short, as they
        # are. Nothing is written to the schema.
        damaged.execute("pragma writable_schema = on").fetchall()
        damaged.execute("pragma cell_size_check = on").fetchall()
        if not _columns(damaged, "files"):
            raise DamagedError(
                f"{path} is damaged where its tables are listed, so nothing in it can be found. "
                "Move it away, with -wal and -shm, and run: assoc-ingest sync"
            )
        holes = _copy_tables(damaged, sound)
        sound.backup(damaged)
    return holes


def _copy_tables(damaged: sqlite3.Connection, sound: sqlite3.Connection) -> dict[str, int]:
    sound.execute("pragma foreign_keys = off")
    sound.execute("begin immediate")
    holes = {}
    for table in _tables(sound):
        there = _columns(damaged, table)
        columns = [name for name in _columns(sound, table) if name in there]
        if not columns:
            holes[table] = 1
            continue
        rows = _Rows(damaged, table, columns)
        names = ", ".join(f'"{name}"' for name in columns)
        marks = ", ".join("?" * len(columns))
        # A row that a damaged page gives twice is one row.
        sound.executemany(f"insert or ignore into {table} ({names}) values ({marks})", rows)
        if rows.holes:
            holes[table] = rows.holes
    for name in full_text.indexes(sound):
        full_text.make_anew(sound, name)
    _drop_what_hangs_in_the_air(sound)
    sound.execute("commit")
    return holes


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return the tables with rows of ours: none of SQLite's, none of a full-text index."""
    rows = connection.execute(
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not like 'sqlite\\_%' escape '\\' and name not like '\\_sqlite%' escape '\\'"
    )
    return [name for (name,) in rows]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    try:
        rows = connection.execute("select name from pragma_table_info(?)", (table,)).fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return []
    return [name for (name,) in rows]


class _Rows:
    """The rows of a table that can be read, and in how many places some could not."""

    def __init__(self, connection: sqlite3.Connection, table: str, columns: list[str]) -> None:
        names = ", ".join(f'"{name}"' for name in columns)
        self._connection = connection
        self._after = f"select rowid, {names} from {table} not indexed where rowid > ?"
        self.holes = 0

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        last: int | None = 0
        while last is not None:
            try:
                for rowid, *row in self._connection.execute(
                    f"{self._after} order by rowid", (last,)
                ):
                    last = rowid
                    yield tuple(row)
                return
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.holes += 1
                last = self._behind_the_hole(last)

    def _behind_the_hole(self, last: int) -> int | None:
        """Return the id behind which rows can be read again; None if there are none.

        A damaged page holds ids that follow each other. A step that doubles leaps over them, and
        halving finds the end of the hole.
        """
        step = 1
        while step < _FARTHEST:
            found = self._reads_behind(last + step)
            if found is None:
                return None
            if found:
                low, high = last + step // 2, last + step
                while low + 1 < high:
                    middle = (low + high) // 2
                    low, high = (low, middle) if self._reads_behind(middle) else (middle, high)
                return high
            step *= 2
        return None

    def _reads_behind(self, rowid: int) -> bool | None:
        """Can the first row behind an id be read? None: there is no such row."""
        try:
            row = self._connection.execute(f"{self._after} order by rowid limit 1", (rowid,))
            return None if row.fetchone() is None else True
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return False


def _drop_what_hangs_in_the_air(connection: sqlite3.Connection) -> None:
    """Remove rows whose file, session or the like is lost; a reference that may be missing goes."""
    while found := connection.execute("pragma foreign_key_check").fetchall():
        for table, rowid, _, number in found:
            keys = connection.execute(f"pragma foreign_key_list({table})").fetchall()
            (column,) = (key[3] for key in keys if key[0] == number)
            (is_needed,) = connection.execute(
                'select "notnull" from pragma_table_info(?) where name = ?', (table, column)
            ).fetchone()
            if is_needed:
                connection.execute(f"delete from {table} where rowid = ?", (rowid,))
            else:
                connection.execute(f"update {table} set {column} = null where rowid = ?", (rowid,))

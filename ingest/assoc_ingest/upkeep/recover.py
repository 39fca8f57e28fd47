"""Replaces a damaged database by a new one with everything that can be recovered.

1. The file is copied as it is, with its log, and the copy is kept next to the database until the
   user deletes it: it may still contain what is lost here.
2. All rows that SQLite can read are copied into a new database, table by table in the order of
   their ids; if reading fails, it continues after the damaged page.
3. Rows on undamaged pages that SQLite cannot reach are found page by page (`lost_rows`).
4. Lost rows that others refer to are recreated from what names them (`orphans`).
5. The new database is written over the old one by SQLite's backup, which works while others read:
   they see either the old pages or the new ones.

What is then missing comes back from the archive (`rebuild`), or from the files at the next sync.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import sql
from ..errors import DamagedError
from ..failures import is_damage
from ..files import archive
from ..store import changes, database, fts
from ..store.location import log_of, temporary_directory
from ..store.transaction import snapshot, transaction
from . import damaged_copies, lost_rows, orphans, page_reader
from .lost_rows import FARTHEST, Table, Told
from .page_reader import Lost, Row

_AT_ONCE = 500  # found rows that are inserted at a time
_FRAME_COLUMNS = 6  # columns of `archive`; the data is the last


@dataclass(slots=True)
class Salvaged:
    """What was recovered from a damaged database."""

    kept: Path
    """Where the damaged copy is kept."""
    holes: dict[str, int] = field(default_factory=dict)
    """The number of places where rows are lost, by table."""
    told: dict[str, Told] = field(default_factory=dict)
    """What indexes say about lost rows, by table."""


def replace_by_sound_copy(path: Path) -> Salvaged:
    """Replace a damaged database by a repaired copy. The caller holds the writer's lock.

    Raises DamagedError if its list of tables cannot be read, DatabaseIOError and sqlite3.Error if
    the disk has no room; then the database is unchanged.
    """
    with temporary_directory(path) as directory:
        copy = directory / f"{path.name}{damaged_copies.KEPT}"
        with _held(path):
            damaged_copies.check_room(path)
            damaged_copies.copy_files(path, copy)
        with closing(database.open_writer(directory / path.name)) as sound:
            with _opened(copy) as damaged:
                damaged.execute("pragma wal_checkpoint(truncate)").fetchall()
                salvaged = _copy_tables(damaged, copy, sound)
            salvaged.kept = damaged_copies.put_aside(copy, path)
            try:
                with _opened(path) as live:
                    sound.backup(live)
            except sqlite3.Error:
                salvaged.kept.unlink()  # the database is unchanged
                raise
    return salvaged


@contextmanager
def _opened(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """Yield a connection to a damaged database that tolerates a damaged schema."""
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as damaged:
        # So SQLite accepts a damaged schema table, and a file that is too short. Nothing is written
        # to the schema.
        damaged.execute("pragma writable_schema = on").fetchall()
        damaged.execute("pragma cell_size_check = on").fetchall()
        yield damaged


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Keep the log of a damaged database unchanged.

    Raises DamagedError if its schema table is damaged.
    """
    log = log_of(path)
    has_log = (
        log.exists() and log.stat().st_size > 0
    )  # closing a writable connection would remove it
    with _opened(path, "ro" if has_log else "rw") as damaged:
        if not lost_rows.columns(damaged, "files"):
            raise DamagedError(
                f"{path} cannot be recovered: its table list is damaged. "
                "Move it away, with its -wal and -shm files, and run: assoc-ingest sync"
            )
        with snapshot(damaged):
            with suppress(sqlite3.DatabaseError):  # any statement will do
                damaged.execute("select 1 from files limit 1").fetchall()
            yield


# -- rows ----------------------------------------------------------------------------------------


def _copy_tables(damaged: sqlite3.Connection, path: Path, sound: sqlite3.Connection) -> Salvaged:
    salvaged = Salvaged(path)
    sound.execute("pragma foreign_keys = off")
    with transaction(sound):
        sound.execute("delete from identity")  # it keeps the name of the damaged one
        with page_reader.opened(path) as raw:
            broken = _copy_rows(damaged, sound)
            for table in broken:
                salvaged.told[table.name] = lost_rows.told_by_indexes(sound, raw, table)
            if broken:
                found = lost_rows.found(raw, broken, salvaged.told)
                _take_in(sound, broken, found, salvaged.told)
        for table in broken:
            if not lost_rows.is_healed(sound, table, salvaged.told[table.name]):
                salvaged.holes[table.name] = len(table.holes)
        for name in fts.indexes(sound):  # rows can be deleted only from indexes that have them
            fts.rebuild_index(sound, name)
        orphans.keep(sound, {name: told.rows for name, told in salvaged.told.items()}, broken)
        changes.renew(sound)
    return salvaged


def _copy_rows(damaged: sqlite3.Connection, sound: sqlite3.Connection) -> list[Table]:
    """Copy the rows that SQLite reads; return the tables with holes."""
    broken = []
    has_all = _lists_all(damaged)
    is_of_this_version = _migrations(damaged) >= _migrations(sound)
    for name in _tables(sound):
        table = Table(name, lost_rows.columns(damaged, name))
        if table.columns:
            _insert(sound, table, _Rows(damaged, table))
        elif not has_all:  # its rows cannot be reached, but have the columns of this version
            table = Table(name, lost_rows.columns(sound, name), [(0, FARTHEST)])
        elif is_of_this_version:  # it was dropped
            table = Table(name, [], [(0, FARTHEST)])
        if table.holes:
            broken.append(table)
    return broken


def _lists_all(damaged: sqlite3.Connection) -> bool:
    """Can the schema table be read to its end?"""
    try:
        damaged.execute("select name, sql from sqlite_schema").fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Return the tables with rows of our own: not those of SQLite or of full-text indexes."""
    rows = connection.execute(
        "select name from pragma_table_list where schema = 'main' and type = 'table'"
        " and name not like 'sqlite\\_%' escape '\\' and name not like '\\_sqlite%' escape '\\'"
    )
    return [name for (name,) in rows]


def _migrations(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the migrations that were applied, all if they cannot be read."""
    try:
        rows = connection.execute("select name from _sqlite_migrations").fetchall()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return set(sql.migration_names())
    return {name for (name,) in rows}


def _insert(sound: sqlite3.Connection, table: Table, rows: Iterable[Sequence[object]]) -> None:
    """Insert rows of a damaged table, with those of its columns that this version still has."""
    ours = {column.name for column in lost_rows.columns(sound, table.name)}
    places = [place for place, column in enumerate(table.columns) if column.name in ours]
    names = ", ".join(f'"{table.columns[place].name}"' for place in places)
    marks = ", ".join("?" * len(places))
    # A damaged page can have a row twice.
    sound.executemany(
        f"insert or ignore into {table.name} ({names}) values ({marks})",
        ([row[place] for place in places] for row in rows),
    )


def _take_in(
    sound: sqlite3.Connection,
    tables: Iterable[Table],
    found: Iterable[tuple[Table, Row]],
    told: dict[str, Told],
) -> None:
    """Insert rows that were found; of incomplete rows, add what is readable to `told`."""
    whole: dict[str, list[list[Any]]] = {}
    for table, row in found:
        values = [row.id, *row.values[1:]]
        if not any(isinstance(value, Lost) for value in values):
            waiting = whole.setdefault(table.name, [])
            waiting.append(values + [None] * (len(table.columns) - len(values)))
            if len(waiting) >= _AT_ONCE:
                _insert(sound, table, waiting)
                waiting.clear()
        elif table.name == "archive":
            _keep_beginning(sound, values)
        else:
            known = told[table.name].rows.setdefault(row.id, {})
            for column, value in zip(table.columns[1:], values[1:], strict=False):
                if not isinstance(value, Lost):
                    known.setdefault(column.name, value)
    for table in tables:
        if table.name in whole:
            _insert(sound, table, whole[table.name])


def _keep_beginning(sound: sqlite3.Connection, values: list[Any]) -> None:
    """Keep the lines at the start of a frame whose last pages are lost."""
    if len(values) == _FRAME_COLUMNS and isinstance(values[-1], Lost):
        _, file_id, start, end, _, rest = values
        archive.append(sound, file_id, archive.beginning(start, end, rest.beginning))


class _Rows:
    """The rows of a table that SQLite can read. Where it cannot, a hole is added to the table."""

    def __init__(self, connection: sqlite3.Connection, table: Table) -> None:
        names = ", ".join(f'"{column.name}"' for column in table.columns)
        self._connection = connection
        self._table = table
        self._after = f"select rowid, {names} from {table.name} not indexed where rowid > ?"

    def __iter__(self) -> Iterator[Sequence[object]]:
        table = self._table
        last: int | None = 0
        while last is not None:
            before = last
            try:
                for rowid, *row in self._connection.execute(
                    f"{self._after} order by rowid", (last,)
                ):
                    if before < rowid < FARTHEST:
                        before = rowid
                    else:
                        table.is_disordered = True
                    if all(
                        column.takes(value)
                        for column, value in zip(table.columns[1:], row[1:], strict=True)
                    ):
                        yield row
                    else:
                        table.holes.append((rowid - 1, rowid))
                break
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
            if table.is_disordered:
                break
            last = self._end_of_hole(before)
            table.holes.append((before, FARTHEST if last is None else last))
        if table.is_disordered:  # ids do not say what is missing: every page is searched
            table.holes[:] = [(0, FARTHEST)]

    def _end_of_hole(self, last: int) -> int | None:
        """Return the id after which rows can be read again, None if there are no more.

        A damaged page has consecutive ids. Doubling steps skip them, and halving finds the end of
        the hole.
        """
        step = 1
        while last + step < FARTHEST:
            found = self._can_read_after(last + step)
            if found is None:
                return None
            if found:
                low, high = last + step // 2, last + step
                while low + 1 < high:
                    middle = (low + high) // 2
                    low, high = (low, middle) if self._can_read_after(middle) else (middle, high)
                return high
            step *= 2
        return None

    def _can_read_after(self, rowid: int) -> bool | None:
        """Can the first row after an id be read? None: there is no such row."""
        try:
            row = self._connection.execute(
                f"{self._after} order by rowid limit 1", (rowid,)
            ).fetchone()
            return None if row is None else True
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return False

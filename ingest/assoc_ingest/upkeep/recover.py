"""Replaces a damaged database by a new one with everything that can be recovered.

1. The file is copied as it is, with its log, and the copy is kept next to the database until the
   user deletes it: it may still contain what is lost here.
2. All rows that SQLite can read are copied into a new database, table by table in the order of
   their ids; if reading fails, it continues after the damaged page. What is skipped is a hole: a
   range of ids.
3. Rows in holes may be on whole pages that SQLite cannot reach. Every page is searched for them,
   and the indexes of a table say what else was there: they repeat columns of lost rows.
4. Lost rows that others refer to are recreated from what names them, so that the others stay.
5. The new database is written over the old one by SQLite's backup, which works while others read:
   they see either the old pages or the new ones.

What is then missing comes back from the archive (`rebuild`), or from the files at the next sync.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import shutil
import sqlite3
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .. import sql
from ..errors import DamagedError, DatabaseIOError, is_damage
from ..fields import now
from ..files import archive, walk
from ..files.tail import Prefix
from ..records import Issue
from ..source import LOG, Source, Whereabouts, claim_at, facts_of
from ..sources import SOURCES
from ..store import changes, database, fts
from ..store.database import log_of, snapshot, temporary_directory, transaction
from ..store.replay import note_losses


@dataclass(slots=True)
class Recovered:
    """What was recovered from a damaged database."""

    kept: Path
    """Where the damaged copy is kept."""
    holes: dict[str, int] = field(default_factory=dict)
    """The number of places where rows are lost, by table."""
    traces: dict[str, Traces] = field(default_factory=dict)
    """What indexes say about lost rows, by table."""


def recover(path: Path) -> Recovered:
    """Replace a damaged database by a repaired copy. The caller holds the writer's lock.

    Raises DamagedError if its list of tables cannot be read, DatabaseIOError and sqlite3.Error if
    the disk has no room; then the database is unchanged.
    """
    with temporary_directory(path) as directory:
        copy = directory / f"{path.name}{KEPT}"
        with _log_unchanged(path):
            check_room(path)
            copy_files(path, copy)
        with closing(database.open_writer(directory / path.name)) as sound:
            with _open_damaged(copy) as damaged:
                damaged.execute("pragma wal_checkpoint(truncate)").fetchall()
                recovered = _copy_tables(damaged, copy, sound)
            recovered.kept = put_aside(copy, path)
            try:
                with _open_damaged(path) as live:
                    sound.backup(live)
            except sqlite3.Error:
                recovered.kept.unlink()  # the database is unchanged
                raise
    return recovered


@contextmanager
def _open_damaged(path: Path, mode: str = "rw") -> Iterator[sqlite3.Connection]:
    """Yield a connection to a damaged database that tolerates a damaged schema."""
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as damaged:
        # So SQLite accepts a damaged schema table, and a file that is too short. Nothing is written
        # to the schema.
        damaged.execute("pragma writable_schema = on").fetchall()
        damaged.execute("pragma cell_size_check = on").fetchall()
        yield damaged


@contextmanager
def _log_unchanged(path: Path) -> Iterator[None]:
    """Keep the log of a damaged database unchanged.

    Raises DamagedError if its schema table is damaged.
    """
    log = log_of(path)
    has_log = (
        log.exists() and log.stat().st_size > 0
    )  # closing a writable connection would remove it
    with _open_damaged(path, "ro" if has_log else "rw") as damaged:
        if not columns(damaged, "files"):
            raise DamagedError(
                f"{path} cannot be recovered: its table list is damaged. "
                "Move it away, with its -wal and -shm files, and run: assoc-ingest sync"
            )
        with snapshot(damaged):
            with suppress(sqlite3.DatabaseError):  # any statement will do
                damaged.execute("select 1 from files limit 1").fetchall()
            yield


# ------------------------------------------------------------------------------------------------
# Damaged databases are kept unchanged until the user deletes them.
#
# Such a copy is next to the repaired database, equally private, under a name that says when it
# was put aside.


KEPT = ".damaged-"
"""The part between the name of a database and the time when it was moved aside."""

_COPIES = 3  # on disk at the same time: the damaged copy, the repaired database, and the log
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def kept_aside(path: Path) -> list[Path]:
    """Return the damaged databases that were put aside next to a database."""
    start = f"{path.name}{KEPT}"
    try:
        return sorted(
            other
            for other in path.parent.iterdir()
            if other.name.startswith(start) and not other.name.endswith(("-wal", "-shm"))
        )
    except OSError:  # a directory that can be entered but not listed
        return []


def _files_of(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a database in the order in which they can be copied while others read.

    What is written to the first file in the meantime is also in the second, the log, which is not
    started over while a transaction is open.
    """
    for ending in ("", "-wal"):
        file = Path(f"{path}{ending}")
        if file.exists():
            yield file, ending


def check_room(path: Path) -> None:
    """Raise DatabaseIOError if there is no room to repair a database and keep the damaged copy."""
    needed = _COPIES * sum(file.stat().st_size for file, _ in _files_of(path))
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise DatabaseIOError(
            f"{path} is damaged. Repairing it while keeping the damaged copy needs"
            f" {_megabytes(needed)} in {path.parent}, but only {_megabytes(free)} are free. Nothing"
            " was changed. Free some space, then run: assoc-ingest rebuild"
        )


def _megabytes(size: int) -> str:
    return f"{-(-size // 10**6):,} MB"


def copy_files(path: Path, copy: Path) -> None:
    """Copy a database with its log, while it is locked. Raises DatabaseIOError and OSError."""
    try:
        for file, ending in _files_of(path):
            target = os.open(f"{copy}{ending}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(target, "wb") as stream, file.open("rb") as source:
                shutil.copyfileobj(source, stream, 1024 * 1024)
                stream.flush()
                os.fsync(stream.fileno())
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise DatabaseIOError(
            f"{path} is damaged, and {path.parent} has no room for the copy that a repair needs. "
            "Nothing was changed. Free some space, then run: assoc-ingest rebuild"
        ) from error


def put_aside(copy: Path, path: Path) -> Path:
    """Rename a copy to the name under which it is kept."""
    moment = now()[:19].replace("-", "").replace(":", "") + "Z"
    kept = Path(f"{path}{KEPT}{moment}")
    number = 1
    while kept.exists():
        number += 1
        kept = Path(f"{path}{KEPT}{moment}-{number}")
    return copy.rename(kept)


def kept_beside(connection: sqlite3.Connection) -> list[str]:
    """Return the damaged copies of the database that a repair has kept next to it."""
    (name,) = connection.execute(
        "select file from pragma_database_list where name = 'main'"
    ).fetchone()
    files = (file for kept in kept_aside(Path(name)) for file in (kept, log_of(kept)))
    return [str(file) for file in files if file.exists()]


# ------------------------------------------------------------------------------------------------
# The rows that SQLite can read, and the holes between them.

FARTHEST = 2**62
"""After every id."""

_TYPES = {"INTEGER": (int,), "TEXT": (str,), "BLOB": (bytes,), "REAL": (int, float)}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one of our tables."""

    name: str
    type: str
    is_needed: bool

    def takes(self, value: object) -> bool:
        return not self.is_needed if value is None else isinstance(value, _TYPES[self.type])


@dataclass(slots=True)
class Table:
    """A table of a damaged database: its columns, the id first, and its holes."""

    name: str
    columns: list[Column]
    holes: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of ids: after the first and up to the second, rows could not be read."""
    is_disordered: bool = False
    """Ids were not ascending, so some of them are wrong."""

    def has_hole_at(self, id_: int) -> bool:
        place = bisect_left(self.holes, (id_,)) - 1  # the last that begins before it
        return place >= 0 and id_ <= self.holes[place][1]

    def fits(self, values: list[Any]) -> bool:
        """Can these, as far as they are readable, be the values of a row of the table?"""
        if not values or values[0] is not None or len(values) > len(self.columns):
            return False
        is_cut = isinstance(values[-1], Lost)
        if not is_cut and any(column.is_needed for column in self.columns[len(values) :]):
            return False  # rows have no value for a column that was added later
        return len(values) - is_cut > 1 and all(
            isinstance(value, Lost) or column.takes(value)
            for value, column in zip(values[1:], self.columns[1:], strict=False)
        )


def columns(connection: sqlite3.Connection, table: str) -> list[Column]:
    """Return the columns of a table in the order in which they are stored; none if it is lost."""
    try:
        rows = connection.execute(
            'select name, type, "notnull" from pragma_table_info(?)', (table,)
        ).fetchall()
    except UnicodeDecodeError:  # SQLite's message quotes the damaged text
        return []
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return []
    return [Column(name, type_, bool(is_needed)) for name, type_, is_needed in rows]


def _copy_tables(damaged: sqlite3.Connection, path: Path, sound: sqlite3.Connection) -> Recovered:
    recovered = Recovered(path)
    sound.execute("pragma foreign_keys = off")
    with transaction(sound):
        sound.execute("delete from identity")  # it keeps the name of the damaged one
        with opened_pages(path) as raw:
            broken = _copy_rows(damaged, sound)
            for table in broken:
                recovered.traces[table.name] = traces_in_indexes(sound, raw, table)
            if broken:
                rows = rows_on_stray_pages(raw, broken, recovered.traces)
                _insert_found(sound, broken, rows, recovered.traces)
        for table in broken:
            if not is_healed(sound, table, recovered.traces[table.name]):
                recovered.holes[table.name] = len(table.holes)
        for name in fts.indexes(sound):  # rows can be deleted only from indexes that have them
            fts.rebuild_index(sound, name)
        _recreate_parents(sound, recovered.traces, broken)
        changes.renew(sound)
    return recovered


def _copy_rows(damaged: sqlite3.Connection, sound: sqlite3.Connection) -> list[Table]:
    """Copy the rows that SQLite reads; return the tables with holes."""
    broken = []
    has_all = _lists_all(damaged)
    is_of_this_version = _migrations(damaged) >= _migrations(sound)
    for name in _tables(sound):
        table = Table(name, columns(damaged, name))
        if table.columns:
            _insert(sound, table, _Rows(damaged, table))
        elif not has_all:  # its rows cannot be reached, but have the columns of this version
            table = Table(name, columns(sound, name), [(0, FARTHEST)])
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
    ours = {column.name for column in columns(sound, table.name)}
    places = [place for place, column in enumerate(table.columns) if column.name in ours]
    names = ", ".join(f'"{table.columns[place].name}"' for place in places)
    marks = ", ".join("?" * len(places))
    # A damaged page can have a row twice.
    sound.executemany(
        f"insert or ignore into {table.name} ({names}) values ({marks})",
        ([row[place] for place in places] for row in rows),
    )


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
            is_readable = self._can_read_after(last + step)
            if is_readable is None:
                return None
            if is_readable:
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


# ------------------------------------------------------------------------------------------------
# Rows in holes that are on whole pages, and what indexes say about the others.
#
# Rows are recognised by their values, which fit the columns of one table only.

_MANY = ("messages", "tool_calls", "usage", "responses")
"""Tables with more rows than all others together, all derived from archived bytes."""

_AT_ONCE = 500  # rows that are inserted at a time
_FRAME_COLUMNS = 6  # columns of `archive`; the data is the last

_PARTS = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_PART = re.compile(r"coalesce\((\w+), (''|x''|-1)\)|(\w+)")
_FOR_NULL = {"''": "", "x''": b"", "-1": -1}


@dataclass(slots=True)
class Traces:
    """What indexes say about the rows in the holes of a table."""

    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    """The values of some columns, by id."""
    is_complete: bool = False
    """They say something about every row in a hole."""


def rows_on_stray_pages(
    pages: Pages, tables: list[Table], traces: dict[str, Traces]
) -> Iterator[tuple[Table, Row]]:
    """Yield rows that belong in holes of these tables, from pages that SQLite cannot reach.

    They may lack values at the end. A row that fits two tables cannot be assigned; such tables are
    all derived from archived bytes.
    """
    owners = _owners(pages)
    for leaf in pages.leaves():
        owner = owners.get(leaf.number)
        candidates = [table for table in tables if owner in (None, table.name)]
        for cell in leaf.cells() if candidates else ():
            near = [table for table in candidates if table.has_hole_at(cell.id)]
            row = leaf.row(cell) if near else None
            of = [
                table
                for table in near
                if row and table.fits(row.values) and _agrees(table, row, traces[table.name])
            ]
            if row and len(best := _best(of, row)) == 1:
                yield best[0], row


def _best(tables: list[Table], row: Row) -> list[Table]:
    """Return those of the tables that a row most likely belongs to; it fits all of them."""
    roots = [table for table in tables if table.name == "sources" and row.values[1] in SOURCES]
    return roots or [t for t in tables if len(t.columns) == len(row.values)] or tables


def _owners(pages: Pages) -> dict[int, str | None]:
    """Return the table of each page that a root leads to, None if several roots do."""
    owners: dict[int, str | None] = dict.fromkeys(pages.leaves_of(1), "sqlite_schema")
    for name, table, root, _ in pages.schema():
        for number in pages.leaves_of(root) if name == table and root else ():
            owners[number] = None if number in owners else name
    return owners


def _agrees(table: Table, row: Row, traces: Traces) -> bool:
    """Does the row agree with the indexes, as far as they have it?"""
    here = dict(zip((column.name for column in table.columns), row.values, strict=False))
    return all(
        isinstance(here.get(name, Lost()), Lost) or here[name] == value
        for name, value in traces.rows.get(row.id, {}).items()
    )


def _insert_found(
    sound: sqlite3.Connection,
    tables: Iterable[Table],
    rows: Iterable[tuple[Table, Row]],
    traces: dict[str, Traces],
) -> None:
    """Insert whole rows; add what is readable of incomplete ones to `traces`."""
    whole: dict[str, list[list[Any]]] = {}
    for table, row in rows:
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
            known = traces[table.name].rows.setdefault(row.id, {})
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


def is_healed(sound: sqlite3.Connection, table: Table, traces: Traces) -> bool:
    """Are all rows in the holes of a table back? Removes from `traces` those that are."""
    for id_ in list(traces.rows):
        if sound.execute(f"select 1 from {table.name} where id = ?", (id_,)).fetchone():
            del traces.rows[id_]
    return traces.is_complete and not traces.rows


def traces_in_indexes(sound: sqlite3.Connection, pages: Pages, table: Table) -> Traces:
    """Return what the indexes of a table still say about the rows in its holes.

    `sound` is an undamaged database with the same tables; it is asked for the columns of indexes
    that have no SQL statement.
    """
    traces = Traces()
    if table.name in _MANY:
        return traces
    by_name = {column.name: column for column in table.columns}
    for name, of, root, statement in pages.schema():
        if of != table.name or name == of or not root:
            continue
        names = _indexed(sound, name, statement)
        traces.is_complete |= pages.reaches_all(root) and " where " not in (statement or "")
        for *values, id_ in pages.entries(root):
            if not isinstance(id_, int) or not table.has_hole_at(id_) or len(values) != len(names):
                continue
            row = traces.rows.setdefault(id_, {})
            for (column, default), value in zip(names, values, strict=True):
                if value != default and column in by_name and by_name[column].takes(value):
                    row[column] = value
    return traces


def _indexed(
    connection: sqlite3.Connection, index: str, sql: str | None
) -> list[tuple[str, object]]:
    """Return the columns of an index, each with the value that replaces null, if there is one.

    A unique index is over `coalesce(column, '')` if the column can be null.
    """
    if sql is None:
        rows = connection.execute("select name from pragma_index_info(?)", (index,))
        return [(name, Lost) for (name,) in rows]
    parts = _PARTS.search(sql)
    return [
        (column or plain, _FOR_NULL.get(stand_in, Lost))
        for column, stand_in, plain in _PART.findall(parts[1] if parts else "")
    ]


# ------------------------------------------------------------------------------------------------
# Recreates lost files and roots, so that the rows that refer to them can be kept.
#
# 1. If an index still has columns of a lost row, the row is recreated with its id: a root from its
#    directory, a file from its path, a session from its key. What follows from other rows is
#    derived again later, and the next sync reads the file again.
# 2. If no index has a file, its row is made from its archive and from the rows that refer to it.
#    Whose file it is follows from its messages, or else from its lines; the source may be able to
#    derive the path of a conversation. Otherwise it gets a placeholder, until a sync finds a file
#    with the same bytes.
# 3. A root that is in no index gets a placeholder, too.
# 4. A reference to a row that is still missing becomes null, or if it must not be null, the row is
#    deleted. These are rows with a damaged number for a file or root that never existed, and
#    members of teams. Both are derived again from their files.


_KEYED = ("sources", "projects", "sessions", "subagents", "teams", "tasks", "forgotten")


def _recreate_parents(
    connection: sqlite3.Connection, traces: dict[str, Traces], damaged: list[Table]
) -> None:
    """Recreate what rows refer to, as far as it is known. Runs inside a transaction."""
    moment, rows = now(), {name: trace.rows for name, trace in traces.items()}
    for table in _KEYED:
        for id_, row in rows.get(table, {}).items():
            _insert_row(connection, table, {**_defaults(table, row, moment), **row, "id": id_})
    read_to: dict[int, int] = {}  # of lost frames, only the position is known
    for frame in rows.get("archive", {}).values():
        if "file_id" in frame and "start" in frame:
            read_to[frame["file_id"]] = max(read_to.get(frame["file_id"], 0), frame["start"] + 1)
    for id_, row in rows.get("files", {}).items():
        if "path" in row and "source_id" in row:
            _make_file(connection, id_, row, moment, read_to.get(id_, 0))
    for id_ in _missing(connection, "sources", "files", damaged):
        _make_root(connection, id_, moment)
    for id_ in _missing(connection, "files", "archive", damaged):
        _make_unnamed_file(connection, id_, moment, read_to.get(id_, 0))
    connection.execute(
        "update sources set first_synced_at = coalesce((select min(f.first_seen_at) from files f"
        "  where f.source_id = sources.id), first_synced_at) where first_synced_at = ?",
        (moment,),
    )
    _drop_broken_references(connection)


def _defaults(table: str, row: dict[str, Any], moment: str) -> dict[str, Any]:
    """Return values for columns that must have one and are in no index."""
    defaults: dict[str, dict[str, Any]] = {
        "sources": {"first_synced_at": moment, "last_synced_at": moment},
        "subagents": {"kind": "task"},
        "teams": {"name": row.get("key")},
        # If its document still contains the task, reading the document removes `gone_at` again.
        "tasks": {"gone_at": moment},
        "forgotten": {"forgotten_at": moment, "is_pending": 1},
    }
    return defaults.get(table, {})


def _missing(
    connection: sqlite3.Connection, parent: str, witness: str, damaged: list[Table]
) -> list[int]:
    """Return the ids of the missing rows of a table that other rows refer to.

    References of `witness` are trusted. Those of other tables may be damaged themselves: they count
    only if the id is in a hole of the table.
    """
    ids: set[int] = set()
    references = connection.execute(
        'select l.name, k."from" from pragma_table_list l, pragma_foreign_key_list(l.name) k'
        ' where k."table" = ?',
        (parent,),
    ).fetchall()
    for table, column in references:
        rows = connection.execute(
            f"select distinct {column} from {table} where {column} is not null"
            f" and {column} not in (select id from {parent})"
        )
        ids.update(
            id_
            for (id_,) in rows
            if table == witness
            or any(other.name == parent and other.has_hole_at(id_) for other in damaged)
        )
    return sorted(ids)


def _make_root(connection: sqlite3.Connection, source_id: int, moment: str) -> None:
    """Insert the row of a root that is in no index; its kind is that of its files."""
    agent = next(name for name, source in SOURCES.items() if source.is_agent)
    votes: Counter[str] = Counter({agent: 0})  # the kind if no file shows it
    rows = connection.execute(
        "select path, kind from files where source_id = ? order by id", (source_id,)
    )
    for path, kind in rows.fetchall():
        for name, source in SOURCES.items():
            claim = claim_at(source, path)
            votes[name] += claim is not None and claim.kind == kind
    ((kind, _),) = votes.most_common(1)
    row = {"id": source_id, "kind": kind, "root": walk.root_placeholder(source_id)}
    row |= facts_of(SOURCES[kind])
    _insert_row(connection, "sources", {**_defaults("sources", row, moment), **row})


def _make_file(
    connection: sqlite3.Connection, file_id: int, known: dict[str, Any], moment: str, least: int
) -> None:
    """Insert the row of a file whose path is known."""
    source = _source(connection, known["source_id"])
    claim = claim_at(source, known["path"]) if source is not None else None
    keys: dict[str, Any] = {"kind": walk.UNNAMED}
    if claim is not None:
        names = ("kind", "session_key", "agent_key", "team_key", "project_key", "workflow")
        keys = {name: getattr(claim, name) for name in names}
    if known.get("session_id") is not None and keys.get("session_key") is None:
        query = "select session_key from sessions where id = ?"
        keys["session_key"] = _value_of(connection, query, known["session_id"])
    row = {**_as_read(connection, file_id, moment, least), **keys, **known, "id": file_id}
    if source is not None and claim is not None and source.shape(claim) == LOG:
        row["gone_at"] = moment  # or else another file at its path could replace its rows
    if _insert_row(connection, "files", {"generation": 0, **row}):
        _mark_gone_like_entries(connection, file_id)


def _source(connection: sqlite3.Connection, source_id: int | None) -> Source | None:
    kind = _value_of(connection, "select kind from sources where id = ?", source_id)
    return SOURCES.get(kind or "")


_ENDS = (
    'select max("end") from archive where file_id = ?',
    "select max(byte_offset + byte_length) from messages where file_id = ?",
    "select max(byte_offset + byte_length) from prompts where file_id = ?",
    "select max(byte_offset + byte_length) from hook_events where file_id = ?",
)
"""Queries that show how far a log was read, if its row is lost."""
_LOOKED_AT = 64 * 1024  # bytes at either end of a file that are searched for its session and path


def _as_read(
    connection: sqlite3.Connection, file_id: int, moment: str, least: int
) -> dict[str, Any]:
    """Return columns that say how far a file was read, from its archive and from other tables.

    Other tables show that at least `least` bytes were read. The time is zero, which no file has, so
    that the next sync compares the file.
    """
    prefix, end = Prefix(), least
    for start, data in archive.sound_pieces(connection, file_id):
        if start == prefix.offset:
            prefix = prefix.extended(data)
        end = max(end, start + len(data))
    end = max(end, *(_value_of(connection, query, file_id) or 0 for query in _ENDS))
    mark = prefix.checkpoint()
    row = {
        "size": end, "offset": end, "line_count": 0, "issue_count": 0, "first_seen_at": moment,
        "last_synced_at": moment, "inode": 0, "device": 0, "mtime_ns": 0, "ctime_ns": 0,
        "head_hash": mark.head_hash, "tail_hash": mark.tail_hash, "prefix_crc": mark.prefix_crc,
    }  # fmt: skip
    if prefix.offset < end:  # its beginning is missing: it is read again
        row |= {"head_hash": b"", "tail_hash": b"", "prefix_crc": 0}
    elif not end:  # files of its kind may never be archived
        row |= {"head_hash": None, "tail_hash": None}
    return row


def _mark_gone_like_entries(connection: sqlite3.Connection, file_id: int) -> None:
    """Mark a document as gone if all of its entries are gone."""
    connection.execute(
        "update files set gone_at = (select iif(count(*) = count(gone_at), max(gone_at), null)"
        "  from (select gone_at from tasks where file_id = ?1 and channel = 'file'"
        "   union all select gone_at from inbox_items where file_id = ?1 and channel = 'inbox'))"
        " where id = ?1 and gone_at is null",
        (file_id,),
    )


class _Owner(NamedTuple):
    """Whose file it is, according to its rows or its lines."""

    kind: str = walk.UNNAMED
    source_id: int | None = None
    session_id: int | None = None
    subagent_id: int | None = None
    project_id: int | None = None
    session_key: str | None = None
    agent_key: str | None = None
    directory: str | None = None


def _make_unnamed_file(
    connection: sqlite3.Connection, file_id: int, moment: str, least: int
) -> None:
    """Insert the row of a file whose path is in no index."""
    owner = (
        _owner_by_messages(connection, file_id)
        or _owner_by_agent(connection, file_id)
        or _owner_by_lines(connection, file_id)
    )
    source_id = owner.source_id or _any_source(connection, file_id)
    query = "select key from projects where id = ?"
    row = {
        **_as_read(connection, file_id, moment, least),
        **{name: value for name, value in owner._asdict().items() if name != "directory"},
        "id": file_id, "source_id": source_id, "generation": 0,
        "project_key": _value_of(connection, query, owner.project_id),
    }  # fmt: skip
    path, reason = _path_of(connection, owner) if row["head_hash"] else None, walk.PATH_FROM_LINES
    with_path = {**row, "path": path, "gone_at": moment}
    if path is None or not _insert_row(connection, "files", with_path):
        reason = walk.PATH_LOST
        _insert_row(connection, "files", {**row, "path": walk.placeholder(file_id)})
    _mark_gone_like_entries(connection, file_id)
    note_losses(connection, file_id, [Issue(reason, 0, None, 0, 0)])


def _owner_by_messages(connection: sqlite3.Connection, file_id: int) -> _Owner | None:
    """Return whose file it is, according to its messages; None if it has none."""
    row = connection.execute(
        "select m.session_id, s.source_id, s.session_key, s.project_id, a.id, a.agent_key"
        " from messages m left join sessions s on s.id = m.session_id"
        " left join subagents a on a.id = m.subagent_id and not exists ("
        "  select 1 from messages o where o.file_id = m.file_id and o.subagent_id is null)"
        " where m.file_id = ? limit 1",
        (file_id,),
    ).fetchone()
    if row is None:
        return None
    session_id, source_id, key, project_id, subagent_id, agent = row
    directory = _value_of(
        connection,
        "select w.path from working_directories w left join projects p on p.id = ?2"
        " where w.file_id = ?1 order by w.encoded = p.key desc, w.byte_offset limit 1",
        file_id,
        project_id,
    )
    kind = "transcript" if subagent_id is None else "agent"
    return _Owner(kind, source_id, session_id, subagent_id, project_id, key, agent, directory)


def _owner_by_agent(connection: sqlite3.Connection, file_id: int) -> _Owner | None:
    """Return whose sidecar a file is, according to the call that it names; None for others."""
    row = connection.execute(
        "select s.source_id, s.id, a.id, s.project_id, s.session_key, a.agent_key"
        " from agent_metas m join agent_links l on l.file_id = m.file_id"
        " join subagents a on a.agent_key = l.agent_key join sessions s on s.id = a.session_id"
        " where m.file_id = ? limit 1",
        (file_id,),
    ).fetchone()
    return row and _Owner("agent_meta", *row)


def _owner_by_lines(connection: sqlite3.Connection, file_id: int) -> _Owner:
    """Return whose file it is, according to its lines, if it is a conversation."""
    head = tail = b""
    for _, data in archive.sound_pieces(connection, file_id):
        head, tail = head or data[:_LOOKED_AT], data[-_LOOKED_AT:]
    lines = [*head.split(b"\n"), *tail.split(b"\n")]
    stated = (source.whereabouts(lines) for source in SOURCES.values())
    whereabouts = next((each for each in stated if each.session is not None), None)
    if whereabouts is None:
        return _Owner()
    source_id, session_id, project_id = connection.execute(
        "select source_id, id, project_id from sessions where session_key = ? order by id limit 1",
        (whereabouts.session,),
    ).fetchone() or (None, None, None)
    key, agent, directory = whereabouts
    kind = "transcript" if agent is None else "agent"
    return _Owner(kind, source_id, session_id, None, project_id, key, agent, directory)


def _any_source(connection: sqlite3.Connection, file_id: int) -> int:
    """Return a root for a file whose messages do not show one."""
    return int(
        _value_of(
            connection,
            "select source_id from tasks where file_id = ?1"
            " union all select source_id from teams where file_id = ?1"
            " union all select s.source_id from session_entries e"
            "  join sessions s on s.id = e.session_id where e.file_id = ?1"
            " union all select id from (select id from sources order by is_agent desc, id)"
            " limit 1",
            file_id,
        )
        or 1
    )


def _path_of(connection: sqlite3.Connection, owner: _Owner) -> str | None:
    """Return where the transcript of a conversation was, if that is known."""
    source = _source(connection, owner.source_id)
    if source is None or owner.kind != "transcript":
        return None
    key = _value_of(connection, "select key from projects where id = ?", owner.project_id)
    return source.path_of(Whereabouts(owner.session_key, None, owner.directory), key)


def _drop_broken_references(connection: sqlite3.Connection) -> None:
    """Set references to missing rows to null; delete rows that must have one."""
    broken = 'select distinct "table", fkid from pragma_foreign_key_check'
    while references := connection.execute(broken).fetchall():
        for table, number in references:
            keys = connection.execute(f"pragma foreign_key_list({table})").fetchall()
            ((parent, column),) = ((key[2], key[3]) for key in keys if key[0] == number)
            is_needed = _value_of(
                connection,
                'select "notnull" from pragma_table_info(?) where name = ?',
                table,
                column,
            )
            change = f"delete from {table}" if is_needed else f"update {table} set {column} = null"
            connection.execute(f"{change} where {column} not in (select id from {parent})")


def _insert_row(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    """Insert a row unless it exists or lacks a required value; return whether it was inserted."""
    names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
    cursor = connection.execute(f"insert or ignore into {table} ({names}) values ({marks})", row)
    return cursor.rowcount > 0


def _value_of(connection: sqlite3.Connection, query: str, *values: object) -> Any:
    """Return the only value of the first row, None if there is no row."""
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]


# ------------------------------------------------------------------------------------------------
# Which lost rows cannot be derived from any file.
#
# Most rows follow from archived bytes, and come back when everything is derived again. The others
# were only in this database; what the indexes say about lost rows shows whether they are among
# them.


def only_here(connection: sqlite3.Connection, recovered: Recovered) -> list[str]:
    """Return the tables that lost rows which no file contains. All tables have been derived again.

    If no index shows which rows there were, such rows are assumed to be lost.
    """
    lost, traces = recovered.holes, recovered.traces
    return [
        *(
            table
            for table in _NOT_DERIVED
            if table in lost
            and (
                not traces[table].is_complete or _lacks_rows(connection, table, traces[table].rows)
            )
        ),
        *(
            table
            for table in lost
            if table not in _NOT_DERIVED
            and _lacks_rows(connection, table, traces.get(table, Traces()).rows)
        ),
    ]


_NOT_DERIVED = (
    "forgotten", "forgotten_secrets", "tasks", "task_changes", "inbox_items", "prices", "notes",
)  # fmt: skip
"""Tables with rows that no file contains: what was forgotten, what a list contained before it was
rewritten, a price that the user set, what a user noted."""
_MESSAGE_KEY = ("file_id", "byte_offset", "timestamp", "sender", "text_hash", "ordinal")


def _lacks_rows(
    connection: sqlite3.Connection, table: str, lost: dict[int, dict[str, Any]]
) -> bool:
    """Is one of these lost rows missing that no file contains?"""
    if table == "task_changes":
        return any(row.get("file_id") is None for row in lost.values())  # a sync saw the change
    if table == "inbox_items":
        rows = set(connection.execute(f"select {', '.join(_MESSAGE_KEY)} from {table}"))
        return any(tuple(map(row.get, _MESSAGE_KEY)) not in rows for row in lost.values())
    if table == "tasks":
        ids = _ids(
            connection,
            "select id from tasks where coalesce(subject, description, owner, active_form) is null"
            " and channel = 'file'",
        )
        return not ids.isdisjoint(lost)
    if table in _NOT_DERIVED:
        return not lost.keys() <= _ids(connection, f"select id from {table}")
    # Any other row is lost only if its file is gone and was never archived.
    files = _ids(connection, "select id from files where gone_at is not null and offset = 0")
    return any(row.get("file_id") in files for row in lost.values())


def _ids(connection: sqlite3.Connection, query: str) -> set[int]:
    return {id_ for (id_,) in connection.execute(query)}


# ------------------------------------------------------------------------------------------------
# Reads the pages of a damaged database directly from the file.
#
# SQLite finds a row from the root of its table, page by page: if a page on the way is damaged, it
# cannot reach what is after it, even if that is undamaged. Here every page is read, whatever
# points to it, and so are the entries of indexes, which repeat columns of lost rows
# (https://www.sqlite.org/fileformat2.html).
#
# Nothing in a page is trusted before it is checked: a page number can be any number, and a page
# can contain anything. What makes no sense is left out; no content of a file raises an error
# here.


_INDEX_NODE, _TABLE_NODE, _INDEX_LEAF, _TABLE_LEAF = 2, 5, 10, 13
_HEADER = 100  # bytes of the file before its first page
_LISTED = 5  # columns of the schema table
_INTEGERS = (0, 1, 2, 3, 4, 6, 8)  # bytes of an integer, by its serial type

_NONSENSE = (IndexError, ValueError, struct.error)
"""Exceptions of decoding bytes that SQLite did not write."""


class Lost:
    """A value that cannot be read, or only its beginning."""

    def __init__(self, beginning: bytes = b"") -> None:
        self.beginning = beginning


class Cell(NamedTuple):
    """The position of a row on its page: its id, the start and the length of its values."""

    id: int
    place: int
    length: int


class Row(NamedTuple):
    """A row as it is stored: its id, and the values stored with it."""

    id: int
    values: list[Any]
    """None is stored for the id itself; there are no values after the first lost one."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one file. The write-ahead log must be empty: see `opened`."""

    data: mmap.mmap
    size: int
    """Size of a page in bytes."""
    usable: int
    """Bytes of each page that SQLite uses."""

    @property
    def count(self) -> int:
        """The number of pages; the last one may be truncated."""
        return -(-len(self.data) // self.size)

    def page(self, number: int) -> bytes:
        """Return the page with this number, from 1. Raises IndexError if there is none."""
        if not 1 <= number <= self.count:
            raise IndexError(number)
        return self.data[(number - 1) * self.size : number * self.size]

    def leaves(self) -> Iterator[Leaf]:
        """Yield every page with rows of a table that is in use, except the first page."""
        free = self._free()
        for number in range(2, self.count + 1):
            if self.data[(number - 1) * self.size] == _TABLE_LEAF and number not in free:
                yield Leaf(self, number, self.page(number))

    def schema(self) -> list[tuple[str, str, int, str | None]]:
        """Return what the schema table still has: name, name of the table, root page, SQL."""
        listed = []
        for number in self.leaves_of(1):
            try:
                leaf = Leaf(self, number, self.page(number))
            except IndexError:
                continue
            for row in filter(None, map(leaf.row, leaf.cells())):
                if len(row.values) == _LISTED and isinstance(row.values[3], int):
                    _, name, table, root, statement = row.values
                    listed.append((str(name), str(table), root, statement))
        return [item for item in listed if not isinstance(item[3], Lost)]

    def leaves_of(self, root: int) -> set[int]:
        """Return the numbers of the pages with rows that the root of a table leads to."""
        numbers = {root}
        pending = [root]
        while pending:
            try:
                number = pending.pop()
                page, start = self.page(number), _start(number)
                if page[start] == _TABLE_NODE:
                    led = {
                        child
                        for place in (start + 8, *_places(page, start, 12))
                        for child in struct.unpack_from(">I", page, place)
                    }
                    pending += led - numbers
                    numbers |= led
            except _NONSENSE:
                continue
        return numbers

    def _free(self) -> set[int]:
        """Return the free pages: they contain rows that were deleted."""
        numbers: set[int] = set()
        (trunk,) = struct.unpack_from(">I", self.page(1), 32)
        while trunk and trunk not in numbers:
            numbers.add(trunk)
            try:
                page = self.page(trunk)
                trunk, count = struct.unpack_from(">II", page)
                numbers.update(struct.unpack_from(f">{min(count, self.size)}I", page, 8))
            except _NONSENSE:
                break
        return numbers

    def entries(self, root: int) -> Iterator[list[Any]]:
        """Yield the reachable entries of an index; the last value is the id of the row."""
        for page, places in self._nodes(root):
            for place in places:
                try:
                    length, at = _varint(page, place if page[0] == _INDEX_LEAF else place + 4)
                    yield _record(self.payload(page, at, length, _most_of_index(self.usable)))
                except _NONSENSE:
                    continue

    def reaches_all(self, root: int) -> bool:
        return all(page for page, _ in self._nodes(root))

    def _nodes(self, root: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        """Yield the pages of an index, each with the offsets of its cells; b"" if it is not one."""
        pending, seen = [root], set()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            try:
                page = self.page(number)
                if page[0] == _INDEX_NODE:
                    places = _places(page, 0, 12)
                    for place in (8, *places):
                        pending += struct.unpack_from(">I", page, place)
                elif page[0] == _INDEX_LEAF:
                    places = _places(page, 0, 8)
                else:
                    raise ValueError("no page of an index")
            except _NONSENSE:
                yield b"", ()
            else:
                yield page, places

    def payload(self, page: bytes, start: int, length: int, most: int) -> tuple[bytes, int]:
        """Return the readable part of a payload, and its full length."""
        least = (self.usable - 12) * 32 // 255 - 23
        here = length
        if length > most:
            here = least + (length - least) % (self.usable - 4)
            here = here if here <= most else least
        data = page[start : start + here]
        if start + here > self.usable or len(data) < here:
            raise ValueError("a payload that does not end on its page")
        if length == here:
            return data, length
        (further,) = struct.unpack_from(">I", page, start + here)
        return data + self._overflow(further, length - here), length

    def _overflow(self, number: int, length: int) -> bytes:
        """Return the readable rest of a payload, which is on a chain of pages.

        A page that does not lead to a next one was overwritten, so it does not belong to the chain.
        """
        parts: list[bytes] = []
        each = self.usable - 4
        for left in range(-(-length // each), 0, -1):
            try:
                page = self.page(number)
                (number,) = struct.unpack_from(">I", page)
            except _NONSENSE:
                break
            if (number == 0) != (left == 1) or number > self.count or not any(page):
                break
            parts.append(page[4 : 4 + each])
        return b"".join(parts)[:length]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page with rows of an unknown table."""

    pages: Pages
    number: int
    data: bytes

    def cells(self) -> Iterator[Cell]:
        """Yield the positions of its rows, with their ids."""
        try:
            if self.data[_start(self.number)] != _TABLE_LEAF:
                return
            places = _places(self.data, _start(self.number), 8)
        except _NONSENSE:
            return
        for place in places:
            with suppress(*_NONSENSE):
                length, place = _varint(self.data, place)
                id_, place = _varint(self.data, place)
                yield Cell(id_, place, length)

    def row(self, cell: Cell) -> Row | None:
        """Return a row, None if its bytes make no sense."""
        pages = self.pages
        try:
            payload = pages.payload(self.data, cell.place, cell.length, pages.usable - 35)
            return Row(cell.id, _record(payload))
        except _NONSENSE:
            return None


@contextmanager
def opened_pages(path: Path) -> Iterator[Pages]:
    """Yield the pages of a database whose log is empty. Raises ValueError if it has no header."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        (size,) = struct.unpack_from(">H", data, 16)
        size = 65536 if size == 1 else size
        if size < 512 or size & (size - 1):
            raise ValueError("no size of a page")
        yield Pages(data, size, size - data[20])


def _most_of_index(usable: int) -> int:
    """Return the number of bytes of an index entry that are stored on its page."""
    return (usable - 12) * 64 // 255 - 23


def _start(number: int) -> int:
    """Return the offset of the content of a page: on the first page, after the file header."""
    return _HEADER if number == 1 else 0


def _places(page: bytes, start: int, header: int) -> tuple[int, ...]:
    """Return the offsets of the cells of a page; `header` is the length of the page's header."""
    (count,) = struct.unpack_from(">H", page, start + 3)
    return struct.unpack_from(f">{count}H", page, start + header)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    value = 0
    for place in range(at, at + 8):
        byte = data[place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _record(payload: tuple[bytes, int]) -> list[Any]:
    """Decode the values of a row, up to the first incomplete one."""
    data, whole = payload
    end, at = _varint(data, 0)
    place, values = end, []
    while at < end:
        kind, at = _varint(data, at)
        length = _INTEGERS[kind] if kind < 7 else 8 if kind == 7 else max(0, kind - 12) // 2
        if at > end or kind < 0 or kind in (10, 11) or place + length > whole:
            raise ValueError("no record")
        raw = data[place : place + length]
        if len(raw) < length:
            values.append(Lost(raw))
            break
        values.append(_value(kind, raw))
        place += length
    return values


def _value(kind: int, raw: bytes) -> Any:
    if kind == 0:
        return None
    if kind < 7:
        return int.from_bytes(raw, signed=True)
    if kind == 7:
        return struct.unpack(">d", raw)[0]
    if kind < 10:
        return kind - 8
    if kind % 2 == 0:
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Lost()

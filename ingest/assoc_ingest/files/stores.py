"""Stores of other programs, databases and many small files: lists their entries, reads them
without a trace.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..failures import Failure, is_damage, kind_of
from ..paths import is_directory, is_there
from ..records import Issue
from ..source import (
    DATABASE,
    Claim,
    Database,
    KnownFile,
    Table,
    claim_at,
    entry_names,
    entry_path,
    is_entry_key,
)
from . import tail
from .entries import Entry, Lines, Store, content_size, fingerprint_of, is_packed, line_of, opened
from .steps import Listed, Work
from .stored_names import NO_TIME, stored_number
from .tail import MAX_LINE
from .walk import FoundFile, Root, Walk

# ------------------------------------------------------------------------------------------------
# The content of what a sync has to read: of a file, of a packed one, or of an entry of a store.
#
# Whoever compares content uses this, so that it does not matter which of them it is.


@contextmanager
def reading(work: Work) -> Iterator[tuple[int, int]]:
    """Yield a descriptor to read the content from, and its size in bytes. Raises OSError."""
    if work.entry is None:
        with opened(work.found.location) as descriptor:
            yield descriptor, content_size(descriptor, work.found.location, work.found.size)
        return
    with work.entry.open() as lines, tempfile.TemporaryFile() as file:
        size = sum(map(file.write, lines()))
        file.flush()
        yield file.fileno(), size


def most_bytes(work: Work) -> int:
    """Return how large the content can be, as far as is known before it is read."""
    is_known = work.entry is None and not is_packed(work.found.path)
    return work.found.size if is_known else sys.maxsize


# ------------------------------------------------------------------------------------------------
# Reads the databases of other programs without leaving a trace.
#
# SQLite creates files beside a database that it opens, and writes to them, even if it may only
# read. So a database is opened in one of two ways:
#
# - if a log (`-wal`) is beside it, with `readonly_shm`: SQLite sees what is committed, also while
#   the
#   program writes, and writes nothing, not even its marks in `-shm`. If there is no `-shm`, it
#   would
#   have to be created, and the database is left alone;
# - otherwise as immutable, without locks. What was read is discarded if the file has changed or a
#   log
#   has appeared meanwhile.
#
# Each listing and each entry is one short transaction: the program cannot shorten its log before
# it ends. Only the statements of the source run (`entry.Database`), on tables, never on views or
# on columns that are calculated while they are read: there would be no end to what they may do. A
# row with a value of more than `MAX_LINE` bytes is left out, and a line stands for it.


_WAIT = 2.0  # seconds that a locked database is waited for
_PIECE = 256 * 1024  # bytes of lines that are yielded together
_LOGS = ("-wal", "-journal")
_MILLISECOND = 1_000_000
_LEFT_OUT = b"left out: the row has a value of more than 64 MiB"
_word = re.compile(r"\w+")

BUSY = "the database is in use and could not be read; the next sync tries again"
NOT_SQLITE = "the database is damaged, or not a SQLite database"
UNKNOWN_TABLES = "the database has other tables than this version can read"
CALCULATED = "the database calculates a column that this version reads as it is"
TOO_LONG = "the list of conversations in the database has values of more than 64 MiB"
UNREAD_TABLE = "the database has rows in a table that this version cannot read: {}"
ODD_KEYS = "the database has conversations whose keys are not valid"


class _BusyError(OSError):
    """The database cannot be read now."""

    def __init__(self, reason: str = BUSY) -> None:
        super().__init__(errno.EBUSY, reason)


class _UnknownError(Exception):
    """The database is not as the source knows it; the text says how."""


def list_entries(store: Store, found: FoundFile) -> tuple[list[Entry] | None, Listed]:
    """Return the entries of a database, None if they cannot be listed, and what listing showed."""
    layout, location = store.root.source.layout(store.name), store.location
    if layout is None:
        return None, Listed()
    tail.wait_out(tail.changed_ns(found.mtime_ns, found.ctime_ns))
    try:
        with _reading(location) as (connection, check):
            _check_tables(connection, layout)
            rows = _listed(connection, layout)
            issues = tuple(_unread(connection, layout))
            check()
    except _UnknownError as error:
        return None, Listed((Issue(str(error), 1, None, 0, 0),))
    except OSError:
        return None, Listed((Issue(BUSY, 1, None, 0, 0),), is_settled=False)
    above = {key: facts[0] for key, facts in rows.items()}
    counts = {key: _row_count(facts) for key, facts in rows.items()}
    row_size = found.size / max(1, sum(counts.values()))
    entries = [
        Entry(
            entry_path(store.name, key, above),
            location,
            int(row_size * counts[key]),
            max(1, stored_number(_integer(facts[1]) * _MILLISECOND)),
            fingerprint_of([key, *facts]),
            partial(_open_entry, location, layout, key),
        )
        for key, facts in rows.items()
        if is_entry_key(key)
    ]
    if len(entries) < len(rows):
        issues = (*issues, Issue(ODD_KEYS, 0, None, 0, 0))
    return entries, Listed(issues)


def _row_count(facts: Iterable[object]) -> int:
    return sum(_integer(counted[0]) for counted in facts if isinstance(counted, list))


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


# -- opening -------------------------------------------------------------------------------------


@contextmanager
def _reading(location: str) -> Iterator[tuple[sqlite3.Connection, Callable[[], None]]]:
    """Open a database and begin a transaction; also return what checks that it is undisturbed.

    Raises OSError if it cannot be read now, and _UnknownError if it never can as it is.
    """
    before = _stats(location)
    is_live = any(log and log[0] for log in before[1:])
    how = "mode=ro&readonly_shm=1" if is_live else "mode=ro&immutable=1"

    def check() -> None:
        if not is_live and _stats(location) != before:
            raise _BusyError

    try:
        uri = f"{Path(location).as_uri()}?{how}"
        connection = sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
        try:
            connection.text_factory = bytes
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE)
            connection.execute("pragma trusted_schema = off")
            connection.execute("begin")
            yield connection, check
        finally:
            connection.close()
    except sqlite3.Error as error:
        check()  # what was written meanwhile looks damaged
        if is_damage(error):
            raise _UnknownError(NOT_SQLITE) from error
        raise _BusyError from error


def _stats(location: str) -> list[tuple[int, ...]]:
    """Return size, times and identity of a database and its logs; nothing for a missing log."""
    status = os.stat(location)  # noqa: PTH116
    found: list[tuple[int, ...]] = [
        (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    ]
    for suffix in _LOGS:
        log: tuple[int, ...] = ()
        with suppress(FileNotFoundError):
            status = os.stat(f"{location}{suffix}")  # noqa: PTH116
            log = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        found.append(log)
    return found


# -- listing -------------------------------------------------------------------------------------


def _all_tables(layout: Database) -> Iterator[Table]:
    pending = [*layout.tables]
    while pending:
        table = pending.pop()
        yield table
        pending.extend(table.rows)


def _check_tables(connection: sqlite3.Connection, layout: Database) -> None:
    """Raise _UnknownError if one of the tables is missing, or is a view."""
    wanted = {table.name for table in _all_tables(layout)}
    if missing := wanted - _tables(connection):
        raise _UnknownError(f"{UNKNOWN_TABLES}: {', '.join(sorted(missing))}")
    used = {word for text in _texts(layout) for word in _word.findall(text)}
    for table in wanted:
        columns = connection.execute(
            "select name from pragma_table_xinfo(?) where hidden = 2", (table,)
        )
        if any(_text(name) in used for (name,) in columns):
            raise _UnknownError(CALCULATED)


def _texts(layout: Database) -> Iterator[str]:
    yield from (layout.listing, *layout.counts)
    for table in _all_tables(layout):
        yield from (*table.columns, table.where, table.order, table.id, table.json or "")


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "select name from sqlite_master where type = 'table' and rootpage > 0"
    )
    return {_text(name) for (name,) in rows}


def _listed(connection: sqlite3.Connection, layout: Database) -> dict[str, list[Any]]:
    """Return what shows whether an entry has changed, by key; first come `above` and its time."""
    try:
        rows: dict[str, list[Any]] = {}
        for key, above, *facts in connection.execute(layout.listing):
            rows[_text(key)] = [None if above is None else _text(above), *facts]
        for statement in layout.counts:
            for key, *facts in connection.execute(statement):
                if (row := rows.get(_text(key))) is not None:
                    row.append(facts)
    except sqlite3.OperationalError as error:
        if kind_of(error) is Failure.OTHER:  # a column is missing
            raise _UnknownError(UNKNOWN_TABLES) from error
        raise
    except sqlite3.DataError as error:
        raise _UnknownError(TOO_LONG) from error
    return rows


def _unread(connection: sqlite3.Connection, layout: Database) -> Iterator[Issue]:
    there = _tables(connection)
    for name in layout.unread:
        if name in there and connection.execute(f'select 1 from "{name}" limit 1').fetchone():
            yield Issue(UNREAD_TABLE.format(name), 0, None, 0, 0)


# -- one entry -----------------------------------------------------------------------------------


@contextmanager
def _open_entry(location: str, layout: Database, key: str) -> Iterator[Lines]:
    """Open an entry: all of its lines are as they were at one moment. Raises OSError."""
    try:
        with _reading(location) as (connection, check):
            selects = {table: _select(connection, table) for table in _all_tables(layout)}

            def lines() -> Iterator[bytes]:
                held: list[bytes] = []
                size = 0
                for table in layout.tables:
                    for line in _lines(connection, table, selects, key, None):
                        held.append(line)
                        size += len(line)
                        if size >= _PIECE:
                            yield b"".join(held)
                            held, size = [], 0
                check()  # before the last piece, so that nothing of it is stored
                yield b"".join(held)

            yield lines
    except _UnknownError as error:
        raise _BusyError(str(error)) from error


def _select(connection: sqlite3.Connection, table: Table) -> tuple[list[str], str]:
    """Return the columns of a table that this version of the program has, as names and as SQL."""
    rows = connection.execute("select name from pragma_table_info(?)", (table.name,))
    there = {_text(name) for (name,) in rows}
    columns = [column for column in table.columns if column in there]
    named = "".join(f', "{column}"' for column in columns)
    data = f'"{table.json}"' if table.json in there else "null"
    return columns, f'"{table.id}", {data}{named}'


def _lines(
    connection: sqlite3.Connection,
    table: Table,
    selects: dict[Table, tuple[list[str], str]],
    key: str,
    above: object,
) -> Iterator[bytes]:
    """Yield the lines of a table's rows, each followed by those of the rows that belong to it."""
    columns, selected = selects[table]
    for id_, data, *values in _rows(connection, table, selected, {"key": key, "above": above}):
        named = {
            column: _plain(value)
            for column, value in zip(columns, values, strict=False)
            if value is not None
        }
        if data is not None and not isinstance(data, bytes):
            data = str(data).encode()
        identity = _plain(id_)
        yield line_of(table.name, identity, named, data)
        for inner in table.rows:
            yield from _lines(connection, inner, selects, key, identity)


def _rows(
    connection: sqlite3.Connection, table: Table, selected: str, values: dict[str, object]
) -> Iterator[Sequence[Any]]:
    """Yield the selected columns of rows in their order; of one that is too long, its id alone."""
    chosen = f'from "{table.name}" where {table.where} order by {table.order}'
    count = 0
    with suppress(sqlite3.DataError):
        for row in connection.execute(f"select {selected} {chosen}", values):
            yield row
            count += 1
        return
    for rowid, id_ in connection.execute(f'select rowid, "{table.id}" {chosen}', values).fetchall():
        if count:
            count -= 1
            continue
        try:
            yield connection.execute(
                f'select {selected} from "{table.name}" where rowid = ?', (rowid,)
            ).fetchone()
        except sqlite3.DataError:
            yield id_, _LEFT_OUT


def _plain(value: object) -> object:
    return _text(value) if isinstance(value, bytes) else value


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# ------------------------------------------------------------------------------------------------
# Lists the entries of the stores below a root: those of databases, and of many small files.
#
# A database is opened only if it, or the log beside it, has changed. Entries that are missing are
# gone only if all of the store could be listed.


@dataclass(slots=True)
class Listing:
    """The entries of one store, as far as they were listed."""

    store: Store
    known: dict[str, KnownFile]
    entries: list[Entry] | None = None
    """None if nothing has changed, or nothing could be listed: all that was read is kept."""
    database: tuple[FoundFile, KnownFile | None] | None = None
    """A database that was opened: its file, and what the last sync knew about it."""
    listed: Listed | None = None


@dataclass(slots=True)
class Stores:
    """The stores below a root, gathered while it is walked."""

    root: Root
    seen: Walk
    is_limited: bool
    _stores: dict[str, Store] = field(default_factory=dict)
    _files: dict[str, KnownFile | None] = field(default_factory=dict)

    def take(self, found: FoundFile, claim: Claim, known: KnownFile | None) -> bool:
        """Take a file if it is a store, or a part of one; return whether it is."""
        is_database = claim.kind == DATABASE
        if not is_database and claim.within is None:
            return False
        from .entries import Store

        name = claim.within or found.path
        store = self._stores.setdefault(name, Store(self.root, name))
        if is_database:
            store.database = found
            self._files[name] = known
        else:
            store.files.append(found)
        return True

    @property
    def are_there(self) -> bool:
        return bool(self._stores)

    @property
    def is_doubtful(self) -> bool:
        """Do entries consist of files only some of which were listed?"""
        return self.is_limited and any(store.database is None for store in self._stores.values())

    def listings(self, known: dict[str, KnownFile], *, full: bool) -> Iterator[Listing]:
        """Yield what was listed of each store; takes what is known of their entries out of `known`.

        What is known of a store that the walk has not seen is kept, unless that is gone.
        """
        entries: dict[str, dict[str, KnownFile]] = {name: {} for name in self._stores}
        for path, file in known.items():
            if (names := entry_names(path)) is not None and claim_at(self.root.source, path):
                entries.setdefault(names[0], {})[path] = file
        for name, own in sorted(entries.items()):
            if name in self._stores or self._is_unseen(name):
                for path in own:
                    del known[path]
            if name in self._stores:
                yield self._listing(self._stores[name], own, full=full)

    def _listing(self, store: Store, own: dict[str, KnownFile], *, full: bool) -> Listing:
        listing, found, file = Listing(store, own), store.found, self._files.get(store.name)
        if found is None:
            if not self.is_limited and not self._is_hidden(store):
                listing.entries = list(store.entries())
            return listing
        is_read = all(entry.gone_at or entry.mtime_ns != NO_TIME for entry in own.values())
        if file is None or full or not is_read or not found.is_as(file):
            entries, listed = list_entries(store, found)
            listing.entries, listing.database, listing.listed = entries, (found, file), listed
        return listing

    def _is_unseen(self, name: str) -> bool:
        """Did the walk see only a part of an existing store? It saw that a directory is empty."""
        place = self.root.path / name
        is_seen = is_directory(place) and not self.is_limited and not self._has_hidden(str(place))
        return is_there(place) and not is_seen

    def _is_hidden(self, store: Store) -> bool:
        return self._has_hidden(store.location)

    def _has_hidden(self, location: str) -> bool:
        return any(place.startswith(location) for place, _ in self.seen.unreadable)

"""What a sync reads: a file, a packed file, or an entry of another program's store.

A store is a database, or many small files together, and its entries are conversations. It lists
them, each with a fingerprint, so that only those are read that have changed, and it yields the
lines of an entry (`source.entry_path`). Equal content gives equal bytes, so an entry is compared
and archived like a file. Nothing is written beside a store.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ..errors import Failure, is_damage, kind_of
from ..fields import json_bytes, orjson
from ..paths import is_directory, is_there
from ..records import Issue
from ..secrets.forget import ForgottenSecrets
from ..source import (
    DATABASE,
    LEFT_OUT,
    Claim,
    Database,
    EntryLine,
    KnownFile,
    Member,
    Table,
    claim_at,
    entry_names,
    entry_path,
    is_entry_key,
    parts_of,
)
from ..sources.reader import whole_value
from . import tail
from .tail import MAX_LINE, open_regular, pieces
from .walk import (
    NO_TIME,
    PACKED_DAMAGED,
    PACKED_TOO_LARGE,
    UNSTATED_TIME,
    FoundFile,
    Root,
    Walk,
    stored_number,
)

# ------------------------------------------------------------------------------------------------
# Files that an agent has compressed: they are read as what is in them.
#
# A name that ends in `.jsonl.zst` is a log as Zstandard packed it. It is unpacked into a file
# without a name, so everything else sees the lines: a log that is packed, or unpacked again, is
# the same log at another path, and its archive has its lines. A packed file without its end is a
# log with a torn one.
#
# One that is damaged, or holds far more than such a file can, raises PackedError. That is found
# out before a byte of it is on a disk: it is unpacked once to look, a piece at a time, and again
# to a file if it is too large to be held.


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SUFFIX = ".zst"
_PACKED = f".jsonl{_SUFFIX}"
_LARGEST = 8 * 1024**3  # bytes that are unpacked; a small file can hold any number of equal ones
_RATIO = 1000  # a log is packed to a tenth, and a repetitive one to a hundredth
_ALWAYS = 64 * 1024 * 1024  # bytes that are unpacked whatever the ratio is
_HELD = 16 * 1024 * 1024  # bytes that are held in memory instead of being unpacked twice
_UNPACKED_PIECE = 1024 * 1024


class PackedError(OSError):
    """What is in a packed file cannot be read, however often it is tried."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def is_packed(path: str) -> bool:
    """Is the file at a path a packed log, by its name?"""
    return path.endswith(_PACKED)


def unpacked_name(name: str) -> str:
    """Return the name of a file that has what is in a packed one; other names unchanged."""
    return name.removesuffix(_SUFFIX) if is_packed(name) else name


@contextmanager
def opened(path: str) -> Iterator[int]:
    """Open the content of a regular file for reading, and close it at the end."""
    descriptor = open_content(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_content(path: str) -> int:
    """Open the content of a regular file for reading and return its descriptor.

    Raises OSError, and PackedError for a packed file that is damaged or holds too much.
    """
    descriptor = open_regular(path)
    if not is_packed(path):
        return descriptor
    try:
        return _unpacked(descriptor)
    finally:
        os.close(descriptor)


def content_size(descriptor: int, path: str, size: int) -> int:
    """Return how many bytes of an open content to read, if its file had this size before."""
    there = os.fstat(descriptor).st_size
    return there if is_packed(path) else min(size, there)


def _unpacked(descriptor: int) -> int:
    """Return the descriptor of a file without a name that has what is in a packed one."""
    held = _looked_through(descriptor)
    with _nameless(is_small=held is not None) as file:
        for data in _contents(descriptor) if held is None else held:
            file.write(data)
        return os.dup(file.fileno())


def _looked_through(descriptor: int) -> list[bytes] | None:
    """Return what is in a packed file, None if it is too large to be held. Raises PackedError."""
    most = min(_LARGEST, max(_ALWAYS, _RATIO * os.fstat(descriptor).st_size))
    held: list[bytes] = []
    size = 0
    for data in _contents(descriptor):
        size += len(data)
        if size > most:
            raise PackedError(PACKED_TOO_LARGE)
        if size <= _HELD:
            held.append(data)
        else:
            held.clear()
    return held if size <= _HELD else None


def _nameless(*, is_small: bool) -> IO[bytes]:
    if is_small and hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("unpacked"), "w+b", buffering=0)
    from tempfile import TemporaryFile

    return TemporaryFile(buffering=0)


def _contents(descriptor: int) -> Iterator[bytes]:
    frame = zstd.ZstdDecompressor()
    for piece in pieces(descriptor):
        data = piece
        try:
            while data or not (frame.eof or frame.needs_input):
                if frame.eof:
                    frame = zstd.ZstdDecompressor()
                yield frame.decompress(data, _UNPACKED_PIECE)
                data = frame.unused_data if frame.eof else b""
        except zstd.ZstdError:
            raise PackedError(PACKED_DAMAGED) from None


# ------------------------------------------------------------------------------------------------
# Stores, their entries, and what is to be read.


Lines = Callable[[], Iterator[bytes]]
"""Yields the bytes of an entry, in pieces; the same again while the entry is open."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a store as it was listed; `open` reads it, and raises OSError if it cannot."""

    path: str
    location: str
    size: int
    """About how many bytes it will have."""
    changed_ns: int
    fingerprint: int
    open: Callable[[], AbstractContextManager[Lines]]
    may_be_empty: bool = False
    """It is there even if it has no lines: its files are. In a database, it has vanished then."""

    def found(self, known: KnownFile | None) -> FoundFile:
        """Return the entry as if it were a file that the walk has found.

        Its fingerprint takes the place of the inode. Its real size follows when it is read.
        """
        size = known.size if known is not None else self.size
        time = self.changed_ns
        return FoundFile(parts_of(self.path), self.location, size, time, time, self.fingerprint, 0)


@dataclass(frozen=True, slots=True)
class Work:
    """A file to be read: where it lies, what its path claims, and what was read of it."""

    root: Root
    source_id: int
    found: FoundFile
    claim: Claim
    known: KnownFile | None
    forgotten: frozenset[str] = frozenset()
    """Keys of the conversations that are left out of it, see `exclusions`."""
    secrets: ForgottenSecrets = field(default_factory=ForgottenSecrets)
    """Credentials that are left out of it."""
    entry: Entry | None = None
    """How it is read, if it is an entry of a store."""
    listed: Listed | None = None
    """What listing its entries has shown, if it is a database."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What listing the entries of a database has shown."""

    issues: tuple[Issue, ...] = ()
    is_settled: bool = True
    """Until it changes, listing it again would show the same."""


@dataclass(slots=True)
class Store:
    """The files of one store that a walk has found."""

    root: Root
    name: str
    database: FoundFile | None = None
    files: list[FoundFile] = field(default_factory=list)

    @property
    def location(self) -> str:
        """The path of the database or the directory."""
        return self.root.location((self.name,))

    @property
    def found(self) -> FoundFile | None:
        """The database with its log as one file: a change of either shows in size or times."""
        if self.database is None:
            return None
        both = [self.database, *self.files]
        return self.database._replace(
            size=sum(found.size for found in both),
            mtime_ns=max(found.mtime_ns for found in both),
            ctime_ns=max(found.ctime_ns for found in both),
        )

    def entries(self) -> Iterator[Entry]:
        by_parts = {found.parts: found for found in self.files}
        gathered = [
            entry
            for entry in self.root.source.gather(by_parts, lambda parts: _content(by_parts[parts]))
            if is_entry_key(entry.key)
        ]
        above = {entry.key: entry.above for entry in gathered}
        for entry in gathered:
            members = [(member, by_parts[member.parts]) for member in entry.members]
            yield Entry(
                entry_path(self.name, entry.key, above),
                self.location,
                sum(found.size for _, found in members),
                max((max(found.mtime_ns, found.ctime_ns) for _, found in members), default=1),
                fingerprint_of((found.path, *_stat(found)) for _, found in members),
                partial(_open_files, members, entry.lines),
                may_be_empty=True,
            )


def _stat(found: FoundFile) -> tuple[int, ...]:
    return found.size, found.mtime_ns, found.ctime_ns, found.inode, found.device


def fingerprint_of(facts: Iterable[object]) -> int:
    """Return a number for what was listed of an entry: the same as long as that is the same."""
    digest = blake2b(digest_size=8)
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogatepass"))
    return stored_number(int.from_bytes(digest.digest()))


@contextmanager
def _open_files(
    members: Sequence[tuple[Member, FoundFile]],
    arranged: Callable[[Iterable[tuple[Member, bytes]]], Iterable[EntryLine]],
) -> Iterator[Lines]:
    """Open an entry that consists of files."""

    def lines() -> Iterator[bytes]:
        contents = (
            (member, _without(member.withheld, _content(found))) for member, found in members
        )
        for line in arranged(contents):
            yield line_of(*line)

    yield lines


def _content(found: FoundFile) -> bytes:
    with opened(found.location) as descriptor:
        return b"".join(pieces(descriptor))


def _without(withheld: Sequence[str], data: bytes) -> bytes:
    """Return a JSON object without these fields."""
    if not any(field.encode() in data for field in withheld):
        return data
    found = whole_value(data)
    if found is None or not isinstance(found[0], dict):
        return data
    return json_bytes({key: item for key, item in found[0].items() if key not in withheld})


def line_of(table: str, id_: object, columns: Mapping[str, object], data: bytes | None) -> bytes:
    """Return the line of a row: the same bytes whenever the row is the same.

    `data` is a JSON value that stays as it is, except for white space at the borders of its lines;
    if it is anything else, it becomes a text.
    """
    head = {"table": table, "id": id_, **columns}
    if data is None:
        return json_bytes(head) + b"\n"
    if not _is_json(data):
        return json_bytes({**head, "data": data.decode("utf-8", "replace")}) + b"\n"
    if b"\n" in data:
        data = b"".join(map(bytes.strip, data.split(b"\n")))
    return json_bytes(head)[:-1] + b',"data":' + data.strip() + b"}\n"


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return whole_value(data) is not None
    return True


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
    from tempfile import TemporaryFile

    with work.entry.open() as lines, TemporaryFile() as file:
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
#   the program writes, and writes nothing, not even its marks in `-shm`. If there is no `-shm`, it
#   would have to be created, and the database is left alone;
# - otherwise as immutable, without locks. What was read is discarded if the file has changed or a
#   log has appeared meanwhile.
#
# Each listing and each entry is one short transaction: the program cannot shorten its log before
# it ends. Only the statements of the source run (`entry.Database`), on tables, never on views or
# on columns that are calculated while they are read: there would be no end to what they may do. A
# row with a value of more than `MAX_LINE` bytes is left out, and a line says so.


_WAIT = 2.0  # seconds that a locked database is waited for
_PIECE = 256 * 1024  # bytes of lines that are yielded together
_LOGS = ("-wal", "-journal")
_MILLISECOND = 1_000_000
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
            _changed_ns(facts[1]),
            fingerprint_of([key, *facts]),
            partial(_open_entry, location, layout, key),
        )
        for key, facts in rows.items()
        if is_entry_key(key)
    ]
    if len(entries) < len(rows):
        issues = (*issues, Issue(ODD_KEYS, 0, None, 0, 0))
    return entries, Listed(issues)


def _changed_ns(milliseconds: object) -> int:
    if milliseconds is None:
        return UNSTATED_TIME
    return max(1, stored_number(_integer(milliseconds) * _MILLISECOND))


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
    except (sqlite3.Error, UnicodeDecodeError) as error:
        check()  # what was written meanwhile looks damaged
        # SQLite's message quotes the damaged text, which Python cannot always decode.
        if isinstance(error, UnicodeDecodeError) or is_damage(error):
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
    needed = {table.name for table in _all_tables(layout) if not table.is_optional}
    if missing := needed - _tables(connection):
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
            there = _tables(connection)
            selects = {
                table: _select(connection, table)
                for table in _all_tables(layout)
                if table.name in there
            }

            def lines() -> Iterator[bytes]:
                held: list[bytes] = []
                size = 0
                rows = chain.from_iterable(
                    _lines(connection, table, selects, key, None) for table in layout.tables
                )
                for line in rows if layout.lines is None else layout.lines(rows):
                    held.append(line_of(*line))
                    size += len(held[-1])
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
) -> Iterator[EntryLine]:
    """Yield the lines of a table's rows, each followed by those of the rows that belong to it."""
    if table not in selects:
        return
    columns, selected = selects[table]
    for id_, data, *facts in _rows(connection, table, selected, {"key": key, "above": above}):
        named = {
            column: _plain(value)
            for column, value in zip(columns, facts, strict=False)
            if value is not None
        }
        if data is not None and not isinstance(data, bytes):
            data = str(data).encode()
        identity = _plain(id_)
        yield table.name, identity, named, data
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
            query = f'select {selected} from "{table.name}" where rowid = ?'
            yield connection.execute(query, (rowid,)).fetchone()
        except sqlite3.DataError:
            yield id_, LEFT_OUT


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

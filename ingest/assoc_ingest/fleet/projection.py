"""Rows for the server, made from the local database: one snapshot, read-only, a frame at a time.

What a file is on the server: its attributes, and its frames, each with the compressed bytes and
the rows that begin in it. A frame reaches from its first byte to where the next one begins, so that
no row is between two frames; the last frame has no end. Two digests tell whether a frame differs
from what the server has: that of its compressed bytes, and that of its rows.

Counts of a whole file (`line_types`) change with every line. They travel in a frame of their own
that begins at -1, so that the first megabyte of a transcript is not sent again with every line.

A **cursor** says up to which change something was seen. What changed since then is noted
(`store/changes.py`) as long as the cursor is known; otherwise everything has to be compared.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from ..files import archive
from . import rows as statements
from .masks import FileMasks, Masks
from .scope import Scope
from .tables import FILES, KEYED, PLACED, TEXT, Table, short_key

COUNTS_START = -1
"""Where the frame begins that has the counts of a file instead of bytes."""

_AFTER_ALL = 2**62
_UNMASKED = Masks(is_on=False)


class Cursor(NamedTuple):
    """A state of the database that was seen: the last change, and its random mark."""

    change: int
    mark: int


class File(NamedTuple):
    """A file to compare with the server."""

    id: int
    file_key: bytes
    start: int
    """The first place in it where anything changed; after everything if only its counts did."""


class Frame(NamedTuple):
    """A stretch of a file: its bytes, compressed, and the rows that begin in it, by table."""

    start: int
    end: int | None
    """Where the next frame begins; None: the file has no other frame behind it."""
    data: bytes | None
    """None: there are no archived bytes, or they may not leave."""
    digest: bytes
    rows: dict[str, list[tuple[Any, ...]]]
    rows_digest: bytes


class FileContent(NamedTuple):
    """A file as the server has it."""

    file_key: bytes
    attributes: tuple[Any, ...]
    frames: Iterator[Frame]
    is_whole: bool
    """These are all of its frames, not those from the first change on."""


class KeyedSet(NamedTuple):
    """Rows of a keyed table."""

    table: str
    rows: list[tuple[Any, ...]]
    is_whole: bool
    """These are all rows in scope: whatever else the server has was removed."""


def cursor(connection: sqlite3.Connection) -> Cursor | None:
    """Return the present state of the database, None if it does not note what changes."""
    row = connection.execute("select id, mark from changes order by id desc limit 1").fetchone()
    return Cursor(*row) if row else None


def is_known(connection: sqlite3.Connection, seen: Cursor) -> bool:
    """Is everything noted that changed since then?"""
    row = connection.execute("select 1 from changes where id = ? and mark = ?", seen).fetchone()
    return row is not None


def files(connection: sqlite3.Connection, scope: Scope, since: int | None) -> Iterator[File]:
    """Yield the files in scope that changed after `since`; all of them if it is None."""
    if since is None:
        query = f"select id, file_key, {COUNTS_START} from files f where {scope.of_file('f')}"
    else:
        query = (
            f"select f.id, f.file_key, min(coalesce(r.start, {_AFTER_ALL}))"
            " from changed_rows r join files f on f.id = r.row_id"
            " where r.change_id > :since and r.name = 'files' and"
            f" {scope.of_file('f')} group by f.id"
        )
    yield from (
        File(*row) for row in connection.execute(f"{query} order by f.id", {"since": since})
    )


def content(
    connection: sqlite3.Connection, file: File, scope: Scope, masks: Masks | None = None
) -> FileContent:
    """Return a file from the frame on in which `file.start` lies; what is before is unchanged."""
    found = tuple(connection.execute(statements.FILE, (file.id,)).fetchone())
    (attributes,) = (masks or _UNMASKED).rows(FILES, cleaned(FILES, [found]))
    archived = connection.execute(
        'select start, id, "end" from archive where file_id = ? order by start', (file.id,)
    ).fetchall()
    stored = [_Stored(*row) for row in archived]
    # A row must travel with a frame: the first begins where the file does, archived or not.
    if not stored or stored[0].start > 0:
        stored.insert(0, _Stored(0, None, 0))
    first = max(n for n, frame in enumerate(stored) if not n or frame.start <= file.start)
    if file.start >= _AFTER_ALL:
        first = len(stored)
    own = masks.of_file(connection, file.id) if masks is not None else None
    frames = _frames(connection, file.id, scope, stored[first:], own)
    return FileContent(file.file_key, attributes, frames, first == 0)


class _Stored(NamedTuple):
    """A frame in the archive; without an id, there is none."""

    start: int
    id: int | None
    end: int


def _frames(
    connection: sqlite3.Connection,
    file_id: int,
    scope: Scope,
    stored: list[_Stored],
    masks: FileMasks | None,
) -> Iterator[Frame]:
    first = stored[0].start if stored else _AFTER_ALL
    placed = [
        _Rows(connection, table, scope, file_id, COUNTS_START if is_count else first)
        for table in PLACED
        for is_count in [table.name == "line_types"]
    ]
    yield _frame(COUNTS_START, 0, None, placed)
    for number, frame in enumerate(stored):
        end = stored[number + 1].start if number + 1 < len(stored) else None
        row = connection.execute("select data from archive where id = ?", (frame.id,)).fetchone()
        made = _frame(frame.start, end, row and row[0], placed)
        if end is not None or made.data is not None or made.rows:  # an empty file has no frame
            yield made if masks is None else _masked(made, masks, frame.end)


def _masked(frame: Frame, masks: FileMasks, end: int) -> Frame:
    stored = archive.Frame(frame.start, end, frame.data or b"")
    data, rows = masks.applied(stored, frame.rows, is_last=frame.end is None)
    return Frame(
        frame.start, frame.end, data, sha256(data or b"").digest(), rows, rows_digest(rows)
    )


def _frame(start: int, end: int | None, data: bytes | None, placed: list[_Rows]) -> Frame:
    found = {rows.name: taken for rows in placed if (taken := rows.before(end))}
    return Frame(start, end, data, sha256(data or b"").digest(), found, rows_digest(found))


class _Rows:
    """The rows of a file in one table, in the order of their places."""

    def __init__(
        self, connection: sqlite3.Connection, table: Table, scope: Scope, file_id: int, start: int
    ) -> None:
        self.name = table.name
        self._table = table
        self._has_number = table.key[-1] == "row_no"
        self._rows = connection.execute(
            statements.placed(table, scope), {"file": file_id, "start": start}
        )
        self._next = self._rows.fetchone()

    def before(self, end: int | None) -> list[tuple[Any, ...]]:
        """Return the next rows up to a place, all if it is None."""
        if self._next is None:
            return []
        taken: list[tuple[Any, ...]] = []
        number, last = 0, None
        while self._next is not None and (end is None or self._next[0] < end):
            row = tuple(self._next)
            number = number + 1 if row[0] == last else 0
            last = row[0]
            taken.append((row[0], number, *row[1:]) if self._has_number else row)
            self._next = self._rows.fetchone()
        return list(cleaned(self._table, taken))


def keyed(
    connection: sqlite3.Connection, scope: Scope, since: int | None, masks: Masks | None = None
) -> Iterator[KeyedSet]:
    """Yield the keyed tables of which anything changed after `since`; all of them if it is None.

    `sources` is there with any other: the time of the last sync is not noted as a change.
    """
    for table in KEYED:
        changed = _changed(connection, table.name, since)
        if changed is not None and not changed:
            continue
        ids = None if changed is None else json.dumps(changed)
        rows = connection.execute(statements.keyed(table, scope), {"ids": ids})
        found = (masks or _UNMASKED).rows(table, cleaned(table, map(tuple, rows)))
        yield KeyedSet(table.name, list(found), changed is None)


def _changed(connection: sqlite3.Connection, table: str, since: int | None) -> list[int] | None:
    """Return the ids of the rows that changed; None: compare all, because one was removed."""
    if since is None or table == "sources":
        return None
    rows = connection.execute(
        "select distinct row_id from changed_rows where change_id > ? and name = ?", (since, table)
    ).fetchall()
    ids = [id_ for (id_,) in rows]
    return None if None in ids else ids


def gone_file_keys(connection: sqlite3.Connection, since: int | None) -> list[bytes]:
    """Return the keys of files forgotten after `since`: what the server has of them has to go."""
    rows = connection.execute(
        "select file_key from forgotten_files where change_id > ? order by id",
        (-1 if since is None else since,),
    )
    return [key for (key,) in rows]


def database_key(connection: sqlite3.Connection) -> str:
    """Return the name of the database as a UUID; one made anew has another."""
    (key,) = connection.execute("select database_key from identity").fetchone()
    return str(UUID(bytes=key))


# -- values --------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What may have to be changed in the rows of a table."""

    texts: tuple[int, ...]
    cut: tuple[int, ...]
    needed: tuple[tuple[int, str | int], ...]
    """Columns of the key, which are never null, with what stands there instead."""


@cache
def _plan(table: Table) -> _Plan:
    columns = table.columns
    return _Plan(
        tuple(place for place, column in enumerate(columns) if column.type == TEXT),
        tuple(place for place, column in enumerate(columns) if column.is_cut),
        tuple(
            (place, "" if column.type == TEXT else 0)
            for place, column in enumerate(columns)
            if column.name in table.key
        ),
    )


def cleaned(table: Table, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows as the server can store them: no NUL in a text, keys not too long for an index."""
    texts, cut, needed = _plan(table)
    for row in rows:
        values = list(row)
        for place in texts:
            text = values[place]
            if text and "\0" in text:
                values[place] = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        for place in cut:
            if values[place]:
                values[place] = short_key(values[place])
        for place, default in needed:
            if values[place] is None:
                values[place] = default
        yield tuple(values)


def rows_digest(rows: dict[str, list[tuple[Any, ...]]]) -> bytes:
    """Return the digest of the rows of a frame, by table: equal rows have equal digests."""
    digest = sha256()
    for table in sorted(rows):
        digest.update(table.encode())
        for row in rows[table]:
            digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.digest()

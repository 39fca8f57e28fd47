"""Which files of this database are those that the server has under other keys.

A file has its key for as long as a database has the file. One that comes back after `prune`, or is
read anew by a database that was restored from a backup, or made anew, gets another. The server has
it under the key of before, and would have all that it says twice.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from ..files.archive import first_bytes
from ..store.batch import Batch
from ..store.clock import Clock
from . import projection
from .fetched import pulled_key
from .local import Local
from .masks import Masks
from .projection import Cursor
from .push import introduced
from .scope import EVERYTHING
from .server import Beginning, Server
from .state import State

_COMPARED = 1024
"""Bytes that have to be the same at the beginning of a file that somebody says is the same."""

_COMPARED_UNASKED = 1 << 20
"""As many, at most, of one that nobody said is the same: it would replace what the server has."""

_ENOUGH = 128 * 1024
"""The least of them, unless the file is shorter: a first frame is rarely smaller, see `archive`."""


class Rename(NamedTuple):
    """A file of this database, and the key under which the server knows it."""

    id: int
    key: bytes
    """That of the server."""
    was: bytes


def came_back(local: Local, server: Server, state: State, since: Cursor | None) -> list[Rename]:
    """Return the files that the server would get as new ones, and has already.

    Of those in scope that were read from their beginning after `since`, or of all. A file that is
    shorter than the server's is another one: what the server has beyond it must not get lost. So is
    one whose key a file of this database has, or one that was forgotten here.
    """
    connection = local.connection
    new = {file.id for file in local.files(since and since.change) if file.start <= 0}
    if not new:
        return []
    known = introduced(server, state, state.save)
    rows = connection.execute(
        "select f.file_key, s.kind, s.root, f.path from json_each(?) j"
        " cross join files f on f.id = j.value cross join sources s on s.id = f.source_id",
        (json.dumps(sorted(new)),),
    )
    there = server.same_places(known.origin_id, rows.fetchall())
    return [
        rename
        for rename in same_files(connection, there, local.masks)
        if rename.id in new and not _has(connection, "files", rename.key)
    ]


def _has(connection: sqlite3.Connection, table: str, key: bytes) -> bool:
    row = connection.execute(f"select 1 from {table} where file_key = ?", (key,)).fetchone()
    return row is not None


def give_keys(connection: sqlite3.Connection, uuid: str, found: list[Rename]) -> None:
    """Give files the keys that the server has for them, and remove what was pulled of them."""
    pulled = [pulled_key(uuid, rename.key) for rename in found]
    ids = [
        id_
        for key in pulled
        for (id_,) in connection.execute("select id from files where file_key = ?", (key,))
    ]
    with Batch(connection, Clock(connection).now()) as batch:
        if ids:
            batch.remove(ids)
        # Another file may have a key, in a database that was restored from a copy.
        connection.executemany(
            "update files set file_key = randomblob(16) where file_key = :key and id <> :id",
            [rename._asdict() for rename in found],
        )
        connection.executemany(
            "update files set file_key = :key where id = :id and file_key = :was",
            [rename._asdict() for rename in found],
        )


class _Here(NamedTuple):
    """A file of this database, and its first frame."""

    id: int
    file_key: bytes
    size: int
    data: bytes | None


def same_files(
    connection: sqlite3.Connection, beginnings: Iterable[Beginning], masks: Masks
) -> list[Rename]:
    """Return the files of this database that the server has, each at most once.

    Not those that were forgotten here: what the server has of them has to go.
    """
    found: list[Rename] = []
    for place, group in groupby(beginnings, lambda there: (there.kind, there.root, there.path)):
        rows = connection.execute(
            "select f.id, f.file_key, f.size from files f join sources s on s.id = f.source_id"
            " where s.kind = ? and s.root = ? and f.path = ? order by f.generation desc",
            place,
        )
        here = [
            _Here(id_, key, size, _beginning(connection, id_, key, masks))
            for id_, key, size in rows.fetchall()
        ]
        if here:
            found += _pairs(here, list(group))
    return [rename for rename in found if not _has(connection, "forgotten_files", rename.key)]


def _beginning(
    connection: sqlite3.Connection, file_id: int, file_key: bytes, masks: Masks
) -> bytes | None:
    file = projection.File(file_id, file_key, projection.COUNTS_START)
    content = projection.content(connection, file, EVERYTHING, masks)
    return next((frame.data for frame in content.frames if frame.start == 0), None)


def _pairs(here: list[_Here], there: list[Beginning]) -> Iterator[Rename]:
    """Match the generations of a path: those that have their keys, then the newest first."""
    keys = {known.file_key for known in there}
    kept = {file.file_key for file in here} & keys
    others = [known for known in there if known.file_key not in kept]
    for file in here:
        if file.file_key in kept:
            yield Rename(file.id, file.file_key, file.file_key)
            continue
        same = next((known for known in others if _is_same(file, known)), None)
        if same is not None:
            others.remove(same)
            yield Rename(file.id, same.file_key, file.file_key)


def _is_same(file: _Here, known: Beginning) -> bool:
    if file.data is None or known.data is None:
        return file.data is known.data
    compared = _COMPARED if known.size is None else _COMPARED_UNASKED
    ours, theirs = (first_bytes(data, compared) for data in (file.data, known.data))
    length = min(len(ours), len(theirs))
    if known.size is not None and (
        known.size > file.size
        or length < (min(len(theirs), _ENOUGH) if known.is_whole else _ENOUGH)
    ):
        return False
    return length > 0 and ours[:length] == theirs[:length]

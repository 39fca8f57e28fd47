"""Recognises forgotten data at other paths: in a home that was moved or copied, or under new names.

If a path names a conversation by a uuid, that decides (`exclusions.is_of`). Of other files, these
are ignored before anything of them is stored:

1. Copies: a document with exactly the bytes of a forgotten file, or a log that begins with them. A
   document whose rows are matched by key is a copy at the same path only: tasks have no times, and
   two lists can begin with the same one.
2. Everything that is forgotten in a root of which this one is a copy. A root that was never read
   before is a copy of another one if most of its logs are in both at the same paths, and if a log
   begins with the same bytes, or a document from which something was left out is the same. If all
   that is known is that a forgotten conversation is in both roots, this applies only to what was
   forgotten with it: its plan, its pasted texts, the team that it led.

What is recognised is recorded in `forgotten`, as if it had been forgotten there. A file that was
incomplete when it was first read, and now turns out to be a copy, is removed; its traces are left
to `compact`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..files.exclusions import (
    Exclusion,
    Forgotten,
    Originals,
    is_left_out,
    key_in_root,
    places_above,
)
from ..files.stores import Work, reading
from ..files.tail import Prefix, pieces, resume
from ..source import LOG, Checkpoint
from ..store.batch import Batch
from ..store.database import Clock
from ..store.known_files import known_file
from ..store.replay import agents_may_change

Home = tuple[str, str]
"""A root, and the key of a forgotten conversation that has files in it."""


@dataclass(slots=True)
class Returned:
    """What a sync recognised as forgotten at another path."""

    exclusions: list[Exclusion] = field(default_factory=list)
    """Rows to add to `forgotten`."""
    copies: dict[int, Exclusion] = field(default_factory=dict)
    """Ids of stored files that turned out to be copies, and what they are copies of."""


def without_forgotten(
    connection: sqlite3.Connection | None,
    forgotten: Forgotten,
    work: list[Work],
    homes: set[Home],
) -> tuple[list[Work], Returned]:
    """Return the files to be read, without those that turn out to be forgotten.

    `homes` are those of files whose path assigns them to a forgotten conversation.
    """
    returned = Returned()
    if connection is None or not forgotten.exclusions:
        return work, returned
    originals, kept = Originals(forgotten.exclusions), []
    for item in work:
        original = originals.of(item)
        if original is None:
            kept.append(item)
            continue
        returned.exclusions += _learned(item, original)
        if item.known is not None:
            returned.copies[item.known.id] = original
    by_root: dict[str, list[Work]] = {}
    for item in kept:
        by_root.setdefault(item.root.name, []).append(item)
    for root, items in by_root.items():
        if not _was_read(connection, root):
            keys = {key for place, key in homes if place == root}
            returned.exclusions += _of_copied_root(connection, forgotten, root, items, keys)
    if not returned.exclusions:
        return kept, returned
    forgotten = Forgotten.of([*forgotten.exclusions, *returned.exclusions])
    return [
        replace(item, forgotten=forgotten.keys_in(item.root.name))
        for item in kept
        if not forgotten.covers(item.root.name, item.found.path, item.claim)
    ], returned


def _learned(item: Work, original: Exclusion) -> Iterator[Exclusion]:
    """Yield the exclusions that follow from a copy.

    Not its path, if it is a document at another path: when it changes, it may be another document.
    """
    root = item.root.name
    if item.root.source.shape(item.claim) == LOG or item.found.path == original.path:
        yield Exclusion(original.session_key, item.found.path, root)
    if key := key_in_root(original, item.claim):
        yield Exclusion(key, None, root)


def _was_read(connection: sqlite3.Connection, root: str) -> bool:
    row = connection.execute(
        "select 1 from files f join sources s on s.id = f.source_id where s.root = ? limit 1",
        (root,),
    ).fetchone()
    return row is not None


def _of_copied_root(
    connection: sqlite3.Connection,
    forgotten: Forgotten,
    root: str,
    items: list[Work],
    keys: set[str],
) -> Iterator[Exclusion]:
    """Yield the exclusions of a root that follow from those of the root that it is a copy of.

    `keys` are those of forgotten conversations in it.
    """
    others = {
        exclusion.root for exclusion in forgotten.exclusions if exclusion.root not in (None, root)
    }
    same = {other for other in others if other and _is_copy(connection, other, items)}
    there = {place for item in items for place in places_above(item.found.path)}
    for exclusion in forgotten.exclusions:
        is_here = exclusion.root in same or (
            exclusion.root in others and exclusion.session_key in keys
        )
        if is_here and (exclusion.path is None or exclusion.path in there):
            yield Exclusion(exclusion.session_key, exclusion.path, root)


def _is_copy(connection: sqlite3.Connection, other: str, items: list[Work]) -> bool:
    """Is the root of these files a copy of another root that was read before?"""
    rows = connection.execute(
        "select f.path from files f join sources s on s.id = f.source_id where s.root = ?", (other,)
    )
    there = {path for (path,) in rows}
    logs = [item for item in items if item.root.source.shape(item.claim) == LOG]
    common = sum(item.found.path in there for item in logs)
    return 2 * common >= len(logs) and any(_is_from(connection, other, item) for item in items)


def _is_from(connection: sqlite3.Connection, root: str, item: Work) -> bool:
    """Does another root have a file with the same origin at this path?"""
    row = connection.execute(
        "select f.id from files f join sources s on s.id = f.source_id"
        " where s.root = ? and s.kind = ? and f.path = ? order by f.generation desc",
        (root, item.root.source.name, item.found.path),
    ).fetchone()
    known = known_file(connection, row[0]) if row is not None else None
    if known is None or known.checkpoint.head_hash is None:
        return False
    is_log = item.root.source.shape(item.claim) == LOG
    if not (known.checkpoint.offset if is_log else is_left_out(connection, known.id)):
        return False
    mark = known.checkpoint
    try:
        with reading(item) as (descriptor, size):
            if is_log:
                return resume(descriptor, size, mark, thorough=True) is not None
            return known.size == size and _unarchived(descriptor) == mark
    except OSError:
        return False


def _unarchived(descriptor: int) -> Checkpoint:
    """Return the checkpoint of a document whose hash alone is stored, see `changes`."""
    prefix = Prefix()
    for data in pieces(descriptor):
        prefix = prefix.extended(data)
    return prefix._replace(offset=0, head=b"").checkpoint()


def note(connection: sqlite3.Connection, returned: Returned) -> None:
    """Record in one transaction what was found, and remove what had been read of it."""
    if not returned.exclusions and not returned.copies:
        return
    with Batch(connection, Clock(connection).now()) as batch, agents_may_change(batch):
        connection.executemany(
            "insert into forgotten (session_key, path, root, forgotten_at, is_pending)"
            " values (?, ?, ?, ?, 0) on conflict do nothing",
            ((*exclusion[:3], batch.now) for exclusion in dict.fromkeys(returned.exclusions)),
        )
        connection.executemany(
            "update forgotten set is_pending = 1 where content_hash = ?",
            ((s.content.fingerprint,) for s in returned.copies.values() if s.content),
        )
        batch.remove(returned.copies, everywhere=True)

"""Forgotten data that is somewhere else: in a home that was moved or copied, at another path.

Where a path names a conversation by a uuid, that decides (`exclusions.is_of`). Of other files,
these are left alone before anything of them is stored:

1. Copies: a document that has exactly the bytes of a forgotten file, and a log that begins with
   them. A document whose rows are kept by key is a copy at the same path only: tasks have no times,
   and two lists may well begin with the same one.
2. What is forgotten in a root that was moved or copied. A root that was never read before is a copy
   of another if most of its logs are there at the same paths, and one begins with the same bytes or
   a document is the same from which something was left out. All that is forgotten in the one is
   forgotten in the other then, be it edited or not. If it is only known that a forgotten
   conversation is in both, that is so for what was forgotten with it: its plan, its pasted texts,
   the team that it led.

What was found is noted in `forgotten`, as if it had been forgotten there. A copy that was not whole
when it was read, and now turns out to be one, is removed, and its traces are left to `compact`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ..files.exclusions import (
    Content,
    Exclusion,
    Forgotten,
    content_of,
    is_left_out,
    is_unique_key,
    owners,
    places_above,
)
from ..files.steps import Work
from ..files.tail import Prefix, opened, pieces, resume
from ..source import LOG, UNREAD, Checkpoint, Claim, parts_of
from ..store.batch import Batch, known_file
from ..store.clock import Clock
from ..store.upserts import OF_THEIR_PLACE

Home = tuple[str, str]
"""A root, and the key of a forgotten conversation that has files in it."""


@dataclass(slots=True)
class Returned:
    """What a sync found to be forgotten, though it is elsewhere."""

    exclusions: list[Exclusion] = field(default_factory=list)
    """Rows that `forgotten` is to have."""
    copies: dict[int, Exclusion] = field(default_factory=dict)
    """Ids of files that were taken for something else, and what they are copies of."""


class Originals:
    """The forgotten files by which copies of them are recognised."""

    def __init__(self, exclusions: Iterable[Exclusion]) -> None:
        self._by_length: dict[int, list[Exclusion]] = {}
        for exclusion in exclusions:
            if exclusion.content is not None:
                self._by_length.setdefault(exclusion.content.length, []).append(exclusion)
        self._lengths = sorted(self._by_length)

    def fitting(
        self, claim: Claim, path: str, size: int, *, is_log: bool, read: int = 0
    ) -> dict[Content, Exclusion]:
        """Return what a file of this size may be a copy of.

        Of a log, the first `read` bytes have been looked at before.
        """
        if is_log:
            lengths = [length for length in self._lengths if read < length <= size]
        else:
            lengths = [size] if size in self._by_length else []
        if not lengths:
            return {}
        named = owners(claim, parts_of(path))
        found = [
            exclusion
            for length in lengths
            for exclusion in self._by_length[length]
            if (exclusion.path == path or claim.kind not in OF_THEIR_PLACE)
            and all(owner in (exclusion.path or "").lower() for owner in named)
        ]
        found.sort(
            key=lambda exclusion: exclusion.path == path
        )  # of equal ones, that at the same path
        return {
            exclusion.content: exclusion for exclusion in found if exclusion.content is not None
        }

    def of(self, work: Work) -> Exclusion | None:
        """Return what a file on the disk is a copy of, None if it is none or cannot be read."""
        shape = work.root.source.shape(work.claim)
        if shape == UNREAD:
            return None
        originals = self.fitting(
            work.claim,
            work.found.path,
            work.found.size,
            is_log=shape == LOG,
            read=work.known.checkpoint.offset if work.known is not None else 0,
        )
        if not originals:
            return None
        try:
            with opened(work.found.location) as descriptor:
                return first_of(originals, pieces(descriptor))
        except OSError:
            return None  # reading it will show


def first_of(originals: dict[Content, Exclusion], parts: Iterable[bytes]) -> Exclusion | None:
    """Return the first of these with which the pieces of a file begin."""
    lengths = sorted({content.length for content in originals}, reverse=True)
    prefix = Prefix()
    for data in parts:
        start = 0
        while lengths and prefix.offset + len(data) - start >= lengths[-1]:
            end = start + lengths.pop() - prefix.offset
            prefix, start = prefix.extended(data[start:end]), end
            content = content_of(prefix.checkpoint())
            if content in originals:
                return originals[content]
        if not lengths:
            return None
        prefix = prefix.extended(data[start:])
    return None


def key_in_root(original: Exclusion, claim: Claim) -> str | None:
    """Return the key of the conversation that a copy is of, if it means it in the copy's root only.

    That root then holds the conversation: other files and lists there are about it, too.
    """
    key = claim.session_key
    is_same = key is not None and key == original.session_key and not is_unique_key(key)
    return key if is_same else None


# -- in a sync -----------------------------------------------------------------------------------


def sort_out(
    connection: sqlite3.Connection | None,
    forgotten: Forgotten,
    work: list[Work],
    homes: set[Home],
) -> tuple[list[Work], Returned]:
    """Return the files that are to be read, without those that are forgotten after all.

    `homes` are those of the files that their path gives to a forgotten conversation.
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
    """Yield what a copy shows about its root.

    A document at another path is checked again whenever it changes: it may become another one.
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
    """Yield what is forgotten in a root because it is forgotten in one that it is a copy of.

    `keys` are those of forgotten conversations that are in it.
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
    """Is the root of these files a copy of another, which was read before?"""
    rows = connection.execute(
        "select f.path from files f join sources s on s.id = f.source_id where s.root = ?", (other,)
    )
    there = {path for (path,) in rows}
    logs = [item for item in items if item.root.source.shape(item.claim) == LOG]
    common = sum(item.found.path in there for item in logs)
    return 2 * common >= len(logs) and any(_is_from(connection, other, item) for item in items)


def _is_from(connection: sqlite3.Connection, root: str, item: Work) -> bool:
    """Does a file lie at this path in another root, too, and go back to the same one?"""
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
    size, mark = item.found.size, known.checkpoint
    try:
        with opened(item.found.location) as descriptor:
            if is_log:
                return resume(descriptor, size, mark, thorough=True) is not None
            return known.size == size and _unarchived(descriptor) == mark
    except OSError:
        return False


def _unarchived(descriptor: int) -> Checkpoint:
    """Return the checkpoint of a document that is known by its hash only, see `changes`."""
    prefix = Prefix()
    for data in pieces(descriptor):
        prefix = prefix.extended(data)
    return replace(prefix, offset=0, head=b"").checkpoint()


def note(connection: sqlite3.Connection, returned: Returned) -> None:
    """Note in one transaction what was found, and remove what had been read of it."""
    if not returned.exclusions and not returned.copies:
        return
    with Batch(connection, Clock(connection).now()) as batch:
        connection.executemany(
            "insert into forgotten (session_key, path, root, forgotten_at, is_pending)"
            " values (?, ?, ?, ?, 0) on conflict do nothing",
            ((*exclusion[:3], batch.now) for exclusion in dict.fromkeys(returned.exclusions)),
        )
        connection.executemany(
            "update forgotten set is_pending = 1 where content_hash = ?",
            ((s.content.fingerprint,) for s in returned.copies.values() if s.content),
        )
        batch.remove(returned.copies)

"""Compares what was read with the files that are still on disk.

A file that has changed since the last sync is not a problem: the next sync reads it. The problem is
a file of which bytes that were read have changed, if no sync would read it again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .. import humanize
from ..files.changes import is_odd
from ..files.entries import Entry
from ..files.exclusions import load, load_secrets
from ..files.packed import open_content
from ..files.replay import claim_of
from ..files.scanning import Walk
from ..files.steps import Work
from ..files.stored_names import original_root
from ..files.stores import Stores
from ..files.tail import MAX_LINE, Prefix, prefix_of, resume
from ..files.walk import WHOLE, Found, Root, root_at, walk
from ..paths import is_directory, why_unknown
from ..pulled_roots import PULLED
from ..source import DATABASE, DOCUMENT, LOG, PRIVATE, UNKNOWN_CONTENT, Claim, KnownFile, parts_of
from ..sources import SOURCES
from ..store.known_files import KnownFiles
from .findings import SYNC, SYNC_FULL, Finding
from .moved_copies import Originals

_BROKEN = "select distinct file_id from issues where quarantined = 1"

Advance = Callable[[int], None]
"""Called with the number of bytes that were just compared."""


@dataclass(slots=True)
class OnDisk:
    """The result of a comparison: problems, and what the next sync will take care of."""

    findings: list[Finding] = field(default_factory=list)
    missing_roots: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    compared: int = 0

    def warnings(self) -> Iterator[Finding]:
        """Yield one warning for each kind of change that a sync will take care of."""
        readable = "Make it readable and run verify again."
        reconnect = "If its disk is not mounted, mount it and run verify again."
        for paths, noun, what, remedy in (
            (self.missing_roots, "root", "missing (rows are kept)", reconnect),
            (self.changed, "file", "new or changed since the last sync", SYNC),
            (self.vanished, "file", "gone since the last sync (rows are kept)", SYNC),
            (self.unreadable, "place", "not readable and therefore not compared", readable),
        ):
            if paths:
                problem = f"{humanize.many(len(paths), noun)} {what}, such as {paths[0]}."
                yield Finding("disk", problem, remedy)


def compare_with_disk(connection: sqlite3.Connection, advance: Advance) -> OnDisk:
    """Compare the checksums of all files that are not gone with the files themselves."""
    seen = OnDisk()
    broken = {id_ for (id_,) in connection.execute(_BROKEN)}
    is_forgotten = _recogniser(connection)
    roots = connection.execute("select id, kind, root from sources order by id").fetchall()
    for source_id, kind, place in roots:
        if kind not in SOURCES or place.startswith(PULLED):
            continue
        path = original_root(place)
        if is_directory(path):
            known = KnownFiles(connection, source_id, WHOLE).all()
            root = root_at(SOURCES[kind], path, SOURCES)
            _compare_root(root, known, is_forgotten, broken, seen, advance)
        elif why_unknown(path) is None:
            seen.missing_roots.append(place)
        else:
            seen.unreadable.append(place)
    return seen


def _compare_root(
    root: Root,
    known: dict[str, KnownFile],
    is_forgotten: Callable[[Root, Found, Claim], bool],
    broken: set[int],
    seen: OnDisk,
    advance: Advance,
) -> None:
    listing = Walk()
    stores = Stores(root, listing, is_limited=False)
    for found in walk(root, listing):
        file = known.pop(found.path, None)
        claim = root.source.claim(found.parts) if file is None or file.kind == DATABASE else None
        if claim is not None and stores.take(found, claim, file):
            continue
        if file is None:
            if claim is not None and not is_forgotten(root, found, claim):
                seen.changed.append(found.location)
        elif file.gone_at is not None:
            seen.changed.append(found.location)
        else:
            _compare_file(root, found, file, seen, is_broken=file.id in broken)
            advance(min(found.size, file.size))
    _compare_entries(root, stores, known, is_forgotten, seen, advance)
    for file in known.values():
        place = root.location(parts_of(file.path))
        if file.gone_at is None and not listing.hides(place):
            seen.vanished.append(place)
    seen.unreadable += [place for place, _ in listing.unreadable]


def _compare_entries(
    root: Root,
    stores: Stores,
    known: dict[str, KnownFile],
    is_forgotten: Callable[[Root, Found, Claim], bool],
    seen: OnDisk,
    advance: Advance,
) -> None:
    """Compare the entries of stores; takes them out of `known`."""
    for listing in stores.listings(known, full=True):
        for entry in listing.entries or ():
            file = listing.known.pop(entry.path, None)
            found, place = entry.found(file), root.location((entry.path,))
            claim = root.source.claim(found.parts)
            if file is not None and file.gone_at is None and found.is_as(file):
                _compare_entry(root, entry, file, seen)
                advance(file.size)
            elif claim is not None and not is_forgotten(root, found, claim):
                seen.changed.append(place)
        if listing.entries is not None:
            left = (file for file in listing.known.values() if file.gone_at is None)
            seen.vanished += [root.location((file.path,)) for file in left]
        elif listing.database is not None:
            seen.unreadable.append(listing.store.location)


def _compare_entry(root: Root, entry: Entry, known: KnownFile, seen: OnDisk) -> None:
    prefix = Prefix()
    try:
        with entry.open() as lines:
            for data in lines():
                prefix = prefix.extended(data)
    except OSError:
        seen.unreadable.append(root.location((entry.path,)))
        return
    seen.compared += 1
    if prefix.checkpoint() != known.checkpoint:
        problem = "The entry has changed, but nothing shows that it has."
        seen.findings.append(Finding("file", problem, SYNC_FULL, root.name, entry.path))


def _recogniser(connection: sqlite3.Connection) -> Callable[[Root, Found, Claim], bool]:
    """Return a function that says whether a sync ignores a file because it is forgotten."""
    forgotten = load(connection)
    originals = Originals(forgotten.exclusions)
    secrets = load_secrets(connection)

    def is_forgotten(root: Root, found: Found, claim: Claim) -> bool:
        if forgotten.covers(root.name, found.path, claim) or secrets.are_in(found.path):
            return True
        return originals.of(Work(root, 0, found, claim, None)) is not None

    return is_forgotten


def _compare_file(
    root: Root, found: Found, known: KnownFile, seen: OnDisk, *, is_broken: bool
) -> None:
    claim = claim_of(root.source, known)
    shape = root.source.shape(claim) if claim is not None else None
    if known.checkpoint.head_hash is None or shape not in (
        LOG, DOCUMENT, PRIVATE, UNKNOWN_CONTENT,
    ):  # fmt: skip
        return  # it was never read
    try:
        descriptor = open_content(found.location)
    except FileNotFoundError:
        seen.vanished.append(found.location)
        return
    except OSError:
        seen.unreadable.append(found.location)
        return
    try:
        size = os.fstat(descriptor).st_size
        if shape == LOG:
            problem = _compare_log(descriptor, size, found, known)
        else:
            problem = _compare_document(descriptor, size, known, shape == PRIVATE)
            if is_broken or not found.is_as(known):
                problem = None  # its last readable version is kept, or the next sync reads it
    except OSError:
        seen.unreadable.append(found.location)
        return
    finally:
        os.close(descriptor)
    seen.compared += 1
    if problem is not None:
        seen.findings.append(Finding("file", problem, SYNC_FULL, root.name, found.path))
    elif not found.is_as(known):
        seen.changed.append(found.location)


def _compare_log(descriptor: int, size: int, found: Found, known: KnownFile) -> str | None:
    """Return the problem, None if nothing has changed or a sync would notice the change."""
    if resume(descriptor, size, known.checkpoint, thorough=True) is not None:
        return None
    if not found.is_as(known):
        odd = is_odd(known, found)
        if resume(descriptor, size, known.checkpoint, thorough=odd) is None:
            return None
    return "Bytes read earlier have changed in a way that a normal sync does not detect."


def _compare_document(descriptor: int, size: int, known: KnownFile, is_private: bool) -> str | None:
    if size > MAX_LINE or (known.checkpoint.offset == 0 and not is_private):
        return None  # it was never read, or it is binary: there is nothing to compare
    prefix = prefix_of(descriptor, size)
    if is_private:  # only its hash is stored, see `changes`
        prefix = prefix._replace(offset=0, head=b"")
    if prefix.checkpoint() == known.checkpoint:
        return None
    return "The document has changed, but its modification time has not."

"""What a sync has to do: which files changed below the roots, which are gone.

A file whose stat has not changed since the last sync is not opened. No file is marked as gone if
its root is missing or empty (an unmounted disk leaves an empty directory), or if its directory
cannot be listed.

A plan can be limited to places where something has changed. If such a plan cannot decide something,
it is doubtful, and all roots have to be walked: a missing file may have moved anywhere, and of
several hard links the first one counts, wherever it is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..files.agent_files import AgentFiles
from ..files.exclusions import Forgotten, load_secrets, owners
from ..files.exclusions import load as load_forgotten
from ..files.scanning import Walk
from ..files.stores import Stores
from ..files.walk import WHOLE, Found, Place, Root, apart, walk
from ..secrets.forget import ForgottenSecrets
from ..source import DATABASE, LOG, UNREAD, Claim, KnownFile, parts_of
from ..store.known_files import KnownFiles
from ..store.report import Report

if TYPE_CHECKING:
    from ..files.steps import Work
    from ..upkeep.moved_copies import Home, Returned

_NAME_LEFT_OUT = "its name has a forgotten credential. To have it read, rename it."

Places = Mapping[Root, Collection[Place]]
"""The places below each root to which a plan is limited."""


@dataclass(slots=True)
class Plan:
    """What a sync has to do, according to the directories."""

    roots: list[Root] = field(default_factory=list)
    work: list[Work] = field(default_factory=list)
    gone: list[tuple[Root, KnownFile]] = field(default_factory=list)
    forgotten: Forgotten = field(default_factory=Forgotten)
    secrets: ForgottenSecrets = field(default_factory=ForgottenSecrets)
    homes: set[Home] = field(default_factory=set)
    """The forgotten conversations that have files in the roots."""
    returned: Returned | None = None
    """The forgotten conversations that were recognised at other paths."""
    directories: dict[str, int] = field(default_factory=dict)
    """The directories that were listed, with their inodes."""
    is_doubtful: bool = False
    """The places to which it is limited are not enough to decide what has to be done."""

    @property
    def has_work(self) -> bool:
        """Is anything to be done?"""
        return bool(self.work or self.gone or self.returned)

    @property
    def bytes(self) -> int:
        """Bytes to be read, if files have only grown."""
        return sum(_unread(work) for work in self.work)


def make_plan(
    connection: sqlite3.Connection | None,
    roots: Iterable[Root],
    report: Report,
    *,
    full: bool,
    places: Places | None = None,
) -> Plan:
    """Walk the roots and return what has to be read. With `full`, every file is compared.

    With `places`, only those are walked, and the plan can turn out to be doubtful.
    """
    plan = Plan(list(roots), forgotten=load_forgotten(connection), secrets=load_secrets(connection))
    ids = source_ids(connection)
    linked = 0
    for root in plan.roots:
        source_id = ids.get((root.source.name, root.name))
        limits = WHOLE if places is None else apart(places[root])
        known = KnownFiles(connection, source_id, limits)
        linked += _plan_root(plan, root, source_id or 0, known, report, full, limits).linked
    if plan.work and plan.forgotten.exclusions and connection is not None:
        from ..upkeep.moved_copies import without_forgotten

        plan.work, plan.returned = without_forgotten(
            connection, plan.forgotten, plan.work, plan.homes
        )
    _let_know_agents(connection, plan.work)
    if places is not None:
        is_new_link = linked > 0 and bool(plan.work)
        plan.is_doubtful |= is_new_link or _may_have_moved(connection, plan)
    return plan


def is_large(roots: Iterable[Root], size: int) -> bool:
    """Have roots of which nothing was read so many bytes? It looks no further than that.

    A store counts as its files, whatever the size of its entries is.
    """
    for root in roots:
        for found in walk(root, Walk(), WHOLE, set()):
            claim = root.source.claim(found.parts)
            if claim is None:
                continue
            is_of_store = claim.kind == DATABASE or claim.within is not None
            if is_of_store or root.source.shape(claim) != UNREAD:
                size -= found.size
                if size <= 0:
                    return True
    return False


def _let_know_agents(connection: sqlite3.Connection | None, work: list[Work]) -> None:
    """Add to each transcript's claim the subagents that have files of their own."""
    agents = AgentFiles(connection)
    found: dict[Root, set[str]] = {}
    for item in work:
        if item.claim.agent_key is not None:
            found.setdefault(item.root, set()).add(item.claim.agent_key)
    new = {root: frozenset(keys) for root, keys in found.items()}
    for place, item in enumerate(work):
        keys = new.get(item.root, frozenset())
        claim = agents.with_files(item.root.source, item.source_id, item.claim, keys)
        if claim is not item.claim:  # a first sync has very many; one each is enough
            work[place] = replace(item, claim=claim)


def _may_have_moved(connection: sqlite3.Connection | None, plan: Plan) -> bool:
    """Is a file missing, or may a new file be a known one under another name?"""
    if plan.gone or connection is None:
        return True
    return any(
        connection.execute(
            "select 1 from files where inode = ? and device = ? and gone_at is null",
            (work.found.inode, work.found.device),
        ).fetchone()
        for work in plan.work
        if work.known is None
    )


def source_ids(connection: sqlite3.Connection | None) -> dict[tuple[str, str], int]:
    """Return the ids of the rows of `sources` by kind and root."""
    if connection is None:
        return {}
    rows = connection.execute("select kind, root, id from sources")
    return {(kind, root): source_id for kind, root, source_id in rows}


def _plan_root(
    plan: Plan,
    root: Root,
    source_id: int,
    stored: KnownFiles,
    report: Report,
    full: bool,
    places: Collection[Place],
) -> Walk:
    seen = Walk(directories=plan.directories)
    stores = Stores(root, seen, is_limited=places != WHOLE)
    to_read: list[Work] = []
    stats = set() if full else stored.stats()
    unchanged = len(stats)
    there = list(_without_secrets(walk(root, seen, places, stats), plan.secrets, report))
    unchanged -= len(stats)
    report.files_seen += unchanged
    is_bare = not there and not unchanged
    paths = {stat[0] for stat in stats}.union(found.path for found in there)
    known = stored.all() if full else stored.at(paths)
    forgotten = plan.forgotten.keys_in(root.name)
    work_on = partial(_work, root, source_id, forgotten=forgotten, secrets=plan.secrets)
    for found in there:
        file = known.pop(found.path, None)
        if file is not None and file.kind != DATABASE and found.is_as(file) and not full:
            report.files_seen += 1
            continue
        claim = root.source.claim(found.parts)
        if claim is not None and not stores.take(found, claim, file):
            to_read.append(work_on(found, claim, file))
    if stores.are_there and not full:
        known = stored.gone_entries() | known
    to_read += _of_stores(plan, root, work_on, stores, known, report, full)
    for work in filter(report.may_be_read, to_read):
        if plan.forgotten.covers(root.name, work.found.path, work.claim):
            keys = owners(work.claim, work.found.parts)
            plan.homes.update((root.name, key) for key in keys)
            continue
        report.files_seen += 1
        plan.work.append(work)
    report.symlinks += seen.symlinks
    report.unreadable += seen.unreadable
    if is_bare and places == WHOLE and _is_empty(root) and stored.all():
        report.missing_roots.append(root.name)
        return seen
    for file in known.values():
        if file.gone_at is None and not seen.hides(root.location(parts_of(file.path))):
            plan.gone.append((root, file))
    return seen


def _without_secrets(
    there: Iterable[Found], secrets: ForgottenSecrets, report: Report
) -> Iterator[Found]:
    """Yield the files whose names have no forgotten credential; the report names the others."""
    for found in there:
        if secrets.are_in(found.path):
            report.unreadable.append((secrets.covered(found.location), _NAME_LEFT_OUT))
        else:
            yield found


def _of_stores(
    plan: Plan,
    root: Root,
    work_on: Callable[..., Work],
    stores: Stores,
    known: dict[str, KnownFile],
    report: Report,
    full: bool,
) -> Iterator[Work]:
    """Yield what is to be read of stores, a database after its entries; note what is gone."""
    plan.is_doubtful |= stores.is_doubtful
    for listing in stores.listings(known, full=full):
        for entry in listing.entries or ():
            file = listing.known.pop(entry.path, None)
            found = entry.found(file)
            claim = root.source.claim(found.parts)
            if file is not None and found.is_as(file) and not full:
                report.files_seen += 1
            elif claim is not None:
                yield work_on(found, claim, file, entry=entry)
        left = [file for file in listing.known.values() if file.gone_at is None]
        if listing.entries is None:
            report.files_seen += len(left)
        else:
            plan.gone += [(root, file) for file in left]
        if listing.database is not None:
            found, file = listing.database
            claim = Claim(root.source.name, DATABASE)
            yield work_on(found, claim, file, listed=listing.listed)
        elif listing.store.database is not None:
            report.files_seen += 1


def _work(*about: Any, **more: Any) -> Work:
    from ..files.steps import Work  # mostly, nothing is to be read

    return Work(*about, **more)


def _is_empty(root: Root) -> bool:
    """Is the root's directory empty or missing?"""
    try:
        with os.scandir(root.path) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False  # elsewhere it is reported that it cannot be read


def _unread(work: Work) -> int:
    known = work.known
    shape = work.root.source.shape(work.claim)
    if shape == UNREAD:
        return 0
    if known is None or shape != LOG:
        return work.found.size
    return max(0, work.found.size - known.checkpoint.offset)

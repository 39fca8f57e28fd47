"""What a sync has to do: which roots, which files changed in them, which are gone.

The roots are those that the user names, or the defaults and all that were ever named. A file
whose stat is as the last sync left it is not opened. A root that is missing, or a directory that
cannot be listed, marks nothing as gone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from .discover import ASSOCIATE, Root, Walk, default_roots, recognised, walk
from .errors import NotFoundError, UsageError
from .forgotten import Forgotten
from .forgotten import load as load_forgotten
from .model import LOG, UNREAD, Claim, KnownFile
from .outcome import Report
from .reading import Work
from .sources import SOURCES
from .store import KEYED_KINDS, known_files
from .tail import open_regular, resume


@dataclass(slots=True)
class Plan:
    """What a sync has to do, as the directories show it."""

    work: list[Work] = field(default_factory=list)
    gone: list[tuple[Root, KnownFile]] = field(default_factory=list)
    forgotten: Forgotten = field(default_factory=Forgotten)

    @property
    def bytes(self) -> int:
        """Bytes to be read, were every file only appended to."""
        return sum(_unread(work) for work in self.work)


def find_roots(
    connection: sqlite3.Connection | None,
    given: list[Root],
    only: str | None,
    report: Report,
) -> list[Root]:
    """Return the roots to read: those given, else the defaults and the remembered ones.

    Raises NotFoundError, which says where was looked, if there is none.
    """
    roots = {(root.source.name, root.path): root for root in given}
    if not given:
        looked = default_roots(os.environ, _project_paths(connection))
        for path in looked:
            if path.is_dir():
                for root in _shaped(path, only):
                    roots.setdefault((root.source.name, root.path), root)
        for kind, path in _remembered(connection, only):
            if not path.is_dir():
                report.missing_roots.append(str(path))
            elif kind in SOURCES:
                roots.setdefault((kind, path), Root(SOURCES[kind], path))
        if not roots and not report.missing_roots:
            places = ", ".join(str(path) for path in looked if path.name != ASSOCIATE)
            raise NotFoundError(
                f"No home of a coding agent found (looked at {places}). "
                "Name one: assoc-ingest sync PATH"
            )
    report.roots = [str(root.path) for root in roots.values()]
    return list(roots.values())


def _project_paths(connection: sqlite3.Connection | None) -> list[str]:
    """Return the directories of known projects that are on this disk."""
    if connection is None:
        return []
    rows = connection.execute("select path from projects where on_disk = 1 order by path")
    return [path for (path,) in rows]


def _shaped(path: Path, only: str | None) -> list[Root]:
    try:
        return recognised(path, SOURCES, only)
    except UsageError:  # a default directory that is there but holds nothing of ours
        return []


def _remembered(
    connection: sqlite3.Connection | None, only: str | None
) -> Iterator[tuple[str, Path]]:
    if connection is None:
        return
    for kind, root in connection.execute("select kind, root from sources order by id"):
        if only in (None, kind):
            yield kind, Path(root)


def make_plan(
    connection: sqlite3.Connection | None, roots: Iterable[Root], report: Report, *, full: bool
) -> Plan:
    """Walk the roots and return what has to be read. With `full`, every file is looked at."""
    plan = Plan(forgotten=load_forgotten(connection))
    ids = source_ids(connection)
    for root in roots:
        source_id = ids.get((root.source.name, str(root.path)))
        known = {}
        if connection is not None and source_id is not None:
            known = {file.path: file for file in known_files(connection, source_id)}
        _plan_root(plan, root, source_id or 0, known, report, full)
    return plan


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
    known: dict[str, KnownFile],
    report: Report,
    full: bool,
) -> None:
    seen = Walk(unreadable=report.unreadable)
    first_unreadable = len(report.unreadable)
    for found in walk(root, seen):
        path = found.path
        file = known.pop(path, None)
        if file is not None and found.is_as(file) and not full:
            report.files_seen += 1
            continue
        claim = root.source.claim(found.parts)
        if claim is None or plan.forgotten.covers(str(root.path), path, claim):
            continue
        report.files_seen += 1
        forgotten = plan.forgotten.keys_in(str(root.path))
        plan.work.append(Work(root, source_id, found, claim, file, forgotten))
    report.symlinks += seen.symlinks
    hidden = [f"{place}/" for place, _ in report.unreadable[first_unreadable:]]
    for file in known.values():
        place = f"{root.path}/{file.path}"
        if file.gone_at is None and not any(place.startswith(prefix) for prefix in hidden):
            plan.gone.append((root, file))


def _unread(work: Work) -> int:
    known = work.known
    shape = work.root.source.shape(work.claim)
    if shape == UNREAD:
        return 0
    if known is None or shape != LOG:
        return work.found.size
    return max(0, work.found.size - known.checkpoint.offset)


def match_moved(plan: Plan) -> set[int]:
    """Give each new file that is a vanished one under another path that one's row.

    The two agree in what their paths claim, and the new one begins with all that was read of
    the old. Returns the ids of the files found again.
    """
    vanished: dict[tuple[object, ...], list[KnownFile]] = {}
    for root, file in plan.gone:
        claim = root.source.claim(tuple(file.path.split("/")))
        if claim is not None and file.checkpoint.offset:
            vanished.setdefault(_identity(root, claim), []).append(file)
    moved = set()
    for place, work in enumerate(plan.work if vanished else ()):
        candidates = vanished.get(_identity(work.root, work.claim), [])
        known = _same_content(work, candidates) if work.known is None else None
        if known is not None:
            plan.work[place] = replace(work, known=known)
            candidates.remove(known)
            moved.add(known.id)
    return moved


def _identity(root: Root, claim: Claim) -> tuple[object, ...]:
    # Rows that are kept by key say whose they are: the same list of another agent is another list.
    place = claim.parts if claim.kind in KEYED_KINDS else None
    return root.path, claim.kind, claim.session_key, claim.agent_key, place


def _same_content(work: Work, candidates: list[KnownFile]) -> KnownFile | None:
    if not candidates:
        return None
    try:
        descriptor = open_regular(work.found.location)
    except OSError:
        return None  # reading it will tell
    try:
        for file in candidates:
            if resume(descriptor, work.found.size, file.checkpoint, thorough=True):
                return file
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return None

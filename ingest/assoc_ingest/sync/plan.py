"""What a sync has to do: its roots, which files changed, moved or are gone, and which places a
change touches.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AmbiguousHomeError, NotFoundError, UnreadableError, UsageError
from ..files.exclusions import AgentFiles, Forgotten, load_secrets, owners
from ..files.exclusions import load as load_forgotten
from ..files.stores import Stores, Work, most_bytes, opened, reading
from ..files.tail import resume
from ..files.walk import (
    WHOLE,
    FoundFile,
    ListedDirectory,
    Root,
    Walk,
    apart,
    default_roots,
    directories_in_homes,
    is_empty,
    original_parts,
    original_root,
    recognised,
    root_at,
    stored_name,
    stored_root,
    unnamed_files,
    unnamed_roots,
    walk,
)
from ..paths import PULLED, is_absolute, is_directory, is_file, obstacle, real_path, why_unknown
from ..secrets.forget import ForgottenSecrets
from ..source import DATABASE, LOG, OF_THEIR_PLACE, UNREAD, Claim, KnownFile, claim_at, parts_of
from ..sources import SOURCES
from ..store.database import Clock, transaction
from ..store.known_files import KnownFiles, known_file

if TYPE_CHECKING:
    from ..store.rows import Written
    from .copies import Home, Returned


@dataclass(slots=True)
class Report:
    """What a sync did. The first eight fields are the columns of `sync_runs`."""

    started_at: str
    id: int | None = None
    finished_at: str | None = None
    files_read: int = 0
    bytes_read: int = 0
    rows: int = 0
    issues: int = 0
    error: str | None = None
    is_running: bool = False
    """The row `id` exists and has no end."""
    is_continued: bool = False
    """The row `id` has the counts of passes before; those of this one are added."""
    unfinished: int | None = None
    """The id of a file that is only partly read so far: it counts once."""
    clock_behind: str | None = None
    """The newest time in the database, if the system clock is behind it."""
    files_seen: int = 0
    files_gone: int = 0
    files_rebuilt: int = 0
    quarantined: int = 0
    symlinks: int = 0
    seconds: float = 0.0
    roots: list[str] = field(default_factory=list)
    missing_roots: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    refused: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Files that may not be opened, with their stat and the reason. Whoever syncs again and again
    keeps it: a file is tried again when its stat changes."""

    def may_be_read(self, work: Work) -> bool:
        """May a file be tried? If not, it is reported as before."""
        stat, reason = self.refused.get(work.found.location, (None, ""))
        if stat != work.found[2:]:
            return True
        self.unreadable.append((work.found.location, reason))
        return False

    def add(self, written: Written) -> None:
        """Add the counts of a committed batch."""
        self.rows += written.rows
        self.issues += written.issues
        self.quarantined += written.quarantined


# ------------------------------------------------------------------------------------------------
# The directories of projects on this machine: which of them exist.
#
# This is the only place where a path from a transcript is looked up on disk: an absolute path,
# and only to see whether it exists.


def look_at_directories(connection: sqlite3.Connection, plan: Plan) -> None:
    """Record which projects have an empty directory; those that have nothing else come and go."""
    ids = source_ids(connection)
    kept: set[tuple[int, str]] = set()
    new = {
        (ids[root.source.name, root.name], key): name
        for root, name in sorted(plan.empty, key=itemgetter(1), reverse=True)
        if (key := root.source.project_key(name)) is not None
    }
    changes: dict[tuple[int, str], str | None] = {}
    roots = {ids[root.source.name, root.name]: root for root in plan.roots}
    rows = connection.execute(
        "select source_id, key, directory from projects where directory is not null"
    )
    for source_id, key, directory in rows:
        root = roots.get(source_id)
        above = root.source.directory_of_projects if root is not None else None
        if root is None or above is None or _is_empty(root):
            continue
        with suppress(OSError):  # it is as it was
            if is_empty(root.location((above, directory))):
                kept.add((source_id, key))
            else:
                changes[source_id, key] = None
    changes |= {place: name for place, name in new.items() if place not in kept}
    if changes:
        from ..store.batch import Batch

        with Batch(connection, Clock(connection).now()) as batch:
            batch.note_directories(changes)


def look_at_projects(connection: sqlite3.Connection) -> None:
    """Record which projects are on this disk, and which of them are worktrees."""
    changes = []
    rows = connection.execute(
        "select id, path, parent_id is not null or repository is not null, on_disk, is_worktree"
        " from projects where path is not null or on_disk is not null"
    )
    for project_id, path, is_known, *before in rows:
        is_there = path is not None and is_absolute(path) and is_directory(path)
        is_worktree = int(is_file(f"{path}/.git")) if is_there else is_known or None
        on_disk = None if path is None else int(is_there)  # the lines that stated it may be gone
        if before != [on_disk, is_worktree]:
            changes.append((on_disk, is_worktree, project_id))
    if changes:
        with transaction(connection):
            connection.executemany(
                "update projects set on_disk = ?, is_worktree = ? where id = ?", changes
            )


# ------------------------------------------------------------------------------------------------
# Finds the roots: those that the user gives, or the defaults and all that were ever given.
#
# A failing root does not affect the others. If a root is missing or cannot be read, that is
# reported, and its rows are kept.


Given = Root | Path
"""What the user gives: a root, or a path that could not be read yet and is tried again."""

_Roots = dict[tuple[str, Path], Root]


def given_roots(paths: Sequence[Path], only: str | None) -> list[Given]:
    """Return the roots at these paths, or the paths that cannot be read yet.

    Raises UsageError for a path that is not a root, and if none of them can be read.
    """
    given: list[Given] = []
    failure: UnreadableError | None = None
    for path in paths:
        try:
            given += recognised(path, SOURCES, only)
        except UnreadableError as error:
            given.append(path)
            failure = error
    if failure is not None and not any(isinstance(item, Root) for item in given):
        raise failure
    return given


def find_roots(
    connection: sqlite3.Connection | None,
    given: Sequence[Given],
    only: str | None,
    report: Report,
) -> list[Root]:
    """Return the roots to read: those given, otherwise the defaults and the remembered ones.

    Raises NotFoundError, which lists the paths that were searched, if there is none.
    """
    roots = _named(given, only, report) if given else _known(connection, only, report)
    report.roots = [root.name for root in roots.values()]
    report.unreadable += [
        (f"the source {name} of {package}", why) for name, package, why in SOURCES.unusable
    ]
    _tell_failures(report)
    return list(roots.values())


def _tell_failures(report: Report) -> None:
    """Report what sources of packages failed at; they are asked again in the next sync."""
    for source in SOURCES.values():
        if source.failure is not None:
            report.unreadable.append((f"homes of {source.label}", source.failure))
            source.failure = None


def root_paths(
    connection: sqlite3.Connection, given: Sequence[Given], only: str | None
) -> list[Path]:
    """Return the paths at which `find_roots` looks, whether or not they exist."""
    if given:
        return [item.path if isinstance(item, Root) else item for item in given]
    remembered = [path for _, path in _remembered(connection, only)]
    return [*default_roots(os.environ, _project_paths(connection)), *remembered]


def _named(given: Sequence[Given], only: str | None, report: Report) -> _Roots:
    roots: _Roots = {}
    for item in given:
        path = item.path if isinstance(item, Root) else item
        if not _is_here(path, report):
            continue
        try:
            found = [item] if isinstance(item, Root) else recognised(path, SOURCES, only)
        except UnreadableError as error:
            _tell(report, path, error.reason)
        except AmbiguousHomeError as error:
            _tell(report, path, error.reason)
        except UsageError:  # it is not a root any more
            report.missing_roots.append(stored_root(path))
        else:
            roots.update(((root.source.name, root.path), root) for root in found)
    return roots


def _known(connection: sqlite3.Connection | None, only: str | None, report: Report) -> _Roots:
    looked = default_roots(os.environ, _project_paths(connection))
    remembered = list(_remembered(connection, only))
    unread: list[tuple[Path, str]] = []
    roots: _Roots = {(root.source.name, root.path): root for root in _shaped(looked, only, unread)}
    for kind, path in remembered:
        if _is_here(path, report) and kind in SOURCES and (kind, path) not in roots:
            roots[kind, path] = root_at(SOURCES[kind], path, SOURCES)
    known = {path for _, path in remembered}
    unread = [(path, why) for path, why in unread if not any(map(path.is_relative_to, known))]
    if not roots and not remembered:
        raise NotFoundError(_nothing_found(looked, unread))
    for path, why in unread:
        _tell(report, path, why)
    return roots


_MOST_PLACES = 15  # that are named; those of extensions are dozens, one for each editor


def _nothing_found(looked: list[Path], unread: list[tuple[Path, str]]) -> str:
    inner = directories_in_homes(SOURCES)
    places = [str(path) for path in looked if path.name not in inner]
    more = len(places) - _MOST_PLACES
    named = ", ".join(places[:_MOST_PLACES]) + (f" and {more} more places" if more > 0 else "")
    because = "".join(f" Could not read {path}: {why}." for path, why in dict.fromkeys(unread))
    return (
        f"No home directory of a coding agent found (looked at {named}).{because} "
        "Give one: assoc-ingest sync PATH"
    )


def _is_here(path: Path, report: Report) -> bool:
    """Does the directory of a root exist? If not, or if that is unknown, the report says so."""
    if is_directory(path):
        return True
    why = why_unknown(path)
    if why is None:
        report.missing_roots.append(stored_root(path))
    else:
        _tell(report, path, why)
    return False


def _tell(report: Report, path: Path, why: str) -> None:
    if (str(path), why) not in report.unreadable:
        report.unreadable.append((str(path), why))


def _project_paths(connection: sqlite3.Connection | None) -> list[str]:
    """Return the directories of known projects that are on this disk."""
    if connection is None:
        return []
    rows = connection.execute("select path from projects where on_disk = 1 order by path")
    return [path for (path,) in rows]


def _shaped(paths: list[Path], only: str | None, unread: list[tuple[Path, str]]) -> Iterator[Root]:
    """Yield the roots among these paths; those that cannot be read are added to `unread`."""
    for path in paths:
        if not is_directory(path):
            if (found := obstacle(path)) is not None:
                unread.append(found)
            continue
        try:
            yield from recognised(path, SOURCES, only)
        except UnreadableError as error:
            unread.append((real_path(error.place), error.reason))
        except AmbiguousHomeError as error:
            unread.append((real_path(path), error.reason))
        except UsageError:
            pass  # it exists, but contains nothing to read


def _remembered(
    connection: sqlite3.Connection | None, only: str | None
) -> Iterator[tuple[str, Path]]:
    if connection is None:
        return
    for kind, root in connection.execute("select kind, root from sources order by id"):
        if only in (None, kind) and not root.startswith(PULLED):
            yield kind, original_root(root)


# ------------------------------------------------------------------------------------------------
# What a sync has to do: which files changed below the roots, which are gone.
#
# A file whose stat has not changed since the last sync is not opened. No file is marked as gone
# if its root is missing or empty (an unmounted disk leaves an empty directory), or if its
# directory cannot be listed.
#
# A plan can be limited to places where something has changed. If such a plan cannot decide
# something, it is doubtful, and all roots have to be walked: a missing file may have moved
# anywhere, and of several hard links the first one counts, wherever it is.


_NAME_LEFT_OUT = "its name contains a forgotten credential. To read it, rename it."

Places = Mapping[Root, Collection[ListedDirectory]]
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
    empty: list[tuple[Root, str]] = field(default_factory=list)
    """The directories of projects that are empty: their roots and names."""
    is_doubtful: bool = False
    """The places to which it is limited are not enough to decide what has to be done."""

    @property
    def has_work(self) -> bool:
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
        if root.source.failure is not None:  # it may not have claimed a file that is there
            plan.gone = [(of, file) for of, file in plan.gone if of is not root]
            _tell_failures(report)
    if plan.work and plan.forgotten.exclusions and connection is not None:
        from .copies import without_forgotten

        plan.work, plan.returned = without_forgotten(
            connection, plan.forgotten, plan.work, plan.homes
        )
    _let_know_agents(connection, plan)
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


def _let_know_agents(connection: sqlite3.Connection | None, plan: Plan) -> None:
    """Add to each transcript's claim the subagents that have files of their own."""
    agents = AgentFiles(connection, plan.returned.exclusions if plan.returned else ())
    work = plan.work
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
    places: Collection[ListedDirectory],
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
    plan.empty += _empty_projects(root, seen, plan)
    if is_bare and places == WHOLE and _is_empty(root) and stored.all():
        report.missing_roots.append(root.name)
        return seen
    for file in known.values():
        if file.gone_at is None and not seen.hides(root.location(parts_of(file.path))):
            plan.gone.append((root, file))
    return seen


def _empty_projects(root: Root, seen: Walk, plan: Plan) -> Iterator[tuple[Root, str]]:
    """Yield the empty directories of projects, but none that is forgotten, or whose name has a
    forgotten credential.
    """
    above = root.source.directory_of_projects
    if above is None:
        return
    for path in seen.empty:
        head, name = os.path.split(path)
        if head != root.location((above,)) or plan.secrets.are_in(stored_name(name)):
            continue
        key = root.source.project_key(stored_name(name))
        if key is None or not plan.forgotten.has_project(root.name, above, key):
            yield root, stored_name(name)


def _without_secrets(
    there: Iterable[FoundFile], secrets: ForgottenSecrets, report: Report
) -> Iterator[FoundFile]:
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
    from ..files.stores import Work  # mostly, nothing is to be read

    return Work(*about, **more)


def _is_empty(root: Root) -> bool:
    """Is the root's directory empty or missing?"""
    try:
        return not root.path.exists() or is_empty(str(root.path))
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


# ------------------------------------------------------------------------------------------------
# Maps changed paths to the places that a sync has to visit.


def places_of(changed: Iterable[str], roots: Iterable[Root]) -> Places:
    """Return the places below the roots that a sync has to visit for these absolute paths.

    For a file, that is its directory; for a directory, the directory and everything below it, since
    the system does not report what was in it when it appeared. A path that no source would walk to
    is ignored.
    """
    changed = list(changed)
    found: dict[Root, set[ListedDirectory]] = {}
    for root in roots:
        above = str(root.path)
        for path in changed:
            if path == above or path.startswith(above + os.sep):
                parts = tuple(map(stored_name, Path(path).relative_to(root.path).parts))
                if places := _places(root, parts, path):
                    found.setdefault(root, set()).update(places)
    return found


def _places(root: Root, parts: tuple[str, ...], path: str) -> set[ListedDirectory]:
    source = root.source
    if not all(source.descends(parts[:length]) for length in range(1, len(parts))):
        return set()
    is_directory = is_file = True  # a path that is gone may have been either
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        is_directory, is_file = stat.S_ISDIR(mode), stat.S_ISREG(mode)
    places = set()
    if is_directory and (not parts or source.descends(parts)):
        places.add(ListedDirectory(parts))
    if is_file and parts and source.claim(parts) is not None:
        places.add(ListedDirectory(parts[:-1], is_deep=False))
    return places


# ------------------------------------------------------------------------------------------------
# Finds the files of a plan that are known under other paths: they moved.


def match_moved(plan: Plan) -> set[int]:
    """Match new files with vanished ones, whose rows they take over.

    The two have the same claim, apart from the path, and the new one begins with all the bytes that
    were read of the old one. Returns the ids of the files found again.
    """
    vanished: dict[tuple[object, ...], list[KnownFile]] = {}
    for root, file in plan.gone:
        claim = claim_at(root.source, file.path)
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
    place = claim.parts if claim.kind in OF_THEIR_PLACE else None
    return root.path, claim.kind, claim.session_key, claim.agent_key, claim.named_agent, place


def _same_content(work: Work, candidates: list[KnownFile]) -> KnownFile | None:
    if not candidates:
        return None
    try:
        with reading(work) as (descriptor, size):
            for file in candidates:
                if resume(descriptor, size, file.checkpoint, thorough=True):
                    return file
    except OSError:
        pass  # reading it will fail, too
    return None


# ------------------------------------------------------------------------------------------------
# Finds files and roots on disk whose paths were lost with a damaged page.
#
# Such a file keeps its rows and its archive under a placeholder path (`walk.placeholder`). A new
# file with the same bytes is that file: it takes over the row and is read again, so that the
# tables end up as if nothing had been lost. A root is found by one of its files.


_TRIED = 100  # files of a lost root that are looked for


def find_lost_files(connection: sqlite3.Connection, plan: Plan) -> set[int]:
    """Let files of a plan take over the rows of lost ones that have the same bytes.

    Also finds files that came back and of which a part was lost. Returns the ids of the files whose
    path is known again. Raises sqlite3.Error.
    """
    found_again: dict[int, int] = {}
    unnamed = [
        file
        for file_id in unnamed_files(connection)
        if (file := known_file(connection, file_id)) is not None and file.checkpoint.offset
    ]
    unnamed.sort(
        key=lambda file: -file.checkpoint.offset
    )  # longest first: a fork begins like its original
    for place, work in enumerate(plan.work):
        known = work.known
        if known is None:
            found = _first_that_matches(connection, work, _fitting(work, unnamed))
        elif known.gone_at is not None and known.checkpoint.head_hash == b"":
            found = _first_that_matches(connection, work, [known])  # see `archive_gaps`
        else:
            continue
        if found is None:
            continue
        if known is None:
            unnamed.remove(found)
            found_again[found.id] = work.source_id
        # This marker never matches, so the whole file is read in place of what was kept.
        plan.work[place] = replace(work, known=found._replace(gone_at=None, head_hash=b""))
    if found_again:
        with transaction(connection):
            connection.executemany(
                "update files set source_id = ? where id = ?",
                ((source_id, id_) for id_, source_id in found_again.items()),
            )
    return set(found_again)


def _fitting(work: Work, unnamed: list[KnownFile]) -> list[KnownFile]:
    """Return the lost files that a new one can be, judging by its path and size."""
    claim, size = work.claim, most_bytes(work)
    is_log = bool(unnamed) and work.root.source.shape(claim) == LOG
    return [
        file
        for file in unnamed
        if (file.checkpoint.offset <= size if is_log else file.checkpoint.offset == size)
        and (None in (file.session_key, claim.session_key) or file.session_key == claim.session_key)
    ]


def _first_that_matches(
    connection: sqlite3.Connection, work: Work, candidates: list[KnownFile]
) -> KnownFile | None:
    """Return the first candidate whose remaining bytes are in a file at the same offsets."""
    if not candidates:
        return None
    from ..store.replay import has_its_bytes  # few syncs need it, and it takes long

    try:
        with reading(work) as (descriptor, _):
            fits = (file for file in candidates if has_its_bytes(connection, file, descriptor))
            return next(fits, None)
    except OSError:
        return None  # reading it will fail, too


def find_lost_roots(connection: sqlite3.Connection, roots: Sequence[Root], report: Report) -> None:
    """Give lost roots the ones of the new roots that have their files: they are not missing."""
    known = set(connection.execute("select kind, root from sources"))
    for root in roots:
        if (root.source.name, root.name) in known:
            continue
        for source_id, placeholder in unnamed_roots(connection, root.source.name):
            if _lies_in(connection, source_id, root.path):
                with transaction(connection):
                    connection.execute(
                        "update sources set root = ?, gone_at = null where id = ?",
                        (root.name, source_id),
                    )
                report.missing_roots = [p for p in report.missing_roots if p != placeholder]
                break


def _lies_in(connection: sqlite3.Connection, source_id: int, directory: Path) -> bool:
    rows = connection.execute(
        "select id from files where source_id = ? and offset > 0 order by gone_at is not null, id",
        (source_id,),
    ).fetchall()
    from ..store.replay import has_its_bytes

    known = (known_file(connection, file_id) for (file_id,) in islice(rows, _TRIED))
    for file in known:
        if file is None:
            continue
        with suppress(OSError):  # another one may be readable
            location = directory.joinpath(*original_parts(file.path))
            with opened(str(location)) as descriptor:
                if has_its_bytes(connection, file, descriptor):
                    return True
    return False

"""Checks a database against its archive, the files on disk and its own invariants."""

from __future__ import annotations

import marshal
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .. import terminal
from ..errors import ArchiveError, is_damage
from ..files import archive
from ..files import walk as stored_names
from ..files.changes import claim_of, is_odd, replay
from ..files.exclusions import REASONS, AgentFiles, is_left_out, load, load_secrets
from ..files.stores import Entry, Stores, Work, open_content
from ..files.tail import CHUNK, MAX_LINE, RAN_AWAY, Prefix, prefix_of, resume
from ..files.walk import WHOLE, FoundFile, Root, Walk, original_root, root_at, walk
from ..paths import PULLED, is_directory, is_there, real_path, why_unknown
from ..source import (
    DATABASE,
    DOCUMENT,
    LOG,
    PRIVATE,
    UNKNOWN_CONTENT,
    UNREAD,
    Claim,
    KnownFile,
    Source,
    parts_of,
)
from ..sources import SOURCES
from ..store.batch import KnownFiles, known_file
from ..store.database import (
    checking,
    has_second_name,
    lock_of,
    log_of,
    open_reader,
    snapshot,
    unfinished,
)
from ..store.rows import COLUMNS, ISSUE_COUNT, LINE_COUNT, TABLES, OpenFile, archived
from ..terminal import Progress
from ..workers import Workers, worker_count
from ..workers.reading import JOB_BYTES, SECONDS, LineLengths, worth_sending
from . import recover
from .check import (
    REBUILD,
    SYNC,
    SYNC_FULL,
    Finding,
    Verdict,
    check_derived,
    check_indexes,
    check_pages,
    check_references,
    check_schema,
    check_statements,
    compare,
    foreign_objects,
    fresh_schema,
    scratch,
)
from .forget import Originals
from .recover import comes_back

# ------------------------------------------------------------------------------------------------
# Warnings about the location of the database and the version of SQLite: risks, not errors.
#
# They concern who else can read the database, what might copy it elsewhere, and which file
# systems and versions of SQLite are known to damage databases.


_SYNCED = re.compile(
    r"dropbox|onedrive|icloud ?drive|mobile documents|com~apple~clouddocs|google ?drive|nextcloud"
    r"|owncloud|pclouddrive",
    re.IGNORECASE,
)
_SYNC_MARKERS = (".stfolder", ".dropbox.cache")
_NETWORK = {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "lustre"}
_NETWORK |= {"glusterfs", "beegfs", "gpfs", "ncpfs", "coda", "vboxsf", "prl_fs", "davfs", "fuse"}
_MOUNTS = Path("/proc/self/mountinfo")


def check_environment(database: Path) -> Iterator[Finding]:
    """Yield warnings about the location of a database and the version of SQLite."""
    path = real_path(database)
    if os.name == "posix":
        yield from _modes(path)
    if has_second_name(path):
        yield Finding(
            "names",
            f"{path} has a second hard link. No command writes to it until one is removed.",
            f"Remove one of the links; to find both: find / -xdev -samefile '{path}'",
        )
    if unfinished(path).exists():
        yield Finding(
            "copies",
            f"{unfinished(path)} may hold a copy of the database: the command that made it is "
            "still running or was killed.",
            "If it was killed, the next sync removes the copy: assoc-ingest sync",
        )
    yield from _in_copied_places(path)
    kind = file_system(path)
    if kind is not None and (kind in _NETWORK or kind.startswith("fuse.")):
        yield Finding(
            "file system",
            f"The database is on a {kind} file system, where SQLite's write-ahead log is not safe.",
            "Stop all commands, move it to a local disk and give its new path: --db FILE",
        )
    if is_wal_reset_version(sqlite3.sqlite_version_info):
        yield Finding(
            "sqlite",
            f"SQLite {sqlite3.sqlite_version} can, in rare cases, damage a database that two"
            " processes write to at the same time.",
            "Use a Python with SQLite 3.51.3 or newer. Until then, the lock ensures that only one"
            " assoc-ingest command writes at a time.",
        )


def is_wal_reset_version(version: tuple[int, ...]) -> bool:
    """Has this version of SQLite the WAL-reset bug of 3.7.0 to 3.51.2?

    It was also fixed in two older release lines: 3.44.6 and 3.50.7.
    """
    is_repaired = version[:2] == (3, 44) and version >= (3, 44, 6)
    is_repaired = is_repaired or (version[:2] == (3, 50) and version >= (3, 50, 7))
    return (3, 7, 0) <= version < (3, 51, 3) and not is_repaired


def _modes(database: Path) -> Iterator[Finding]:
    files = [database, log_of(database), Path(f"{database}-shm"), lock_of(database)]
    for path, mode in [*((file, 0o600) for file in files), (database.parent, 0o700)]:
        try:
            found = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue
        if found & 0o077:
            yield Finding(
                "mode",
                f"{path} has mode {found:04o}: other users may be able to read private data.",
                f"chmod {mode:o} '{path}'",
            )


def _in_copied_places(database: Path) -> Iterator[Finding]:
    for place in database.parents:
        if is_there(place / ".git"):
            yield Finding(
                "git",
                f"The database is in the git work tree {place}: a commit could publish it.",
                "Move it elsewhere (--db FILE) or add it to .gitignore.",
            )
        if _SYNCED.match(place.name) or any(is_there(place / name) for name in _SYNC_MARKERS):
            yield Finding(
                "synced folder",
                f"The database is in {place}, which looks like a synced folder: it would be"
                " uploaded, and copies taken during a sync are corrupt.",
                "Move it elsewhere and give its new path: --db FILE",
            )
            return


def file_system(path: Path, mounts: Iterable[str] | None = None) -> str | None:
    """Return the type of the file system that `path` (absolute) is on, None if unknown."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text("utf-8", "surrogateescape").split("\n")
        except OSError:  # this is not Linux
            return None
    best, kind = -1, None
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4]))
        if (
            path.is_relative_to(point) and len(point.parts) >= best
        ):  # a later mount hides earlier ones
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


# ------------------------------------------------------------------------------------------------
# Checks one file after the other: its archive, and the rows that were read from it.


_LOST = "These bytes cannot be recovered, because the file is gone. Its rows are kept."
_OTHER_BYTES = "The archived bytes do not match the checksum of the file."
_PLACED = [
    table for kind, table in TABLES.items() if {"byte_offset", "byte_length"} <= {*COLUMNS[kind]}
]
_BEYOND = " union all ".join(
    f"select '{table}', min(byte_offset) from {table}"
    " where file_id = :file and byte_offset + byte_length > :end"
    " having min(byte_offset) is not null"
    for table in _PLACED
)


class Listed(NamedTuple):
    """A file to be checked, and its root."""

    id: int
    path: str
    kind: str
    root: str
    source_id: int
    size: int
    """The number of its archived bytes."""


class Checked(NamedTuple):
    """What was found in a file, and what was looked at."""

    findings: list[Finding]
    files: int = 1
    """0 if it is not in the database any more."""
    messages: int = 0
    archived_bytes: int = 0


def listed(connection: sqlite3.Connection) -> list[Listed]:
    """Return all files, in the order in which they are checked."""
    rows = connection.execute(
        "select f.id, f.path, s.kind, s.root, s.id, f.offset from files f"
        " join sources s on s.id = f.source_id order by f.source_id, f.path, f.generation"
    )
    return [Listed(*row) for row in rows]


class FileCheck:
    """Checks files, each in its own read transaction."""

    def __init__(self, connection: sqlite3.Connection, tables: sqlite3.Connection) -> None:
        self.connection = connection
        self._tables = tables
        self._agents = AgentFiles(connection)
        self._messages = self._archived_bytes = 0

    def checked(self, file: Listed) -> Checked:
        """Return what is wrong with a file. Raises sqlite3.Error."""
        self._messages = self._archived_bytes = 0
        with snapshot(self.connection):
            known = known_file(self.connection, file.id)
            if known is None:
                return Checked([], files=0)
            findings = list(self._findings(known, file.kind, file.root, file.source_id))
        return Checked(findings, 1, self._messages, self._archived_bytes)

    def has_long_line(self, file: Listed) -> bool:
        """Has a file a line that would take too much memory in each worker?"""
        if file.size <= CHUNK:
            return False
        lengths = LineLengths()
        pieces = archive.sound_pieces(self.connection, file.id)
        return any(lengths.is_too_much(data) for _, data in pieces)

    def _findings(
        self, known: KnownFile, kind: str, root: str, source_id: int
    ) -> Iterable[Finding]:
        """Return what is wrong with a file, according to the first check that fails."""

        def found(check: str, problem: str, offset: int | None = None) -> Finding:
            remedy = REBUILD
            if check == "archive" and known.checkpoint.head_hash == b"":
                # A rebuild has marked it, so that the next sync reads all of it, if it exists.
                remedy = SYNC if comes_back(self.connection, root, known) else _LOST
            elif check == "archive" and known.gone_at is not None:
                remedy = _LOST
            return Finding(check, problem, remedy, root, known.path, offset)

        source = SOURCES.get(kind)
        claim = claim_of(source, known) if source is not None else None
        if source is not None and claim is not None:
            claim = self._agents.with_files(source, source_id, claim)
        try:
            if stored_names.is_unnamed(known.path) and claim is None:
                return self._wrong_bytes(known, found)  # they cannot be parsed
            if source is None or claim is None or claim.kind != known.kind:
                return [found("rows", "This version reads such files differently, or not at all.")]
            is_log = source.shape(claim) == LOG
            if is_log and (place := self._beyond(known)) is not None:
                problem = f"A row of {place[0]} is beyond the {known.checkpoint.offset} bytes read."
                return [found("offset", problem, place[1])]
            file = archived(source_id, claim, known)
            return self._read_again(known, source, file, found) or self._wrong_counts(known, found)
        except ArchiveError as error:
            gaps = archive.gaps(self.connection, known.id, known.checkpoint.offset)
            missing = sum(end - start for start, end in gaps)
            problem = "The archived bytes are damaged."
            if missing:
                problem = f"{missing:,} of {known.checkpoint.offset:,} archived bytes are lost."
            return [found("archive", problem, error.byte_offset)]

    def _wrong_bytes(self, known: KnownFile, found: Callable[..., Finding]) -> list[Finding]:
        """Compare the archived bytes of a file with its checksum. Raises ArchiveError."""
        pieces = _Checked(self.connection, known)
        for _ in pieces:
            pass
        self._archived_bytes += pieces.prefix.offset
        return [] if pieces.are_as_stored else [found("archive", _OTHER_BYTES)]

    def _read_again(
        self, known: KnownFile, source: Source, file: OpenFile, found: Callable[..., Finding]
    ) -> list[Finding]:
        """Parse the archived bytes of a file and compare the rows. Raises ArchiveError."""
        shape = source.shape(file.claim)
        pieces = _Checked(self.connection, known)
        if shape in (PRIVATE, UNREAD) or (known.checkpoint.offset == 0 and shape != LOG):
            return [found("archive", "This file should not be in the archive.") for _ in pieces][:1]
        stretches = replay(source, file.claim, pieces)
        compared = compare(self.connection, self._tables, source, file, stretches)
        self._archived_bytes += pieces.prefix.offset
        self._messages += compared.message_count
        if not pieces.are_as_stored:
            return [found("archive", _OTHER_BYTES)]
        if compared.unaccounted is not None:
            problem = "Lines after this byte are neither stored, counted nor reported as issues."
            return [found("lines", problem, compared.unaccounted)]
        if not compared.differences and compared.context != known.context:
            return [found("context", "The stored context differs from the archived file.")]
        if not compared.differences and pieces.miscounted is not None:
            problem = "The archive after this byte has more or fewer lines than recorded."
            return [found("counts", problem, pieces.miscounted)]
        return [
            found("rows", f"The rows in {table} differ from the archived file.", offset)
            for table, offset in compared.differences
        ]

    def _beyond(self, known: KnownFile) -> tuple[str, int] | None:
        """Return (table, byte offset) of a row that lies after the bytes that were read."""
        values = {"file": known.id, "end": known.checkpoint.offset}
        found: tuple[str, int] | None = self.connection.execute(_BEYOND, values).fetchone()
        return found

    def _wrong_counts(self, known: KnownFile, found: Callable[..., Finding]) -> list[Finding]:
        row = self.connection.execute(
            f"select line_count, issue_count, {LINE_COUNT}, {ISSUE_COUNT} from files where id = ?",
            (known.id,),
        ).fetchone()
        if row[:2] == row[2:]:
            return []
        return [
            found(
                "counts",
                f"Recorded: {row[0]} records, {row[1]} issues; found: {row[2]} and {row[3]}.",
            )
        ]


class _Checked:
    """Yields the archived bytes of a file; computes their prefix and counts their lines."""

    def __init__(self, connection: sqlite3.Connection, known: KnownFile) -> None:
        self._connection = connection
        self._known = known
        self.prefix = Prefix()
        self.miscounted: int | None = None
        """Where the first frame begins whose recorded number of lines is wrong."""

    def __iter__(self) -> Iterator[bytes]:
        known = self._known
        recorded = archive.line_counts(self._connection, known.id)
        for data in archive.read_whole(self._connection, known.id, known.checkpoint.offset):
            start = self.prefix.offset
            if recorded.get(start) not in (None, data.count(b"\n")) and self.miscounted is None:
                self.miscounted = start
            self.prefix = self.prefix.extended(data)
            yield data

    @property
    def are_as_stored(self) -> bool:
        """Do the bytes match the stored checksums? With forgotten parts, they need not."""
        stored = self._known.checkpoint
        if stored.head_hash is None or self.prefix.checkpoint() == stored:
            return True
        return is_left_out(self._connection, self._known.id)


# ------------------------------------------------------------------------------------------------
# Checks files in worker processes: nothing is written, so each reads the database itself.


_ENDLESS = "Its rows are kept. If this happens again, report it with the version of its agent."
_opened = ExitStack()  # in a worker: what stays open as long as it lives


@contextmanager
def begun(
    database: Path,
    files: Sequence[Listed],
    count: int,
    advance: Callable[[int], None],
    seconds: float = SECONDS,
) -> Iterator[Callable[[], Sequence[Checked | None]]]:
    """Begin to check files in `count` processes; yield what waits for them to be done.

    The result for a file is None if it is left to this process. `advance` is called, in a thread,
    with the bytes of each file that a worker has checked.
    """
    if count == 1:
        yield lambda: [None] * len(files)
        return
    with ThreadPoolExecutor(1, "checks") as thread, Workers[CheckJob](count) as workers:
        found = _found(workers, _jobs(database, files, seconds), advance)
        yield thread.submit(list, found).result


def _found(
    workers: Workers[CheckJob], jobs: Iterable[CheckJob], advance: Callable[[int], None]
) -> Iterator[Checked | None]:
    for job, result in workers.results(jobs):
        for number, file in enumerate(job.files):
            pieces = result[number] if result is not None else []
            if pieces:
                advance(file.size)
            yield _unpacked(pieces[0]) if pieces else None


def _jobs(database: Path, files: Iterable[Listed], seconds: float) -> Iterator[CheckJob]:
    gathered: list[Listed] = []
    size = 0
    for file in files:
        if gathered and size + file.size > JOB_BYTES:
            yield CheckJob(str(database), tuple(gathered), seconds)
            gathered, size = [], 0
        gathered.append(file)
        size += file.size
    if gathered:
        yield CheckJob(str(database), tuple(gathered), seconds)


@dataclass(frozen=True, slots=True)
class CheckJob:
    """Files to be checked by a worker."""

    database: str
    files: tuple[Listed, ...]
    seconds: float
    is_for_writer: bool = False

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(1 + file.size for file in self.files)

    def items(self) -> Iterator[Iterator[bytes]]:
        """Yield for each file what was found, packed; nothing if it would take too much memory."""
        return (_checked_here(_check_of(self.database), file) for file in self.files)

    def around(self, number: int) -> tuple[CheckJob, CheckJob]:
        """Return the files before one of them, and those after it."""
        before, after = self.files[:number], self.files[number + 1 :]
        return replace(self, files=before), replace(self, files=after)

    def give_up(self, number: int) -> bytes:
        """Return the finding for a file whose parser does not come to an end."""
        file = self.files[number]
        problem = f"Its rows were not compared: {RAN_AWAY}."
        return _packed(Checked([Finding("rows", problem, _ENDLESS, file.root, file.path)]))


@cache
def _check_of(database: str) -> FileCheck:
    """Return what checks files in this process, for as long as it lives."""
    connection = open_reader(Path(database))
    connection.row_factory = None
    schema = _opened.enter_context(fresh_schema())
    return FileCheck(connection, _opened.enter_context(scratch(schema)))


def _checked_here(check: FileCheck, file: Listed) -> Iterator[bytes]:
    if worth_sending(file.size) and not check.has_long_line(file):
        yield _packed(check.checked(file))


def _packed(found: Checked) -> bytes:
    fields = [tuple(getattr(one, name) for name in Finding.__slots__) for one in found.findings]
    return marshal.dumps((fields, *found[1:]))


def _unpacked(data: bytes) -> Checked:
    fields, *counts = marshal.loads(data)  # noqa: S302 - from a worker of ours
    return Checked([Finding(*each) for each in fields], *counts)


# ------------------------------------------------------------------------------------------------
# Compares what was read with the files that are still on disk.
#
# A file that has changed since the last sync is not a problem: the next sync reads it. The
# problem is a file of which bytes that were read have changed, if no sync would read it again.


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
                problem = f"{terminal.many(len(paths), noun)} {what}, such as {paths[0]}."
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
    is_forgotten: Callable[[Root, FoundFile, Claim], bool],
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
    is_forgotten: Callable[[Root, FoundFile, Claim], bool],
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
        problem = "The entry has changed without any sign that a sync can see."
        seen.findings.append(Finding("file", problem, SYNC_FULL, root.name, entry.path))


def _recogniser(connection: sqlite3.Connection) -> Callable[[Root, FoundFile, Claim], bool]:
    """Return a function that says whether a sync ignores a file because it is forgotten."""
    forgotten = load(connection)
    originals = Originals(forgotten.exclusions)
    secrets = load_secrets(connection)

    def is_forgotten(root: Root, found: FoundFile, claim: Claim) -> bool:
        if forgotten.covers(root.name, found.path, claim) or secrets.are_in(found.path):
            return True
        return originals.of(Work(root, 0, found, claim, None)) is not None

    return is_forgotten


def _compare_file(
    root: Root, found: FoundFile, known: KnownFile, seen: OnDisk, *, is_broken: bool
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


def _compare_log(descriptor: int, size: int, found: FoundFile, known: KnownFile) -> str | None:
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


# ------------------------------------------------------------------------------------------------
# Check the database against its source files and its own invariants.
#
# 1. Pages: if SQLite cannot read one, that is reported, and nothing else is checked.
# 2. Schema, full-text indexes, references, and what was derived from rows (`check_database`).
# 3. Each file: its archive has exactly the bytes that were read, and their checksum; parsing them
#    again (`replay`) gives the stored rows (`check_rows`); every line is accounted for; the counts
#    agree. Only the first of these checks that fails is reported, because the others fail with it.
#    For a file whose archive has gaps, the missing bytes are counted.
# 4. The files that are still on disk have the checksums of what was read (`check_files`).
# 5. Warnings about what is only partly known after a repair, about the location of the database,
#   and
#    about the version of SQLite (`check_environment`).
#
# Each file is checked in its own read transaction, so a sync can run at the same time. If there
# is much to parse, worker processes check the files, while this one checks the rest. Nothing is
# repaired here; every finding names the command that does.


_FOUND_AGAIN = "A sync restores the path if a file with the same content is still on disk."
_COUNTS = ("files", "messages", "archived_bytes", "files_on_disk")
_CHECKS = (
    check_indexes, check_references, check_derived,
    check_statements,
)  # fmt: skip


def verify(database: Path, progress: Progress | None = None, jobs: int | None = None) -> Verdict:
    """Check everything, and return what was found.

    Raises DatabaseError if the database is missing or belongs to another program or another
    version, and sqlite3.Error if it cannot be read or another process keeps it busy.
    """
    verdict = Verdict()
    with checking(database) as connection, _damage_is_found(verdict), ExitStack() as stack:

        def begin() -> _Work:
            return stack.enter_context(_begun(connection, database, progress, jobs))

        work = None
        with suppress(sqlite3.DatabaseError, UnicodeDecodeError):  # the next checks say why
            work = begin()
        verdict.findings += check_pages(connection)
        if verdict.ok:
            with fresh_schema() as schema:
                _check_schema(connection, schema, verdict)
                if verdict.ok:  # else every other check would report the same missing tables
                    _check_readable(connection, schema, verdict, work or begin())
    verdict.warnings += _kept_aside(database)
    verdict.warnings += check_environment(database)
    return verdict


def _kept_aside(database: Path) -> Iterator[Finding]:
    for path in recover.kept_aside(database):
        size = terminal.size(path.stat().st_size)
        yield Finding(
            "kept aside",
            f"A damaged copy of the database is kept: {path} ({size}). It may still contain"
            " forgotten conversations.",
            "Delete it when you no longer need it.",
        )


@contextmanager
def _damage_is_found(verdict: Verdict) -> Iterator[None]:
    """Turn SQLite's error that the file is damaged into a finding; let other errors through."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # it quotes the damaged text
        if isinstance(error, sqlite3.DatabaseError) and not is_damage(error):
            raise
        verdict.findings.append(Finding("pages", f"The database is damaged: {error}.", REBUILD))


class _Work(NamedTuple):
    """Files whose check has begun."""

    files: list[Listed]
    results: Callable[[], Sequence[Checked | None]]
    """Waits for the workers; None for a file that is left to this process."""
    advance: Callable[[int], None]
    """Reports that so many more bytes were compared."""


@contextmanager
def _begun(
    connection: sqlite3.Connection, database: Path, progress: Progress | None, jobs: int | None
) -> Iterator[_Work]:
    """Let workers begin with the files: what they find counts if the pages turn out to be sound."""
    archived, on_disk = connection.execute(
        "select coalesce(sum(offset), 0), coalesce(sum(iif(gone_at is null, size, 0)), 0)"
        " from files"
    ).fetchone()
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, archived + on_disk)

    files = listed(connection)
    with begun(database, files, worker_count(jobs, archived), advance) as results:
        yield _Work(files, results, advance)


def _check_schema(
    connection: sqlite3.Connection, schema: sqlite3.Connection, verdict: Verdict
) -> None:
    verdict.findings += check_schema(connection, schema)
    for name in foreign_objects(connection, schema):
        remedy = "Store it in another database if you need it: rebuild may drop it."
        verdict.warnings.append(
            Finding("schema", f"The {name} was not created by assoc-ingest.", remedy)
        )


def _check_readable(
    connection: sqlite3.Connection, schema: sqlite3.Connection, verdict: Verdict, work: _Work
) -> None:
    """Run the checks of a database whose tables SQLite can read."""
    counts = verdict.counts = dict.fromkeys(_COUNTS, 0)
    for check in _CHECKS:
        verdict.findings += check(connection)
    with scratch(schema) as tables:
        checked = FileCheck(connection, tables).checked
        for file, result in zip(work.files, work.results(), strict=True):
            if result is None:
                result = checked(file)
                work.advance(file.size)
            verdict.findings += result.findings
            for name in _COUNTS[:3]:
                counts[name] += getattr(result, name)
    verdict.warnings += _known_in_part(connection)
    seen = compare_with_disk(connection, work.advance)
    verdict.counts["files_on_disk"] = seen.compared
    reported = {(finding.root, finding.path) for finding in verdict.findings}
    verdict.findings += [
        finding for finding in seen.findings if (finding.root, finding.path) not in reported
    ]
    verdict.warnings += seen.warnings()


def _known_in_part(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Yield warnings about what is only partly known after a repair."""
    rows = connection.execute(
        "select s.root, f.path, i.reason from issues i join files f on f.id = i.file_id"
        " join sources s on s.id = f.source_id where i.reason in (?, ?) order by s.root, f.path",
        (stored_names.PATH_LOST, stored_names.PATH_FROM_LINES),
    )
    for root, path, reason in rows.fetchall():
        yield Finding("path", f"Its {reason}.", _FOUND_AGAIN, root, path)
    for (kind,) in connection.execute("select distinct kind from sources").fetchall():
        for _, root in stored_names.unnamed_roots(connection, kind):
            yield Finding(
                "path",
                f"The directory of this root was lost with a damaged page: {root}.",
                "Give its directory to find it again: assoc-ingest sync PATH",
            )
    (count,) = connection.execute(
        "select count(distinct f.id) from issues i join files f on f.id = i.file_id"
        " where f.head_hash is not null"
        " and (i.reason = ? and not exists (select 1 from forgotten)"
        "  or i.reason = ? and not exists (select 1 from forgotten_secrets))",
        REASONS,
    ).fetchone()
    if count:
        yield Finding(
            "forgotten",
            f"Parts of {terminal.many(count, 'file')} were excluded as forgotten, but the list of"
            " what is forgotten is empty: the next sync reads them again.",
            "Forget it again, or run: assoc-ingest sync",
        )

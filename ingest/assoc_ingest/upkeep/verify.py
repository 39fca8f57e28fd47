"""Check the database against its source files and its own invariants.

1. Pages: if SQLite cannot read one, that is reported, and nothing else is checked.
2. Schema, full-text indexes, references, and what was derived from rows (`check_database`).
3. Each file: its archive has exactly the bytes that were read, and their checksum; parsing them
   again (`replay`) gives the stored rows (`check_rows`); every line is accounted for; the counts
   agree. Only the first of these checks that fails is reported, because the others fail with it.
   For a file whose archive has gaps, the missing bytes are counted.
4. The files that are still on disk have the checksums of what was read (`check_files`).
5. Warnings about what is only partly known after a repair, about the location of the database, and
   about the version of SQLite (`check_environment`).

Each file is checked in its own read transaction, so a sync can run at the same time. Nothing is
repaired here; every finding names the command that does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import humanize
from ..errors import ArchiveError
from ..failures import is_damage
from ..files import archive, lost
from ..files.agent_files import AgentFiles
from ..files.exclusions import REASONS, is_left_out
from ..files.replay import claim_of, replay
from ..files.tail import Prefix
from ..source import LOG, PRIVATE, UNREAD, KnownFile, Source
from ..sources import SOURCES
from ..store.batch import known_file
from ..store.database import checking
from ..store.file_rows import OpenFile, archived
from ..store.inserts import COLUMNS, ISSUE_COUNT, LINE_COUNT, TABLES
from ..store.report import Progress
from ..store.transaction import snapshot
from . import check_database, check_environment, damaged_copies
from .archive_gaps import comes_back
from .check_files import compare_with_disk
from .check_rows import compare, scratch
from .findings import REBUILD, SYNC, Finding, Verdict

_LOST = "These bytes cannot be recovered, because the file is gone. Its rows are kept."
_OTHER_BYTES = "The archived bytes do not match the checksum of the file."
_FOUND_AGAIN = "A sync restores the path if a file with the same content is still on disk."

_PLACED = [
    table for kind, table in TABLES.items() if {"byte_offset", "byte_length"} <= {*COLUMNS[kind]}
]


def verify(database: Path, progress: Progress | None = None) -> Verdict:
    """Check everything, and return what was found.

    Raises DatabaseError if the database is missing or belongs to another program or another
    version, and sqlite3.Error if it cannot be read or another process keeps it busy.
    """
    verdict = Verdict()
    with checking(database) as connection:
        with _damage_is_found(verdict):
            verdict.findings += check_database.check_pages(connection)
        if verdict.ok:
            with check_database.fresh_schema() as schema, _damage_is_found(verdict):
                _check_readable(connection, schema, verdict, progress or (lambda *_: None))
    verdict.warnings += _kept_aside(database)
    verdict.warnings += check_environment.check_environment(database)
    return verdict


def _kept_aside(database: Path) -> Iterator[Finding]:
    for path in damaged_copies.kept_aside(database):
        size = humanize.size(path.stat().st_size)
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
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        verdict.findings.append(Finding("pages", f"The database is damaged: {error}.", REBUILD))


def _check_readable(
    connection: sqlite3.Connection,
    schema: sqlite3.Connection,
    verdict: Verdict,
    progress: Progress,
) -> None:
    """Run the checks of a database whose pages SQLite can read."""
    verdict.findings += check_database.check_schema(connection, schema)
    for name in check_database.foreign_objects(connection, schema):
        remedy = "Store it in another database if you need it: rebuild may drop it."
        verdict.warnings.append(
            Finding("schema", f"The {name} was not created by assoc-ingest.", remedy)
        )
    if not verdict.ok:
        return  # every check below would report the same missing tables
    for check in (
        check_database.check_indexes, check_database.check_references, check_database.check_derived,
        check_database.check_statements,
    ):  # fmt: skip
        verdict.findings += check(connection)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    archived, on_disk = connection.execute(
        "select coalesce(sum(offset), 0), coalesce(sum(iif(gone_at is null, size, 0)), 0)"
        " from files"
    ).fetchone()
    total = archived + on_disk
    verdict.counts = {"files": 0, "messages": 0, "archived_bytes": 0, "files_on_disk": 0}
    with scratch(schema) as tables:
        _check_files(_FileCheck(connection, tables, verdict.counts), verdict, advance)
    verdict.warnings += _known_in_part(connection)
    seen = compare_with_disk(connection, advance)
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
        (lost.PATH_LOST, lost.PATH_FROM_LINES),
    )
    for root, path, reason in rows.fetchall():
        yield Finding("path", f"Its {reason}.", _FOUND_AGAIN, root, path)
    for (kind,) in connection.execute("select distinct kind from sources").fetchall():
        for _, root in lost.unnamed_roots(connection, kind):
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
            f"Parts of {humanize.many(count, 'file')} were excluded as forgotten, but the list of"
            " what is forgotten is empty: the next sync reads them again.",
            "Forget it again, or run: assoc-ingest sync",
        )


def _check_files(check: _FileCheck, verdict: Verdict, advance: Callable[[int], None]) -> None:
    rows = check.connection.execute(
        "select f.id, s.kind, s.root, s.id from files f join sources s on s.id = f.source_id"
        " order by f.source_id, f.path, f.generation"
    ).fetchall()
    for file_id, kind, root, source_id in rows:
        with snapshot(check.connection):
            known = known_file(check.connection, file_id)
            if known is not None:
                verdict.findings += check.findings(known, kind, root, source_id)
                advance(known.checkpoint.offset)


class _FileCheck:
    """Checks one file after the other."""

    def __init__(
        self, connection: sqlite3.Connection, tables: sqlite3.Connection, counts: dict[str, int]
    ) -> None:
        self.connection = connection
        self._tables = tables
        self._counts = counts
        self._agents = AgentFiles(connection)

    def findings(self, known: KnownFile, kind: str, root: str, source_id: int) -> Iterable[Finding]:
        """Return what is wrong with a file, according to the first check that fails."""

        def found(check: str, problem: str, offset: int | None = None) -> Finding:
            remedy = REBUILD
            if check == "archive" and known.checkpoint.head_hash == b"":
                # A rebuild has marked it, so that the next sync reads all of it, if it exists.
                remedy = SYNC if comes_back(self.connection, root, known) else _LOST
            elif check == "archive" and known.gone_at is not None:
                remedy = _LOST
            return Finding(check, problem, remedy, root, known.path, offset)

        self._counts["files"] += 1
        source = SOURCES.get(kind)
        claim = claim_of(source, known) if source is not None else None
        if source is not None and claim is not None:
            claim = self._agents.with_files(source, source_id, claim)
        try:
            if lost.is_unnamed(known.path) and claim is None:
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
        self._counts["archived_bytes"] += pieces.prefix.offset
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
        self._counts["archived_bytes"] += pieces.prefix.offset
        self._counts["messages"] += compared.message_count
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
        for table in _PLACED:
            (offset,) = self.connection.execute(
                f"select min(byte_offset) from {table}"
                " where file_id = ? and byte_offset + byte_length > ?",
                (known.id, known.checkpoint.offset),
            ).fetchone()
            if offset is not None:
                return table, offset
        return None

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

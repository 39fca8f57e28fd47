"""Checks a database against its archive, the files on disk and its own invariants.

1. Pages: if SQLite cannot read one, that is reported, and nothing else is checked.
2. Schema, full-text indexes, references, and what was derived from rows.
3. Each file: its archive has exactly the bytes that were read, and their checksum; parsing them
   again gives the stored rows; every line is accounted for; the counts agree. Only the first of
   these checks that fails is reported, because the others fail with it. If the archive of a file
   has gaps, the missing bytes are counted.
4. The files that are still on disk have the checksums of what was read.
5. Warnings about what is only partly known after a repair, about the location of the database, and
   about the version of SQLite.

Each file is checked in its own read transaction, so a sync can run at the same time. If there is
much to parse, worker processes check the files, while this one checks the rest. Nothing is repaired
here; every finding names the command that does.
"""

from __future__ import annotations

import marshal
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from .. import sql, terminal
from ..derive import copies, statements
from ..derive.changeset import Touched
from ..errors import Failure, is_damage, kind_of
from ..files import archive
from ..files import walk as stored_names
from ..files.changes import Replayed, claim_of, is_odd, replay
from ..files.exclusions import REASONS, AgentFiles, Originals, load, load_secrets
from ..files.stores import Entry, Stores, Work, open_content
from ..files.tail import CHUNK, MAX_LINE, RAN_AWAY, Prefix, prefix_of, resume
from ..files.walk import WHOLE, FoundFile, Root, Walk, original_root, root_at, walk
from ..paths import PULLED, is_directory, is_there, real_path, why_unknown
from ..records import Document, Issue, LineType, Plan, Prompt, Record, Task, Todo, ToolResultFile
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
from ..store import fts
from ..store import rows as upserts
from ..store.database import (
    checking,
    has_second_name,
    lock_of,
    log_of,
    open_reader,
    snapshot,
    unfinished,
)
from ..store.known_files import KnownFiles, known_file
from ..store.replay import ArchivedBytes, comes_back
from ..store.rows import (
    COLUMNS,
    ISSUE_COUNT,
    LINE_COUNT,
    ODD_TIME,
    TABLES,
    FileRows,
    OpenFile,
    RowBuffer,
    archived,
)
from ..terminal import Progress
from ..workers import Workers, worker_count
from ..workers.reading import JOB_BYTES, SECONDS, LineLengths, worth_sending
from . import recover

# ------------------------------------------------------------------------------------------------
# The result of `verify`: problems, each with the command that repairs it, warnings, and counts.


REBUILD = "assoc-ingest rebuild"
"""The command that derives all tables from the archive, and all indexes from the tables."""
SYNC = "assoc-ingest sync"
SYNC_FULL = "assoc-ingest sync --full"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a warning: where it is, and what repairs it."""

    check: str
    """The check that found it: pages, schema, index, references, archive, rows, counts, ..."""
    problem: str
    remedy: str
    """The command that repairs it, or a sentence if there is none."""
    root: str | None = None
    path: str | None = None
    """The path of the file, relative to `root`, as in `files.path`."""
    byte_offset: int | None = None
    """Where in that file the problem begins."""


@dataclass(slots=True)
class Verdict:
    """Everything that was found; its fields, after `ok`, are those of the JSON output."""

    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Was no problem found? Warnings do not count."""
        return not self.findings


_FOUND_AGAIN = "A sync restores the path if a file with the same content is still on disk."
_COUNTS = ("files", "messages", "archived_bytes", "files_on_disk")


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
    for check in (check_indexes, check_references, check_derived, check_statements):
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


# ------------------------------------------------------------------------------------------------
# Checks what must hold for any assoc-ingest database, as far as SQL can tell.
#
# Each check yields findings. Every query is one statement, so if a sync is running, it sees the
# database before or after a batch, never in between.


_OBJECTS = (
    "select type, name, sql from sqlite_master"
    " where name not glob 'sqlite_*' and name not glob '_sqlite*' and sql is not null"
)
_LISTED = 20  # findings of one check; a hundred would not say more


@contextmanager
def fresh_schema() -> Iterator[sqlite3.Connection]:
    """Yield an empty database in memory with the schema of this version."""
    connection = sqlite3.connect(":memory:")
    try:
        sql.migrate(connection)
        yield connection
    finally:
        connection.close()


def check_pages(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check the pages of the file, and that every row is in each index of its table.

    SQLite's quick check does not notice a missing index entry; a search with that index would.
    """
    try:
        rows = connection.execute(f"pragma integrity_check({_LISTED})").fetchall()
    except sqlite3.OperationalError as error:
        if kind_of(error) is not Failure.OTHER:
            raise
        # The text of the schema is damaged: it now calls a function, or names a column, that does
        # not exist. That is known as soon as a statement needs it.
        yield Finding("pages", f"The database is damaged: {error}.", REBUILD)
        return
    for (text,) in rows:
        if text != "ok":
            yield Finding("pages", f"The database is damaged: {text}", REBUILD)


def check_schema(connection: sqlite3.Connection, schema: sqlite3.Connection) -> Iterator[Finding]:
    """Compare tables, indexes, triggers and views with those of a fresh database."""
    ours, expected = (
        {(type_, name): sql.plain(text) for type_, name, text in database.execute(_OBJECTS)}
        for database in (connection, schema)
    )
    for key in sorted(expected.keys() - ours.keys()):
        yield Finding("schema", f"The {' '.join(key)} is missing.", REBUILD)
    for key in sorted(expected.keys() & ours.keys()):
        if expected[key] != ours[key]:
            yield Finding(
                "schema", f"The {' '.join(key)} differs from the schema of this version.", REBUILD
            )
    for type_, name in sorted(ours.keys() - expected.keys()):
        if type_ == "trigger":  # it would change rows unnoticed
            remedy = "Drop it in the SQLite shell unless you added it on purpose."
            yield Finding("schema", f"The trigger {name} was not created by assoc-ingest.", remedy)


def foreign_objects(connection: sqlite3.Connection, schema: sqlite3.Connection) -> list[str]:
    """Return tables, indexes and views that were added: harmless, but a rebuild may drop them."""
    ours, expected = (
        {(type_, name) for type_, name, _ in database.execute(_OBJECTS)}
        for database in (connection, schema)
    )
    return [" ".join(key) for key in sorted(ours - expected) if key[0] != "trigger"]


def check_indexes(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check each full-text index against its table.

    The check is an insert that inserts nothing, in its own transaction. Raises sqlite3.Error if
    another process keeps the database busy.
    """
    for name in fts.indexes(connection):
        if not fts.fits(connection, name):
            yield Finding("index", f"The full-text index {name} differs from its table.", REBUILD)


def check_references(connection: sqlite3.Connection) -> Iterator[Finding]:
    rows = connection.execute(
        'select "table", parent, count(*) from pragma_foreign_key_check group by 1, 2 order by 1, 2'
    )
    for table, parent, count in rows.fetchall():
        yield Finding(
            "references", f"{count} rows of {table} refer to missing rows of {parent}.", REBUILD
        )


def check_derived(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check derived facts that one statement can check."""
    for check, problem, statement in _DERIVED:
        count, example = connection.execute(
            f"select count(*), min(example) from ({statement})"
        ).fetchone()
        if count:
            yield Finding(check, problem.format(count=count, example=example), REBUILD)


def check_statements(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check that tasks, todos and plans are those that the transcripts state."""
    differing = 0
    with snapshot(connection):
        for group in statements.all_groups(connection):
            for table, rows in statements.expected(connection, group).items():
                there = statements.known(connection, table, group).values()
                differing += not statements.are_same(there, rows)
    if differing:
        yield Finding(
            "statements",
            f"Tasks, todos or plans of {differing} lists differ from the transcripts.",
            REBUILD,
        )


_DERIVED = (
    (
        "copies",
        "{count} messages are marked as copies of a message that is not their original"
        " (the first is message {example}).",
        """
        select m.id as example from messages m join messages o on o.id = m.copy_of
        where o.copy_of is not null or o.id = m.id
        or not (m.uuid is not null and o.uuid is m.uuid and o.block = m.block
            or m.uuid is null and m.kind in ('queued_prompt', 'task_notification'))
        """,
    ),
    (
        "copies",
        "{count} lines have several originals (one has the uuid {example}).",
        """
        select uuid as example from messages where copy_of is null and uuid in (
            select uuid from messages where uuid is not null group by uuid having count(*) > 1
        ) group by uuid, block having count(*) > 1
        """,
    ),
    (
        "rows",
        "{count} messages belong to a different session than their file (the first is message"
        " {example}).",
        """
        select m.id as example from messages m join files f on f.id = m.file_id
        where m.session_id is not f.session_id
        """,
    ),
    (
        "responses",
        "{count} responses refer to lines without usage data (the first is response {example}).",
        """
        select r.id as example from responses r
            where (r.file_id, r.byte_offset) not in (select file_id, byte_offset from usage)
        """,
    ),
    (
        "sessions",
        "{count} sessions have a message count that differs from their transcripts (one is"
        " {example}).",
        """
        select s.session_key as example from sessions s join (
            select f.session_id, sum(x.message_count - x.repeated_count
                - iif(x.message_count > x.sidechain_count, x.sidechain_count, 0)) as own,
                sum(x.copied_count) as copied
            from files f join transcripts x on x.file_id = f.id
            where f.kind = 'transcript' group by f.session_id
        ) t on t.session_id = s.id
        where s.message_count <> t.own or s.copied_message_count <> t.copied
        """,
    ),
    (
        "sessions",
        "{count} sessions have a wrong prompt count (one is {example}).",
        """
        select s.session_key as example from sessions s where s.prompt_count <> (
            select count(*) from (
                select distinct p.file_id, p.byte_offset from messages p
                where p.session_id = s.id and p.copy_of is null and p.subagent_id is null
                and (p.kind = 'prompt' or p.kind = 'command'
                    or p.kind = 'bash_input' or p.kind = 'queued_prompt')))
        """,
    ),
    (
        "sessions",
        "{count} sessions have a wrong tool call count (one is {example}).",
        """
        select s.session_key as example from sessions s where s.tool_call_count <> (
            select count(*) from tool_calls c left join messages m on m.id = c.call_id
            where c.session_id = s.id and c.name is not null and m.copy_of is null)
        """,
    ),
    (
        "sessions",
        "{count} sessions have token sums that differ from their responses (one is {example}).",
        """
        select s.session_key as example from sessions s join (
            select session_id, sum(input_tokens) as input, sum(output_tokens) as output,
                sum(cache_read_tokens) as cache_read,
                sum(cache_write_5m_tokens + cache_write_1h_tokens) as cache_write
            from responses where session_id is not null group by session_id
        ) r on r.session_id = s.id
        where s.input_tokens is not r.input or s.output_tokens is not r.output
        or s.cache_read_tokens is not r.cache_read or s.cache_write_tokens is not r.cache_write
        """,
    ),
)
"""(check, problem, query for the rows with it): their count and one example are reported."""


# ------------------------------------------------------------------------------------------------
# Checks one file after the other: its archive, and the rows that were read from it.


_LOST = "These bytes cannot be recovered, because the file is gone. Its rows are kept."
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


class Problem(NamedTuple):
    """What is wrong with a file, and where in it."""

    check: str
    text: str
    byte_offset: int | None = None


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
            findings = [
                Finding(
                    problem.check, problem.text, self._remedy(problem.check, file.root, known),
                    file.root, known.path, problem.byte_offset,
                )
                for problem in self._problems(known, file)
            ]  # fmt: skip
        return Checked(findings, 1, self._messages, self._archived_bytes)

    def has_long_line(self, file: Listed) -> bool:
        """Has a file a line that would take too much memory in each worker?"""
        if file.size <= CHUNK:
            return False
        lengths = LineLengths()
        pieces = archive.sound_pieces(self.connection, file.id)
        return any(lengths.is_too_much(data) for _, data in pieces)

    def _remedy(self, check: str, root: str, known: KnownFile) -> str:
        if check == "archive" and known.checkpoint.head_hash == b"":
            # A rebuild has marked it, so that the next sync reads all of it, if it exists.
            return SYNC if comes_back(self.connection, root, known) else _LOST
        return _LOST if check == "archive" and known.gone_at is not None else REBUILD

    def _problems(self, known: KnownFile, file: Listed) -> list[Problem]:
        """Return what is wrong with a file, according to the first check that fails."""
        source = SOURCES.get(file.kind)
        claim = claim_of(source, known) if source is not None else None
        pieces = ArchivedBytes(self.connection, known)
        if stored_names.is_unnamed(known.path) and claim is None:  # its bytes cannot be parsed
            for _ in pieces:
                pass
            return self._wrong_bytes(known, pieces)
        if source is None or claim is None or claim.kind != known.kind:
            text = "This version reads such files differently, or not at all."
            return [Problem("rows", text)]
        claim = self._agents.with_files(source, file.source_id, claim)
        shape = source.shape(claim)
        if shape == LOG and (place := self._beyond(known)) is not None:
            text = f"A row of {place[0]} is beyond the {known.checkpoint.offset} bytes read."
            return [Problem("offset", text, place[1])]
        if shape in (PRIVATE, UNREAD) or (known.checkpoint.offset == 0 and shape != LOG):
            text = "This file should not be in the archive."
            return [Problem("archive", text) for _ in pieces][:1] or self._wrong_counts(known)
        opened = archived(file.source_id, claim, known)
        stretches = replay(source, claim, pieces)
        compared = compare(self.connection, self._tables, source, opened, stretches)
        return (
            self._wrong_bytes(known, pieces)
            or self._wrong_rows(known, compared, pieces)
            or self._wrong_counts(known)
        )

    def _wrong_bytes(self, known: KnownFile, pieces: ArchivedBytes) -> list[Problem]:
        """Compare the archived bytes of a file, which were read, with what a sync has read."""
        if (place := pieces.damaged_at) is not None:
            text = "The archived bytes are damaged."
            if missing := sum(end - start for start, end in pieces.gaps):
                text = f"{missing:,} of {known.checkpoint.offset:,} archived bytes are lost."
            return [Problem("archive", text, place)]
        self._archived_bytes += pieces.prefix.offset
        if not pieces.have_checksum:
            return [Problem("archive", "The archived bytes do not match the checksum of the file.")]
        return []

    def _wrong_rows(
        self, known: KnownFile, compared: Compared, pieces: ArchivedBytes
    ) -> list[Problem]:
        self._messages += compared.message_count
        if compared.unaccounted is not None:
            text = "Lines after this byte are neither stored, counted nor reported as issues."
            return [Problem("lines", text, compared.unaccounted)]
        if compared.differences:
            return [
                Problem("rows", f"The rows in {table} differ from the archived file.", offset)
                for table, offset in compared.differences
            ]
        if compared.context != known.context:
            return [Problem("context", "The stored context differs from the archived file.")]
        if pieces.miscounted:
            text = "The archive after this byte has more or fewer lines than recorded."
            return [Problem("counts", text, pieces.miscounted[0][0])]
        return []

    def _beyond(self, known: KnownFile) -> tuple[str, int] | None:
        """Return (table, byte offset) of a row that lies after the bytes that were read."""
        values = {"file": known.id, "end": known.checkpoint.offset}
        place: tuple[str, int] | None = self.connection.execute(_BEYOND, values).fetchone()
        return place

    def _wrong_counts(self, known: KnownFile) -> list[Problem]:
        lines, issues, counted_lines, counted_issues = self.connection.execute(
            f"select line_count, issue_count, {LINE_COUNT}, {ISSUE_COUNT} from files where id = ?",
            (known.id,),
        ).fetchone()
        if (lines, issues) == (counted_lines, counted_issues):
            return []
        text = (
            f"Recorded: {lines} records, {issues} issues;"
            f" found: {counted_lines} and {counted_issues}."
        )
        return [Problem("counts", text)]


# ------------------------------------------------------------------------------------------------
# Compares the rows of a file with the records that its archived bytes make.
#
# The bytes are parsed again, and the store writes their records into an empty database, as a
# rebuild would. Then the rows of each table are read from both databases in the same order, and
# compared in all columns that records have. What depends on other files (references, copies) is
# not compared here; `check_derived` checks some of it.


_NOT_COMPARED: dict[type, set[str]] = {
    # They depend on the file's stat, the messages of a JSON library, or other files.
    Plan: {"modified_at"},
    Document: {"modified_at"},
    Prompt: {"pasted"},
    ToolResultFile: {"size", "tool_use_id"},
    Issue: {"reason", "sample"},
}
_TIMES = {"timestamp", "started_at", "ended_at", "duration_ms"}

_IDS = ("call_id", "result_id")
"""Columns of ids of messages, which are compared by the places of the messages."""
_PLACE = "(select byte_offset << 20 | block from messages where id = o.{})"

_ALSO_IN_TRANSCRIPTS = (Plan, Task, Todo)
"""Types whose tables also have rows that follow from transcripts, which are not compared here."""


class Difference(NamedTuple):
    """The first row of a table that differs from the file's records."""

    table: str
    byte_offset: int | None


@dataclass(slots=True)
class Compared:
    """What a comparison found."""

    differences: list[Difference] = field(default_factory=list)
    """The first difference of each table that differs."""
    unaccounted: int | None = None
    """Where lines begin that are in no row, count or issue; None if there are none."""
    message_count: int = 0
    context: str | None = None
    """The context after the last line, as it is stored."""


@contextmanager
def scratch(schema: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Yield an empty database with the tables of `schema` and their unique indexes.

    SQLite keeps it in a temporary file if it does not fit into a few pages.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = memory")
        schema.backup(connection)
        costly = connection.execute(
            "select type, name from sqlite_master"
            " where type = 'trigger' or type = 'index' and sql not like 'create unique%'"
        )
        for type_, name in costly.fetchall():
            connection.execute(f"drop {type_} {name}")
        yield connection


def compare(
    connection: sqlite3.Connection,
    scratch: sqlite3.Connection,
    source: Source,
    file: OpenFile,
    stretches: Iterable[Replayed],
) -> Compared:
    """Compare the rows of a file with its replayed stretches. Raises what reading these raises."""
    compared, touched = Compared(), Touched()
    is_log = source.shape(file.claim) == LOG
    file.is_empty = True  # in the empty database
    with snapshot(scratch):
        file_rows = FileRows(scratch, touched, "")
        file_rows.refer(file)
        buffer = RowBuffer(scratch, touched, file_rows, "")
        for stretch in stretches:
            buffer.add(file, stretch.records, stretch.end - stretch.start)
            compared.context = stretch.context
            is_short = is_log and _pieces(stretch.records) < stretch.line_count
            if is_short and compared.unaccounted is None:
                compared.unaccounted = stretch.start
        buffer.flush()
        copies.pair(scratch, file.id)
        compared.differences += _differences(connection, scratch, source, file)
    compared.message_count = buffer.written.rows
    return compared


def _differences(
    connection: sqlite3.Connection, scratch: sqlite3.Connection, source: Source, file: OpenFile
) -> Iterator[Difference]:
    """Yield the first difference of each table."""
    is_log = source.shape(file.claim) == LOG
    filled = _filled(connection, file.id) | _filled(scratch, file.id)
    for kind, table in TABLES.items():
        if table not in filled:
            continue
        columns, query = _query(kind, is_log, source.reads_local_times)
        values = {"file": file.id, "gone_at": file.gone_at}
        rows: Iterable[Any] = connection.execute(query, values)
        expected: Iterable[Any] = scratch.execute(query, values)
        if kind is Task:
            expected = filter(partial(_is_here, connection, file), expected)
        for pair in zip_longest(rows, expected):
            if pair[0] != pair[1]:
                offsets = (row[0] for row in pair if row is not None)
                yield Difference(table, min(offsets) if columns[0] == "byte_offset" else None)
                break


def _filled(connection: sqlite3.Connection, file_id: int) -> set[str]:
    """Return the tables with rows of a file. Most have none, and a query for each costs more."""
    filled = connection.execute(_FILLED, {"file": file_id}).fetchone()
    return {table for table, has_rows in zip(_TABLES, filled, strict=True) if has_rows}


_TABLES = sorted(set(TABLES.values()))
_FILLED = "select " + ", ".join(
    f"exists (select 1 from {table} where file_id = :file)" for table in _TABLES
)


@cache
def _query(kind: type, is_log: bool, hides_times: bool) -> tuple[list[str], str]:
    """Return the columns that are compared, and the query for the rows of a file, in order."""
    hidden = _NOT_COMPARED.get(kind, set()) | (_TIMES if hides_times else set())
    columns = [name for name in COLUMNS[kind] if name not in hidden]
    columns.sort(key=lambda name: (name != "byte_offset", name != "block"))
    values = (_PLACE.format(name) if name in _IDS else name for name in columns)
    condition = "channel = 'file'" if kind in _ALSO_IN_TRANSCRIPTS else "true"
    if kind in upserts.ENTRIES:
        # An entry that the last version of a list did not contain was gone before the list was.
        condition += " and (gone_at is null or gone_at = :gone_at)"
    if kind is Issue:
        # Quarantined issues of a document belong to a later version, which is not archived.
        others = ", ".join(
            f"'{reason}'" for reason in (*REASONS, ODD_TIME, RAN_AWAY, *stored_names.REASONS)
        )
        condition = f"reason not in ({others}) and {'true' if is_log else 'quarantined = 0'}"
    return columns, (
        f"select {', '.join(values)} from {TABLES[kind]} o where file_id = :file and {condition}"
        f" order by {', '.join(str(place + 1) for place in range(len(columns)))}"
    )


def _is_here(connection: sqlite3.Connection, file: OpenFile, task: Sequence[Any]) -> bool:
    """Is this the file of the task's row? Several files can state the same task."""
    row = connection.execute(
        "select file_id from tasks where task_key = ? and list_key = ? and source_id = ?"
        " and channel = 'file'",
        (*task[:2], file.source_id),
    ).fetchone()
    return row is None or row[0] == file.id


def _pieces(records: Iterable[Record]) -> int:
    """Count the objects and the quarantined pieces among records."""
    return sum(
        record.objects if isinstance(record, LineType) else record.quarantined
        for record in records
        if isinstance(record, LineType | Issue)
    )


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
            there = stat.S_IMODE(path.stat().st_mode)
        except FileNotFoundError:
            continue
        if there & 0o077:
            yield Finding(
                "mode",
                f"{path} has mode {there:04o}: other users may be able to read private data.",
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
        point = Path(re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), fields[4]))
        # A later mount hides earlier ones.
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


# ------------------------------------------------------------------------------------------------
# Checks files in worker processes: nothing is written, so each reads the database itself.


_ENDLESS = "Its rows are kept. If this happens again, report it with the version of its agent."
_opened = ExitStack()  # in a worker: what stays open as long as it lives


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

    def advance(size: int) -> None:  # called in a thread, too
        nonlocal done
        done += size
        if progress is not None:
            progress(done, archived + on_disk)

    files, count = listed(connection), worker_count(jobs, archived)
    if count == 1:
        yield _Work(files, lambda: [None] * len(files), advance)
        return
    with ThreadPoolExecutor(1, "checks") as thread, Workers[CheckJob](count) as workers:
        results = thread.submit(list, _results(workers, _jobs(database, files), advance))
        yield _Work(files, results.result, advance)


def _results(
    workers: Workers[CheckJob], jobs: Iterable[CheckJob], advance: Callable[[int], None]
) -> Iterator[Checked | None]:
    for job, result in workers.results(jobs):
        for number, file in enumerate(job.files):
            pieces = result[number] if result is not None else []
            if pieces:
                advance(file.size)
            yield _unpacked(pieces[0]) if pieces else None


def _jobs(database: Path, files: Iterable[Listed]) -> Iterator[CheckJob]:
    gathered: list[Listed] = []
    size = 0
    for file in files:
        if gathered and size + file.size > JOB_BYTES:
            yield CheckJob(str(database), tuple(gathered), SECONDS)
            gathered, size = [], 0
        gathered.append(file)
        size += file.size
    if gathered:
        yield CheckJob(str(database), tuple(gathered), SECONDS)


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


def _packed(checked: Checked) -> bytes:
    names = Finding.__slots__
    fields = [tuple(getattr(finding, name) for name in names) for finding in checked.findings]
    return marshal.dumps((fields, *checked[1:]))


def _unpacked(data: bytes) -> Checked:
    fields, *counts = marshal.loads(data)  # noqa: S302 - from a worker of ours
    return Checked([Finding(*each) for each in fields], *counts)

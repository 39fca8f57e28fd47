"""The checks of `verify`: of the database as a whole and of the rows of a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import zip_longest
from typing import Any, NamedTuple

from .. import sql
from ..derive import copies, statements
from ..derive.changeset import Touched
from ..errors import Failure, kind_of
from ..files import walk
from ..files.changes import Replayed
from ..files.exclusions import REASONS
from ..files.tail import RAN_AWAY
from ..records import Document, Issue, LineType, Plan, Prompt, Record, Task, Todo, ToolResultFile
from ..source import LOG, Source
from ..store import fts
from ..store import rows as upserts
from ..store.database import snapshot
from ..store.rows import COLUMNS, ODD_TIME, TABLES, FileRows, OpenFile, RowBuffer

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


# ------------------------------------------------------------------------------------------------
# Compares the rows of a file with the records that its archived bytes make.
#
# The bytes are parsed again, and the store writes their records into an empty database, as a
# rebuild would. Then the rows of each table are read from both databases in the same order, and
# compared in all columns that records have. What depends on other files (references, copies) is
# not compared here; `check_database` checks some of it.


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
    found = connection.execute(_FILLED, {"file": file_id}).fetchone()
    return {table for table, has_rows in zip(_TABLES, found, strict=True) if has_rows}


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
            f"'{reason}'" for reason in (*REASONS, ODD_TIME, RAN_AWAY, *walk.REASONS)
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

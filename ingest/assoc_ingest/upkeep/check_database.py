"""Checks what must hold for any assoc-ingest database, as far as SQL can tell.

Each check yields findings. Every query is one statement, so if a sync is running, it sees the
database before or after a batch, never in between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from .. import sql
from ..derive import stated, statements
from ..failures import Failure, kind_of
from ..store import fts
from ..store.transaction import snapshot
from .findings import REBUILD, Finding

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
        {(type_, name): text for type_, name, text in database.execute(_OBJECTS)}
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
    """Check that every reference leads to a row."""
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
            for table, rows in stated.expected(connection, group).items():
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
                and p.kind in ('prompt', 'command', 'bash_input', 'queued_prompt')))
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

"""The tables of the server are those that the projection makes rows of, column by column."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assoc_ingest.fleet.projection import (
    BIGINT,
    BYTEA,
    DOUBLE,
    FILES,
    INTEGER,
    KEYED,
    LONGEST_KEY,
    PLACED,
    TABLES,
    TEXT,
    short_key,
)

LOCAL = {TEXT: "TEXT", INTEGER: "INTEGER", BIGINT: "INTEGER", DOUBLE: "REAL", BYTEA: "BLOB"}


def test_the_server_has_the_columns_of_the_description(database: Any) -> None:
    columns = database.execute("""
        select table_name, column_name, data_type, collation_name, is_nullable = 'NO'
        from information_schema.columns
        where table_schema = 'assoc'
        order by table_name, ordinal_position
    """).fetchall()
    keys = database.execute("""
        select c.relname, array_agg(a.attname::text order by array_position(i.indkey, a.attnum))
        from pg_index i
        join pg_class c on c.oid = i.indrelid
        join pg_attribute a on a.attrelid = c.oid and a.attnum = any(i.indkey)
        where i.indisprimary and c.relnamespace = 'assoc'::regnamespace
        group by c.relname
    """).fetchall()
    (placed,) = database.execute("select assoc.placed_tables()").fetchone()
    assert placed == [table.name for table in PLACED]  # frames.row_tables has a bit for each
    for table in (FILES, *TABLES):
        first = ["origin_id", *(["file_no"] if table.placed or table is FILES else [])]
        last = ["digest"] if table in KEYED else []
        found = [column for column in columns if column[0] == table.name]
        names = [name for _, name, *_ in found if name not in last]
        assert names == [*first, *table.names]  # the digest is before columns that came later
        types = {name: kind for _, name, kind, *_ in found}
        assert {c.name: c.type for c in table.columns}.items() <= types.items()
        assert all(order == "C" for *_, kind, order, _ in found if kind == TEXT), table.name
        needed = {name for _, name, *_, is_needed in found if is_needed}
        assert needed == {*first, *table.key, *last}
        if table is not FILES:
            assert dict(keys)[table.name] == [*first, *table.key]


STAY = {
    "agents": {"file_id"},
    "archive": {"id", "codec"},
    "files": {
        *("inode", "device", "mtime_ns", "ctime_ns"),
        *("head_hash", "tail_hash", "prefix_crc", "context"),
    },
    "line_types": {"first_offset"},
    "projects": {"directory"},
    "subagents": {"spawned_by"},
    "sync_runs": {"files_read", "bytes_read", "rows", "issues"},
    "task_dependencies": {"file_id"},
    "tasks": {"file_id"},
    "team_members": {"file_id"},
    "teams": {"file_id"},
}
"""Columns that the server does not have; of `transcripts` it has one for lists of sessions."""


def test_a_view_of_the_server_has_the_columns_of_its_local_namesake(
    database: Any, template: Path
) -> None:
    there = database.execute("""
        select table_name, array_agg(column_name::text)
        from information_schema.columns
        where table_schema = 'assoc_read'
        group by table_name
    """).fetchall()
    missing = {}
    with closing(sqlite3.connect(template)) as connection:
        for name, columns in there:
            rows = connection.execute("select name from pragma_table_info(?)", (name,)).fetchall()
            assert rows, f"no local table or view is called {name}"
            missing[name] = {column for (column,) in rows} - set(columns)
    assert len(missing.pop("transcripts")) > 20
    assert {name: columns for name, columns in missing.items() if columns} == STAY


def test_every_view_of_the_server_is_a_barrier(database: Any) -> None:
    """Else a function of a reader may see rows that the reader may not."""
    open_views = database.execute("""
        select relname from pg_class
        where relnamespace = 'assoc_read'::regnamespace and relkind = 'v'
          and not coalesce('security_barrier=true' = any (reloptions), false)
    """).fetchall()
    assert open_views == []


@pytest.mark.parametrize("table", [FILES, *TABLES], ids=lambda table: table.name)
def test_a_column_of_a_name_of_the_local_schema_has_its_type(table, template: Path) -> None:  # type: ignore[no-untyped-def]
    with closing(sqlite3.connect(template)) as connection:
        rows = connection.execute("select name, type from pragma_table_info(?)", (table.name,))
        local = dict(rows.fetchall())
    assert local
    for column in table.columns:
        assert local.get(column.name, LOCAL[column.type]) == LOCAL[column.type], column.name


def test_a_placed_table_begins_with_its_place() -> None:
    for table in PLACED:
        assert table.names[: len(table.key)] == table.key
        assert table.key[0] == "byte_offset"


@given(st.text(min_size=1, max_size=9), st.integers(1, 400))
def test_a_key_that_is_too_long_for_an_index_is_shortened_and_stays_unique(
    text: str, times: int
) -> None:
    long = text * times
    assert len(short_key(long).encode()) <= LONGEST_KEY
    is_short = len(long.encode()) <= LONGEST_KEY
    assert (short_key(long) == long) == is_short
    assert short_key(long + "a") != short_key(long)

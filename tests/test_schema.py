"""The schema is what its snapshot says, explains itself, and keeps its indexes right.

`make schema` writes schema/new/schema.sql, from which new databases are made: read the difference.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from docs.comments import shared_comments, tables
from docs.new_schema import FILE, one_by_one, written_out
from sqlite_utils import Database
from tests.support.shell import Shell
from tests.support.writing import TRANSCRIPT, user, write

from assoc_ingest import sql
from assoc_ingest.store import fts
from assoc_ingest.store.database import APPLICATION_ID, writing


@pytest.fixture
def empty(fresh: Callable[[], Path]) -> sqlite3.Connection:
    return sqlite3.connect(fresh(), isolation_level=None)


def names(connection: sqlite3.Connection, where: str) -> list[str]:
    rows = connection.execute(f"select name from sqlite_master where {where} order by name")
    return [name for (name,) in rows]


def full_text_indexes(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the table or view that each full-text index is over."""
    rows = connection.execute(
        "select name, sql from sqlite_master where sql like 'create virtual table % using fts5%'"
    )
    found = {name: re.search(r'content="(\w+)"', text) for name, text in rows}
    assert all(found.values()), 'Datasette recognises content="..." only'
    return {name: match[1] for name, match in found.items() if match}


def contents(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of all tables, those of full-text indexes and of SQLite included."""
    tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    found = {
        name: connection.execute(f"select * from [{name}]").fetchall()
        for (name,) in tables
        if name != sql.RECORD_OF_MIGRATIONS
    }
    for name, rows in found.items():
        if name.endswith("_fts_data"):  # totals of an index: that there are none can be left out
            assert not any(rows[0][1]), name
            del rows[0]
    found["sqlite_master"] = connection.execute(
        "select type, name, tbl_name, sql from sqlite_master order by rowid"
    ).fetchall()
    found[sql.RECORD_OF_MIGRATIONS] = connection.execute(
        f"select id, migration_set, name from {sql.RECORD_OF_MIGRATIONS}"
    ).fetchall()
    return found


def test_the_file_of_new_databases_is_what_the_migrations_add_up_to() -> None:
    with closing(one_by_one()) as connection:
        is_current = written_out(connection) == FILE.read_text("utf-8")
    if not is_current:
        pytest.fail(f"{'/'.join(sql.NEW_SCHEMA)} is out of date. Run: make schema", pytrace=False)


def test_a_new_database_is_as_one_that_was_migrated_step_by_step() -> None:
    with closing(one_by_one()) as old, closing(sqlite3.connect(":memory:")) as new:
        sql.migrate(new)
        assert contents(new) == contents(old)
        assert not new.in_transaction  # a copy of it would wait for the end


def test_a_migration_that_the_file_of_new_databases_lacks_is_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So a forgotten `make schema` makes new databases slow, but never wrong."""
    known, shipped = sql.migrations(), sql.migration_names()

    @known(name="9999_newest")
    def apply(database: Database) -> None:
        database.execute("create table newest (id integer primary key) strict")

    monkeypatch.setattr(sql, "migrations", lambda: known)
    monkeypatch.setattr(sql, "migration_names", lambda: [*shipped[:-1], "9999_newest", shipped[-1]])
    with closing(sqlite3.connect(":memory:")) as connection:
        sql.migrate(connection)
        assert names(connection, "name = 'newest'") == ["newest"]
        assert sql.applied_migrations(connection) == {*shipped, "9999_newest"}


def test_every_table_and_every_column_is_explained() -> None:
    unexplained = [table.name for table in tables().values() if not table.comment]
    unexplained += [
        f"{table.name}.{column.name}"
        for table in tables().values()
        for column in table.columns
        if not column.comment
    ]
    assert unexplained == []


def test_what_is_explained_for_all_tables_is_in_use() -> None:
    used = {column.name for table in tables().values() for column in table.columns}
    assert set(shared_comments()) <= used


def test_every_table_is_strict_and_has_an_integer_key(empty: sqlite3.Connection) -> None:
    for table in tables().values():
        if table.kind == "table":
            (text,) = empty.execute(
                "select sql from sqlite_master where name = ?", (table.name,)
            ).fetchone()
            assert text.endswith(") strict"), table.name
            assert text.split("\n")[1].strip().startswith("id integer primary key,"), table.name


def test_every_foreign_key_to_a_big_table_is_indexed(empty: sqlite3.Connection) -> None:
    """Otherwise each deleted row would scan the table that refers to it."""
    bare = [
        f"{table}.{column}"
        for table in names(empty, "type = 'table' and sql not like 'create virtual%'")
        for _, _, target, column, *_ in empty.execute(f"pragma foreign_key_list([{table}])")
        if target in ("messages", "files", "tool_calls", "subagents", "sessions")
        and not _is_indexed(empty, table, column)
    ]
    assert bare == []


def _is_indexed(connection: sqlite3.Connection, table: str, column: str) -> bool:
    for _, index, _, _, is_partial in connection.execute(f"pragma index_list([{table}])"):
        (first, *_) = connection.execute(f"pragma index_info([{index}])").fetchall()
        if first[2] == column:
            (text,) = connection.execute(
                "select sql from sqlite_master where name = ?", (index,)
            ).fetchone()
            if not is_partial or text.endswith(f"where {column} is not null"):
                return True
    return False


def test_a_reference_to_a_message_outlives_the_message(empty: sqlite3.Connection) -> None:
    for table in names(empty, "type = 'table' and sql not like 'create virtual%'"):
        for row in empty.execute(f"pragma foreign_key_list([{table}])"):
            if row[2] == "messages":
                assert row[6] == "SET NULL", f"{table}.{row[3]}"


def test_every_full_text_index_follows_its_table(empty: sqlite3.Connection) -> None:
    """Rows of messages enter in bulk, all others by a trigger; changes always by triggers."""
    for index, content in full_text_indexes(empty).items():
        of_index = {name.removeprefix(f"{index}_") for name in names(empty, _triggers_of(index))}
        is_bulk = content in ("messages", "messages_cjk")
        assert of_index == {"delete", "update"} | (set() if is_bulk else {"insert"}), index


def _triggers_of(index: str) -> str:
    return f"type = 'trigger' and name like '{index}!_%' escape '!'"


def test_what_is_rebuilt_at_once_is_every_index(empty: sqlite3.Connection) -> None:
    """Those of messages are filled by batches, all others by triggers with their names."""
    assert {*fts.OF_MESSAGES, *fts.OF_OTHERS} == set(fts.indexes(empty))
    put_off = fts.PutOff(empty, fts.OF_OTHERS)
    left = names(empty, "type = 'trigger' and sql like '%_fts %'")
    assert all(name.startswith(fts.OF_MESSAGES) for name in left)
    put_off.catch_up()
    kept = {
        f"{index}_{event}" for index in fts.OF_OTHERS for event in ("insert", "delete", "update")
    }
    assert kept < set(names(empty, "type = 'trigger'"))


def test_an_update_trigger_watches_every_column_that_is_indexed(empty: sqlite3.Connection) -> None:
    for index in full_text_indexes(empty):
        columns = {row[1] for row in empty.execute(f"pragma table_info([{index}])")}
        (text,) = empty.execute(
            "select sql from sqlite_master where name = ?", (f"{index}_update",)
        ).fetchone()
        watched = re.search(r"after update of (.*?) on ", text)
        assert watched
        assert columns <= set(watched[1].split(", ")), index


def test_full_text_indexes_of_an_empty_database_are_sound(empty: sqlite3.Connection) -> None:
    indexes = full_text_indexes(empty)
    assert indexes
    for index in indexes:
        empty.execute(f"insert into {index} ({index}, rank) values ('integrity-check', 1)")


def test_every_view_can_be_read(empty: sqlite3.Connection) -> None:
    views = names(empty, "type = 'view'")
    assert views
    for view in views:
        rows = empty.execute(f"select * from {view}").fetchall()
        assert all(0 in row for row in rows), view  # what only counts, counts nothing


OF_ALL_SYSTEMS = {
    "messages_cjk",  # the content of an index: its columns are those that are indexed
    *("usage_by_day", "usage_by_model", "usage_by_subagent_type", "usage_reconciliation"),  # sums
}
TIMES = {"timestamp", "mtime", "started_at", "last_at", "last_activity_at", "noted_at"}


def test_a_view_says_which_conversation_which_branch_which_system_and_when() -> None:
    views = {table.name: {c.name for c in table.columns} for table in tables().values()
             if table.kind == "view"}  # fmt: skip
    of_conversations = {name for name, columns in views.items() if "session_id" in columns}
    assert {"conversation", "tool_calls_full", "response_costs", "retention"} <= of_conversations
    for name, columns in views.items():
        assert name not in of_conversations or {"session_key", "git_branch"} <= columns, name
        assert name in OF_ALL_SYSTEMS or "source" in columns, name
        assert name in OF_ALL_SYSTEMS | {"coverage"} or columns & TIMES, name


def test_the_database_says_that_it_is_ours(empty: sqlite3.Connection) -> None:
    assert empty.execute("pragma application_id").fetchone() == (APPLICATION_ID,)
    applied = empty.execute("select name from _sqlite_migrations order by name").fetchall()
    assert [name for (name,) in applied] == sql.migration_names()


def test_migrating_again_changes_nothing(fresh: Callable[[], Path]) -> None:
    path = fresh()
    before = path.read_bytes()
    with writing(path):
        pass
    assert path.read_bytes() == before


def test_migrations_are_numbered_without_a_gap() -> None:
    *files, views = sql.migration_names()
    assert views.startswith("views-")
    numbers = [int(name[:4]) for name in files]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("directory", [".", "fleet"])
def test_each_migration_has_a_number_of_its_own(directory: str) -> None:
    numbers = sorted(path.name[:4] for path in sql.data(f"schema/{directory}").glob("0*.sql"))
    assert len(set(numbers)) == len(numbers) > 10


def test_a_database_gets_the_views_of_who_writes_to_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view is text in one file: nobody writes a migration for it."""
    write(tmp_path / "home", TRANSCRIPT, user("paint it red"))
    assert shell("sync", str(tmp_path / "home")) == 0
    shipped = sql.data
    changed = tmp_path / "views.sql"
    text = Path(str(shipped(*sql.VIEWS))).read_text("utf-8")
    changed.write_text(text + "create view red as select 1 as one;\n")
    monkeypatch.setattr(sql, "data", lambda *path: changed if path == sql.VIEWS else shipped(*path))
    assert shell("status") != 0
    assert "was created by an older version" in shell.err
    assert shell("sync", str(tmp_path / "home")) == 0
    with closing(sqlite3.connect(shell.database)) as connection:
        assert connection.execute("select one from red").fetchall() == [(1,)]
        assert sql.applied_migrations(connection) == set(sql.migration_names())
    assert shell("status") == 0

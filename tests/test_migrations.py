"""A database of every released version becomes one of this version, or stays as it was.

`tests/golden/databases/VERSION.db.zst` is what that version made of the demonstration homes.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.amounts import spread, times
from tests.support.cases import DEMO
from tests.support.child import Child, usual_seconds
from tests.support.dump import Dump, assert_same, check, dump
from tests.support.pieces import Killed, killed_at

from assoc_ingest import sql
from assoc_ingest.ask.search import search
from assoc_ingest.store import database as databases
from assoc_ingest.store.fts import fits, indexes
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.rebuild import rebuild

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HERE = Path(__file__).parent
HOMES = [DEMO / name for name in ("ccinsights", "chorus", "claude", "cortex")]
"""What the oldest version read."""
NOT_ARCHIVED = ("chorus:config.json",)
RELEASED = sorted((HERE / "golden" / "databases").glob("*.db.zst"))

pytestmark = pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.name[:-7])


@pytest.fixture
def old(released: Path, place: Path) -> Path:
    path = place / "old.db"
    path.write_bytes(zstd.decompress(released.read_bytes()))
    path.chmod(0o600)
    return path


def schema(database: Path) -> list[tuple[str, str]]:
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "select type || ' ' || name, sql from sqlite_master"
            " where sql is not null and name not like '\\_sqlite%' escape '\\' order by 1"
        )
        return [(name, " ".join(text.split())) for name, text in rows]


def applied(database: Path) -> list[str]:
    with sqlite3.connect(database) as connection:
        return [name for (name,) in connection.execute("select name from _sqlite_migrations")]


def migrate(database: Path) -> None:
    with databases.writing(database):
        pass


def archived(shown: Dump) -> Dump:
    """Return what comes from archived files; the names of agents come from a configuration."""
    kept = {
        table: [row for row in found if not str(row.get("file_id")).endswith(NOT_ARCHIVED)]
        for table, found in shown.items()
    }
    return {**kept, "files": [], "prices": [], "agents": []}


def test_it_has_the_schema_of_a_new_one(old: Path, fresh: Callable[[], Path]) -> None:
    assert applied(old) != sql.migration_names()
    with pytest.raises(databases.DatabaseError, match="created by an older version"):
        databases.open_reader(old)
    migrate(old)
    assert applied(old) == sql.migration_names()
    assert schema(old) == schema(fresh())
    check(old)


def test_its_rows_become_those_of_a_new_one(old: Path, fresh: Callable[[], Path]) -> None:
    """Its homes are not on this disk: all comes from its archive, but for what is not archived."""
    new = fresh()
    sync(new, HOMES)
    rebuild(old)
    check(old)
    ours, theirs = dump(old), dump(new)
    assert_same(archived(ours), archived(theirs))
    assert len(ours["files"]) == len(theirs["files"]) > 30


def test_words_with_invisible_letters_that_it_holds_are_found(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        for letter, column in (("\u00ad", "text"), ("\u200b", "tool_text")):
            changed = connection.execute(
                f"update messages set {column} = 'the pass{letter}word'"
                f" where id = (select max(id) from messages where {column} is not null)"
            )
            assert changed.rowcount == 1
        connection.execute("update plans set text = 'the pass\u2060word'")
    migrate(old)
    with closing(databases.open_reader(old)) as connection:
        hits = search(connection, "password").hits
    assert {(hit.what, hit.scope) for hit in hits} >= {
        ("message", "said"), ("message", "tools"), ("plan", "said"),
    }  # fmt: skip
    with sqlite3.connect(old) as connection:
        assert all(fits(connection, name) for name in indexes(connection))


def test_the_next_sync_migrates_it_and_derives_it_again(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("delete from messages where kind = 'prompt'")
        (derived_by,) = connection.execute("pragma user_version").fetchone()
    report = sync(old, HOMES)
    assert (report.files_rebuilt > 30) == (derived_by < databases.DERIVATION)
    check(old, *HOMES)


def test_a_kill_at_any_step_leaves_the_old_or_the_new(old: Path, place: Path) -> None:
    """Killed at one of sixty statements, or at each of so many."""
    before, whole = applied(old), Path(shutil.copy(old, place / "whole.db"))
    with killed_at(sys.maxsize) as statements:
        migrate(whole)
    assert len(statements) > 5
    for step in spread(len(statements), times(60)):
        database = Path(shutil.copy(old, place / "killed.db"))
        with pytest.raises(Killed), killed_at(step - 1):
            migrate(database)
        assert applied(database) in (before, sql.migration_names())
        check(database)
        migrate(database)
        assert applied(database) == sql.migration_names()
        database.unlink()


def test_a_kill_at_any_moment_leaves_the_old_or_the_new(old: Path, place: Path) -> None:
    chance, kills, before = random.Random(1), 0, applied(old)
    whole = Path(shutil.copy(old, place / "whole.db"))
    usual = usual_seconds(lambda: migrate(whole))
    for number in range(20):
        database = Path(shutil.copy(old, place / f"{number}.db"))
        child = Child(lambda path=database: migrate(path))
        if not child.is_done_within(chance.random() * usual):
            child.kill()
            kills += 1
        assert applied(database) in (before, sql.migration_names())
        check(database)
    assert kills > 3


def test_a_kill_while_it_is_derived_again_costs_nothing(old: Path, place: Path) -> None:
    chance, kills = random.Random(2), 0
    whole = Path(shutil.copy(old, place / "whole.db"))
    usual = usual_seconds(lambda: rebuild(whole).files)
    expected = dump(whole)
    for number in range(12):
        database = Path(shutil.copy(old, place / f"rebuilt-{number}.db"))
        child = Child(lambda path=database: rebuild(path).files)
        if not child.is_done_within(chance.random() * usual):
            child.kill()
            kills += 1
        check(database)
        rebuild(database)
        check(database)
        assert_same(dump(database), expected)
    assert kills > 3

"""A database of every released version becomes one of this version, or stays as it was.

`tests/golden/databases/VERSION.db.zst` is what that version made of the demonstration homes, and
`before-0.1.0/WHAT.db.zst` what was made of one before the first release, with the same migrations.
"""

from __future__ import annotations

import random
import re
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
from tests.support.pieces import Killed, killed_at
from tests.support.searching import search
from tests.support.shell import Shell

from assoc_ingest import sql
from assoc_ingest.store import database as databases
from assoc_ingest.store.fts import fits, indexes
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import Dump, assert_same, check, connect, dump
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

pytestmark = pytest.mark.slow

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HERE = Path(__file__).parent
HOMES = [DEMO / name for name in ("ccinsights", "chorus", "claude", "cortex")]
"""What the oldest version read."""
NOT_ARCHIVED = ("chorus:config.json",)
DATABASES = HERE / "golden" / "databases"
RELEASED = sorted(DATABASES.glob("*.db.zst"))
UNFINISHED = sorted((DATABASES / "before-0.1.0").glob("*.db.zst"))

of_releases = pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.name[:-7])
of_all = pytest.mark.parametrize(
    "released", [*RELEASED, *UNFINISHED], ids=lambda path: path.name[:-7]
)


@pytest.fixture
def old(released: Path, place: Path) -> Path:
    return unpacked(released, place / "old.db")


def unpacked(released: Path, path: Path) -> Path:
    path.write_bytes(zstd.decompress(released.read_bytes()))
    path.chmod(0o600)
    return path


def schema(database: Path) -> list[tuple[str, str]]:
    """Without comments, which nobody rewrites in a database that is there."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "select type || ' ' || name, sql from sqlite_master"
            " where sql is not null and name not like '\\_sqlite%' escape '\\' order by 1"
        )
        return [(name, " ".join(re.sub("--.*", "", text).split())) for name, text in rows]


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


@of_releases
def test_it_has_the_schema_of_a_new_one(old: Path, fresh: Callable[[], Path]) -> None:
    assert applied(old) != sql.migration_names()
    with pytest.raises(databases.DatabaseError, match="created by an older version"):
        databases.open_reader(old)
    migrate(old)
    assert applied(old) == sql.migration_names()
    assert schema(old) == schema(fresh())
    check(old)


@of_all
def test_every_command_updates_it_or_says_what_does(old: Path, shell: Shell) -> None:
    """Nobody is sent in a circle, and what cannot be updated in place has no byte changed."""
    shutil.move(old, shell.database)
    before = shell.database.read_bytes()
    assert shell("search", "frost") == 4
    advice = "rebuild" if "cannot be updated in place" in shell.err else "sync"
    assert shell.err.rstrip().endswith(f"run: assoc-ingest {advice}")
    assert shell.err.count("\n") == 1
    if advice == "rebuild":
        for command in ("sync", "prune --gone", "compact", "forget x", "verify", "status"):
            assert shell(*command.split()) == 4
            assert shell.err.rstrip().endswith("run: assoc-ingest rebuild")
            assert shell.database.read_bytes() == before
    files = archived_files(shell.database)
    assert shell(advice) == 0, shell.err
    assert shell("search", "frost") == 0
    assert archived_files(shell.database) == files
    check(shell.database)
    assert verify(shell.database).findings == []


def archived_files(database: Path) -> list[tuple[str, int]]:
    """Return the paths of all files, and how many of their bytes the archive has."""
    with closing(connect(database)) as connection:
        rows = connection.execute(
            'select f.path, (select sum("end" - start) from archive a where a.file_id = f.id)'
            " from files f order by f.path"
        )
        return [tuple(row) for row in rows]


@of_releases
def test_indexes_and_views_that_it_lacks_or_has_otherwise_are_those_of_a_new_one(
    old: Path, fresh: Callable[[], Path]
) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("drop index documents_project_key")
        connection.execute("drop index tool_result_files_session_key")
        connection.execute("create index tool_result_files_session_key on files (path)")
        connection.execute("drop view retention")
        connection.execute("create view retention as select 1 as path")
        connection.execute("create view of_the_user as select path from files")
    connection.close()
    migrate(old)
    assert [row for row in schema(old) if row[0] != "view of_the_user"] == schema(fresh())
    check(old)


@of_releases
def test_a_table_that_is_another_one_is_refused_before_anything_is_written(
    old: Path, shell: Shell
) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("alter table pastes add column mood text")
    connection.close()
    shutil.move(old, shell.database)
    before = shell.database.read_bytes()
    assert shell("sync") == 4
    assert "table pastes is not that of this version" in shell.err
    assert shell.database.read_bytes() == before
    assert shell("rebuild") == 0
    assert "is kept as" in shell.err
    check(shell.database)


@of_releases
def test_its_rows_become_those_of_a_new_one(old: Path, fresh: Callable[[], Path]) -> None:
    """Its homes are not on this disk: all comes from its archive, but for what is not archived."""
    new = fresh()
    sync(new, HOMES)
    rebuild(old)
    check(old)
    ours, theirs = dump(old), dump(new)
    assert_same(archived(ours), archived(theirs))
    assert len(ours["files"]) == len(theirs["files"]) > 30


@of_releases
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


@of_releases
def test_the_next_sync_migrates_it_and_derives_it_again(old: Path) -> None:
    with sqlite3.connect(old) as connection:
        connection.execute("delete from messages where kind = 'prompt'")
        (derived_by,) = connection.execute("pragma user_version").fetchone()
    report = sync(old, HOMES)
    assert (report.files_rebuilt > 30) == (derived_by < databases.DERIVATION)
    check(old, *HOMES)


@of_releases
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


@of_releases
def test_a_kill_at_any_moment_leaves_the_old_or_the_new(old: Path, place: Path) -> None:
    chance, kills, before = random.Random(1), 0, applied(old)
    whole = Path(shutil.copy(old, place / "whole.db"))
    usual = usual_seconds(lambda: migrate(whole))
    for number in range(count := times(50, 10)):
        database = Path(shutil.copy(old, place / f"{number}.db"))
        child = Child(lambda path=database: migrate(path))
        if not child.is_done_within((number + chance.random()) / count * usual):
            child.kill()
            kills += 1
        assert applied(database) in (before, sql.migration_names())
        check(database)
    assert kills > 1


@of_releases
def test_a_kill_while_it_is_derived_again_costs_nothing(old: Path, place: Path) -> None:
    chance, kills = random.Random(2), 0
    whole = Path(shutil.copy(old, place / "whole.db"))
    usual = usual_seconds(lambda: rebuild(whole).files)
    expected = dump(whole)
    for number in range(count := times(25, 5)):
        database = Path(shutil.copy(old, place / f"rebuilt-{number}.db"))
        child = Child(lambda path=database: rebuild(path).files)
        if not child.is_done_within((number + chance.random()) / count * usual):
            child.kill()
            kills += 1
        check(database)
        rebuild(database)
        check(database)
        assert_same(dump(database), expected)
    assert kills > 1

"""`rebuild` derives what a sync derived, from the archive alone, and repairs what it can."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from tests.support.cases import DEMO, homes_of, of_groups
from tests.support.child import Child, usual_seconds
from tests.support.pieces import Killed, killed_at
from tests.support.writing import OTHER, PROJECT, SESSION, TRANSCRIPT, assistant, user, write

from assoc_ingest.cli import cli
from assoc_ingest.errors import BusyError
from assoc_ingest.sources import SOURCES
from assoc_ingest.store import batch
from assoc_ingest.store import database as databases
from assoc_ingest.store.batch import clear_all_rows
from assoc_ingest.store.database import transaction
from assoc_ingest.store.rows import CLEARED, CONDITIONS
from assoc_ingest.store.swap import replaced
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, connect, differences, dump, rows
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep import rebuild as rebuilding
from assoc_ingest.upkeep.rebuild import Rebuilt, rebuild
from assoc_ingest.upkeep.verify import verify

HOMES = sorted(DEMO.iterdir())


@pytest.fixture
def demo(fresh: Callable[[], Path]) -> Path:
    """A database with a home of each system."""
    database = fresh()
    sync(database, HOMES)
    return database


def execute(database: Path, *statements: str) -> None:
    connection = connect(database)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@of_groups
def test_every_case_is_derived_as_a_sync_derived_it(
    group: str, fresh: Callable[[], Path], place: Path
) -> None:
    database, homes = fresh(), homes_of(group, place)
    sync(database, homes)
    before = dump(database)
    with read_in_pieces(chunk=700, batch=900):
        rebuild(database)
    check(database)
    # What is not archived is read again by the next sync, and until then is marked in `files`.
    assert_same(_but(dump(database), "files"), _but(before, "files"))
    sync(database, homes)
    check(database, *homes)
    assert_same(dump(database), before)


@of_groups
def test_rows_of_a_log_whose_archive_lacks_its_end_stay_as_they_are(
    group: str, fresh: Callable[[], Path], place: Path
) -> None:
    database = fresh()
    sync(database, homes_of(group, place))
    execute(database, "update files set offset = offset + 3 where offset > 0")
    before = dump(database)
    rebuild(database)
    after = dump(database)
    for table in before.keys() - {"files", "issues"}:  # these say what is missing
        assert_same({table: after[table]}, {table: before[table]})


def test_what_changes_in_a_private_copy_is_not_kept_in_memory(demo: Path) -> None:
    """To undo it: it would be whole indexes, and all that is derived. Debian's SQLite would also
    overwrite what is freed."""
    with databases.writing(demo) as connection, replaced(connection) as copy:
        assert copy.execute("pragma secure_delete").fetchone() == (0,)
        assert copy.execute("pragma journal_mode").fetchone() == ("off",)


def test_an_error_in_a_private_copy_changes_nothing(demo: Path) -> None:
    """It is half changed then: nothing can be undone in it."""
    before = dump(demo)
    with (
        pytest.raises(sqlite3.IntegrityError),
        databases.writing(demo) as connection,
        replaced(connection) as copy,
        transaction(copy),
    ):
        _fail_half_way(copy)
    assert dump(demo) == before
    check(demo)
    assert [path.name for path in demo.parent.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("is_damaged", [False, True])
def test_an_error_that_a_bad_page_leads_to_is_not_told(demo: Path, *, is_damaged: bool) -> None:
    """The pages are checked while files are looked at, which may find anything in them."""
    before = dump(demo)
    if is_damaged:
        execute(demo, "drop index messages_uuid")
    plan_of, calls = rebuilding.plan_of, []

    def fails_once(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 1:
            raise ValueError("not a number")
        return plan_of(*arguments)  # type: ignore[arg-type]

    with (
        patch.object(rebuilding, "plan_of", fails_once),
        nullcontext() if is_damaged else pytest.raises(ValueError, match="not a number"),
    ):
        assert rebuild(demo).kept_aside is not None
    sync(demo, HOMES)  # reads again what is not archived
    assert_same(dump(demo), before)
    check(demo, *HOMES)


def test_whoever_stops_a_rebuild_does_not_wait_for_its_check(demo: Path) -> None:
    """The check here would never end, and is interrupted before it begins, too."""
    numbers = "with recursive n (i) as (select 1 union all select i + 1 from n)"

    def never_ends(connection: sqlite3.Connection) -> None:
        connection.execute(f"{numbers} select max(i) from n").fetchone()

    with (
        databases.writing(demo) as connection,
        patch.object(rebuilding, "_check", never_ends),
        pytest.raises(KeyboardInterrupt),
        rebuilding.checked_meanwhile(connection),
    ):
        raise KeyboardInterrupt
    check(demo)


def _fail_half_way(connection: sqlite3.Connection) -> None:
    connection.execute("delete from messages where id % 2")
    connection.execute("insert into files (id) select id from files")


def _but(
    tables: dict[str, list[dict[str, object]]], name: str
) -> dict[str, list[dict[str, object]]]:
    return {table: rows for table, rows in tables.items() if table != name}


@pytest.mark.slow
def test_rows_of_vanished_files_are_derived_like_all_others(
    fresh: Callable[[], Path], place: Path
) -> None:
    homes = [Path(shutil.copytree(home, place / home.name)) for home in HOMES]
    database = fresh()
    sync(database, homes)
    for home in homes:
        for path in sorted(home.rglob("*")):
            if path.is_file():
                path.unlink()
    sync(database, [])
    before = dump(database)
    assert {row["is_gone"] for row in before["files"]} == {True}
    seen = rows(database, "select id, gone_at from files")
    execute(database, "delete from messages", "update sessions set title = 'wrong'")
    rebuilt = rebuild(database)
    assert rebuilt.rows == len(before["messages"]) > 50
    check(database)
    assert_same(dump(database), before)
    assert rows(database, "select id, gone_at from files") == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "update messages set text = 'invented' where kind = 'prompt'",
        "delete from messages where id % 3 = 0",
        "delete from tool_calls",
        "update messages set copy_of = null",
        "update sessions set prompt_count = 99, title = 'wrong'",
        "update responses set output_tokens = output_tokens + 1",
        "delete from responses",
        "update subagents set spawned_by = null, link_method = null",
        "delete from line_types",
        "delete from issues",
        "update files set line_count = 7, own_since = null",
        "update projects set name = 'wrong', path = '/nowhere'",
        "update inbox_items set team_id = null, copy_of = null",
        "update prompts set session_id = null",
        "insert into messages_fts (messages_fts) values ('delete-all')",
    ],
)
def test_rows_that_are_wrong_become_right(demo: Path, damage: str) -> None:
    before = dump(demo)
    execute(demo, damage)
    rebuild(demo)
    sync(demo, HOMES)
    check(demo, *HOMES)
    assert verify(demo).findings == []
    assert_same(dump(demo), before)


def test_what_was_only_seen_stays(fresh: Callable[[], Path], place: Path) -> None:
    """Changes of tasks, and messages that a file no longer holds, stand in no archived byte."""
    home, database = place / "home", fresh()
    for status in ("pending", "completed"):
        task = {"id": "1", "subject": "Sow", "description": "", "status": status,
                "blocks": [], "blockedBy": []}  # fmt: skip
        write(home, f"tasks/{SESSION}/1.json", task)
        write(home, f"tasks/{SESSION}/2.json", {**task, "id": "2"})
        sync(database, [home])
    (home / f"tasks/{SESSION}/2.json").unlink()
    sync(database, [home])
    before = dump(database)
    changes = rows(database, "select * from task_changes")
    gone = rows(database, "select id, task_key, gone_at from tasks order by id")
    assert len(changes) == 2
    assert [row[2] is None for row in gone] == [True, False]
    rebuild(database)
    assert rows(database, "select * from task_changes") == changes
    assert rows(database, "select id, task_key, gone_at from tasks order by id") == gone
    assert_same(dump(database), before)


def test_no_row_is_left_where_files_are_cleared_a_few_at_a_time(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_FILES_AT_ONCE", 3)
    with closing(connect(demo)) as connection:
        (kept,) = connection.execute("select max(file_id) from tool_calls").fetchone()
        ids = [id_ for (id_,) in connection.execute("select id from files where id <> ?", (kept,))]
        clear_all_rows(connection, ids)
        left = {
            table: connection.execute(
                f"select count(*) from {table} where file_id <> ?"
                f" and not ({CONDITIONS.get(table, '0')})", (kept,)
            ).fetchone()
            for table in CLEARED
        }  # fmt: skip
        assert {table: count for table, (count,) in left.items() if count} == {}
        assert connection.execute("select 1 from messages where file_id = ?", (kept,)).fetchone()
    assert len(ids) > 10


@pytest.mark.slow
def test_readers_see_old_rows_or_new_ones(demo: Path) -> None:
    """One that began before sees the database as it was; nobody waits for the other."""
    execute(demo, "update messages set text = 'invented' where kind = 'prompt'")
    reader = databases.open_reader(demo)
    reader.execute("begin")
    count = "select count(*), sum(text = 'invented') from messages"
    before = tuple(reader.execute(count).fetchone())
    rebuild(demo)
    assert tuple(reader.execute(count).fetchone()) == before
    reader.execute("rollback")
    after = tuple(reader.execute(count).fetchone())
    assert after[0] == before[0]
    assert before[1] > 0 == after[1]
    reader.close()


@pytest.mark.slow
def test_without_room_for_a_copy_rows_are_replaced_in_the_database(demo: Path) -> None:
    before = dump(demo)
    execute(demo, "update messages set text = 'invented' where id % 3 = 0")
    with (
        patch("shutil.disk_usage", lambda _: SimpleNamespace(free=0)),
        patch.object(rebuilding, "replaced") as replaced,
    ):
        rebuild(demo)
    replaced.assert_not_called()
    sync(demo, HOMES)
    check(demo, *HOMES)
    assert_same(dump(demo), before)


def test_what_another_program_wrote_meanwhile_is_not_lost(demo: Path) -> None:
    """One that does not know the lock: the rebuild is given up."""
    derive = rebuilding.refresh_everything

    def meanwhile(copy: sqlite3.Connection) -> None:
        execute(demo, "create table mine (x)")
        derive(copy)

    with (
        patch.object(rebuilding, "refresh_everything", meanwhile),
        pytest.raises(BusyError, match="Another program is writing"),
    ):
        rebuild(demo)
    assert rows(demo, "select * from mine") == []
    check(demo, *HOMES)
    assert not Path(f"{demo}-unfinished").exists()


def test_a_program_that_goes_on_writing_is_not_waited_for(demo: Path) -> None:
    derive = rebuilding.refresh_everything
    other = connect(demo)

    def meanwhile(copy: sqlite3.Connection) -> None:
        other.execute("begin immediate")
        derive(copy)

    with (
        patch.object(rebuilding, "refresh_everything", meanwhile),
        patch.object(databases, "_SAFE", ("busy_timeout = 1", *databases._SAFE[1:])),
        pytest.raises(BusyError, match="Another program is writing"),
    ):
        rebuild(demo)
    other.close()
    check(demo, *HOMES)


@pytest.mark.slow
def test_a_rebuild_may_be_killed_at_any_step(demo: Path, place: Path) -> None:
    expected = dump(demo)
    step, survived = 0, False
    while not survived:
        step += 131
        database = Path(shutil.copy(demo, place / "killed.db"))
        try:
            with killed_at(step), read_in_pieces(chunk=1500, batch=2000):
                rebuild(database)
            survived = True
        except Killed:
            check(database)
            assert_same(dump(database), expected)
        rebuild(database)
        sync(database, HOMES)
        check(database, *HOMES)
        assert_same(dump(database), expected)
        database.unlink()
    assert step > 300


@pytest.mark.slow
def test_a_rebuild_may_be_killed_at_any_moment(demo: Path) -> None:
    expected, chance, kills = dump(demo), random.Random(1), 0

    def run() -> int:
        with read_in_pieces(chunk=1500, batch=2000):
            return rebuild(demo).files

    usual = usual_seconds(run)
    for _ in range(15):
        child = Child(run)
        if not child.is_done_within(chance.random() * usual):
            child.kill()
            kills += 1
        check(demo)
        assert_same(_but(dump(demo), "files"), _but(expected, "files"))
    assert kills > 5
    rebuild(demo)
    sync(demo, HOMES)
    assert_same(dump(demo), expected)


# -- by itself -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_new_version_derives_again_what_an_old_one_read(
    fresh: Callable[[], Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser learns something: rows of files that nobody has any more know it, too."""
    home, database = place / "home", fresh()
    write(home, TRANSCRIPT, user("sow beans"), assistant("done"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("water", sessionId=OTHER))
    sync(database, [home])
    (home / TRANSCRIPT).unlink()
    sync(database, [home])
    source = SOURCES["claude"]
    parse = type(source).parse

    def learned(self, claim, lines):  # type: ignore[no-untyped-def]
        return [
            record._replace(text=record.text.upper()) if getattr(record, "text", None) else record
            for record in parse(self, claim, lines)
        ]

    monkeypatch.setattr(type(source), "parse", learned)
    assert sync(database, [home]).files_rebuilt == 0
    assert rows(database, "select text from messages order by id")[0] == ("sow beans",)
    monkeypatch.setattr(databases, "DERIVATION", databases.DERIVATION + 1)
    report = sync(database, [home])
    assert (report.files_rebuilt, report.files_read) == (2, 0)
    assert rows(database, "select text from messages order by text") == [
        ("DONE",), ("SOW BEANS",), ("WATER",),
    ]  # fmt: skip
    assert sync(database, [home]).files_rebuilt == 0
    check(database, home)


def test_a_new_database_has_nothing_to_derive(tmp_path: Path) -> None:
    assert sync(tmp_path / "new.db", HOMES).files_rebuilt == 0


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_damaged_pages_cost_what_lay_in_them_until_the_next_sync(demo: Path, place: Path) -> None:
    expected = dump(demo)
    damaged = lost = beyond = 0
    size = 16384
    pages = demo.stat().st_size // size
    for seed in range(14):
        chance, database = random.Random(seed), Path(shutil.copy(demo, place / "damaged.db"))
        with database.open("r+b") as file:
            for _ in range(chance.choice([1, 1, 3])):
                file.seek(chance.randrange(1, pages) * size)
                file.write(chance.choice([chance.randbytes(size), bytes(size)]))
        damaged += _integrity(database) != "ok"
        rebuilt: Rebuilt | None = None
        try:
            rebuilt = rebuild(database)
        except databases.DatabaseError:
            beyond += 1
        if rebuilt is not None:
            lost += bool(rebuilt.rows_lost)
            assert _integrity(database) == "ok"
            sync(database, HOMES, SyncOptions(full=True))
            check(database, *HOMES)
            assert_same(dump(database), expected)
        for path in place.glob("damaged.db*"):
            path.unlink()
    assert damaged > 8
    assert lost > 0
    assert beyond < damaged / 4


def _integrity(database: Path) -> str:
    connection = sqlite3.connect(database)
    try:
        return str(connection.execute("pragma integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        connection.close()


@pytest.mark.slow
def test_salvage_works_beside_a_reader_and_keeps_the_file_private(demo: Path) -> None:
    with demo.open("r+b") as file:
        (page,) = rows(demo, "select rootpage from sqlite_master where name = 'tool_calls'")[0]
        file.seek((int(str(page)) - 1) * 16384)
        file.write(bytes(16384))
    reader = databases.open_reader(demo)
    reader.execute("begin")
    before = reader.execute("select count(*) from messages").fetchone()[0]
    rebuilt = rebuild(demo)
    assert list(rebuilt.rows_lost) == ["tool_calls"]
    assert reader.execute("select count(*) from messages").fetchone()[0] == before
    reader.close()
    assert demo.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in demo.parent.iterdir() if path.is_dir()) == []
    check(demo, *HOMES)


@pytest.mark.slow
@pytest.mark.parametrize("length", [20_000, 100_000, 400_000])
def test_a_database_that_was_cut_off_is_mended(demo: Path, length: int) -> None:
    expected = dump(demo)
    execute(demo, "vacuum")  # else the list of tables of a database so small stands at its end
    os.truncate(demo, demo.stat().st_size - length)
    with pytest.raises(databases.DatabaseError, match="run: assoc-ingest rebuild"):
        databases.open_reader(demo)
    rebuild(demo)
    assert _integrity(demo) == "ok"
    sync(demo, HOMES, SyncOptions(full=True))
    check(demo, *HOMES)
    assert_same(dump(demo), expected)


def test_a_database_without_its_list_of_tables_is_left_as_it_is(demo: Path) -> None:
    with demo.open("r+b") as file:
        file.seek(100)
        file.write(bytes(16384 - 100))
    before = demo.read_bytes()
    with pytest.raises(databases.DatabaseError, match="Move it away"):
        rebuild(demo)
    assert demo.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "drop trigger messages_delete",
        "drop index messages_uuid",
        "drop view conversation",
        "drop table todos",
        "alter table messages drop column is_cut",
        "delete from files where kind = 'transcript'",
    ],
)
def test_a_schema_that_was_tampered_with_is_mended(
    demo: Path, damage: str, fresh: Callable[[], Path]
) -> None:
    expected = dump(demo)
    with sqlite3.connect(demo) as connection:
        connection.execute("pragma foreign_keys = off")
        names = "select name from sqlite_master where type = 'trigger' and tbl_name = 'messages'"
        (trigger, *_) = [name for (name,) in connection.execute(names)]
        connection.execute(damage.replace("messages_delete", trigger))
    rebuild(demo)
    assert _schema(demo) == _schema(fresh())
    sync(demo, HOMES, SyncOptions(full=True))
    check(demo, *HOMES)
    assert verify(demo).findings == []
    assert_same(dump(demo), expected)


@pytest.mark.slow
def test_text_that_is_not_utf8_in_a_damaged_database_is_derived_again(demo: Path) -> None:
    expected = dump(demo)
    execute(
        demo,
        "update messages set text = cast(x'ff' as text) where kind = 'prompt'",
        "update files set path = cast(x'ff' as text) where id = (select max(id) from files)",
        "drop index messages_uuid",
    )
    rebuild(demo)
    sync(demo, HOMES, SyncOptions(full=True))
    check(demo, *HOMES)
    assert verify(demo).findings == []
    assert_same(dump(demo), expected)


def _schema(database: Path) -> list[tuple[object, ...]]:
    return rows(database, "select type, name, sql from sqlite_master where sql <> '' order by 1, 2")


@pytest.mark.slow
def test_a_damaged_archive_costs_no_row(demo: Path) -> None:
    before = dump(demo, tables=["messages"])
    execute(demo, "update archive set data = x'00' where id in (select max(id) from archive)")
    rebuilt = rebuild(demo)
    assert len(rebuilt.files_damaged) == 1
    assert not differences(dump(demo, tables=["messages"]), before)
    sync(demo, HOMES)
    check(demo, *HOMES)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_says_what_it_did(demo: Path) -> None:
    result = CliRunner().invoke(cli, ["rebuild", "-d", str(demo), "--json"])
    assert result.exit_code == 0, result.output
    assert "Rebuilt 85 blocks from 41 of 42 files (" in result.stderr  # of 42 files, as a sync
    assert "; 1 is not archived, so the rows stay." in result.stderr
    assert '"files_kept": 1' in result.stdout


def test_without_a_database_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(databases.DatabaseError, match="run: assoc-ingest sync"):
        rebuild(tmp_path / "no.db")
    assert not list(tmp_path.iterdir())

"""A database of another program is read without a trace, and never in part, whatever it is doing.

Its program may be writing, or have been killed, or have changed its tables: the directory stays as
it is, to the byte, and what was read before is kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import SOURCES, home_of
from tests.support.pieces import everything_through_workers

from assoc_ingest.files import archive, changes, stores
from assoc_ingest.files.stores import (
    BUSY,
    CALCULATED,
    NOT_SQLITE,
    ODD_KEYS,
    TOO_LONG,
    UNKNOWN_TABLES,
)
from assoc_ingest.files.walk import ListedDirectory, recognised
from assoc_ingest.source import Table
from assoc_ingest.sources import SOURCES as KINDS
from assoc_ingest.store.database import open_reader, writing
from assoc_ingest.sync.plan import Report, places_of
from assoc_ingest.sync.run import SyncOptions, sync, sync_into
from assoc_ingest.sync.watch import News
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.testing.promises import make_database
from assoc_ingest.upkeep.forget import Target, forget
from assoc_ingest.upkeep.rebuild import rebuild, rebuild_into
from assoc_ingest.upkeep.restore import restore, select_all
from assoc_ingest.upkeep.verify import SYNC, verify

CASE = "opencode/a-database"
SCRIPT = (SOURCES / CASE / "home" / "opencode.db.sql").read_text("utf-8")
SCHEMA = SCRIPT[: SCRIPT.index("insert into")]
TABLES = ("part", "message", "todo")
HEDGE, FORK = "opencode.db#ses_4f02ffee", "opencode.db#ses_4f00ffee"

Fresh = Callable[[], Path]


def lying(home: Path) -> dict[str, tuple[str, int]]:
    """Return every file of a directory, with the hash of its bytes and its time."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in home.rglob("*")
    }


@pytest.fixture
def home(place: Path) -> Path:
    return home_of(CASE, place)


def change(home: Path, *statements: str) -> None:
    """Change the database as its program would, and close it."""
    with closing(sqlite3.connect(home / "opencode.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def say(key: str, text: str, session: str = "ses_4f02ffee", at: int = 1769509000000) -> list[str]:
    """Return the statements with which a prompt enters the database."""
    message = json.dumps({"role": "user", "time": {"created": at}})
    part = json.dumps({"type": "text", "text": text})
    return [
        f"insert into message values ('msg_{key}', '{session}', {at}, {at}, '{message}')",
        f"insert into part values ('prt_{key}', 'msg_{key}', '{session}', {at}, {at}, '{part}')",
        f"update session set time_updated = {at} where id = '{session}'",
    ]


def texts(database: Path) -> set[str]:
    return {text for (text,) in rows(database, "select text from messages where text <> ''")}


def column(database: Path, query: str) -> list[object]:
    return [value for (value,) in rows(database, query)]


def reasons(database: Path) -> list[object]:
    return column(database, "select reason from issues where reason not like '%session_message'")


# -- no trace ------------------------------------------------------------------------------------

_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
print("open", flush=True)
for line in sys.stdin:
    connection.execute(line)
    print("done", flush=True)
"""


@contextmanager
def program(home: Path) -> Iterator[Callable[[str], None]]:
    """Run a program that has the database open; the function lets it execute a statement."""
    running = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(home / "opencode.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdin is not None
    assert running.stdout is not None
    assert running.stdout.readline() == "open\n"

    def execute(statement: str) -> None:
        assert running.stdin is not None
        assert running.stdout is not None
        print(statement, file=running.stdin, flush=True)
        assert running.stdout.readline() == "done\n"

    try:
        yield execute
    finally:
        running.kill()
        running.wait()
        running.stdin.close()
        running.stdout.close()


def test_a_closed_database_is_read_without_a_trace(home: Path, fresh: Fresh) -> None:
    before, database = lying(home), fresh()
    sync(database, [home])
    assert "Now burn it." in texts(database)
    assert lying(home) == before


def test_what_is_committed_is_read_while_the_program_writes(home: Path, fresh: Fresh) -> None:
    database = fresh()
    with program(home) as execute:
        for statement in say("x1", "in the log"):
            execute(statement)
        execute("begin immediate")
        for statement in say("x2", "not committed"):
            execute(statement)
        before = lying(home)
        assert before.keys() == {"opencode.db", "opencode.db-shm", "opencode.db-wal"}
        sync(database, [home])
        assert "in the log" in texts(database)
        assert "not committed" not in texts(database)
        assert lying(home) == before
        execute("commit")
        sync(database, [home])
        assert "not committed" in texts(database)
        check(database, home)
    kept = dump(database)
    before = lying(home)
    assert before["opencode.db-wal"][0] != hashlib.sha256(b"").hexdigest(), "it was killed"
    other = fresh()
    sync(other, [home])
    assert_same(dump(other), kept)
    assert lying(home) == before


def test_a_log_without_its_index_is_left_alone(home: Path, fresh: Fresh) -> None:
    """To read it, SQLite would have to create a file."""
    database = fresh()
    sync(database, [home])
    kept = texts(database)
    with program(home) as execute:
        for statement in say("x1", "in the log"):
            execute(statement)
    (home / "opencode.db-shm").unlink()
    before = lying(home)
    for _ in range(2):
        sync(database, [home])
        assert lying(home) == before
        assert texts(database) == kept
        assert reasons(database) == [BUSY]
        assert column(database, "select count(*) from files where gone_at is not null") == [0]
    change(home, "select * from session")  # its program opens it, and closes it in order
    sync(database, [home])
    assert reasons(database) == []
    assert "in the log" in texts(database)


def test_a_locked_database_is_read_by_the_next_sync(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "_WAIT", 0.01)
    database = fresh()
    with program(home) as execute:
        execute("pragma locking_mode = exclusive")
        for statement in say("x1", "behind the lock"):
            execute(statement)
        before = lying(home)
        sync(database, [home])
        assert reasons(database) == [BUSY]
        assert column(database, "select count(*) from messages") == [0]
        assert lying(home) == before
    change(home, "select * from session")
    sync(database, [home])
    assert reasons(database) == []
    assert "behind the lock" in texts(database)


def test_what_was_read_while_it_changed_is_discarded(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh()
    sync(database, [home])
    kept = dump(database)
    change(home, *say("x1", "first"))
    listed = stores._listed

    def disturbed(*arguments: object) -> object:
        change(home, *say("x2", "second", at=1769509000001))
        return listed(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(stores, "_listed", disturbed)
        sync(database, [home])
        assert reasons(database) == [BUSY]
        assert texts(database) == {row["text"] for row in kept["messages"] if row["text"]}
    sync(database, [home])
    assert {"first", "second"} <= texts(database)
    check(database, home)
    other = fresh()
    sync(other, [home])
    assert_same(dump(database), dump(other))


@pytest.mark.parametrize("read", [1, 2], ids=["while-it-is-compared", "while-it-is-stored"])
def test_an_entry_that_changes_while_it_is_read_is_not_stored(
    read: int, home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an entry that is too large to be held in memory is read a second time."""
    monkeypatch.setattr(changes, "_HELD", 0)
    database = fresh()
    sync(database, [home])
    kept = dump(database, tables=["messages", "tool_calls", "sessions"])
    change(home, *say("x1", "first"))
    select, seen = stores._lines, []

    def disturbed(connection: object, table: object, *rest: object) -> Iterator[bytes]:
        if getattr(table, "name", "") == "message":
            seen.append(table)
            if len(seen) == read:
                change(home, *say("x2", "second", at=1769509000001))
        return select(connection, table, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(stores, "_lines", disturbed)
        report = sync(database, [home])
    assert [reason for _, reason in report.unreadable] == [BUSY]
    assert_same(dump(database, tables=["messages", "tool_calls", "sessions"]), kept)
    sync(database, [home])
    assert {"first", "second"} <= texts(database)
    check(database, home)


def test_an_entry_is_read_once(home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared and parsed from the same bytes, unless it is large."""
    select, seen = stores._lines, []

    def noted(connection: object, table: Table, *rest: object) -> Iterator[bytes]:
        if table.name == "project":
            seen.append(rest)
        return select(connection, table, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(stores, "_lines", noted)
    report = sync(fresh(), [home])
    entries = report.files_read - 1
    assert len(seen) == entries > 0
    seen.clear()
    monkeypatch.setattr(changes, "_HELD", 0)
    sync(fresh(), [home])
    assert len(seen) == 2 * entries


def test_what_could_not_be_listed_is_listed_by_the_next_sync(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(location: str) -> None:
        raise OSError(location)

    database = fresh()
    with monkeypatch.context() as patch:
        patch.setattr(stores, "_reading", failing)
        sync(database, [home])
        assert reasons(database) == [BUSY]
    sync(database, [home])
    assert "Now burn it." in texts(database)
    assert reasons(database) == []


def test_what_could_not_be_read_is_read_by_the_next_sync(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database has not changed since, and all of its other conversations were read."""
    lines = stores._lines

    def failing(connection: object, table: object, selects: object, key: str, *rest: object) -> Any:
        if key == "ses_4f00ffee":
            raise OSError(key)
        return lines(connection, table, selects, key, *rest)  # type: ignore[arg-type]

    database = fresh()
    with monkeypatch.context() as patch:
        patch.setattr(stores, "_lines", failing)
        assert len(sync(database, [home]).unreadable) == 1
        assert "It is pruned." in texts(database)
        assert "Now burn it." not in texts(database)
    sync(database, [home])
    assert "Now burn it." in texts(database)
    assert sync(database, [home]).files_read == 0


def test_an_unchanged_database_is_not_opened(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh()
    first = sync(database, [home])
    monkeypatch.setattr(stores, "_reading", None)
    second = sync(database, [home])
    assert (second.files_read, second.files_gone, second.files_seen) == (0, 0, first.files_seen)


def test_only_changed_entries_are_read(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    change(home, *say("x1", "one more"))
    report = sync(database, [home])
    assert report.files_read == 2, "the entry, and the database"
    assert "one more" in texts(database)


# -- what goes, and what cannot be read -----------------------------------------------------------


def test_a_deleted_conversation_is_gone_and_its_rows_stay(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = texts(database)
    delete = [f"delete from {table} where session_id = 'ses_4f00ffee'" for table in TABLES]
    change(home, *delete, "delete from session where id = 'ses_4f00ffee'")
    assert sync(database, [home]).files_gone == 1
    assert column(database, "select path from files where gone_at is not null") == [FORK]
    assert texts(database) == before
    check(database, home)
    assert sync(database, [home]).files_gone == 0


def test_rows_that_were_deleted_are_deleted(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    sync(database, [home])
    change(home, "delete from part where id = 'prt_f61'")
    sync(database, [home])
    assert "It burns." not in texts(database)
    sync(other, [home])
    assert_same(dump(database), dump(other))


def test_a_deleted_database_takes_nothing_with_it(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = texts(database)
    (home / "opencode.db").unlink()
    (home / "notes.txt").write_text("not empty")
    assert sync(database, []).files_gone == 4
    assert texts(database) == before


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        (["drop table part"], f"{UNKNOWN_TABLES}: part"),
        (["alter table session rename column parent_id to ancestor"], UNKNOWN_TABLES),
        (["alter table part rename to p", "create view part as select * from p"],
         f"{UNKNOWN_TABLES}: part"),
    ],
    ids=["a-table-is-missing", "a-column-is-missing", "a-view"],
)  # fmt: skip
def test_other_tables_are_one_issue_until_they_can_be_read(
    statements: list[str], reason: str, home: Path, fresh: Fresh
) -> None:
    database, whole = fresh(), (home / "opencode.db").read_bytes()
    sync(database, [home])
    kept = dump(database)
    change(home, *statements)
    for _ in range(2):
        sync(database, [home])
        assert reasons(database) == [reason]
        assert column(database, "select count(*) from files where gone_at is not null") == [0]
    assert sync(database, [home]).files_read == 0, "it has not changed"
    (home / "opencode.db").write_bytes(whole)
    sync(database, [home])
    assert_same(dump(database), kept)


LONG = "printf('%.*c', 99999, 'x')"


@pytest.mark.parametrize(
    ("statements", "kept"),
    [
        (["update part set data = '{\"type\":\"text\",\"text\":\"' || " + LONG + " || '\"}'"
          " where id = 'prt_new'"], "after it"),
        (["update todo set content = " + LONG], "before it"),
        (["update message set data = " + LONG + " where id = 'msg_new'"], "after it"),
    ],
    ids=["part", "todo", "message"],
)  # fmt: skip
def test_a_row_that_is_too_long_is_an_issue_and_the_others_are_read(
    statements: list[str], kept: str, home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = fresh()
    monkeypatch.setattr(stores, "MAX_LINE", 20_000)
    change(home, *say("before", "before it"), *say("new", "it", at=1769509000001))
    change(home, *say("zafter", "after it", at=1769509000002), *statements)
    sync(database, [home])
    found = reasons(database)
    assert found
    assert set(found) == {"data: not a JSON object"} or kept == "before it"
    assert {"before it", kept} <= texts(database)
    assert not any("xxxx" in text for text in texts(database))
    assert sync(database, [home]).files_read == 0
    check(database)


def test_a_list_that_is_too_long_is_an_issue(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MAX_LINE", 20_000)
    database = fresh()
    change(home, f"update session set title = {LONG}")
    for _ in range(2):
        sync(database, [home])
        assert reasons(database) == [TOO_LONG]


@pytest.mark.parametrize("column", ["title", "time_updated"])
def test_a_column_that_is_calculated_is_not_calculated(
    column: str, home: Path, fresh: Fresh
) -> None:
    database = fresh()
    change(home, f"alter table session rename column {column} to before_{column}")
    calculated = "instr(hex(zeroblob(450000000)), hex(zeroblob(225000000)) || 'x')"
    change(home, f"alter table session add column {column} generated always as ({calculated})")
    sync(database, [home])
    assert reasons(database) == [CALCULATED]


def test_a_column_that_is_calculated_and_not_read_is_of_no_interest(
    home: Path, fresh: Fresh
) -> None:
    database, plain = fresh(), fresh()
    sync(plain, [home])
    change(home, "alter table session add column other generated always as (hex(zeroblob(9)))")
    sync(database, [home])
    assert texts(database) == texts(plain)
    assert reasons(database) == []


@pytest.mark.parametrize(
    "data", [b"", b"not a database" * 1000, b"SQLite format 3\x00" + b"\x07" * 9000]
)
def test_a_damaged_database_is_one_issue_and_keeps_its_rows(
    data: bytes, home: Path, fresh: Fresh
) -> None:
    database = fresh()
    sync(database, [home])
    before = texts(database)
    (home / "opencode.db").write_bytes(data)
    sync(database, [home])
    (found,) = reasons(database)
    assert found == NOT_SQLITE or str(found).startswith(UNKNOWN_TABLES)
    assert texts(database) == before
    assert column(database, "select count(*) from files where gone_at is not null") == [0]
    check(database)


def torn(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3 // 4096 * 4096]


def with_zeros(data: bytes) -> bytes:
    """Return a database of which every page but the first two is empty."""
    return data[: 2 * 4096] + bytes(len(data) - 2 * 4096)


@pytest.mark.parametrize("damaged", [torn, with_zeros])
def test_what_can_be_read_of_a_damaged_database_is_kept(
    damaged: Callable[[bytes], bytes], home: Path, fresh: Fresh
) -> None:
    """What was read stays, one issue or a message says that there is more, and it comes back."""
    file, database = home / "opencode.db", fresh()
    sync(database, [home])
    kept, whole = dump(database), file.read_bytes()
    assert len(whole) > 4 * 4096
    file.write_bytes(damaged(whole))
    for _ in range(2):
        report = sync(database, [home])
        assert len(reasons(database)) + len(report.unreadable) >= 1
        assert len(reasons(database)) <= 1
        assert column(database, "select count(*) from files where gone_at is not null") == [0]
        check(database)
    assert texts(database) == {row["text"] for row in kept["messages"] if row["text"]}
    file.write_bytes(whole)
    os.utime(file, ns=(1, 2 * 10**18))
    sync(database, [home])
    assert reasons(database) == []
    assert_same(dump(database, tables=["messages"]), {"messages": kept["messages"]})


def test_a_column_that_a_newer_version_renamed_is_left_out(home: Path, fresh: Fresh) -> None:
    """Only those by which conversations are found are needed."""
    change(home, "alter table session rename column version to program_version")
    database = fresh()
    sync(database, [home])
    assert reasons(database) == []
    assert "Now burn it." in texts(database)


@pytest.mark.parametrize("left", [0.3, 0.6, 0.95])
def test_what_is_committed_in_a_torn_log_is_read(left: float, home: Path, fresh: Fresh) -> None:
    """A log may end anywhere: what is behind the last whole commit is none."""
    database = fresh()
    sync(database, [home])
    kept = texts(database)
    with program(home) as execute:
        for number in range(20):
            for statement in say(f"x{number}", f"said {number}", at=1769509000000 + number):
                execute(statement)
        log = home / "opencode.db-wal"
        data = log.read_bytes()
    (home / "opencode.db-shm").unlink(missing_ok=True)
    log.write_bytes(data[: int(len(data) * left)] + b"\x00" * 100)
    report = sync(database, [home])
    assert kept <= texts(database)
    assert len(reasons(database)) + len(report.unreadable) <= 1
    check(database)
    with closing(sqlite3.connect(home / "opencode.db")) as connection:  # its program recovers
        connection.execute("pragma wal_checkpoint(truncate)")
        told = connection.execute("select count(*) from part where id like 'prt_x%'").fetchone()[0]
    assert 0 < told < 20
    sync(database, [home])
    assert reasons(database) == []
    assert sum(text.startswith("said ") for text in texts(database)) == told


def test_a_key_that_is_none_is_an_issue(home: Path, fresh: Fresh) -> None:
    change(home, "update session set id = '../../etc' where id = 'ses_4f00ffee'")
    database = fresh()
    sync(database, [home])
    assert reasons(database) == [ODD_KEYS]
    assert HEDGE in column(database, "select path from files")


def test_columns_of_any_type_are_read(home: Path, fresh: Fresh) -> None:
    change(
        home,
        "update message set data = x'ff00' where id = 'msg_f3'",
        "update message set data = '[' where id = 'msg_f4'",
        "update part set data = 17 where id = 'prt_f51'",
        "update session set title = 5, directory = x'2f736ff0', time_updated = 'soon'",
        "insert into todo values ('ses_4f02ffee', x'ff', 3.5, 'low', 7, 0, 'never')",
    )
    database = fresh()
    sync(database, [home])
    check(database, home)
    assert "It burns." in texts(database)


def test_circles_of_parents_end(home: Path, fresh: Fresh) -> None:
    change(home, "update session set parent_id = 'ses_4f01ffee' where id = 'ses_4f02ffee'")
    database = fresh()
    sync(database, [home])
    check(database, home)
    assert len(column(database, "select path from files")) == 4


def test_no_secret_is_read(home: Path, fresh: Fresh) -> None:
    assert b"SECRET" in (home / "opencode.db").read_bytes()
    database = fresh()
    sync(database, [home])
    with closing(connect(database)) as connection:
        assert "SECRET" not in "".join(connection.iterdump())
        for (file_id,) in connection.execute("select id from files").fetchall():
            assert b"SECRET" not in b"".join(archive.read(connection, file_id))


# -- everything else that is done with files ------------------------------------------------------


def test_any_way_there_leads_to_the_same_rows(home: Path, fresh: Fresh) -> None:
    grown, once = fresh(), fresh()
    steps = [
        say("x1", "a question"),
        say("x2", "in the fork", "ses_4f00ffee"),
        ["update part set data = json_set(data, '$.text', 'changed'), time_updated = 1769509000002"
         " where id = 'prt_a24'"],
        ["update session set title = 'Renamed', time_updated = 1769509000003"],
        ["update session set revert = null, time_updated = 1769509000004"],
        ["delete from message where id = 'msg_f6'", "delete from part where id = 'prt_f61'"],
        ["insert into session select 'ses_new', project_id, null, slug, directory, 'New', version,"
         " null, null, agent, model, cost, tokens_input, time_created, time_updated, null"
         " from session where id = 'ses_4f02ffee'", *say("n1", "elsewhere", "ses_new")],
    ]  # fmt: skip
    for step in steps:
        sync(grown, [home])
        change(home, *step)
    sync(grown, [home])
    check(grown, home)
    sync(once, [home])
    assert_same(dump(grown), dump(once))
    assert {"changed", "elsewhere", "in the fork"} <= texts(grown)


def test_a_full_sync_finds_what_no_time_shows(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    change(home, "update part set data = json_set(data, '$.text', 'secretly') where id = 'prt_f61'")
    sync(database, [home])
    assert "secretly" not in texts(database)
    (finding,) = verify(database).findings
    assert "without any sign that a sync can see" in finding.problem
    sync(database, [home], SyncOptions(full=True))
    assert "secretly" in texts(database)


def test_a_rebuild_gives_the_same_rows(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = dump(database)
    with writing(database) as connection:
        rebuild_into(connection)
    sync(database, [home])
    assert_same(dump(database), before)


def test_a_lost_archive_comes_back_from_the_database(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    before = dump(database)
    with writing(database) as connection:
        connection.execute("delete from archive where start = 0")
        connection.commit()
    rebuild(database)
    assert {finding.remedy for finding in verify(database).findings} == {SYNC}
    sync(database, [home])
    assert_same(dump(database), before)
    assert verify(database).findings == []


def test_workers_read_entries_as_one_process_does(home: Path, fresh: Fresh) -> None:
    alone, database = fresh(), fresh()
    sync(alone, [home])
    with everything_through_workers():
        sync(database, [home], SyncOptions(jobs=2))
        assert sync(database, [home], SyncOptions(jobs=2)).files_read == 0
    check(database, home)
    assert_same(dump(database), dump(alone))


def test_answers_look_only_at_what_changed(
    home: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, plans = fresh(), []
    sync(database, [home])
    news = News(database)
    with program(home) as execute:
        execute("select * from session")
        os.utime(home, (1769508000, 1769508000))  # a directory that changes just now is listed
        news.read()
        monkeypatch.setattr(news, "_pass", lambda places, _: plans.append(places) or True)
        assert (news.read(), plans) == ([], []), "nothing has changed"
        for statement in say("x1", "in the log"):
            execute(statement)
        news.read()
        assert [list(places.values()) for places in plans] == [
            [{ListedDirectory((), is_deep=False)}]
        ]


def test_what_is_forgotten_stays_forgotten(home: Path, fresh: Fresh) -> None:
    database, other = fresh(), fresh()
    sync(database, [home])
    target = Target("ses_4f00ffee")
    forget(database, target, with_copies=False, dry_run=False, announce=lambda _: None)
    for step in ([], say("x1", "more of it", "ses_4f00ffee"), say("x2", "of the other")):
        change(home, *step)
        sync(database, [home])
        check(database, home)
    assert {"Now burn it.", "more of it"}.isdisjoint(texts(database))
    assert "of the other" in texts(database)
    assert verify(database).findings == []
    delete = [f"delete from {table} where session_id = 'ses_4f00ffee'" for table in TABLES]
    change(home, *delete, "delete from session where id = 'ses_4f00ffee'")
    sync(other, [home])
    sync(database, [home])
    assert_same(dump(database), dump(other))


def test_restore_writes_the_lines(home: Path, fresh: Fresh, tmp_path: Path) -> None:
    database, to = fresh(), tmp_path / "rescued"
    sync(database, [home])
    with closing(open_reader(database)) as connection:
        list(restore(connection, select_all(connection), to))
    lines = [json.loads(line) for line in (to / HEDGE).read_bytes().splitlines()]
    assert [line["table"] for line in lines][:4] == ["project", "session", "message", "part"]
    assert lines[3]["data"] == {"type": "text", "text": "Prune the hedge."}


def test_a_change_of_the_log_is_a_reason_to_look(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    roots = recognised(home, KINDS)
    with program(home) as execute, writing(database) as connection:
        for statement in say("x1", "in the log"):
            execute(statement)
        places = places_of([str(home / "opencode.db-wal")], roots)
        assert places == {roots[0]: {ListedDirectory((), is_deep=False)}}
        report = Report(started_at="2026-01-01T00:00:00.000Z")
        plan = sync_into(connection, [], SyncOptions(), report, places=places)
        assert (plan.is_doubtful, report.files_gone) == (False, 0)
    assert "in the log" in texts(database)


def test_a_database_beside_another_has_entries_of_its_own(home: Path, fresh: Fresh) -> None:
    database = fresh()
    make_database(home / "opencode-dev.db", SCHEMA)
    sync(database, [home])
    (home / "opencode.db").rename(home / "opencode-nix.db")
    sync(database, [home])
    check(database, home)
    gone = column(database, "select path from files where gone_at is not null")
    assert gone == ["opencode.db"], "its entries have moved"
    assert column(database, "select count(*) from responses") == [4], "counted once"

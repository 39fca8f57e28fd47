"""One writer, a private database that is ours, and migrations that happen or do not."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_utils import Database, hookimpl, plugins
from tests.support.child import Child
from tests.support.shell import Shell
from tests.support.writing import PROJECT, SESSION, TRANSCRIPT, assistant, user, write

from assoc_ingest import sql
from assoc_ingest.__main__ import main
from assoc_ingest.errors import BusyError, DatabaseError
from assoc_ingest.store import batch, changes
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.database import (
    APPLICATION_ID,
    DERIVATION,
    LOG_LIMIT,
    in_bulk,
    open_reader,
    transaction,
    writing,
)
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect, dump
from assoc_ingest.upkeep.verify import fresh_schema

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.fixture
def home(place: Path) -> Path:
    write(place / "home", TRANSCRIPT, user("hello", "u1"))
    return place / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# -- one writer ----------------------------------------------------------------------------------


@pytest.mark.slow
@posix
def test_a_second_writer_is_told_who_writes(home: Path, place: Path) -> None:
    database = place / "index.db"
    with writing(database):
        answer = Child(lambda: sync(database, [home])).result()
    told = f"Another process is writing to {database} (process {os.getpid()}). Try again"
    assert answer.startswith(repr(BusyError(told))[:-2])
    sync(database, [home])
    check(database, home)


@pytest.mark.slow
@posix
def test_another_process_that_writes_ends_a_sync_with_code_3(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    database = place / "index.db"
    with writing(database):
        code = Child(lambda: main(["sync", str(home), "--db", str(database)])).result()
        assert code == 3
        assert (place / "index.db.lock").read_text() == f"{os.getpid()}\n"
    assert main(["sync", str(home), "--db", str(database)]) == 0


@pytest.mark.slow
@posix
def test_a_killed_writer_leaves_no_lock_behind(home: Path, place: Path) -> None:
    database = place / "index.db"
    reading, writing_end = os.pipe()

    def hold() -> None:
        with writing(database):
            os.write(writing_end, b"x")
            os.read(os.pipe()[0], 1)  # for ever

    child = Child(hold)
    assert os.read(reading, 1) == b"x"
    child.kill()
    sync(database, [home])
    check(database, home)


@pytest.mark.slow
def test_readers_see_the_last_commit_while_a_sync_writes(home: Path, place: Path) -> None:
    database = place / "index.db"
    sync(database, [home])
    reader = open_reader(database)
    with writing(database) as connection:
        connection.execute("begin immediate")
        connection.execute("delete from messages")
        assert reader.execute("select count(*) from messages").fetchone()[0] == 1
        connection.execute("rollback")
    reader.close()


@pytest.mark.slow
def test_a_reader_cannot_write(home: Path, place: Path) -> None:
    sync(place / "index.db", [home])
    reader = open_reader(place / "index.db")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("delete from messages")
    reader.close()


# -- ours, and private ---------------------------------------------------------------------------


@posix
def test_everything_is_private_whatever_the_umask(home: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with writing(tmp_path / "new" / "data" / "index.db") as connection:
            connection.execute("insert into sync_runs (started_at, files_read, bytes_read, rows,"
                               " issues) values ('x', 0, 0, 0, 0)")  # fmt: skip
            made = {path.name: mode(path) for path in (tmp_path / "new/data").iterdir()}
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert made == dict.fromkeys(
        ["index.db", "index.db-wal", "index.db-shm", "index.db.lock"], 0o600
    )
    assert mode(tmp_path / "new" / "data") == 0o700


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a text that somebody wants to keep\n" * 100, id="text"),
        pytest.param(b"SQLite format 3\x00" + b"\x01" * 2000, id="damaged"),
        pytest.param(None, id="another program's"),
    ],
)
def test_a_file_that_is_not_ours_is_refused_untouched(
    content: bytes | None, home: Path, place: Path
) -> None:
    database = place / "theirs.db"
    if content is None:
        connection = sqlite3.connect(database)
        connection.execute("create table messages (id integer primary key, text)")
        connection.close()
    else:
        database.write_bytes(content)
    before = database.read_bytes(), database.stat().st_mtime_ns
    for opens in (lambda: sync(database, [home]), lambda: open_reader(database)):
        with pytest.raises(DatabaseError, match="not an assoc-ingest database"):
            opens()
    assert (database.read_bytes(), database.stat().st_mtime_ns) == before
    assert {path.name for path in place.iterdir()} == {"home", "theirs.db"}


NEWER = {
    "schema": f"insert into _sqlite_migrations (migration_set, name, applied_at)"
    f" values ('{sql.MIGRATION_SET}', '9999_from_the_future', 'then')",
    "derivation": f"pragma user_version = {DERIVATION + 1}",
}
"""What a newer program leaves in a database."""


def made_newer(database: Path, statement: str) -> bytes:
    """Let a newer program have written to a database; return the bytes of the file."""
    connection = connect(database)
    connection.execute(statement)
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    connection.close()
    return database.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("statement", NEWER.values(), ids=NEWER)
@pytest.mark.parametrize(
    "command",
    [
        ["sync"], ["sync", "--dry-run"], ["watch", "--until-eof"], ["rebuild"], ["compact"],
        ["prune", "--gone"], ["forget", SESSION], ["forget", "--remember", SESSION],
        ["search", "hello"], ["show", SESSION], ["status"], ["verify"],
        ["restore", SESSION, "--to", "x"], ["serve", "--get", "/"],
        ["serve", "--watch", "--get", "/"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_newer_database_is_refused_untouched(
    command: list[str], statement: str, home: Path, shell: Shell
) -> None:
    sync(shell.database, [home])
    before = made_newer(shell.database, statement)
    assert shell(*command) == 4, shell.err
    assert "created by a newer version of assoc-ingest. Update this one" in shell.err
    assert shell.err.count("\n") == 1
    assert shell.database.read_bytes() == before


@pytest.mark.slow
def test_a_damaged_database_of_a_newer_version_is_not_taken_for_an_old_one(
    home: Path, shell: Shell
) -> None:
    """A rebuild would derive it as this version does, and say that a sync need not do so again."""
    sync(shell.database, [home])
    made_newer(shell.database, NEWER["derivation"])
    with shell.database.open("r+b") as file:
        file.seek(100)
        file.write(bytes(16384 - 100))  # the list of its tables
    before = shell.database.read_bytes()
    for command in ("sync", "rebuild", "status"):
        assert shell(command) == 4
        assert "created by a newer version" in shell.err
    assert shell.database.read_bytes() == before


@pytest.mark.slow
def test_an_older_derivation_is_derived_again(home: Path, shell: Shell) -> None:
    sync(shell.database, [home])
    made_newer(shell.database, f"pragma user_version = {DERIVATION - 1}")
    assert shell("search", "hello") == 0
    assert sync(shell.database, [home]).files_rebuilt == 1


def test_an_empty_file_becomes_an_index(home: Path, place: Path) -> None:
    (place / "index.db").touch()
    sync(place / "index.db", [home])
    check(place / "index.db", home)


@posix
def test_an_empty_file_that_others_may_read_becomes_private(home: Path, place: Path) -> None:
    database = place / "index.db"
    database.touch()
    database.chmod(0o644)
    with writing(database) as connection:
        connection.execute("update sources set root = root")
        made = {path.name: mode(path) for path in place.glob("index.db*")}
    assert made == dict.fromkeys(
        ["index.db", "index.db-wal", "index.db-shm", "index.db.lock"], 0o600
    )


def test_a_directory_is_no_database(home: Path, place: Path) -> None:
    with pytest.raises(DatabaseError, match="is a directory"):
        sync(home, [home])


def test_reading_what_is_not_there_says_what_to_do(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = place / "my index.db"
    with pytest.raises(DatabaseError, match=r"run: assoc-ingest sync --db '.*/my index.db'$"):
        open_reader(database)
    monkeypatch.setenv("ASSOC_INGEST_DB", str(database))
    with pytest.raises(DatabaseError, match=r"run: assoc-ingest sync$"):
        open_reader(database)
    assert list(place.iterdir()) == []


# -- migrations ----------------------------------------------------------------------------------


def test_a_failing_migration_leaves_the_database_as_it_was(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first migrations run in the same transaction as the one that fails."""
    database = place / "index.db"
    known, names = sql.migrations(), sql.migration_names()

    @known(name="9999_broken")
    def apply(broken: Database) -> None:
        broken.executescript("create table half (id integer); select no_such_function();")

    monkeypatch.setattr(sql, "migrations", lambda: known)
    monkeypatch.setattr(sql, "migration_names", lambda: [*names[:-1], "9999_broken", names[-1]])
    with pytest.raises(sqlite3.OperationalError, match="no such function"):
        sync(database, [home])
    connection = connect(database)
    assert connection.execute("select * from sqlite_master").fetchall() == []
    assert connection.execute("pragma application_id").fetchone()[0] == 0
    connection.close()
    monkeypatch.undo()
    sync(database, [home])
    check(database, home)


def test_what_others_add_to_sqlite_utils_gets_no_connection_of_ours(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin may be installed for another program, in the same environment."""
    seen: list[sqlite3.Connection] = []

    class Plugin:
        @hookimpl
        def prepare_connection(self, conn: sqlite3.Connection) -> None:
            seen.append(conn)

    plugin = Plugin()
    plugins.pm.register(plugin)
    try:
        with writing(place / "index.db"), fresh_schema():
            assert seen == []
        Database(memory=True)
        assert len(seen) == 1, "the plugin was not in the way of anything"
    finally:
        plugins.pm.unregister(plugin)


def test_a_migrated_database_says_whose_it_is(fresh: Callable[[], Path]) -> None:
    connection = connect(fresh())
    assert connection.execute("pragma application_id").fetchone()[0] == APPLICATION_ID
    assert connection.execute("pragma journal_mode").fetchone()[0] == "wal"
    connection.close()


# -- batches -------------------------------------------------------------------------------------


def test_an_error_ends_the_run_and_leaves_the_last_commit(
    home: Path, fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row is caught and passed over: the rest of its batch would be committed without it."""
    database = fresh()
    sync(database, [home])
    before = dump(database)
    connection = connect(database)
    connection.execute(
        "create trigger fails before insert on messages when new.uuid = 'u5'"
        " begin select raise(abort, 'disk I/O error'); end"
    )
    connection.close()
    write(home, f"{PROJECT}/{SESSION}.jsonl", *(user(f"line {n}", f"u{n}") for n in range(9)))
    with pytest.raises(sqlite3.Error, match="disk I/O error"):
        sync(database, [home])
    check(database)
    assert dump(database) == before
    connection = connect(database)
    runs = connection.execute("select error from sync_runs order by id").fetchall()
    connection.execute("drop trigger fails")
    connection.close()
    assert [tuple(run) for run in runs] == [(None,), ("disk I/O error",)]
    sync(database, [home])
    check(database, home)
    assert len(dump(database)["messages"]) == 9


def test_a_transaction_that_fails_while_it_begins_is_not_left_open(
    fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(changes, "start", fail)
    database = fresh()
    with writing(database) as connection:
        with pytest.raises(sqlite3.OperationalError, match="disk"), transaction(connection):
            pytest.fail("the block runs only in a transaction")
        assert not connection.in_transaction
        other = connect(database)
        other.execute("delete from sync_runs")  # nothing is locked
        other.close()


@pytest.mark.parametrize("number", [2, 3, 4, 6, 7])
def test_all_rows_of_a_file_go_however_many_are_deleted_at_once(
    number: int, fresh: Callable[[], Path], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_DELETED_AT_ONCE", 3)
    database, home = fresh(), place / "home"
    write(home, TRANSCRIPT, *(user(f"old {n}", f"u{n}") for n in range(number)))
    sync(database, [home])
    (home / TRANSCRIPT).unlink()
    write(home, TRANSCRIPT, user("another history", "v1"))
    sync(database, [home])
    check(database, home)
    assert [row["text"] for row in dump(database)["messages"]] == ["another history"]


def test_a_batch_that_fails_while_it_begins_is_not_left_open(
    fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(batch, "RowBuffer", fail)
    with writing(fresh()) as connection:
        with pytest.raises(sqlite3.OperationalError, match="disk"):
            Batch(connection, "2026-01-20T10:00:00.000Z")
        assert not connection.in_transaction


@pytest.mark.parametrize(
    ("table", "event"),
    [("projects", "update of on_disk"), ("sources", "update of gone_at"), ("prices", "insert")],
)
def test_an_error_outside_a_batch_is_in_the_list_of_runs(
    home: Path, fresh: Callable[[], Path], table: str, event: str
) -> None:
    """What stays of a transaction that failed would take the row of the run with it."""
    database = fresh()
    sync(database, [home])
    connection = connect(database)
    connection.execute("update projects set on_disk = null")
    connection.execute(
        f"create trigger fails before {event} on {table}"
        " begin select raise(abort, 'disk I/O error'); end"
    )
    connection.close()
    said = assistant("hi", usage={"input_tokens": 5, "output_tokens": 7})
    write(home, f"{PROJECT}/{SESSION}.jsonl", user("hello", "u1"), said)
    with pytest.raises(sqlite3.Error, match="disk I/O error"):
        sync(database, [home])
    connection = connect(database)
    runs = connection.execute("select error from sync_runs order by id").fetchall()
    connection.execute("drop trigger fails")
    connection.close()
    assert [tuple(run) for run in runs] == [(None,), ("disk I/O error",)]
    sync(database, [home])
    check(database, home)


def test_the_settings_for_many_changes_end_with_them(tmp_path: Path) -> None:
    def settings(connection: sqlite3.Connection) -> list[int]:
        names = ("cache_size", "wal_autocheckpoint")
        return [connection.execute(f"pragma {name}").fetchone()[0] for name in names]

    with writing(tmp_path / "assoc.db") as connection:
        usual = settings(connection)
        with in_bulk(connection):
            pages, log = settings(connection)
        assert settings(connection) == usual
        assert pages < usual[0] < 0, "in KiB, a negative number"
        assert log * connection.execute("pragma page_size").fetchone()[0] == LOG_LIMIT

"""A large first sync builds its database beside its place, and puts it there whole."""

from __future__ import annotations

import io
import os
import pkgutil
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.changing import Home
from tests.support.cases import GROUPS, homes_of, of_groups
from tests.support.child import Child
from tests.support.pieces import every_new_database_is_built

from assoc_ingest.__main__ import main
from assoc_ingest.errors import BusyError, DatabaseError
from assoc_ingest.store import swap as builder
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.database import open_reader
from assoc_ingest.store.rows import Written
from assoc_ingest.sync.plan import Report, find_roots, given_roots, is_large, make_plan
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep.verify import verify

posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.fixture(autouse=True)
def _built() -> Iterator[None]:
    with every_new_database_is_built(), read_in_pieces(chunk=1500, batch=4000):
        yield


@pytest.fixture
def home(place: Path) -> Path:
    return Home(place / "home", 11).root


@pytest.fixture
def expected(home: Path, place: Path) -> dict:
    """What the tables of a database hold that was made in its place."""
    database = place / "ordinary.db"
    with patch("assoc_ingest.sync.run.WORTH_BUILDING", 2**60):
        sync(database, [home])
    return dump(database)


def unfinished(database: Path) -> Path:
    """Where a database lies while it is built."""
    return Path(f"{database}-unfinished") / database.name


def _names(database: Path) -> list[str]:
    return sorted(path.name for path in database.parent.glob(f"{database.name}*"))


def test_it_is_on_the_disk_before_it_has_its_name(
    home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a power failure leaves an empty file where the next sync looks for a database."""
    done: list[tuple[str, int]] = []
    fsync, link = os.fsync, os.link

    def fsync_told(descriptor: int) -> None:
        done.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def link_told(source: Path, target: Path) -> None:
        done.append(("link", os.stat(source).st_ino))
        link(source, target)

    monkeypatch.setattr(os, "fsync", fsync_told)
    monkeypatch.setattr(os, "link", link_told)
    sync(place / "built.db", [home])
    number = (place / "built.db").stat().st_ino
    assert done == [("fsync", number), ("link", number)]


@of_groups
def test_every_case_ends_as_in_its_place(group: str, place: Path) -> None:
    built, ordinary, homes = place / "built.db", place / "ordinary.db", homes_of(group, place)
    report = sync(built, homes)
    with patch("assoc_ingest.sync.run.WORTH_BUILDING", 2**60):
        again = sync(ordinary, homes)
    assert_same(dump(built), dump(ordinary))
    assert (report.files_read, report.bytes_read) == (again.files_read, again.bytes_read)
    assert sync(built, homes).files_read == 0


@pytest.mark.parametrize("group", GROUPS)
def test_whether_there_is_much_to_read_is_known_before_all_of_it(group: str, place: Path) -> None:
    roots = find_roots(None, given_roots(homes_of(group, place), None), None, Report(""))
    plan = make_plan(None, roots, Report(""), full=False)
    size = plan.bytes
    if any(work.claim.within for work in plan.work):  # a store counts as its files
        assert is_large(roots, size // 2)
        assert not is_large(roots, size * 50)
    else:
        assert is_large(roots, size) == (size > 0)
        assert not is_large(roots, size + 1)


@pytest.mark.slow
def test_it_is_private_whole_and_open_to_readers(home: Path, place: Path, expected: dict) -> None:
    database = place / "index.db"
    sync(database, [home])
    assert_same(dump(database), expected)
    assert _names(database) == ["index.db", "index.db.lock"]
    assert database.stat().st_mode & 0o777 == 0o600
    with connect(database) as connection:
        assert connection.execute("pragma journal_mode").fetchone()[0] == "wal"
    assert verify(database).findings == []
    assert _schema(database) == _schema(place / "ordinary.db")


@pytest.mark.slow
def test_until_it_is_whole_nothing_is_there_and_a_reader_is_told(home: Path, place: Path) -> None:
    database, seen = place / "index.db", []
    finish = Batch.finish

    def look(batch: Batch) -> Written:
        seen.append(database.exists())
        with pytest.raises(DatabaseError, match="has not finished"):
            open_reader(database)
        return finish(batch)

    with patch.object(Batch, "finish", look):
        sync(database, [home])
    assert len(seen) > 2
    assert not any(seen)
    open_reader(database).close()


@pytest.mark.slow
@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError, sqlite3.OperationalError])
def test_what_was_committed_before_an_interruption_is_kept(
    interruption: type[BaseException], home: Path, place: Path, expected: dict
) -> None:
    database, batches = place / "index.db", 0
    prepare = Batch.prepare

    def interrupt(batch: Batch) -> None:
        nonlocal batches
        batches += 1
        prepare(batch)
        if batches == 3:
            raise interruption

    with patch.object(Batch, "prepare", interrupt), pytest.raises(interruption):
        sync(database, [home])
    check(database)
    assert _schema(database) == _schema(place / "ordinary.db")
    assert 0 < len(dump(database)["messages"]) < len(expected["messages"])
    assert _names(database) == ["index.db", "index.db.lock"]
    sync(database, [home])
    check(database, home)
    assert_same(dump(database), expected)


def _schema(database: Path) -> set[tuple[str, str]]:
    with closing(connect(database)) as connection:
        return set(map(tuple, connection.execute("select name, sql from sqlite_master")))


INT, TERM = signal.SIGINT, signal.SIGTERM
TOLD = "Keeping what was read; press Ctrl-C again to discard it."
KEPT = f"{TOLD}\nInterrupted. What was read is kept. To go on: assoc-ingest sync"
DISCARDED = f"{TOLD}\nInterrupted. Nothing was kept. To begin again: assoc-ingest sync"

AT = {
    "reading": ("assoc_ingest.store.batch.Batch.prepare", 3),
    "giving up": ("assoc_ingest.store.batch.Batch.rollback", 1),
    "checking": ("assoc_ingest.store.swap._check_signals", 1),
    "placing": ("assoc_ingest.store.swap._put_in_place", 1),
    "placed": ("assoc_ingest.store.swap._link", 1),
}
"""Functions in which signals come, and at which call."""


def sync_and_signal(
    home: Path, database: Path, signals: list[tuple[str, signal.Signals]]
) -> tuple[int, str, int]:
    """Run the program; return its code, its words, and how many of the signals came."""

    def run() -> tuple[int, str, int]:
        words, sent = io.StringIO(), 0

        def signalled(point: str) -> Any:
            name, call = AT[point]
            function, calls = pkgutil.resolve_name(name.replace("store.", "store:", 1)), 0

            def send(*arguments: Any) -> Any:
                nonlocal calls, sent
                calls += 1
                value = function(*arguments) if point == "reading" else None
                if calls == call:
                    for number in [number for at, number in signals if at == point]:
                        sent += 1
                        os.kill(os.getpid(), number)
                return value if point == "reading" else function(*arguments)

            return patch(name, send)

        with redirect_stderr(words), ExitStack() as stack:
            for point in {point for point, _ in signals}:
                stack.enter_context(signalled(point))
            stack.enter_context(patch("assoc_ingest.store.swap._STEPS", 1))
            signal.signal(INT, signal.default_int_handler)
            code = main(["sync", str(home), "--db", str(database)])
        return code, words.getvalue().strip(), sent

    answer = Child(run).result()
    assert isinstance(answer, tuple), answer
    return answer


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([("reading", INT), ("giving up", INT)], 130),
        ([("reading", INT), ("checking", INT)], 130),
        ([("reading", INT), ("placing", INT)], 130),
        ([("reading", INT), ("placed", INT)], 130),
        ([("reading", TERM), ("checking", INT)], 143),
        ([("reading", INT), ("checking", TERM)], 130),
        ([("reading", TERM), ("checking", TERM), ("placing", TERM)], 143),
        ([("placing", INT)], 130),
        ([("placed", INT)], 130),
        ([("placing", TERM)], 143),
        ([("placed", TERM), ("placed", TERM)], 143),
    ],
)
def test_a_second_signal_while_it_is_kept_waits(
    signals: list[tuple[str, signal.Signals]],
    code: int,
    home: Path,
    place: Path,
    expected: dict,
) -> None:
    database = place / "index.db"
    told = KEPT if code == 130 else TOLD
    assert sync_and_signal(home, database, signals) == (code, told, len(signals))
    assert _names(database) == ["index.db", "index.db.lock"]
    check(database)
    is_whole = signals[0][0] != "reading"
    assert len(dump(database)["messages"]) > 0
    assert (len(dump(database)["messages"]) == len(expected["messages"])) == is_whole
    sync(database, [home])
    check(database, home)
    assert_same(dump(database), expected)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("where", ["giving up", "checking", "placing"])
def test_a_third_one_discards_it(where: str, home: Path, place: Path, expected: dict) -> None:
    database = place / "index.db"
    signals = [("reading", INT), (where, INT), (where, INT)]
    assert sync_and_signal(home, database, signals) == (130, DISCARDED, 3)
    assert _names(database) == ["index.db.lock"]
    sync(database, [home])
    assert_same(dump(database), expected)


@pytest.mark.slow
def test_what_is_not_sound_is_not_kept(home: Path, place: Path, expected: dict) -> None:
    database = place / "index.db"
    prepare = Batch.prepare

    def garble(batch: Batch) -> None:
        prepare(batch)
        with unfinished(database).open("r+b") as file:
            file.truncate(16384 * 3)
        raise OSError("the disk is gone")

    with patch.object(Batch, "prepare", garble), pytest.raises(OSError, match="gone"):
        sync(database, [home])
    assert _names(database) == ["index.db.lock"]
    sync(database, [home])
    assert_same(dump(database), expected)


def test_what_a_check_finds_wrong_is_not_kept(home: Path, place: Path) -> None:
    database = place / "index.db"
    sync(database, [home])
    with closing(connect(database)) as connection:
        assert builder._is_usable(connection, builder.PutOff(connection, ()))
        connection.executescript(
            "create table damaged (value); insert into damaged values (null);"
            "pragma writable_schema = on;"
            "update sqlite_master set sql = 'create table damaged (value not null)'"
            " where name = 'damaged';"
        )
    with closing(connect(database)) as connection:
        assert not builder._is_usable(connection, builder.PutOff(connection, ()))


@pytest.mark.slow
def test_beyond_what_is_put_at_risk_it_goes_on_in_its_place(
    home: Path, place: Path, expected: dict
) -> None:
    database, done, places = place / "index.db", [], []
    finish = Batch.finish

    def look(batch: Batch) -> Written:
        places.append(database.exists())
        return finish(batch)

    with (
        patch("assoc_ingest.sync.run.AT_RISK", 6000),
        patch("assoc_ingest.sync.batches._BYTES_AHEAD", 0),
        patch.object(Batch, "finish", look),
    ):
        report = sync(database, [home], progress=lambda *both: done.append(both))
    assert set(places) == {False, True}
    assert places == sorted(places)
    assert_same(dump(database), expected)
    sizes = [path.stat().st_size for path in home.rglob("*.jsonl")]
    size = sum(sizes)
    assert report.files_seen == report.files_read == len(sizes)
    assert report.bytes_read == size
    assert done[-1] == (size, size)
    assert {total for _, total in done} == {size}
    with connect(database) as connection:
        runs = connection.execute("select bytes_read, rows, error from sync_runs").fetchall()
    assert [tuple(run) for run in runs] == [(size, report.rows, None)]


def test_a_database_that_another_process_made_meanwhile_is_not_replaced(
    home: Path, place: Path
) -> None:
    database = place / "index.db"
    finish = Batch.finish

    def make_another(batch: Batch) -> Written:
        database.write_bytes(b"of another")
        return finish(batch)

    with (
        patch.object(Batch, "finish", make_another),
        pytest.raises(BusyError, match="in the meantime"),
    ):
        sync(database, [home])
    assert database.read_bytes() == b"of another"
    assert _names(database) == ["index.db", "index.db.lock"]


@pytest.mark.slow
def test_a_file_that_another_process_removed_is_told_as_such(home: Path, place: Path) -> None:
    """It does so where the lock has no effect: it takes the file for what a killed one left."""
    finish = Batch.finish

    def remove(batch: Batch) -> Written:
        shutil.rmtree(unfinished(database).parent, ignore_errors=True)
        return finish(batch)

    database = place / "index.db"
    with patch.object(Batch, "finish", remove), pytest.raises(BusyError, match="in the meantime"):
        sync(database, [home])
    assert _names(database) == ["index.db.lock"]


@pytest.mark.slow
def test_another_process_that_builds_is_told_where_the_lock_has_no_effect(
    home: Path, place: Path, expected: dict
) -> None:
    database, told = place / "index.db", []
    finish = Batch.finish

    def begin_another(batch: Batch) -> Written:
        if not told:
            told.append(True)
            with pytest.raises(BusyError, match="Another process"):
                sync(database, [home])
        return finish(batch)

    with (
        patch("assoc_ingest.store.database.locked", lambda path: nullcontext()),
        patch.object(Batch, "finish", begin_another),
    ):
        sync(database, [home])
    assert told
    assert _names(database) == ["index.db"]
    assert_same(dump(database), expected)


@pytest.mark.slow
def test_it_works_where_files_cannot_be_linked(
    home: Path, place: Path, expected: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(builder.os, "link", refuse)
    database = place / "index.db"
    sync(database, [home])
    assert_same(dump(database), expected)
    assert _names(database) == ["index.db", "index.db.lock"]


@pytest.mark.slow
@pytest.mark.parametrize("is_built", [False, True], ids=["in-place", "built"])
def test_what_a_killed_process_left_is_removed(
    is_built: bool, home: Path, place: Path, expected: dict
) -> None:
    database = place / "index.db"
    unfinished(database).parent.mkdir()
    for ending in ("", "-wal", "-shm"):
        Path(f"{unfinished(database)}{ending}").write_bytes(b"left")
    with pytest.raises(DatabaseError, match="has not finished"):
        open_reader(database)
    with patch("assoc_ingest.sync.run.WORTH_BUILDING", 0 if is_built else 2**60):
        sync(database, [home])
    assert _names(database) == ["index.db", "index.db.lock"]
    assert_same(dump(database), expected)


@pytest.mark.slow
def test_a_database_that_is_there_is_never_built(home: Path, place: Path, expected: dict) -> None:
    database = place / "index.db"
    with patch("assoc_ingest.sync.run.building", side_effect=AssertionError):
        with pytest.raises(AssertionError):
            sync(database, [home])
        with patch("assoc_ingest.sync.run.WORTH_BUILDING", 2**60):
            sync(database, [home])
        inode = os.stat(database).st_ino
        sync(database, [home])
    assert os.stat(database).st_ino == inode
    assert_same(dump(database), expected)


@pytest.mark.slow
def test_nothing_is_left_when_it_cannot_begin(home: Path, place: Path) -> None:
    database = place / "index.db"
    full = sqlite3.OperationalError("database or disk is full")
    with (
        patch("assoc_ingest.store.swap.open_writer", side_effect=full),
        pytest.raises(sqlite3.OperationalError),
    ):
        sync(database, [home])
    assert _names(database) == ["index.db.lock"]
    sync(database, [home])
    with pytest.raises(BusyError, match="in the meantime"), builder.building(database):
        pass
    assert not unfinished(database).parent.exists()

"""Reading in several processes gives the same database as reading in one.

Rows, ids, archive and index are the same for any number of workers and at any speed. A worker may
fail, die or never come to an end, and so may the writer: no file is lost because of it, and no
process stays behind.
"""

from __future__ import annotations

import os
import platform
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from tests.faults.changing import Home
from tests.support import stuck
from tests.support.child import Child
from tests.support.pieces import every_new_database_is_built, everything_through_workers
from tests.support.writing import PROJECT, TRANSCRIPT, user, write

from assoc_ingest import workers as pool
from assoc_ingest.cli import cli
from assoc_ingest.files import changes
from assoc_ingest.files.archive import Compressor
from assoc_ingest.files.changes import FilePart
from assoc_ingest.files.stores import Work
from assoc_ingest.files.tail import CHUNK, RAN_AWAY
from assoc_ingest.files.walk import Root, Walk, walk
from assoc_ingest.sources import SOURCES
from assoc_ingest.store import fts
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.database import in_bulk
from assoc_ingest.store.rows import Text
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump
from assoc_ingest.testing.promises import read_in_pieces
from assoc_ingest.upkeep import verify as check_jobs
from assoc_ingest.upkeep import verify as verifying
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import Finding, verify
from assoc_ingest.workers import Result, Workers, _Worker, index_aside, reading
from assoc_ingest.workers.index_aside import IndexAside

Fresh = Callable[[], Path]

DEMO = Path(__file__).parent / "demo"
posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")


@pytest.fixture
def home(place: Path) -> Path:
    return Home(place / "home", 21).root


@pytest.fixture
def expected(home: Path, fresh: Fresh) -> dict:
    database = fresh()
    sync(database, [home], SyncOptions(jobs=1))
    return dump(database)


@pytest.fixture
def started() -> Iterator[list[_Worker]]:
    """The workers that were started."""
    workers: list[_Worker] = []
    start = _Worker.__init__

    def note(worker: _Worker, *given: Any) -> None:
        start(worker, *given)
        workers.append(worker)

    with patch.object(_Worker, "__init__", note):
        yield workers


_OF_THIS_DATABASE = {
    *("sync_runs", "prices", "_sqlite_migrations", "sqlite_sequence"),
    *("identity", "changes", "changed_rows", "forgotten_files"),
}
_NOT_COMPARED = ("_synced_at", "_seen_at", "file_key")


def everything_in(database: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows with their ids, also those of the index, but not times of syncs and keys."""
    found = {}
    with closing(connect(database)) as connection:
        tables = connection.execute(
            "select name from sqlite_master where type = 'table' and rootpage > 0"
        ).fetchall()
        for (table,) in tables:
            if table in _OF_THIS_DATABASE:
                continue
            columns = [row["name"] for row in connection.execute(f"pragma table_info({table})")]
            kept = [name for name in columns if not name.endswith(_NOT_COMPARED)]
            rows = connection.execute(f"select {', '.join(kept)} from {table} order by 1, 2")
            found[table] = [tuple(row) for row in rows]
    return found


# -- the same result -----------------------------------------------------------------------------


class _OutOfOrder:
    """Holds the result of every other job back until that of the next one is there."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._is_done: dict[int, Event] = {}
        self.held = 0

    def jobs(self, work: Any, thorough: bool, seconds: float) -> Iterator[reading.ReadJob]:
        made = list(JOBS(work, thorough, seconds))
        self._numbers = {id(job): number for number, job in enumerate(made)}
        self._is_done = {number: Event() for number in range(len(made))}
        yield from made

    def result(self, workers: Workers[reading.ReadJob], job: reading.ReadJob) -> Result:
        number = self._numbers[id(job)]
        found = RESULT(workers, job)
        self._is_done[number].set()
        if number % 2 == 0 and number + 1 in self._is_done:
            self.held += 1
            self._is_done[number + 1].wait()
        return found


JOBS, RESULT = reading._jobs, Workers._result


@pytest.mark.parametrize("jobs", [2, 5])
def test_ids_rows_archive_and_index_depend_on_no_number_of_workers_and_no_speed(
    jobs: int, place: Path, fresh: Fresh, started: list[_Worker]
) -> None:
    homes = [Home(place / "home", 22).root, *sorted(DEMO.iterdir())]
    alone, together = fresh(), fresh()
    sync(alone, homes, SyncOptions(jobs=1))
    assert not started
    order = _OutOfOrder()
    with (
        everything_through_workers(job_bytes=20_000),
        patch.object(reading, "_jobs", order.jobs),
        patch.object(Workers, "_result", lambda workers, job: order.result(workers, job)),
    ):
        report = sync(together, homes, SyncOptions(jobs=jobs))
    assert not report.unreadable
    assert order.held > 2
    assert len(started) == jobs
    assert everything_in(together) == everything_in(alone)


INVISIBLE = ("soft\u00adhyphen", "zero\u200bwidth", "\u65e5\u672c\u8a9e\u306e\u6587")


@pytest.mark.slow
def test_a_new_database_has_the_same_index(place: Path, started: list[_Worker]) -> None:
    """Its messages are indexed by a process of its own."""
    home = Home(place / "home", 24).root
    write(home, TRANSCRIPT, *(user(text, text) for text in INVISIBLE))
    alone, together = place / "alone.db", place / "together.db"
    with every_new_database_is_built(), read_in_pieces(chunk=CHUNK, batch=1500):
        sync(alone, [home], SyncOptions(jobs=1))
        assert not started
        made = fts.rebuild_index
        with (
            everything_through_workers(),
            patch.object(fts, "rebuild_index", side_effect=made) as made_again,
        ):
            sync(together, [home])
    assert len(started) == 3
    assert {call.args[1] for call in made_again.call_args_list} == set(fts.OF_OTHERS)
    check(together, home)  # of what is indexed, too
    found, usual = everything_in(together), everything_in(alone)
    for part in ("data", "idx"):  # texts with such letters are added at the end
        del found[f"messages_fts_{part}"], usual[f"messages_fts_{part}"]
    assert found == usual
    with closing(connect(together)) as connection:
        for word in ("softhyphen", "hyphen", "zerowidth"):
            found = connection.execute(
                "select count(*) from messages_fts where messages_fts match ?", (word,)
            ).fetchone()
            assert tuple(found) == (1,), word


@pytest.mark.slow
@pytest.mark.parametrize("batches", [0, 2])
def test_without_its_process_the_index_is_made_from_the_rows(
    batches: int, home: Path, place: Path, expected: dict
) -> None:
    database, add = place / "new.db", IndexAside.add
    left = batches

    def add_or_die(aside: IndexAside, texts: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0 and aside._worker._worker is not None:
            aside._worker.kill()
        elif left < 0:
            aside._worker._is_alive = False
        add(aside, texts)

    with (
        every_new_database_is_built(),
        read_in_pieces(chunk=CHUNK, batch=1500),
        everything_through_workers(),
        patch.object(IndexAside, "add", add_or_die),
    ):
        sync(database, [home])
    assert left < 0
    check(database, home)
    assert_same(dump(database), expected)


@pytest.mark.slow
def test_a_new_database_of_which_nothing_could_be_read_is_there_and_empty(
    home: Path, place: Path
) -> None:
    database = place / "new.db"
    with (
        every_new_database_is_built(),
        everything_through_workers(),
        patch.object(_Worker, "__init__", side_effect=OSError),  # they would read it
        patch("assoc_ingest.files.stores.open_regular", side_effect=PermissionError(13, "no")),
    ):
        report = sync(database, [home])
    assert report.unreadable
    assert dump(database)["messages"] == []
    sync(database, [home])
    check(database, home)


@pytest.mark.slow
def test_where_the_tables_of_an_index_are_protected_the_writer_indexes(
    home: Path, place: Path, expected: dict, started: list[_Worker]
) -> None:
    database = place / "new.db"
    with (
        every_new_database_is_built(),
        everything_through_workers(),
        patch("assoc_ingest.workers.index_aside.fts.can_be_filled", return_value=False),
    ):
        sync(database, [home])
    assert len(started) == 2
    check(database, home)
    assert_same(dump(database), expected)


@pytest.mark.slow
@pytest.mark.parametrize("is_filled", [True, False])
def test_what_was_read_before_an_interruption_is_indexed(
    is_filled: bool, home: Path, place: Path, expected: dict, started: list[_Worker]
) -> None:
    """Also if the index cannot be put in place then: the database has none that lacks rows."""
    database, prepare, batches = place / "new.db", Batch.prepare, 0

    def interrupt(batch: Batch) -> None:
        nonlocal batches
        batches += 1
        prepare(batch)
        if batches == 3:
            raise KeyboardInterrupt

    broken = patch.object(fts, "fill", side_effect=sqlite3.OperationalError("disk I/O error"))
    with (
        every_new_database_is_built(),
        read_in_pieces(chunk=CHUNK, batch=1500),
        everything_through_workers(),
    ):
        with (
            patch.object(Batch, "prepare", interrupt),
            nullcontext() if is_filled else broken,
            pytest.raises(KeyboardInterrupt),
        ):
            sync(database, [home])
        assert all(worker._process.returncode is not None for worker in started)
        check(database)
        assert 0 < len(dump(database)["messages"]) < len(expected["messages"])
        sync(database, [home])
    check(database, home)
    assert_same(dump(database), expected)
    assert sorted(path.name for path in place.glob("new.db*")) == ["new.db", "new.db.lock"]


@pytest.mark.slow
def test_changes_of_known_files_are_read_by_workers_too(place: Path, fresh: Fresh) -> None:
    home, alone, together = Home(place / "home", 23), fresh(), fresh()
    for _ in range(4):
        sync(alone, [home.root], SyncOptions(jobs=1))
        with everything_through_workers():
            sync(together, [home.root])
        home.change()
        home.rewrite()
    assert everything_in(together) == everything_in(alone)


@pytest.mark.slow
def test_a_rebuild_gives_the_same_database_too(
    place: Path, fresh: Fresh, started: list[_Worker]
) -> None:
    homes = [Home(place / "home", 25).root, *sorted(DEMO.iterdir())]
    alone, together = fresh(), place / "together.db"
    sync(alone, homes, SyncOptions(jobs=1))
    together.write_bytes(alone.read_bytes())
    expected = dump(alone)
    usual = rebuild(alone)
    assert not started
    with everything_through_workers(job_bytes=20_000):
        rebuilt = rebuild(together)
    assert len(started) == 3  # two parse, and one indexes
    assert (rebuilt.files, rebuilt.rows) == (usual.files, usual.rows)
    assert everything_in(together) == everything_in(alone)
    check(together, *homes)
    assert_same(_without_files(dump(together)), _without_files(expected))


def _without_files(rows: dict) -> dict:
    return {table: found for table, found in rows.items() if table != "files"}


@pytest.mark.slow
@pytest.mark.workers_fail
@posix
@pytest.mark.parametrize("what", [stuck.FATAL, stuck.FAILING, stuck.STUCK])
def test_what_a_worker_fails_to_parse_again_is_not_lost(
    what: str, home: Path, fresh: Fresh
) -> None:
    """The writer parses it. If the parser does not end, its rows stay as they are."""
    write(home, f"{PROJECT}/{what}-1111-4222-8333-444455556666.jsonl", user("all there", "u9"))
    database = fresh()
    sync(database, [home])
    before = dump(database)
    with everything_through_workers(), patch.object(reading, "ReplayJob", stuck.odd_replay):
        rebuilt = rebuild(database)
    assert rebuilt.files_kept == (what == stuck.STUCK)
    check(database, home)
    assert_same(dump(database), before)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "update messages set text = 'invented' where kind = 'prompt'",
        "delete from tool_calls where id % 2 = 0",
        "update files set line_count = 7 where id % 2 = 0",
        "update files set context = 'other' where id % 3 = 0",
        "update files set offset = 3 where id = 1",
        "update archive set data = x'00' where file_id in (select id from files where id % 3 = 1)",
        "delete from archive where file_id = 2",
    ],
)
def test_verify_finds_the_same_in_workers(
    damage: str, fresh: Fresh, started: list[_Worker]
) -> None:
    database = fresh()
    sync(database, sorted(DEMO.iterdir()), SyncOptions(jobs=1))
    with closing(connect(database)) as connection:
        connection.execute(damage)
    usual = verify(database)
    assert usual.findings
    assert not started
    with everything_through_workers(job_bytes=20_000):
        found = verify(database)
    assert len(started) == 2
    assert found == usual


@pytest.mark.slow
@pytest.mark.parametrize("name", ["files", "sources", "messages", "archive", "sessions_key"])
def test_workers_begin_with_a_damaged_database_and_what_they_find_does_not_count(
    name: str, fresh: Fresh, started: list[_Worker]
) -> None:
    database = fresh()
    sync(database, sorted(DEMO.iterdir()), SyncOptions(jobs=1))
    with closing(connect(database)) as connection:
        query = "select rootpage from sqlite_master where name = ?"
        (root,) = connection.execute(query, (name,)).fetchone()
    with database.open("r+b") as file:
        file.seek((root - 1) * 16384 + 1)  # from the first free block to the number of cells
        file.write(b"\xff" * 4)
    usual = verify(database)
    assert {finding.check for finding in usual.findings} == {"pages"}
    check_pages, may_begin = verifying.check_pages, name not in ("files", "sources")

    def check_later(connection: sqlite3.Connection) -> Iterator[Finding]:
        end = time.monotonic() + 30
        while may_begin and not started and time.monotonic() < end:
            time.sleep(0.01)
        return check_pages(connection)

    with (
        everything_through_workers(job_bytes=20_000),
        patch.object(verifying, "check_pages", check_later),
    ):
        assert verify(database) == usual
    assert bool(started) == may_begin
    assert all(worker._process.returncode is not None for worker in started)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["verify", "rebuild"])
def test_jobs_says_how_many_processes_read(
    command: str, fresh: Fresh, started: list[_Worker]
) -> None:
    database = fresh()
    sync(database, sorted(DEMO.iterdir()), SyncOptions(jobs=1))
    of_the_index = command == "rebuild"
    for jobs, count in ((1, 0), (3, 3 + of_the_index)):
        with everything_through_workers(job_bytes=2_000):
            result = CliRunner().invoke(cli, [command, "-d", str(database), "--jobs", str(jobs)])
        assert result.exit_code == 0, result.output
        assert len(started) == count


@pytest.mark.slow
@pytest.mark.workers_fail
@posix
@pytest.mark.parametrize("what", [stuck.FATAL, stuck.FAILING, stuck.STUCK])
def test_what_a_worker_fails_to_check_is_checked_or_told(
    what: str, home: Path, fresh: Fresh
) -> None:
    name = f"{PROJECT}/{what}-1111-4222-8333-444455556666.jsonl"
    write(home, name, user("all there", "u9"))
    database = fresh()
    sync(database, [home])
    usual = verify(database)
    assert usual.ok
    with everything_through_workers(), patch.object(check_jobs, "CheckJob", stuck.odd_check):
        found = verify(database)
    told = [(finding.path, RAN_AWAY in finding.problem) for finding in found.findings]
    assert told == ([(name, True)] if what == stuck.STUCK else [])


@pytest.mark.slow
def test_a_file_of_many_stretches_is_packed_stretch_by_stretch(place: Path) -> None:
    """So that a worker holds no more than one of them."""
    lines = [user(f"text {number} " + "x" * 2000, f"u{number}") for number in range(3000)]
    write(place / "home", TRANSCRIPT, *lines)
    root = Root(SOURCES["claude"], place / "home")
    found = next(walk(root, Walk()))
    claim = root.source.claim(found.parts)
    assert claim is not None
    work = Work(root, 1, found, claim, None)
    parts = list(reading._read(work, changes.Packer(Compressor()), thorough=False))
    assert len(parts) > 2
    steps = [step for part in parts for step in reading.unpacked_parcel(part, work)]
    usual = list(changes.read([work], thorough=False))
    assert [type(step) for step in steps] == [type(step) for step in usual]
    for step, other in zip(steps, usual, strict=True):
        if isinstance(step, FilePart) and isinstance(other, FilePart):
            assert sorted(step.records, key=str) == sorted(other.records, key=str)
            assert step.frames() == other.frames()
            assert (step.prefix, step.size, step.context) == (
                other.prefix, other.size, other.context,
            )  # fmt: skip
        else:
            assert step == other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "is_too_much"),
    [([90], False), ([90, 90, 90], False), ([101], True), ([40, 101, 40], True), ([1] * 501, True)],
)
def test_what_would_take_a_worker_too_much_memory_is_left_to_the_writer(
    sizes: list[int], is_too_much: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LONG_LINE", 100)
    monkeypatch.setattr(reading, "LARGEST", 999)
    monkeypatch.setattr(reading, "_BLOCK", 7)
    file = place / "file"
    file.write_bytes(b"\n".join(b"x" * size for size in sizes))
    assert reading._is_too_much(str(file), file.stat().st_size) is is_too_much


def test_little_is_read_without_workers(home: Path, fresh: Fresh, started: list[_Worker]) -> None:
    sync(fresh(), [home], SyncOptions(jobs=4))
    assert not started


# -- workers that fail ---------------------------------------------------------------------------


@pytest.fixture
def odd() -> Iterator[None]:
    with everything_through_workers(), patch.object(reading, "ReadJob", stuck.odd_job):
        yield


@pytest.mark.slow
@pytest.mark.workers_fail
@posix
@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("what", [stuck.FATAL, stuck.FAILING])
def test_what_a_worker_fails_at_is_read_by_the_writer(
    what: str, home: Path, place: Path, fresh: Fresh
) -> None:
    write(home, f"{PROJECT}/{what}-1111-4222-8333-444455556666.jsonl", user("all there", "u9"))
    database, alone = fresh(), fresh()
    report = sync(database, [home])
    assert not report.unreadable
    sync(alone, [home], SyncOptions(jobs=1))
    assert everything_in(database) == everything_in(alone)


@pytest.mark.slow
@posix
def test_workers_that_always_die_are_given_up_and_nothing_is_lost(
    home: Path, fresh: Fresh, expected: dict, started: list[_Worker]
) -> None:
    do = _Worker.do

    def die(worker: _Worker, job: Any) -> Any:
        worker.kill()
        return do(worker, job)

    database = fresh()
    with everything_through_workers(), patch.object(_Worker, "do", die):
        sync(database, [home])
    assert_same(dump(database), expected)
    assert 1 < len(started) <= pool._LIVES + 2


def test_without_workers_the_writer_reads(home: Path, fresh: Fresh, expected: dict) -> None:
    """There may be no interpreter to start, or no more processes allowed."""
    database = fresh()
    with everything_through_workers(), patch.object(_Worker, "__init__", side_effect=OSError):
        sync(database, [home])
    assert_same(dump(database), expected)


@pytest.mark.slow
@pytest.mark.workers_fail
@pytest.mark.usefixtures("odd")
def test_a_parser_that_never_ends_costs_its_file_and_no_other(
    home: Path, fresh: Fresh, started: list[_Worker]
) -> None:
    path = f"{PROJECT}/{stuck.STUCK}-1111-4222-8333-444455556666.jsonl"
    oracle, database = fresh(), fresh()
    usual = sync(oracle, [home], SyncOptions(jobs=1))
    file = write(home, path, user("never read", "u9"))
    with everything_through_workers(job_bytes=30_000):
        report = sync(database, [home])
    assert report.quarantined == usual.quarantined
    assert report.unreadable == [(str(home / path), RAN_AWAY)]
    with closing(connect(database)) as connection:
        rows = connection.execute("select f.path, reason from issues join files f on f.id = file_id"
                                  " where reason = ?", (RAN_AWAY,))  # fmt: skip
        assert [tuple(row) for row in rows] == [(path, RAN_AWAY)]
    check(database)
    assert verify(database).findings == []
    assert sync(database, [home]).files_read == 0, "it is not tried again until it changes"
    assert_same(dump(database, tables=["messages"]), dump(oracle, tables=["messages"]))
    file.write_bytes(file.read_bytes() * 2)
    sync(database, [home], SyncOptions(jobs=1))
    sync(oracle, [home], SyncOptions(jobs=1))
    assert_same(dump(database), dump(oracle))
    assert all(worker._process.returncode is not None for worker in started)


@pytest.fixture
def worker() -> Iterator[_Worker]:
    worker = _Worker()
    yield worker
    worker.kill()
    worker.wait()


@pytest.mark.slow
@pytest.mark.workers_fail
def test_the_time_of_each_piece_counts_and_not_that_of_all(worker: _Worker) -> None:
    job = stuck.Pieces(seconds=2, count=7, size=10, takes=0.5)
    assert worker.do(job) == [[bytes(10)] * 7]
    with pytest.raises(pool._RanAwayError):
        worker.do(stuck.Pieces(seconds=0.2, count=1, size=10, takes=5))


@pytest.mark.slow
def test_what_the_writer_takes_to_read_a_piece_does_not_count(worker: _Worker) -> None:
    """A result is larger than a pipe, and the writer may be stopped for an hour."""
    next_message, taken = worker._next, 0

    def slowly() -> tuple[bytes, bytes]:
        nonlocal taken
        taken += 1
        if taken == 3:
            time.sleep(2)
        return next_message()

    with patch.object(worker, "_next", slowly):
        assert worker.do(stuck.Pieces(seconds=0.2, count=2, size=3_000_000)) == [
            [bytes(3_000_000)] * 2
        ]
    assert taken > 4


@pytest.mark.slow
def test_workers_that_were_started_ahead_are_used_or_ended(started: list[_Worker]) -> None:
    job = stuck.Pieces(seconds=60, count=1, size=10)
    with pool.started_ahead(2):
        assert len(started) == 2
        with Workers[Any](1) as workers:
            taken = workers._take()
            assert taken in started
            assert taken.do(job) == [[bytes(10)]]
        assert len(started) == 2
    assert not pool._ahead
    assert all(worker._process.returncode is not None for worker in started)


_ALLOCATING = """
import ctypes, sys, threading
from assoc_ingest.workers import Workers

with Workers(4):
    threads = [threading.Thread(target=lambda: ctypes.CDLL(None).malloc(100)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    out = libc.fopen(sys.argv[1].encode(), b"w")
    libc.malloc_info(0, ctypes.c_void_p(out))
    libc.fclose(ctypes.c_void_p(out))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have one heap")
def test_the_threads_of_the_writer_share_one_heap(tmp_path: Path) -> None:
    # or each keeps what it received and the writer has freed: 100 MB in a sync of 4 GB
    heaps = tmp_path / "heaps.xml"
    subprocess.run([sys.executable, "-c", _ALLOCATING, str(heaps)], check=True)
    assert heaps.read_text().count("<heap ") == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False])
def test_a_large_sync_has_settings_of_its_own_where_others_may_read(
    is_new: bool, home: Path, fresh: Fresh, place: Path
) -> None:
    database = place / "new.db" if is_new else fresh()
    with (
        every_new_database_is_built(),
        everything_through_workers(),
        patch("assoc_ingest.sync.batches.in_bulk", side_effect=in_bulk) as used,
    ):
        sync(database, [home])
    assert used.called is not is_new


# -- the end -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, sqlite3.OperationalError])
def test_no_worker_outlives_a_sync_that_fails(
    error: type[BaseException], home: Path, fresh: Fresh, started: list[_Worker], expected: dict
) -> None:
    database, batches = fresh(), 0
    prepare = Batch.prepare

    def fail(batch: Batch) -> None:
        nonlocal batches
        batches += 1
        prepare(batch)
        if batches == 3:
            raise error

    with everything_through_workers(), read_in_pieces(chunk=1500, batch=2000):
        with patch.object(Batch, "prepare", fail), pytest.raises(error):
            sync(database, [home])
        assert started
        assert all(worker._process.returncode is not None for worker in started)
        check(database)
        sync(database, [home])
    assert_same(dump(database), expected)
    assert all(worker._process.returncode is not None for worker in started)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="of Linux only")
def test_no_worker_outlives_a_writer_that_is_killed(
    home: Path, place: Path, expected: dict
) -> None:
    database, prepare = place / "index.db", Batch.prepare
    told, telling = os.pipe()

    def wait_for_death() -> None:
        start, workers = _Worker.__init__, []

        def note(worker: _Worker, *given: Any) -> None:
            start(worker, *given)
            workers.append(worker._process.pid)

        def wait(batch: Batch) -> None:
            prepare(batch)
            os.write(telling, " ".join(map(str, workers)).encode())
            signal.pause()

        with (
            everything_through_workers(),
            read_in_pieces(chunk=1500, batch=2000),
            patch.object(_Worker, "__init__", note),
            patch.object(Batch, "prepare", wait),
        ):
            sync(database, [home])

    child = Child(wait_for_death)
    try:
        assert select.select([told], [], [], 30)[0], "it never came to a batch"
        handles = [os.pidfd_open(int(pid)) for pid in os.read(told, 1000).split()]
        assert len(handles) == 2
        assert not select.select(handles, [], [], 0)[0], "they are at work"
    finally:
        child.kill()
    for handle in handles:
        assert select.select([handle], [], [], 30)[0], "a worker stays behind"
        os.close(handle)
    with everything_through_workers():
        sync(database, [home])
    assert_same(dump(database), expected)
    names = sorted(path.name for path in place.iterdir() if path.name.startswith("index.db"))
    assert names == ["index.db", "index.db.lock"]


def test_no_job_of_an_index_has_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the texts are those of tools."""
    monkeypatch.setattr(index_aside, "_PIECE", 2500)
    texts = [Text(n, *("x" * 1000, None)[:: 1 if n % 2 else -1], False) for n in range(10)]
    pieces = list(index_aside._in_pieces(texts))
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    assert [row for piece in pieces for row in piece] == [text[:3] for text in texts]


def test_only_a_line_that_is_too_long_is_left_to_the_writer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "_LONG_LINE", 1000)
    lines = reading.LineLengths()
    block = (b"x" * 99 + b"\n") * 12 + b"x" * 50
    assert not any(lines.is_too_much(block) for _ in range(3))
    assert not lines.is_too_much(b"x" * 950)  # with the end of the last block, as long as allowed
    assert lines.is_too_much(b"x\n")


@pytest.mark.parametrize("said", [None, "glibc.malloc.check=1"])
def test_the_process_of_the_index_has_large_pages_unless_the_user_says_otherwise(
    said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []

    def note(command: list[str], *, env: dict[str, str], **more: object) -> None:
        started.append(env)
        raise OSError

    if said is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", said)
    monkeypatch.setattr("assoc_ingest.workers.subprocess.Popen", note)
    assert not pool.SingleWorker().has_done(stuck.Pieces(seconds=2, count=1, size=10, takes=0))
    assert [env["GLIBC_TUNABLES"] for env in started] == [said or "glibc.malloc.hugetlb=1"]
    assert started[0]["HOME"] == os.environ["HOME"]

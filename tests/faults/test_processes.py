"""One process writes, any number read, and nobody sees half of anything.

The lock file decides who writes. Where it does not work, as on some network file systems, the
loser of a race gives up its batch. A reader sees a home as one commit left it.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.faults.amounts import times
from tests.faults.changing import Fresh, Home, assert_ends_as_from_scratch
from tests.support.child import Child
from tests.support.writing import TRANSCRIPT, jsonl, user, write

from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check
from assoc_ingest.testing.promises import read_in_pieces

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")

MEBIBYTE = 1024 * 1024


@contextmanager
def no_lock() -> Iterator[None]:
    """The lock file locks nobody out."""
    with patch("assoc_ingest.store.database.locked", lambda path: nullcontext()):
        yield


@pytest.mark.parametrize("writers", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lock", [nullcontext, no_lock], ids=["locked", "lock-without-effect"])
def test_processes_that_sync_at_once_end_with_the_rows_of_one(
    writers: int, lock: Callable[[], Iterator[None]], fresh: Fresh, place: Path
) -> None:
    """The home changes while they read it. Goes on until they were in each other's way."""
    home, database = Home(place / "home", 4), fresh()
    together = multiprocessing.get_context("fork").Barrier(writers)

    def run() -> int:
        together.wait(timeout=60)
        with read_in_pieces(chunk=1500, batch=3000):
            return sync(database, [home.root]).files_read

    busy = done = rounds = 0
    with lock():
        while rounds < times(15) or (busy == 0 and rounds < times(300, 300)):
            home.change()
            children = [Child(run) for _ in range(writers)]
            home.change()
            results = [child.result() for child in children]
            rounds += 1
            busy += sum("BusyError" in str(each) for each in results)
            done += sum(isinstance(each, int) for each in results)
            assert busy + done == writers * rounds, results
            check(database)
    assert busy > 0
    assert done > 0
    assert_ends_as_from_scratch(database, home.root, fresh)
    assert os.path.exists(f"{database}.lock")


@pytest.mark.parametrize("is_new", [True, False], ids=["new-file", "grown-file"])
@pytest.mark.parametrize(
    "line", [user("a prompt", "u1"), b"garbage", {"type": "mode"}], ids=["rows", "issue", "count"]
)
def test_lines_that_two_processes_read_are_counted_once(
    is_new: bool, line: object, fresh: Fresh, place: Path
) -> None:
    """One is overtaken between its look at the file and its transaction, with no lock at all."""
    database = fresh()
    write(place / "home", TRANSCRIPT, user("first", "u0"))
    if not is_new:
        sync(database, [place / "home"])
    with (place / "home" / TRANSCRIPT).open("ab") as file:
        file.write(jsonl(line))
    overtaken: list[int] = []

    def plan_and_wait(*arguments: object, **more: object) -> object:
        plan = make_plan(*arguments, **more)
        with patch("assoc_ingest.sync.run.make_plan", make_plan):
            overtaken.append(sync(database, [place / "home"]).files_read)
        return plan

    from assoc_ingest.sync.plan import make_plan

    with no_lock(), patch("assoc_ingest.sync.run.make_plan", plan_and_wait):
        child = Child(lambda: sync(database, [place / "home"]).files_read).result()
    assert "Another process has written" in child
    assert_ends_as_from_scratch(database, place / "home", fresh)


# -- readers -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reader_sees_the_old_or_the_new_and_never_a_mixture(fresh: Fresh, place: Path) -> None:
    """A session is rewritten again and again, each time with one text in all of its lines."""
    database, seen, looks = fresh(), set(), 0
    chance = random.Random(1)

    def rewrite(text: str) -> None:
        count = chance.randint(5, 60)
        write(place / "home", TRANSCRIPT, *(user(text, f"u{n}") for n in range(count)))

    def run() -> int:
        with read_in_pieces(chunk=500, batch=500):
            return sync(database, [place / "home"]).files_read

    rewrite("text0")
    sync(database, [place / "home"])
    reader = open_reader(database)
    for number in range(1, times(20, 10)):
        before = consistent_text(reader, place)
        rewrite(f"text{number}")
        child = Child(run)
        while not child.is_done_within(0):
            seen.add(consistent_text(reader, place))
            looks += 1
        reader.execute("begin")
        held = consistent_text(reader, place)
        assert child.result() == 1
        assert consistent_text(reader, place) == held  # the transaction keeps what it saw
        reader.execute("commit")
        assert held in (before, f"text{number}")
        assert consistent_text(reader, place) == f"text{number}"
    reader.close()
    assert len(seen) > 3
    assert looks > times(20, 10)


def consistent_text(reader: sqlite3.Connection, place: Path) -> str:
    """Return the one text that all rows of the session have, in every table that shows it."""
    rows = reader.execute(
        "select (select group_concat(distinct text) from messages),"
        " (select count(*) from messages),"
        " (select sum(line_count) from files),"
        " (select message_count from sessions),"
        " (select count(*) from messages_fts where messages_fts match 'text*'),"
        " (select title from sessions)"
    ).fetchall()
    ((text, *counts, title),) = (tuple(row) for row in rows)
    assert "," not in text
    assert len(set(counts)) == 1, counts
    assert title == text
    return text


@pytest.mark.slow
def test_the_log_stays_small_beside_a_reader_and_shrinks_when_the_last_one_is_done(
    fresh: Fresh, place: Path
) -> None:
    home, database = Home(place / "home", 14), fresh()
    log = Path(f"{database}-wal")
    largest = 0
    reader = open_reader(database)
    for _ in range(times(30, 10)):
        home.change()
        with read_in_pieces(chunk=1500, batch=2000):
            sync(database, [home.root])
        assert reader.execute("select count(*) from messages").fetchone()[0]
        largest = max(largest, log.stat().st_size)
    assert largest == 0, "a sync empties the log beside a reader that is at rest"
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    for _ in range(3):
        home.change()
        with read_in_pieces(chunk=1500, batch=2000):
            sync(database, [home.root])
    assert 0 < log.stat().st_size < 64 * MEBIBYTE
    reader.execute("commit")
    home.change()
    sync(database, [home.root])
    assert log.stat().st_size == 0
    reader.close()

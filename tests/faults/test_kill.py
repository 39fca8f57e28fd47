"""SIGKILL at any instant loses nothing and duplicates nothing.

Right after a kill the database is as some commit left it: no row stands beyond an offset, and
all before it is accounted for. The next sync goes on from there, and ends with the rows of a
sync from scratch.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest
from tests.faults.amounts import times
from tests.faults.changing import (
    Fresh,
    Home,
    assert_ends_as_from_scratch,
    assert_survives_a_kill_at_any_step,
    state,
)
from tests.support.child import Child
from tests.support.pieces import every_new_database_is_built, everything_through_workers

from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.status import status as current
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.database import open_reader
from assoc_ingest.store.rows import Written
from assoc_ingest.sync.run import CUT_OFF, sync
from assoc_ingest.sync.watch import Watcher, WatchError, WatchOptions, watch
from assoc_ingest.testing.dump import check, connect
from assoc_ingest.testing.promises import read_in_pieces

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")

KILLS = times(120)
SEEDS = range(times(6, 1))


@pytest.mark.slow
def test_a_sync_may_be_killed_at_any_step(fresh: Fresh, place: Path) -> None:
    assert_survives_a_kill_at_any_step(fresh, place)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_sync_may_be_killed_at_any_moment(seed: int, fresh: Fresh, place: Path) -> None:
    home, database, chance = Home(place / "home", seed), fresh(), random.Random(seed)
    usual, kills, kills_after_a_commit, survived = 0.0, 0, 0, 0

    def run() -> int:
        with read_in_pieces(chunk=1500, batch=2000):
            return sync(database, [home.root]).files_read

    while kills < KILLS or kills_after_a_commit < 3:
        before, started = state(database), time.monotonic()
        child = Child(run)
        if not usual or child.is_done_within(chance.random() * usual * 1.3):
            assert isinstance(child.result(), int)
            usual = time.monotonic() - started
            survived += 1
        elif child.kill():
            kills += 1
            kills_after_a_commit += state(database) != before
        check(database)
        home.change()
        assert kills + survived < 20 * KILLS, "hardly a kill comes in time"
    assert survived
    assert_ends_as_from_scratch(database, home.root, fresh)


@contextmanager
def built_by_workers() -> Iterator[None]:
    """The process that is killed has others that work for it."""
    with every_new_database_is_built(), everything_through_workers(job_bytes=5000):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("how", [nullcontext, every_new_database_is_built, built_by_workers])
def test_a_kill_while_a_database_is_made_leaves_one_that_can_be_used(
    how: Callable[[], AbstractContextManager[None]], place: Path
) -> None:
    home, chance = Home(place / "home", 3), random.Random(3)
    usual, kills, number = 0.0, 0, 0
    while number < times(12) or kills < times(4, 1):
        number += 1
        assert number < times(100, 100), "hardly a kill comes in time"
        database, started = place / f"new-{number}.db", time.monotonic()
        with how():
            child = Child(lambda path=database: sync(path, [home.root]).files_read)
            if not usual or child.is_done_within(chance.random() * usual):
                assert isinstance(child.result(), int)
                usual = time.monotonic() - started
            else:
                kills += child.kill()
            if database.exists() and how is not nullcontext:
                check(database, home.root)  # whole, or not there
            sync(database, [home.root])
        check(database, home.root)
        assert not Path(f"{database}-unfinished").exists()
        database.unlink()


# -- what is told of it --------------------------------------------------------------------------


def told(database: Path) -> tuple[bool, list[object]]:
    """Return what `status` says: does a run go on, and which did not end well."""
    reader = open_reader(database)
    status = current.ask(Reader(reader, 0))
    reader.close()
    return status.is_running, [run["error"] or "cut off" for run in status.failed_runs]


def killed_behind(commits: int, run: Callable[[], object], database: Path) -> None:
    """Let a run die behind so many commits that can be seen; before, it is told as going on."""
    finish = Batch.finish

    def finish_and_die(batch: Batch) -> Written:
        nonlocal commits
        written = finish(batch)
        commits -= database.exists()
        if commits == 0:
            assert Child(lambda: told(database)).result() == (True, []), "it runs"
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def die() -> object:
        with read_in_pieces(chunk=1500, batch=2000), patch.object(Batch, "finish", finish_and_die):
            return run()

    child = Child(die)
    assert child.is_done_within(60)
    assert not child.kill() or commits, "it was killed by its own hand"


def runs(database: Path) -> list[tuple[object, ...]]:
    connection = connect(database)
    rows = connection.execute("select finished_at is null, error from sync_runs order by id")
    found = [tuple(row) for row in rows]
    connection.close()
    return found


@pytest.mark.parametrize("is_built", [False, True], ids=["in-place", "built"])
def test_a_sync_that_was_killed_is_told_as_such(is_built: bool, place: Path) -> None:
    """Also one that built the database and went on in its place."""
    home, database = Home(place / "home", 4), place / "index.db"
    with (
        patch("assoc_ingest.sync.run.WORTH_BUILDING", 0 if is_built else 2**60),
        patch("assoc_ingest.sync.run.AT_RISK", 6000),
        patch("assoc_ingest.sync.batches._BYTES_AHEAD", 0),
    ):
        killed_behind(2, lambda: sync(database, [home.root]), database)
    assert runs(database) == [(1, None)]
    assert told(database) == (False, ["cut off"])
    sync(database, [home.root])
    assert runs(database) == [(1, CUT_OFF), (0, None)]
    assert told(database) == (False, [CUT_OFF])


def test_a_watch_that_was_killed_in_a_later_pass_is_told_as_such(fresh: Fresh, place: Path) -> None:
    """Its passes share a row, which had an end."""
    home, database = Home(place / "home", 4), fresh()
    sync(database, [home.root])
    assert runs(database) == [(0, None)]

    class Ticks(Event):
        def wait(self, timeout: float | None = None) -> bool:
            home.grow()
            return False

    def run() -> None:
        watch(database, [home.root], WatchOptions(rescan=0.01), Ticks(), lambda news: None,
              opened=deaf)  # fmt: skip

    killed_behind(6, run, database)
    assert runs(database) == [(0, None), (1, None)]
    assert told(database) == (False, ["cut off"])
    sync(database, [home.root])
    assert runs(database) == [(0, None), (1, CUT_OFF), (0, None)]


def deaf(*_: object) -> Watcher:
    raise WatchError("nothing is told")

"""SIGKILL at any instant loses nothing and duplicates nothing.

Right after a kill the database is as some commit left it: no row stands beyond an offset, and
all before it is accounted for. The next sync goes on from there, and ends with the rows of a
sync from scratch.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from tests.child import Child
from tests.dump import check
from tests.faults.amounts import times
from tests.faults.changing import (
    Fresh,
    Home,
    assert_ends_as_from_scratch,
    assert_survives_a_kill_at_any_step,
    state,
)
from tests.pieces import every_new_database_is_built, read_in_pieces

from assoc_ingest.sync import sync

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")

KILLS = 25
SEEDS = range(times(6))
assert KILLS * len(SEEDS) >= 150


def test_a_sync_may_be_killed_at_any_step(fresh: Fresh, place: Path) -> None:
    assert_survives_a_kill_at_any_step(fresh, place)


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


@pytest.mark.parametrize("how", [nullcontext, every_new_database_is_built])
def test_a_kill_while_a_database_is_made_leaves_one_that_can_be_used(
    how: Callable[[], AbstractContextManager[None]], place: Path
) -> None:
    home, chance = Home(place / "home", 3), random.Random(3)
    usual, kills, number = 0.0, 0, 0
    while number < times(12) or kills < times(4):
        number += 1
        assert number < times(100), "hardly a kill comes in time"
        database, started = place / f"new-{number}.db", time.monotonic()
        with how():
            child = Child(lambda path=database: sync(path, [home.root]).files_read)
            if not usual or child.is_done_within(chance.random() * usual):
                assert isinstance(child.result(), int)
                usual = time.monotonic() - started
            else:
                kills += child.kill()
            if database.exists() and how is every_new_database_is_built:
                check(database, home.root)  # whole, or not there
            sync(database, [home.root])
        check(database, home.root)
        assert not Path(f"{database}-unfinished").exists()
        database.unlink()

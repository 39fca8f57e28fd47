"""After a power failure the database opens, and what is missing is read again.

With `synchronous=normal` the last commits may be lost, and the write-ahead log may end anywhere,
in zeros or in garbage. What is left is as some commit left it: offsets, rows and index together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults.amounts import times
from tests.faults.changing import Fresh, Home, state

from assoc_ingest.files.walk import recognised
from assoc_ingest.sources import SOURCES
from assoc_ingest.store.database import writing
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import SyncOptions, sync, sync_into
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.testing.promises import read_in_pieces

IMAGES = times(100)
"""For each kind of damage."""


class Image(NamedTuple):
    """The files of a database at one moment."""

    database: bytes
    log: bytes


def cut(log: bytes, at: int, chance: random.Random) -> bytes:
    return log[:at]


def zero(log: bytes, at: int, chance: random.Random) -> bytes:
    """The file has its length, but not its last pages: the disk never wrote them."""
    return log[:at] + bytes(len(log) - at)


def garble(log: bytes, at: int, chance: random.Random) -> bytes:
    """One sector holds something else."""
    return log[:at] + chance.randbytes(512) + log[at + 512 :]


def images(home: Home, database: Path) -> Iterator[Image]:
    """Yield the database after each of some syncs, none of which moved its log into it."""
    with writing(database) as connection:
        connection.execute("pragma wal_autocheckpoint = 0").fetchall()
        for number in range(5):
            with read_in_pieces(chunk=1500, batch=2000):
                sync_into(connection, recognised(home.root, SOURCES), SyncOptions(), Report("now"))
            yield Image(database.read_bytes(), Path(f"{database}-wal").read_bytes())
            if number < 4:
                home.change()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [cut, zero, garble])
def test_a_log_may_be_damaged_anywhere(
    damage: Callable[[bytes, int, random.Random], bytes], fresh: Fresh, place: Path
) -> None:
    home, chance = Home(place / "home", 11), random.Random(12)
    taken = list(images(home, fresh()))
    oracle = fresh()
    sync(oracle, [home.root])
    expected = dump(oracle)
    database = place / "torn.db"
    states = set()
    for _ in range(IMAGES):
        image = chance.choice(taken)
        assert len(image.log) > 100_000
        database.write_bytes(image.database)
        damaged = damage(image.log, chance.randrange(len(image.log)), chance)
        assert damaged != image.log
        Path(f"{database}-wal").write_bytes(damaged)
        check(database)
        states.add(state(database))
        sync(database, [home.root])
        check(database, home.root)
        assert_same(dump(database), expected)
        for path in place.glob("torn.db*"):
            path.unlink()
    assert len(states) > min(10, IMAGES // 3), "the damage cost no commit"


def test_a_database_without_its_log_is_an_older_one(fresh: Fresh, place: Path) -> None:
    """Somebody copied the file alone: what the log held is read again."""
    home = Home(place / "home", 13)
    *_, last = images(home, fresh())
    alone, whole = place / "alone.db", place / "whole.db"
    alone.write_bytes(last.database)
    check(alone)
    whole.write_bytes(last.database)
    Path(f"{whole}-wal").write_bytes(last.log)
    assert state(alone) != state(whole)
    sync(alone, [home.root])
    assert_same(dump(alone), dump(whole))

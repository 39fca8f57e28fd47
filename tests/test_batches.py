"""Reading goes on while a batch is committed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.faults.changing import Home

from assoc_ingest.files import changes
from assoc_ingest.files.changes import Step
from assoc_ingest.files.stores import Work
from assoc_ingest.store.batch import Batch
from assoc_ingest.store.rows import Written
from assoc_ingest.sync.batches import Batches
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.testing.promises import read_in_pieces

PATIENCE = 5.0  # seconds


@pytest.mark.slow
def test_files_are_read_during_every_commit_but_the_last(
    fresh: Callable[[], Path], place: Path
) -> None:
    """Also when so much was read ahead that a batch is full before reading goes on."""
    home = Home(place / "home", 7)
    for _ in range(4):
        home.grow()
    steps, is_read, overtaken = 0, False, []
    finish, read = Batch.finish, changes.read

    def counted(work: Iterable[Work], *, thorough: bool) -> Iterator[Step]:
        nonlocal steps, is_read
        for step in read(work, thorough=thorough):
            steps += 1
            yield step
        is_read = True

    def finish_when_more_is_read(batch: Batch) -> Written:
        before, end = steps, time.monotonic() + PATIENCE
        while steps < before + 5 and not is_read and time.monotonic() < end:
            time.sleep(0.001)
        overtaken.append(steps >= before + 5 or is_read)
        return finish(batch)

    database, oracle = fresh(), fresh()
    with (
        read_in_pieces(chunk=1500, batch=2000),
        patch("assoc_ingest.sync.batches.read", counted),
        patch.object(Batch, "finish", finish_when_more_is_read),
    ):
        sync(database, [home.root])
    assert len(overtaken) > 4
    assert all(overtaken)
    check(database, home.root)
    sync(oracle, [home.root])
    assert_same(dump(database), dump(oracle))


def test_no_more_waits_than_there_is_room_for(fresh: Callable[[], Path], place: Path) -> None:
    home = Home(place / "home", 7)
    most = 0
    finish = Batch.finish

    def take_time(batch: Batch) -> Written:
        time.sleep(0.05)
        return finish(batch)

    take = Batches.take

    def take_and_look(batches: Batches, step: Step) -> None:
        nonlocal most
        take(batches, step)
        most = max(most, batches._waiting_bytes)

    with (
        read_in_pieces(chunk=1500, batch=2000),
        patch("assoc_ingest.sync.batches._BYTES_AHEAD", 3000),
        patch.object(Batch, "finish", take_time),
        patch.object(Batches, "take", take_and_look),
    ):
        sync(fresh(), [home.root])
    assert 0 < most < 3000

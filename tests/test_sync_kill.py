"""SIGKILL at any instant loses nothing and duplicates nothing.

Right after a kill the database is as some commit left it: no row stands beyond an offset, and
all before it is accounted for. The next sync goes on from there, and ends with the oracle's rows.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.child import Child
from tests.dump import assert_same, check, dump
from tests.pieces import Killed, killed_at, read_in_pieces
from tests.writing import PROJECT, agent, assistant, call, jsonl, result, user, write_bytes

from assoc_ingest.sync import sync

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")

ROUNDS = 25


class Home:
    """A home that changes at random, as agents change it."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self._random = random.Random(seed)
        self._count = 0
        for _ in range(6):
            self._append(self._new())

    def change(self) -> None:
        """Append to some files, make one, and now and then rewrite one or cut it."""
        files = sorted(self.root.rglob("*.jsonl"))
        for path in self._random.sample(files, 3):
            self._append(path)
        self._append(self._new())
        one, dice = self._random.choice(files), self._random.random()
        data = one.read_bytes()
        if dice < 0.3:
            one.write_bytes(data[len(data) // 3 :])
        elif dice < 0.5:
            one.write_bytes(data[: -self._random.randint(1, 40)])
        elif dice < 0.6:
            other = one.with_suffix(".tmp")
            other.write_bytes(data + self._lines())
            other.replace(one)

    def _new(self) -> Path:
        self._count += 1
        session = f"{self._count:08x}-1111-4222-8333-444455556666"
        path = f"{PROJECT}/{session}.jsonl"
        if self._count % 3 == 0:
            path = f"{PROJECT}/{session}/subagents/agent-a{self._count}.jsonl"
        return write_bytes(self.root, path, b"")

    def _append(self, path: Path) -> None:
        with path.open("ab") as file:
            file.write(self._lines())

    def _lines(self) -> bytes:
        lines = []
        for _ in range(self._random.randint(1, 12)):
            number = self._random.randint(0, 60)
            uuid, tool = f"u{number}", f"toolu_{number % 9}"
            lines.append(
                self._random.choice(
                    [
                        user(f"text {number} " + "x" * 300, uuid),
                        assistant("answer", uuid, id=f"msg_{number}", usage={"output_tokens": 1}),
                        assistant([call(tool, "Task", prompt=f"text {number}")], uuid),
                        user([result(tool, "agentId: a3")], uuid),
                        agent("a3", user(f"text {number}", uuid)),
                        {"type": "queue-operation", "operation": "enqueue", "content": "text"},
                        {"type": "summary", "summary": "A title", "leafUuid": uuid},
                    ]
                )
            )
        return jsonl(*lines, *([b"garbage"] if self._random.random() < 0.2 else []))


def test_a_sync_may_be_killed_at_any_step(fresh: Callable[[], Path], place: Path) -> None:
    """Every statement in turn is the last one, of syncs that append, rewrite and begin anew."""
    home = Home(place / "home", 5)
    grown, oracle = fresh(), fresh()
    sync(grown, [home.root])
    home.change()
    sync(oracle, [home.root])
    expected = dump(oracle)
    survived = False
    step = 0
    while not survived:
        step += 7
        database = Path(shutil.copy(grown, place / "killed.db"))
        try:
            with killed_at(step), read_in_pieces(chunk=1500, batch=2000):
                sync(database, [home.root])
            survived = True
        except Killed:
            check(database)
        sync(database, [home.root])
        check(database, home.root)
        assert_same(dump(database), expected)
        database.unlink()
    assert step > 300


@pytest.mark.parametrize("seed", [1, 2])
def test_a_sync_may_be_killed_at_any_moment(
    seed: int, fresh: Callable[[], Path], place: Path
) -> None:
    home, database, chance = Home(place / "home", seed), fresh(), random.Random(seed)
    kills = 0

    def run() -> int:
        with read_in_pieces(chunk=3000, batch=4000):
            return sync(database, [home.root]).files_read

    for _ in range(ROUNDS):
        child = Child(run)
        if child.is_done_within(chance.random() * 0.06):
            assert isinstance(child.result(), int)
        else:
            child.kill()
            kills += 1
        check(database)
        home.change()
    assert kills > ROUNDS / 4
    sync(database, [home.root])
    check(database, home.root)
    oracle = fresh()
    sync(oracle, [home.root])
    assert_same(dump(database), dump(oracle))
    assert sync(database, [home.root]).files_read == 0


def test_a_kill_while_a_database_is_made_leaves_one_that_can_be_used(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, chance = Home(place / "home", 3), random.Random(3)
    kills = 0
    for number in range(12):
        database = place / f"new-{number}.db"
        child = Child(lambda path=database: sync(path, [home.root]).files_read)
        if child.is_done_within(chance.random() * 0.15):
            child.result()
        else:
            child.kill()
            kills += 1
        sync(database, [home.root])
        check(database, home.root)
    assert kills > 0


def test_two_processes_that_sync_at_once_end_with_the_same_rows(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, database = Home(place / "home", 4), fresh()
    busy = done = 0
    for _ in range(6):
        children = [Child(lambda: sync(database, [home.root]).files_read) for _ in range(3)]
        results = [child.result() for child in children]
        busy += sum(isinstance(each, str) and "BusyError" in each for each in results)
        done += sum(isinstance(each, int) for each in results)
        assert busy + done == 3 * (1 + _)
        home.change()
    assert done > 0
    sync(database, [home.root])
    check(database, home.root)
    oracle = fresh()
    sync(oracle, [home.root])
    assert_same(dump(database), dump(oracle))
    assert os.path.exists(f"{database}.lock")

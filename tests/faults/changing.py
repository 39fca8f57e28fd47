"""A home that changes at random, as agents change it, and what a database of it has to be."""

from __future__ import annotations

import hashlib
import json
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

from tests.faults.amounts import NEAR, SCALE
from tests.support.cases import CASES, home_of
from tests.support.pieces import Killed, killed_at
from tests.support.writing import PROJECT, agent, assistant, call, jsonl, result, user, write_bytes

from assoc_ingest.store.batch import Batch
from assoc_ingest.store.rows import Written
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.testing.promises import read_in_pieces

Fresh = Callable[[], Path]
"""Makes empty databases."""


class Home:
    """A home that changes at random, as agents change it."""

    def __init__(self, root: Path, seed: int, uuids: int = 60) -> None:
        """With few `uuids`, most lines stand in several files, as forks repeat them."""
        self.root = root
        self._uuids = uuids
        self._random = random.Random(seed)
        self._count = 0
        for _ in range(6):
            self._append(self._new())

    def change(self) -> None:
        """Append to some files, make one, and now and then rewrite one or cut it."""
        self.grow()
        one, dice = self._random.choice(self._files()), self._random.random()
        data = one.read_bytes()
        if dice < 0.3:
            one.write_bytes(data[len(data) // 3 :])
        elif dice < 0.5:
            one.write_bytes(data[: -self._random.randint(1, 40)])
        elif dice < 0.6:
            other = one.with_suffix(".tmp")
            other.write_bytes(data + self._lines())
            other.replace(one)

    def grow(self) -> None:
        """Append to some files, and make one."""
        for path in self._random.sample(self._files(), 3):
            self._append(path)
        self._append(self._new())

    def rewrite(self) -> None:
        """Give the largest file another history, longer than its own."""
        largest = max(self._files(), key=lambda path: path.stat().st_size)
        largest.write_bytes(self._lines() + largest.read_bytes())

    def _files(self) -> list[Path]:
        return sorted(self.root.rglob("*.jsonl"))

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
            number = self._random.randint(0, self._uuids)
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


class OtherAgents:
    """The homes of all other agents: their files grow, are cut, broken and removed, and return.

    Without the cases whose documents are broken for good: what such a one said before is kept.
    """

    def __init__(self, place: Path, seed: int) -> None:
        self.homes = [
            home_of(case, place, case.replace("/", "-"))
            for case in CASES
            if not case.startswith("claude/") and "broken" not in case
        ]
        self._random = random.Random(seed)
        self._whole = {
            path: path.read_bytes()
            for home in self.homes
            for path in sorted(home.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        self._databases = {
            path for path, data in self._whole.items() if data.startswith(b"SQLite format 3")
        }

    def change(self) -> None:
        """Change one file, of any."""
        path, dice = self._random.choice(list(self._whole)), self._random.random()
        whole = self._whole[path]
        if dice < 0.2:
            path.unlink(missing_ok=True)
        elif dice < 0.5 or not whole:
            self._put(path, whole)
        elif path in self._databases:
            self._put(path, whole)
            self._remove_rows(path)
        elif path.suffix == ".jsonl" and dice < 0.8:
            lines = whole.splitlines(keepends=True)
            more = self._random.choices(lines, k=self._random.randint(1, 4))
            self._put(path, whole.rstrip(b"\n") + b"\n" + b"".join(more))
        else:
            self._put(path, whole[: self._random.randrange(len(whole))])

    def mend(self) -> None:
        """Let nothing be missing, and nothing but logs be broken or cut off."""
        for path, whole in self._whole.items():
            if path.suffix != ".jsonl" or not path.exists():
                self._put(path, whole)

    def _put(self, path: Path, data: bytes) -> None:
        """Write a file, in place or as another one in its place."""
        if self._random.random() < 0.5:
            path.write_bytes(data)
            return
        other = path.with_name(f".{path.name}.tmp")
        other.write_bytes(data)
        other.replace(path)

    def _remove_rows(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            tables = connection.execute("select name from sqlite_master where type = 'table'")
            table = self._random.choice([name for (name,) in tables])
            connection.execute(
                f'delete from "{table}" where rowid in (select rowid from "{table}" limit 1)'
            )


def assert_ends_as_from_scratch(database: Path, home: Path, fresh: Fresh) -> None:
    """Sync once more: then the database is whole, as a new one of the same home, and at rest."""
    sync(database, [home])
    check(database, home)
    oracle = fresh()
    sync(oracle, [home])
    assert_same(dump(database), dump(oracle))
    oracle.unlink()
    assert sync(database, [home]).files_read == 0


def assert_survives_a_kill_at_any_step(fresh: Fresh, place: Path) -> None:
    """Kill a sync that appends, rewrites and begins anew: around its commits, and all along.

    Right after each kill the database is as a commit left it, and the next sync completes it.
    """
    changing, grown = Home(place / "home", 5), fresh()
    home = changing.root
    sync(grown, [home])
    changing.change()
    changing.rewrite()
    oracle = fresh()
    sync(oracle, [home])
    expected = dump(oracle)
    database = grown.with_name("killed.db")
    database.write_bytes(grown.read_bytes())
    with killed_at(sys.maxsize) as statements, read_in_pieces(chunk=1500, batch=2000):
        sync(database, [home])
    commits = [number for number, statement in enumerate(statements) if statement == "commit"]
    around = {commit + near for commit in commits for near in NEAR}
    all_along = range(1, len(statements) + 20, 26 if SCALE < 1 else 5)
    kills = survivals = 0
    for step in [*sorted(around), *all_along, len(statements) + 1]:
        database.write_bytes(grown.read_bytes())
        try:
            with killed_at(step), read_in_pieces(chunk=1500, batch=2000):
                sync(database, [home])
            survivals += 1
        except Killed:
            kills += 1
        check(database)
        sync(database, [home])
        check(database, home)
        assert_same(dump(database), expected)
        database.unlink()
    assert survivals > 0
    assert kills > 15


def state(database: Path) -> str:
    """Return a name for what the tables say, the same for databases that say the same."""
    return hashlib.sha256(json.dumps(dump(database), sort_keys=True).encode()).hexdigest()


@contextmanager
def states_of_commits(database: Path) -> Iterator[set[str]]:
    """Gather the states in which the batches of a sync leave the database, and the one before."""
    states = {state(database)}
    finish = Batch.finish

    def finish_and_look(batch: Batch) -> Written:
        written = finish(batch)
        states.add(state(database))
        return written

    with patch.object(Batch, "finish", finish_and_look):
        yield states
    states.add(state(database))

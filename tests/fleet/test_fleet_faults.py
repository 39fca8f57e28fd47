"""Whatever dies in mid-push, and whatever is restored, the next push ends with the server equal to
the machine: nothing is lost, nothing is there twice."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.faults.amounts import times
from tests.support.child import Child
from tests.support.fleet import MadeLocal, MadeMemory, expected, frame, on_server, row, says
from tests.support.nodes import Own, OwnNodes

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import server
from assoc_ingest.fleet.connect import connect
from assoc_ingest.fleet.projection import Cursor
from assoc_ingest.fleet.push import Limits, Report, push
from assoc_ingest.fleet.server import Server

pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.citus,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only"),
]

SMALL = Limits(size=2000, rows=20)


@dataclass
class FileMemory(MadeMemory):
    """What a machine remembers, in a file: a killed process leaves it."""

    path: Path = Path()

    def save(self) -> None:
        state = {name: getattr(self, name) for name in ("version", "nonces", "cursor")}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.rename(self.path)

    def load(self) -> FileMemory:
        """Be as the next process reads it."""
        if self.path.exists():
            found = json.loads(self.path.read_text())
            found["cursor"] = found["cursor"] and Cursor(*found["cursor"])
            self.__dict__.update(found)
        return self


@dataclass
class Machine:
    """A machine whose files change at random, and how it pushes."""

    dsn: str
    memory: FileMemory
    chance: random.Random
    local: MadeLocal = field(default_factory=MadeLocal)
    changes: int = 0
    names: list[str] = field(default_factory=lambda: [f"f{n}" for n in range(8)])

    def change(self) -> None:
        """Let a file grow, be rewritten or be forgotten, or its rows come to another end."""
        self.changes += 1
        name = self.chance.choice(self.names)
        kept = self.local.contents.get(name.encode().ljust(16, b"."))
        frames = [made for made in kept.frames if made.start >= 0 and made.data] if kept else []
        what = self.chance.choice(["append", "append", "append", "rewrite", "copies", "forget"])
        if what == "forget" and kept:
            self.local.forget(name)
            self.names[self.names.index(name)] = f"f{8 + self.changes}"
            self.local.keep("sessions", *self.sessions())
            return
        if what == "rewrite":
            frames = []
        if what == "copies" and frames:
            last = frames.pop()
            rows = [says(m[0], f"flipped {self.changes}", is_copy=1) for m in last.rows["messages"]]
            frames.append(frame(last.start, last.data, messages=rows))
        for _ in range(self.chance.randrange(1, 6)):
            start = frames[-1].start + 100 if frames else 0
            rows = [says(start + n, f"{name} {self.changes} {n} " * 3) for n in range(30)]
            frames.append(frame(start, self.chance.randbytes(600), messages=rows))
        self.local.put(name, frames, session_key=name)
        self.local.keep("sessions", *self.sessions())

    def sessions(self) -> list[tuple[object, ...]]:
        """One session a file."""
        names = [key.decode().rstrip(".") for key in self.local.contents]
        return [row("sessions", source_no=1, session_key=name, title=name) for name in names]

    def push(self) -> Report:
        """Push as a process of its own does: it reads what is remembered, and connects."""
        with connect(self.dsn) as connection:
            memory = self.memory.load()
            return push(Server(connection), self.local, memory, limits=SMALL)

    def assert_equal(self) -> None:
        """Push until the end; the server then has what is here, and another push does nothing."""
        self.push()
        with connect(self.dsn) as connection:
            assert on_server(connection, self.memory.uuid) == expected(self.local)
        assert self.push().calls == 0


@pytest.fixture
def machine(own_database: str, tmp_path: Path) -> Callable[[int], Machine]:
    """Makes machines; each has a seed."""
    return lambda seed: Machine(
        own_database, FileMemory(path=tmp_path / f"{seed}.push"), random.Random(seed)
    )


def usual_time(machine: Machine) -> float:
    """How long a push takes: the time in which to interrupt others like it."""
    for _ in range(6):
        machine.change()
    started = time.monotonic()
    machine.push()
    return time.monotonic() - started


def cut_connections(own: Own) -> None:
    """End the connections to the databases of tests: to the server, or to a node and its own."""
    for node in own.servers:
        with connect(node.conninfo) as connection:
            connection.execute(
                "select pg_terminate_backend(pid::int) from pg_stat_activity"
                " where datname like 'f%%' and pid <> pg_backend_pid()"
            )


def test_a_machine_may_be_killed_at_any_moment(machine: Callable[[int], Machine], own: Own) -> None:
    """Some of the times, a server dies at once, or all connections break."""
    one, other = machine(1), machine(2)
    usual, kills = usual_time(one), 0
    usual_time(other)
    while kills < times(12, 4):
        for each in (one, other):
            for _ in range(3):
                each.change()
            child = Child(each.push)
            child.is_done_within(each.chance.random() * usual)
            also = each.chance.random()
            if also < 0.05:
                own.stop(crash=True)
            elif also < 0.1:
                cut_connections(own)
            kills += child.kill()
            own.start()
            if each.chance.random() < 0.3:
                each.assert_equal()
    one.assert_equal()
    other.assert_equal()


def test_the_server_may_crash_at_any_moment(machine: Callable[[int], Machine], own: Own) -> None:
    one = machine(3)
    usual, cut = usual_time(one), 0
    while cut < times(4):
        for _ in range(3):
            one.change()
        child = Child(one.push)
        child.is_done_within(one.chance.random() * usual)
        own.stop(crash=True)
        cut += "FleetError" in str(child.result())
        own.start()
    one.assert_equal()


def test_a_connection_may_be_cut_at_any_moment(machine: Callable[[int], Machine], own: Own) -> None:
    one = machine(4)
    usual, cut = usual_time(one), 0
    while cut < times(6):
        for _ in range(3):
            one.change()
        child = Child(one.push)
        child.is_done_within(one.chance.random() * usual)
        cut_connections(own)
        cut += "FleetError" in str(child.result())
    one.assert_equal()


@pytest.mark.parametrize("lost", ["files", "push", "forget", "register"])
def test_a_lost_answer_does_no_harm(
    lost: str, machine: Callable[[int], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is made, and its answer never comes."""
    one = machine(5)
    if lost != "register":
        one.change()
        one.assert_equal()
        one.change()
    one.local.put("gone", [frame(0, b"gone")])
    if lost == "forget":
        one.push()
        one.local.forget("gone")
    original = getattr(Server, lost)

    def without_answer(self: Server, *arguments: Any) -> None:
        original(self, *arguments)
        raise FleetError("The connection to the server broke")

    with monkeypatch.context() as patched:
        patched.setattr(Server, lost, without_answer)
        with pytest.raises(FleetError, match="broke"):
            one.push()
    one.assert_equal()


def test_a_call_that_arrives_twice_applies_once(
    machine: Callable[[int], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, refused = machine(6), 0
    original = Server.push

    def twice(self: Server, *arguments: Any) -> Any:
        nonlocal refused
        answer = original(self, *arguments)
        again = original(self, *arguments)
        refused += not again.applied
        assert (again.version, again.nonce) == (answer.version, answer.nonce)
        return answer

    monkeypatch.setattr(Server, "push", twice)
    for _ in range(6):
        one.change()
    one.assert_equal()
    assert refused


def test_two_pushes_of_one_machine_at_once_end_well(
    machine: Callable[[int], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two calls of one push, another one of the same machine runs as a whole."""
    one = machine(7)
    for _ in range(6):
        one.change()
    original, others = Server.push, 0

    def with_another_between(self: Server, *arguments: Any) -> Any:
        nonlocal others
        if not others:
            others += 1
            monkeypatch.setattr(Server, "push", original)
            one.change()
            one.push()
            monkeypatch.setattr(Server, "push", with_another_between)
        return original(self, *arguments)

    monkeypatch.setattr(Server, "push", with_another_between)
    one.push()
    assert others
    one.assert_equal()


@pytest.mark.parametrize("late", ["files", "push", "forget"])
def test_what_came_too_late_is_sent_again(
    late: str, machine: Callable[[int], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the call arrives, another one of this machine raises the version."""
    one, original, others = machine(12), getattr(Server, late), 0
    one.local.put("gone", [frame(0, b"gone", messages=[says(0, "gone")])])
    one.push()
    one.local.forget("gone")
    for _ in range(3):
        one.change()

    def after_another(self: Server, origin_id: int, *arguments: Any) -> Any:
        nonlocal others
        if not others:
            others += 1
            self.adopt(origin_id, one.memory.db_uuid, one.memory.nonces[-1])
        return original(self, origin_id, *arguments)

    monkeypatch.setattr(Server, late, after_another)
    one.assert_equal()
    assert others


def test_a_server_that_is_restored_from_a_backup_gets_what_it_lacks(
    machine: Callable[[int], Machine], own: Own, tmp_path: Path
) -> None:
    one = machine(8)
    for _ in range(6):
        one.change()
    one.push()
    own.stop()
    own.save()
    own.start()
    for _ in range(6):
        one.change()
    one.push()
    own.stop()
    own.restore()
    own.start()
    one.assert_equal()


def test_a_server_that_was_made_anew_gets_everything(
    machine: Callable[[int], Machine], own: Own
) -> None:
    one = machine(13)
    for _ in range(3):
        one.change()
    one.assert_equal()
    with connect(one.dsn) as connection:
        connection.execute("drop schema assoc_rows, assoc_read, assoc cascade")
        with pytest.raises(FleetError, match="remote init"):
            one.push()
        server.migrate(connection, distributed=isinstance(own, OwnNodes))
    one.assert_equal()


def test_a_forgotten_file_is_gone_even_if_the_push_is_killed_behind_it(
    machine: Callable[[int], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = machine(9)
    for _ in range(6):
        one.change()
    one.local.put("secret", [frame(0, b"secret", messages=[says(0, "the secret")])])
    one.push()
    one.local.forget("secret")
    one.change()
    with monkeypatch.context() as patched:
        patched.setattr(Server, "frames", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            one.push()
    with connect(one.dsn) as connection:
        found = connection.execute("select count(*) from assoc.messages where text = 'the secret'")
        assert found.fetchone() == (0,)
    one.assert_equal()


def test_a_machine_that_lost_its_memory_of_pushes_is_a_new_one(
    machine: Callable[[int], Machine],
) -> None:
    one = machine(10)
    one.change()
    one.push()
    again = machine(11)
    again.local = one.local
    again.assert_equal()

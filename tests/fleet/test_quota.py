"""The machines of a login store as much as its owner allows, and can always delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support import nodes
from tests.support.fleet import MadeLocal, MadeMemory, frame, pushed, row, says, seen
from tests.support.shell import Shell
from tests.support.transcripts import Transcript

from assoc_ingest.errors import FleetError, NotFoundError, QuotaError, UsageError
from assoc_ingest.fleet import devices
from assoc_ingest.fleet.push import Limits, push
from assoc_ingest.fleet.server import Server
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.citus


def file_of(size: int, text: str) -> list[Any]:
    return [frame(0, Random(text).randbytes(size), messages=[says(0, text)])]


def test_a_push_beyond_the_limit_is_refused_whole_and_deletions_work(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device")
    devices.set_quota(database, device.info.user, 300_000)
    local, memory = MadeLocal(), MadeMemory()
    local.put("a", file_of(100_000, "first"))
    local.keep("sessions", row("sessions", source_no=1, session_key="s", title="titled"))
    push(Server(device), local, memory)
    local.put("b", file_of(250_000, "second"))
    local.keep("sessions")
    for _ in range(2):
        with pytest.raises(QuotaError, match=r"may not store more .*MB"):
            push(Server(device), local, memory)
        assert seen(database) == ["first"]
        for table in ("files", "frames where start = 0"):
            (count,) = database.execute(f"select count(*) from assoc.{table}").fetchone()
            assert count == 1
    local.forget("a")
    local.put("c", file_of(250_000, "third"))
    with pytest.raises(QuotaError):
        push(Server(device), local, memory)
    assert seen(database) == []
    assert database.execute("select title from assoc.sessions").fetchall() == []
    devices.set_quota(database, device.info.user, None)
    push(Server(device), local, memory)
    assert seen(database) == ["second", "third"]


def test_a_file_of_which_only_a_part_fits_is_not_there(
    login: Callable[..., Any], database: Any
) -> None:
    """Its stretches are sent in several calls, of which the last is refused."""
    device = login("device")
    devices.set_quota(database, device.info.user, 350_000)
    local, memory = MadeLocal(), MadeMemory()
    local.put("a", file_of(100_000, "fits"))
    parts = [
        frame(n * 100_000, Random(n).randbytes(100_000), messages=[says(n * 100_000, f"part {n}")])
        for n in range(3)
    ]
    local.put("b", parts)
    with pytest.raises(QuotaError):
        push(Server(device), local, memory, limits=Limits(size=50_000))
    assert seen(database) == ["fits"]
    assert database.execute("select count(*) from assoc.files").fetchone() == (1,)


def test_what_is_replaced_does_not_count_twice(login: Callable[..., Any], database: Any) -> None:
    device = login("device")
    devices.set_quota(database, device.info.user, 300_000)
    local, memory = MadeLocal(), MadeMemory()
    for number in range(8):
        local.put("a", file_of(100_000, f"said {number}"))
        push(Server(device), local, memory)
    assert seen(database) == ["said 7"]


def test_a_limit_counts_all_machines_of_a_login_and_what_was_there_before(
    login: Callable[..., Any], database: Any
) -> None:
    device, other = login("device"), login("other")
    for connection in (device, other):
        local = MadeLocal()
        local.put("a", file_of(200_000, "before"))
        push(Server(connection), local, MadeMemory())
    devices.set_quota(database, device.info.user, 300_000)
    local, memory = MadeLocal(), MadeMemory()
    local.put("a", file_of(200_000, "second machine"))
    with pytest.raises(QuotaError):
        push(Server(device), local, memory)
    push(Server(other), local, MadeMemory())
    (found,) = devices.quotas(database)
    assert (found.login, found.most) == (device.info.user, 300_000)
    assert 200_000 < found.stored < 210_000
    assert devices.quotas(database, other.info.user)[0].most is None


def test_a_machine_has_a_limit_of_its_own_within_that_of_its_login(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device")
    local, memory, other = MadeLocal(), MadeMemory("build-1"), MadeMemory("build-2")
    local.put("a", file_of(100_000, "before"))
    for machine in (memory, other):
        push(Server(device), local, machine)
    devices.set_quota(database, "build-1", 150_000, of_machine=True)
    devices.set_quota(database, device.info.user, 400_000)
    local.put("b", file_of(100_000, "after"))
    with pytest.raises(QuotaError, match=r"this machine: 0\.2 of 0\.2 MB"):
        push(Server(device), local, memory)
    push(Server(device), local, other)
    local.put("c", file_of(150_000, "too much"))
    with pytest.raises(QuotaError, match=rf"the login {device.info.user}: 0\.5 of 0\.4 MB"):
        push(Server(device), local, other)
    assert Server(device).room(memory.uuid) == 150_000
    assert 290_000 < (Server(device).room(other.uuid) or 0) < 300_000
    of_login, of_machine = devices.quotas(database)
    assert (of_login.label, of_login.most) == (None, 400_000)
    assert (of_machine.label, of_machine.most) == ("build-1", 150_000)
    assert 300_000 < of_login.stored < 310_000
    assert 100_000 < of_machine.stored < 105_000
    used = {device.label: device.quota_used or 0 for device in devices.devices(database)}
    assert used == pytest.approx({"build-1": 0.76, "build-2": 0.76}, abs=0.02)
    devices.set_quota(database, device.info.user, None)
    push(Server(device), local, other)
    devices.set_quota(database, "build-1", None, of_machine=True)
    assert database.execute("select count(*) from assoc.stored").fetchone() == (0,)
    push(Server(device), local, memory)
    assert devices.quotas(database) == []


def test_machines_of_a_login_cannot_use_the_same_room_at_once(
    login: Callable[..., Any], database: Any, empty_database: str
) -> None:
    psycopg = pytest.importorskip("psycopg")
    if nodes.given():
        pytest.skip("a worker is not told how long the connection waits")
    first = login("device")
    name = first.info.user
    devices.set_quota(database, name, 300_000)
    local, memory, other = MadeLocal(), MadeMemory(), MadeMemory()
    for machine in (memory, other):
        push(Server(first), local, machine)
    local.put("a", file_of(200_000, "said"))
    with psycopg.connect(empty_database, user=name, autocommit=True) as second:
        second.execute("set lock_timeout = '300ms'")
        with first.transaction():
            push(Server(first), local, memory)
            with pytest.raises(FleetError, match="holds a lock"):
                push(Server(second), local, other)
        with pytest.raises(QuotaError):
            push(Server(second), local, other)


def test_rows_count_as_well_as_bytes(login: Callable[..., Any], database: Any) -> None:
    device = login("device")
    devices.set_quota(database, device.info.user, 100_000)
    local = MadeLocal()
    letters = Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=300_000)
    local.put("a", [frame(0, b"", messages=[says(0, "".join(letters))])])
    with pytest.raises(QuotaError):
        push(Server(device), local, MadeMemory())


def test_no_login_changes_its_limit(login: Callable[..., Any], database: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    device = login("device", reads=True)
    pushed(device)
    devices.set_quota(database, device.info.user, 10)
    with pytest.raises(FleetError, match="may not do that"):
        devices.set_quota(device, device.info.user, None)
    for attempt in (
        "update assoc.logins set most_bytes = null",
        "delete from assoc.stored",
        "select assoc.stored_bytes(1)",
        "select assoc.check_quota(1, -1000000)",
        "update assoc.origins set most_bytes = null",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            device.execute(attempt)


_SIZES = {"500": 500, "1.5 kB": 1500, "2GB": 2 * 10**9, "3 mb": 3 * 10**6, "1TB": 10**12}


@pytest.mark.parametrize(("text", "wanted"), _SIZES.items())
def test_a_size_is_read(text: str, wanted: int) -> None:
    assert devices.bytes_of(text) == wanted


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 XB", "1e9", "٣GB", "1GB2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        devices.bytes_of(text)


def test_a_limit_of_nobody_is_told(database: Any) -> None:
    with pytest.raises(NotFoundError, match="no login 'x'"):
        devices.set_quota(database, "x", 1)


def test_a_machine_is_told_before_it_sends_anything(
    database: Any, empty_database: str, login: Callable[..., Any],
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from psycopg.conninfo import make_conninfo

    name = login("laptop").info.user
    monkeypatch.setenv("ASSOC_INGEST_DB", str(tmp_path / "a.db"))
    shell, to = Shell(tmp_path / "a.db", capsys), ("--to", empty_database)
    said = Transcript(
        tmp_path / "home", "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e300", "/srv/lake", "-srv-lake"
    )
    said.say(Random(1).randbytes(40_000).hex(), 1)
    sync(shell.database, [tmp_path / "home"])
    assert shell("remote", "quota", *to) == 0
    assert "There is no limit" in shell.err
    assert shell("remote", "quota", name, "20kB", *to) == 0, shell.err
    assert shell.out.splitlines()[-1].split() == [name, "0", "bytes", "20.0", "kB"]
    destination = make_conninfo(empty_database, user=name)
    assert shell("remote", "init", destination) == 0, shell.err
    assert shell("remote", "allow", "--all-projects") == 0
    assert shell("push") == 6
    assert "Nothing was sent" in shell.err
    assert database.execute("select count(*) from assoc.files").fetchone() == (0,)
    assert shell("remote", "quota", name, "none", *to) == 0
    assert shell("push") == 0, shell.err

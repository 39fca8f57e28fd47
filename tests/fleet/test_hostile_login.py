"""A login stores nothing that its limit does not count, and holds up nobody else."""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_bytes
from typing import Any
from uuid import uuid4

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, frame, on_server, pushed, row, says, seen

from assoc_ingest.errors import BusyError, FleetError, QuotaError
from assoc_ingest.fleet import deletion, devices, server
from assoc_ingest.fleet.projection import KEYED, PLACED
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Known, SentStretch, Server, as_json_bytes

_LIMIT = "2026-06-01T00:00:00.000Z"


def known_to(connection: Any, memory: MadeMemory) -> Known:
    known = Server(connection).hello(memory.uuid)
    assert known is not None
    return known


def stretch(file_no: int, *, rows_digest: bytes = b"") -> SentStretch:
    return SentStretch(file_no, 0, 0, None, 1, b"bytes", b"", rows_digest)


# -- what it can store ---------------------------------------------------------------------------


def test_deletions_of_files_that_were_never_there_are_limited(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device")
    memory = pushed(device)
    before = "select count(*) from assoc.deleted_files"
    for _ in range(3):
        known = known_to(device, memory)
        now = (known.origin_id, known.version, known.nonce)
        Server(device).forget(*now, [token_bytes(16) for _ in range(6_000)])
        Server(device).forget(*now, [token_bytes(1_000)])
    assert database.execute(before).fetchone() == (6_000,)
    now = known_to(device, memory)[:3]
    Server(device).forget(*now, [b"a".ljust(16, b"."), *(token_bytes(16) for _ in range(6_000))])
    assert database.execute(before).fetchone() == (6_001,)
    assert seen(database) == []


def test_deletions_count(login: Callable[..., Any], database: Any) -> None:
    device = login("device")
    memory = pushed(device)
    (before,) = devices.quotas(database, device.info.user)
    known = known_to(device, memory)
    Server(device).forget(*known[:3], [token_bytes(16) for _ in range(1_000)])
    (after,) = devices.quotas(database, device.info.user)
    assert after.stored - before.stored > 40_000


def test_digests_count(login: Callable[..., Any], database: Any) -> None:
    device = login("device")
    memory = pushed(device)
    devices.set_quota(database, device.info.user, 100_000)
    known = known_to(device, memory)
    with pytest.raises(QuotaError):
        Server(device).push(
            *known[:3], b"[]", [stretch(1, rows_digest=token_bytes(200_000))], {}, {}
        )


def test_rows_belong_to_a_file_and_go_with_it(login: Callable[..., Any], database: Any) -> None:
    device = login("device")
    memory = pushed(device)
    known = known_to(device, memory)
    with pytest.raises(FleetError, match="of no file"):
        Server(device).push(*known[:3], b"[]", [stretch(1), stretch(99)], {}, {})
    rows = [
        {"file_no": number, "byte_offset": 0, "block": 0, "text": f"of {number}"}
        for number in (1, 99)
    ]
    sent = {"messages": as_json_bytes(rows)}
    assert Server(device).push(*known[:3], b"[]", [stretch(1)], sent, {}).applied
    assert seen(database) == ["of 1"]


def test_nothing_of_a_removed_machine_stays(login: Callable[..., Any], database: Any) -> None:
    """Not even rows of no file, which an older version let a login write."""
    device = login("device")
    local, memory = MadeLocal(), MadeMemory()
    local.put("a", [frame(0, b"bytes", messages=[says(0, "said")])])
    local.keep("sessions", row("sessions", source_no=1, session_key="s", title="titled"))
    push(Server(device), local, memory)
    database.execute("update assoc.messages set file_no = 99; update assoc.frames set file_no = 98")
    deletion.remove_origin(database, deletion.origin_named(database, memory.label))
    there = on_server(database, memory.uuid)
    assert {name: rows for name, rows in there.items() if rows} == {}
    for table in ("frames", *(table.name for table in (*PLACED, *KEYED))):
        assert database.execute(f"select count(*) from assoc.{table}").fetchone() == (0,), table


def test_reindexes_leave_one_nonce(login: Callable[..., Any]) -> None:
    device = login("device")
    memory = pushed(device)
    for _ in range(5):
        Server(device).reindex(known_to(device, memory).origin_id, str(uuid4()))
    assert known_to(device, memory).reindexed_after == memory.nonces
    push(Server(device), MadeLocal(), memory)


@pytest.mark.parametrize(
    "label", ["a" * 64, "6f1c2a90-5a3b-4c1e-9d55-0c4b7e21f3a8",
              "removed-6f1c2a90-5a3b-4c1e-9d55-0c4b7e21f3a8"]
)  # fmt: skip
def test_a_label_is_short_and_none_that_stands_for_another_machine(
    login: Callable[..., Any], label: str
) -> None:
    """Else the machine with this uuid could not be removed, or another would be in its place."""
    device = login("device")
    with pytest.raises(FleetError, match="A label has at most 63 letters"):
        Server(device).register(str(uuid4()), label, str(uuid4()), str(uuid4()))
    Server(device).register(str(uuid4()), label[:20], str(uuid4()), str(uuid4()))


# -- whom it can hold up -------------------------------------------------------------------------


@pytest.fixture
def hostile(login: Callable[..., Any]) -> Any:
    """A login that pushed and then changed its own machine, in a transaction that stays open."""
    connection = login("hostile", reads=True)
    memory = pushed(connection, "of hostile")
    connection.execute(
        "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0; begin"
    )
    known = known_to(connection, memory)
    Server(connection).fence(known.origin_id, str(uuid4()))
    return connection


def test_other_machines_push_and_register(login: Callable[..., Any], hostile: Any) -> None:
    device = login("device")
    hostile.execute(
        "select pg_advisory_lock(hashtextextended('assoc origins ' || %s, 0))", (device.info.user,)
    )
    device.execute("set lock_timeout = '2s'")
    local, memory = MadeLocal(), MadeMemory()
    for text in ("first", "second"):
        local.put("a", [frame(0, text.encode(), messages=[says(0, text)])])
        push(Server(device), local, memory)


def test_a_machine_of_another_login_cannot_be_locked(
    login: Callable[..., Any], database: Any
) -> None:
    device, other = login("device"), login("other")
    origin = known_to(device, pushed(device)).origin_id
    with database.transaction():
        database.execute("select from assoc.origin_states for update")
        other.execute("set lock_timeout = '300ms'")
        with pytest.raises(FleetError, match="another login"):
            Server(other).fence(origin, str(uuid4()))


def test_an_owner_is_told_who_holds_a_machine(
    login: Callable[..., Any], database: Any, hostile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE", 1)
    name = hostile.info.user
    is_named = pytest.raises(BusyError, match=f"used by {name} .*pg_terminate_backend")
    with is_named, server.patient(database):
        devices.set_quota(database, name, 1_000_000)
    hostile.execute("rollback")
    with server.patient(database):
        devices.set_quota(database, name, 1_000_000)

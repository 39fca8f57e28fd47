"""An administrator is told what is wrong with the server and what to do; what was deleted can be
erased from its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, frame, pushed, row, says, seen
from tests.support.nodes import Own
from tests.support.shell import Shell

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import administration, deletion, devices
from assoc_ingest.fleet import health as checks
from assoc_ingest.fleet.connect import connect
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Server

pytestmark = pytest.mark.citus

# -- health --------------------------------------------------------------------------------------


def checked(connection: Any) -> dict[str, checks.Check]:
    return {check.name: check for check in checks.health(connection)}


def wrong(connection: Any) -> set[str]:
    """The names of what is wrong, on whichever node."""
    found = {name for name, check in checked(connection).items() if check.is_ok is False}
    return {name.partition(" on ")[0] for name in found}


@pytest.fixture
def healthy(database: Any) -> Any:
    """A server with its text index; the settings of tests are not those of a real server."""
    administration.make_text_index(database)
    return database


_OF_TESTS = {"settings"}


def test_a_server_that_lacks_nothing_is_well(healthy: Any) -> None:
    assert wrong(healthy) == _OF_TESTS
    assert "fsync" in checked(healthy)["settings"].found


def test_what_is_wrong_is_named_with_what_to_do(healthy: Any, login: Callable[..., Any]) -> None:
    administration.drop_text_index(healthy)
    healthy.execute("delete from assoc.schema_version where name like 'code-%'")
    healthy.execute(
        "update pg_index set indisvalid = false"
        " where indexrelid = 'assoc.messages_session'::regclass"
    )
    found = checked(healthy)
    assert wrong(healthy) == _OF_TESTS | {"text index", "schema", "other indexes"}
    assert "remote index" in str(found["text index"].advice)
    assert "remote migrate" in str(found["schema"].advice)
    assert "messages_session" in found["other indexes"].found


def test_a_limit_that_is_nearly_reached_and_what_it_does_not_count_are_told(
    healthy: Any, login: Callable[..., Any]
) -> None:
    assert checked(healthy)["quotas"].found == "none is set"
    device = login("device")
    memory = pushed(device)
    devices.set_quota(healthy, device.info.user, 10_000_000)
    assert checked(healthy)["quotas"].found == "1 machine, none above 90 %"
    (quota,) = devices.quotas(healthy)
    devices.set_quota(healthy, memory.label, quota.stored + 10, of_machine=True)
    found = checked(healthy)
    assert found["quotas"].is_ok is False
    assert found["quotas"].found.startswith(f"{memory.label} 9")
    assert "temporary tables" in found["quota rights"].found
    assert "large objects" in found["quota rights"].found
    for statement in str(found["quota rights"].advice).rpartition(": ")[2].split("; "):
        healthy.execute(statement)
    assert checked(healthy)["quota rights"].found == "count everything"
    psycopg = pytest.importorskip("psycopg")
    for attempt in (
        "create temporary table mine (text text)",
        "select lo_create(0)",
        "select lo_creat(-1)",
        "select lo_from_bytea(0, 'x')",
        "create table public.mine (text text)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            device.execute(attempt)


def test_an_open_transaction_and_full_counters_are_told(
    healthy: Any, login: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = login("device")
    pushed(device)
    monkeypatch.setattr(checks, "_LONGEST", -1)
    monkeypatch.setattr(checks, "_OLDEST_AGE", 0)
    monkeypatch.setattr(checks, "_CONNECTIONS_SHARE", 0)
    device.execute("begin")
    found = checked(healthy)
    assert {"longest transaction", "age", "connections"} <= wrong(healthy)
    assert device.info.user in found["longest transaction"].found
    assert "pg_terminate_backend(" in str(found["longest transaction"].advice)


def test_the_pending_list_is_shown_where_it_can_be(healthy: Any) -> None:
    assert checked(healthy)["pending list"].is_ok is None
    try:
        healthy.execute("create extension pgstattuple")
    except Exception:
        pytest.skip("this server has no pgstattuple")
    assert checked(healthy)["pending list"].found == "0 bytes"


def test_a_database_without_a_fleet_is_told(own: Own) -> None:
    with (
        connect(own.new_database("without_fleet")) as connection,
        pytest.raises(FleetError, match="has not been set up"),
    ):
        checks.health(connection)


def test_a_login_without_rights_sees_what_it_may(healthy: Any, login: Callable[..., Any]) -> None:
    found = checked(login("device"))
    assert found["longest transaction"].is_ok is None
    assert found["schema"].is_ok


def test_the_command_fails_when_something_is_wrong(
    healthy: Any, empty_database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shell = Shell(tmp_path / "none.db", capsys)
    to = ("--to", empty_database, "--db", str(shell.database))
    assert shell("remote", "health", *to) == 1
    assert "WRONG  settings" in shell.out
    monkeypatch.setattr(checks, "_settings", lambda connection: iter(()))
    assert shell("remote", "health", *to) == 0
    assert "WRONG" not in shell.out
    found = shell.json("remote", "health", "--json", *to)
    assert isinstance(found, dict)
    assert found["is_ok"]
    assert {check["name"] for check in found["checks"]} >= {"size", "schema", "age"}


# -- erase ---------------------------------------------------------------------------------------


_TEXT = "zqxvjkpw"
_TITLE = "wvutsrqz"
_BYTES = bytes(range(200, 250))


def files_with(own: Own, wanted: bytes) -> list[str]:
    """The files of tables, indexes and catalogs that contain these bytes, of all nodes."""
    return sorted(
        str(path.relative_to(node.data))
        for node in own.servers
        for part in ("base", "global")
        for path in (node.data / part).rglob("*")
        if path.is_file() and wanted in path.read_bytes()
    )


def write_files(own: Own, database: str) -> None:
    """Let each node write to its files what it has in memory."""
    for node in own.servers:
        with connect(node.dsn(database)) as connection:
            connection.execute("vacuum")
            connection.execute("checkpoint")


def test_what_was_forgotten_is_in_no_file_of_the_server_after_erase(
    own: Own, own_database: str
) -> None:
    with connect(own_database) as connection:
        name = connection.info.dbname
        administration.make_text_index(connection)
        local, memory = MadeLocal(), MadeMemory()
        kept = [frame(0, b"kept", messages=[says(0, "kept")])]
        local.put("kept", kept, session_key="kept")
        told = [says(n, _TEXT, session_key="s") for n in range(3)]
        plans = [row("plans", row_no=n, name=_TITLE) for n in range(3)]
        local.put("gone", [frame(0, _BYTES, messages=told, plans=plans)])
        titled = [row("sessions", source_no=1, session_key=f"s{n}", title=_TITLE) for n in range(3)]
        local.keep("sessions", *titled)
        push(Server(connection), local, memory)
        connection.execute("analyze")
        local.forget("gone")
        local.keep("sessions")
        push(Server(connection), local, memory)
        assert seen(connection) == ["kept"]
        write_files(own, name)
        for wanted in (_TEXT.encode(), _TITLE.encode(), _BYTES):
            assert files_with(own, wanted) != []
        (statistics,) = connection.execute("select pg_relation_filepath('pg_statistic')").fetchone()
        assert statistics in files_with(own, _TITLE.encode())
        done = deletion.erase(connection)
        assert done.is_whole
        write_files(own, name)
        for wanted in (_TEXT.encode(), _TITLE.encode(), _BYTES):
            assert files_with(own, wanted) == []
        assert seen(connection) == ["kept"]
        assert administration.has_text_index(connection)
        for name in ("sessions", "plans"):
            assert connection.execute(f"select from assoc.{name}").fetchall() == []
        assert push(Server(connection), local, memory, is_full=True).rows == 0


def test_what_an_open_transaction_may_see_is_not_said_to_be_erased(
    login: Callable[..., Any], database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "_PATIENCE", 1)
    pushed(login("device"))
    reader = login("reader", reads=True)
    reader.execute("begin isolation level repeatable read; select count(*) from assoc.messages")
    database.execute("delete from assoc.messages; delete from assoc.files")
    done = deletion.erase(database)
    assert "assoc.messages" in done.locked
    assert not done.is_whole
    assert "assoc.files" in done.visible
    reader.execute("rollback")
    assert deletion.erase(database).is_whole


def test_only_the_owner_erases(login: Callable[..., Any]) -> None:
    with pytest.raises(FleetError, match="Only the owner"):
        deletion.erase(login("device", reads=True))


def test_an_owner_erases_statistics_too(
    empty_database: str, database: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(tmp_path / "none.db", capsys)
    to = ("--to", empty_database, "--db", str(shell.database))
    assert shell("remote", "erase", "--yes", *to) == 0, shell.err
    assert "Rewrote" in shell.err
    assert "Not reached: write-ahead log" in shell.err

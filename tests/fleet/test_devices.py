"""An administrator sees every machine, and can remove a login or all that a machine pushed; nobody
else can."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import MadeLocal, MadeMemory, frame, pushed, row, says, seen
from tests.support.machines import Fleet, demo
from tests.support.nodes import Own, OwnNodes
from tests.support.shell import Shell

from assoc_ingest.errors import FleetError, NotFoundError, UsageError
from assoc_ingest.fleet import deletion, devices
from assoc_ingest.fleet.connect import connect
from assoc_ingest.fleet.projection import KEYED, PLACED
from assoc_ingest.fleet.push import push
from assoc_ingest.fleet.server import Server, migrate
from assoc_ingest.store.database import open_reader

pytestmark = pytest.mark.citus

_ALL = (*(table.name for table in (*PLACED, *KEYED)), "frames", "files")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs the program beside a database that is not there."""
    return Shell(tmp_path / "none.db", capsys)


def rows_of(connection: Any, label: str) -> dict[str, int]:
    """How many rows a machine has in each table, without those that have none."""
    counts = {
        name: connection.execute(
            f"select count(*) from assoc.{name} t join assoc.origins o using (origin_id)"
            " where o.label = %s",
            (label,),
        ).fetchone()[0]
        for name in _ALL
    }
    return {name: count for name, count in counts.items() if count}


def named(connection: Any) -> list[tuple[str | None, str | None]]:
    return [(device.label, device.login) for device in devices.devices(connection)]


# -- the list ------------------------------------------------------------------------------------


def test_a_machine_is_listed_with_what_it_pushed(login: Callable[..., Any], database: Any) -> None:
    device = login("laptop", team="red")
    local, memory = MadeLocal(), MadeMemory(label="laptop")
    issue = row("issues", reason="not JSON", byte_length=3)
    local.put("a", [frame(0, b"bytes", messages=[says(0, "x")], issues=[issue])], size=900)
    source = row("sources", source_no=1, kind="claude", root="/h")
    names = [column for column in KEYED[0].names]
    source = tuple(
        "2026-01-20T10:00:00.000Z" if name == "last_synced_at" else value
        for name, value in zip(names, source, strict=True)
    )
    local.keep("sources", source)
    push(Server(device), local, memory)
    (found,) = devices.devices(database)
    (now,) = database.execute("select extract(epoch from now())::float8").fetchone()
    assert (found.label, found.login, found.team) == ("laptop", device.info.user, "red")
    assert (found.files, found.bytes, found.stored_bytes, found.errors) == (1, 900, 5, 1)
    assert found.can_login
    assert found.since_push is not None
    assert 0 <= found.since_push < 60
    assert found.synced_at is not None
    assert found.lag is not None
    assert abs(now - found.synced_at.timestamp() - found.lag) < 60
    assert found.synced_at.timestamp() == 1768903200


def test_who_sees_which_machines(login: Callable[..., Any], database: Any) -> None:
    red, blue = login("red", team="red"), login("blue", team="blue")
    pushed(red)
    pushed(blue)
    reader = login("reader", pushes=False, reads=True, team="red")
    idle = login("idle")
    everybody = {red.info.user, blue.info.user, reader.info.user, idle.info.user}
    assert {found for _, found in named(database)} == everybody
    assert [found for _, found in named(red)] == [red.info.user]
    assert {found for _, found in named(reader)} == {red.info.user, reader.info.user}
    assert named(idle) == [(None, idle.info.user)]


# -- removing a login ----------------------------------------------------------------------------


def test_a_removed_login_is_cut_off_at_once(login: Callable[..., Any], database: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    device, other = login("device", reads=True), login("other")
    pushed(device)
    pushed(other, "of the other")
    name, dsn = device.info.user, device.info.dsn
    device.execute("begin; select 1")
    done = devices.remove_login(database, name)
    assert (done.connections, done.is_dropped, len(done.labels)) == (1, True, 1)
    with pytest.raises(psycopg.OperationalError):
        device.execute("select 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn)
    assert seen(database) == ["of the other", "said here"]
    pushed(other, "still here")
    (found,) = [found for found in devices.devices(database) if found.login == name]
    assert not found.can_login
    assert devices.remove_login(database, name).connections == 0


def test_a_login_that_owns_something_keeps_its_role_and_no_right(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device")
    name = device.info.user
    database.execute(f"create table public.own (); alter table public.own owner to {name}")
    assert not devices.remove_login(database, name).is_dropped
    (can_login, rights) = database.execute(
        "select rolcanlogin, (select count(*) from pg_auth_members where member = r.oid)"
        " from pg_roles r where rolname = %s",
        (name,),
    ).fetchone()
    assert (can_login, rights) == (False, 0)


def test_only_logins_of_machines_are_removed_or_changed(
    login: Callable[..., Any], database: Any
) -> None:
    login("device")
    for name in ("postgres", "assoc_device", "nobody", ""):
        with pytest.raises(NotFoundError, match="no login"):
            devices.remove_login(database, name)
    for name in ("postgres", "assoc_reader", "pg_monitor"):
        with pytest.raises(UsageError, match="role of an administrator"):
            devices.add_login(database, name, pushes=True, reads=False)
    database.execute("insert into assoc.logins (role_name) values ('postgres')")
    with pytest.raises(UsageError, match="role of an administrator"):
        devices.remove_login(database, "postgres")


_ODD = ['Größe "x"', "a'; drop schema assoc cascade; --", "tab.%s {0} $1", "SELECT", "日本"]


@pytest.mark.parametrize("name", _ODD)
def test_a_login_with_odd_letters_is_made_and_removed(
    login: Callable[..., Any], database: Any, name: str
) -> None:
    device = login(name)
    pushed(device)
    found = device.info.user
    assert found.startswith(name)
    assert devices.remove_login(database, found).is_dropped
    assert seen(database) == ["said here"]


@pytest.mark.parametrize("name", ["", "a:b", "a\\b", "a\nb", "x" * 64, "ü" * 32])
def test_a_name_that_no_login_can_have_is_refused(database: Any, name: str) -> None:
    with pytest.raises(UsageError, match="name of a login"):
        devices.add_login(database, name, pushes=True, reads=False)


def test_an_owner_without_other_rights_can_remove_a_login(
    own: Own,
) -> None:
    """As in the documentation: a login that may create roles, and owns the database."""
    import psycopg
    from psycopg.conninfo import make_conninfo

    dsn, owner, device = own.new_database("owned"), "owner", "device"
    with connect(dsn) as superuser:
        superuser.execute(f"create role {owner} login createrole")
        superuser.execute(f"alter database owned owner to {owner}")
    with connect(make_conninfo(dsn, user=owner)) as connection:
        migrate(connection, distributed=isinstance(own, OwnNodes))
        password = devices.add_login(connection, device, pushes=True, reads=False)
        as_device = make_conninfo(dsn, user=device, password=password)
        with psycopg.connect(as_device, autocommit=True) as other:
            pushed(other)
            done = devices.remove_login(connection, device)
            assert (done.connections, done.is_dropped) == (1, True)
            assert deletion.erase(connection).is_whole
            with pytest.raises(psycopg.OperationalError):
                other.execute("select 1")


# -- removing what a machine pushed --------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path, empty_database: str, database: Any) -> Fleet:
    """A server, and machines that push to it as its owner."""
    return Fleet(tmp_path, empty_database, database)


def test_a_removed_machine_leaves_nothing_and_others_keep_theirs(
    fleet: Fleet, tmp_path: Path, database: Any
) -> None:
    homes = demo(tmp_path / "homes")
    laptop, tower = fleet.machine("laptop"), fleet.machine("tower")
    laptop.push(*homes)
    tower.push(*homes)
    before = rows_of(database, "tower")
    assert rows_of(database, "laptop") == before
    assert {"messages", "sessions", "frames", "notes"} - before.keys() <= {"notes"}
    origin = deletion.origin_named(database, "laptop")
    deleted = deletion.remove_origin(database, origin)
    assert deleted == origin.size != deletion.Deleted()
    left = database.execute("select origin_id from assoc.origins where label = 'tower'").fetchone()
    for name in _ALL:
        rows = database.execute(f"select distinct origin_id from assoc.{name}").fetchall()
        assert rows in ([left], [])
    assert rows_of(database, "tower") == before
    assert [found.label for found in devices.devices(database)] == ["tower"]
    originals = "select count(*) from messages where copy_of is null"
    with closing(fleet.central()) as central, closing(open_reader(tower.database)) as local:
        assert tuple(central.execute(originals).fetchone()) == tuple(
            local.execute(originals).fetchone()
        )
    with pytest.raises(NotFoundError, match="it has: tower"):
        deletion.origin_named(database, "laptop")
    with pytest.raises(FleetError, match=r"removed this machine.*remote new-origin"):
        laptop.push_all()
    another = fleet.machine("laptop")  # the label is free
    another.push(*homes)
    assert rows_of(database, "laptop") == before


def test_a_removal_that_was_interrupted_goes_on(
    fleet: Fleet, tmp_path: Path, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.machine("laptop").push(*demo(tmp_path / "homes"))
    monkeypatch.setattr(deletion, "_FILES_AT_ONCE", 2)
    delete, calls = deletion._delete, []

    def interrupted(*arguments: Any) -> None:
        calls.append(arguments)
        delete(*arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(deletion, "_delete", interrupted)
    origin = deletion.origin_named(database, "laptop")
    with pytest.raises(KeyboardInterrupt):
        deletion.remove_origin(database, origin)
    half = deletion.origin_named(database, "laptop")
    assert half.size.files == origin.size.files - 2
    assert [(found.label, found.login) for found in devices.devices(database)] == [("laptop", None)]
    deletion.remove_origin(database, half)
    assert [name for name in _ALL if database.execute(f"select from assoc.{name}").fetchone()] == []
    (count,) = database.execute("select count(*) from assoc.deleted_files").fetchone()
    assert count == origin.size.files


def test_who_pulled_a_machine_removes_what_was_removed(
    fleet: Fleet, tmp_path: Path, database: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSOC_INGEST_REMOTE", fleet.destination)
    fleet.machine("laptop").push(*demo(tmp_path / "homes"))
    mine = str(tmp_path / "mine.db")
    pulled = shell.json("pull", "--db", mine, "--json")
    assert isinstance(pulled, dict)
    assert pulled["files"] > 0
    to = ("--to", fleet.destination, "--db", mine)
    assert shell("remote", "remove-origin", "laptop", "--yes", *to) == 0, shell.err
    (deleted,) = database.execute("select count(*) from assoc.deleted_files").fetchone()
    assert f"Deleted {deleted} files" in shell.err
    again = shell.json("pull", "--db", mine, "--json")
    assert isinstance(again, dict)
    assert (again["removed"], again["files"], again["hidden"]) == (pulled["files"], 0, 0)


def test_bytes_alone_can_be_removed(fleet: Fleet, tmp_path: Path, database: Any) -> None:
    laptop = fleet.machine("laptop")
    laptop.push(*demo(tmp_path / "homes"))
    before = rows_of(database, "laptop")
    deletion.remove_bytes(database, deletion.origin_named(database, "laptop"))
    assert rows_of(database, "laptop") == before
    (found,) = devices.devices(database)
    assert (found.stored_bytes, found.files) == (0, before["files"])
    laptop.push_all()
    assert devices.devices(database)[0].stored_bytes == 0  # it does not send them again


def test_no_device_or_reader_can_remove_anything(login: Callable[..., Any], database: Any) -> None:
    """Each is refused by the server, whatever the client does."""
    psycopg = pytest.importorskip("psycopg")
    victim = login("victim")
    label = pushed(victim).label
    for other in (login("device"), login("reader", reads=True), victim):
        with pytest.raises(FleetError, match="may not do that"):
            deletion.remove_origin(other, deletion.Origin(1, label, "", deletion.Deleted()))
        with pytest.raises(FleetError, match="may not do that"):
            devices.remove_login(other, victim.info.user)
        if other is not victim:
            with pytest.raises(FleetError, match="may not do that"):
                devices.add_login(other, victim.info.user, pushes=True, reads=True)
        for attempt in (
            "update assoc.origins set role_name = session_user",
            "insert into assoc.labels values ('x', session_user)",
            "update assoc.logins set team = 'red'",
            "delete from assoc.frames",
            "alter table assoc.origins disable row level security",
            f'drop role "{victim.info.user}"',
            f'alter role "{victim.info.user}" password null superuser',
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(attempt)
    assert seen(database) == ["said here"]


@pytest.mark.parametrize("label", ["x' or 1=1 --", "%", "removed-", '"', "a\x1b[31m"])
def test_a_label_is_never_part_of_a_statement(
    login: Callable[..., Any], database: Any, shell: Shell, empty_database: str, label: str
) -> None:
    pushed(login("device"))
    to = ("--to", empty_database, "--db", str(shell.database))
    assert shell("remote", "remove-origin", label, "--yes", *to) == 1
    assert "The server has no machine" in shell.err
    assert "\x1b" not in shell.err
    assert seen(database) == ["said here"]


def test_the_commands_say_what_they_did(
    login: Callable[..., Any], database: Any, shell: Shell, empty_database: str
) -> None:
    device = login("device")
    memory, name = pushed(device), device.info.user
    to = ("--to", empty_database, "--db", str(shell.database))
    assert shell("remote", "devices", *to) == 0
    header, _, line = shell.out.splitlines()
    assert header.split()[:2] == ["Label", "Login"]
    assert line.startswith(memory.label[:8])
    assert f"  {name}  " in line
    found = shell.json("remote", "devices", "--json", *to)
    assert isinstance(found, dict)
    assert found["devices"][0]["login"] == name
    assert shell("remote", "remove-device", name, "--yes", *to) == 0, shell.err
    assert "ended 1 connection" in shell.err
    assert f"What {memory.label} pushed stays" in shell.err
    assert shell("remote", "devices", *to) == 0
    assert f"{name} (can" in shell.out
    assert shell("remote", "remove-device", name, "--data", "--yes", *to) == 0, shell.err
    assert f"Deleted 1 file of {memory.label}" in shell.err
    assert shell("remote", "devices", *to) == 0
    assert "no machine" in shell.err
    assert shell("remote", "remove-device", name, "--yes", *to) == 1

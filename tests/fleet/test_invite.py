"""A new machine is set up with one line, which has no password; nobody else takes its label, and no
login holds up the owner for good."""

from __future__ import annotations

import io
import os
import shlex
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from tests.support.fleet import pushed, seen
from tests.support.nodes import Own
from tests.support.shell import Shell
from tests.support.transcripts import Transcript

from assoc_ingest.errors import BusyError, FleetError, NothingAllowedError, UsageError
from assoc_ingest.fleet import devices, passwords, server
from assoc_ingest.fleet.connect import PASSWORD_FILE, connect
from assoc_ingest.fleet.push import Report, watch
from assoc_ingest.fleet.server import Server
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.citus


@pytest.fixture
def asking(own: Own, own_database: str) -> str:
    """A database of a server that asks for passwords, but not the owner."""
    rules = "local all postgres trust\nlocal all all scram-sha-256\n"
    (own.servers[0].data / "pg_hba.conf").write_text(rules)
    with connect(own_database) as connection:
        connection.execute("select pg_reload_conf()")
    return own_database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    said = Transcript(home, "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301", "/srv/lake", "-srv-lake")
    said.say("about the lake", 1)
    return home


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PGPASSFILE", PASSWORD_FILE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSOC_INGEST_DB", str(tmp_path / "a.db"))
    return Shell(tmp_path / "a.db", capsys)


def types(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))


def invited(shell: Shell, asking: str, label: str, *options: str) -> tuple[list[str], str]:
    """Invite a machine; return the words of the second command of its line, and the password."""
    assert shell("remote", "invite", label, *options, "--to", asking) == 0, shell.err
    line, password = shell.out.splitlines()
    assert password not in line
    first, _, second = line.partition(" && ")
    assert first == "assoc-ingest sync"
    return shlex.split(second)[1:], password


def test_a_machine_is_set_up_with_the_line(
    asking: str, shell: Shell, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync(shell.database, [home])
    (tmp_path / ".pgpass").write_text("*:*:*:somebody:else\n")
    (tmp_path / ".pgpass").chmod(0o644)
    label = f"laptop-{uuid4().hex[:6]}"
    words, password = invited(shell, asking, label, "--reader")
    assert words[-1] == "--service"
    types(monkeypatch, "wrong")
    assert shell(*words[:-1]) == 6
    assert "refused this login" in shell.err
    assert (tmp_path / ".pgpass").read_text() == "*:*:*:somebody:else\n"
    for _ in range(2):  # repeated, it does the same
        types(monkeypatch, password)
        assert shell(*words[:-1], "--allow", "/srv/lake") == 0, shell.err
        assert password not in shell.out + shell.err
        first, second = (tmp_path / ".pgpass").read_text().splitlines()
        assert first.endswith(f":{label}:{password}")
        assert second == "*:*:*:somebody:else"
        assert stat.S_IMODE((tmp_path / ".pgpass").stat().st_mode) == 0o600
    assert shell("push") == 0, shell.err
    assert shell("search", "--remote", "lake") == 0, shell.err
    found = shell.json("remote", "devices", "--json")
    assert isinstance(found, dict)
    assert [(one["label"], one["login"]) for one in found["devices"]] == [(label, label)]
    _, another = invited(shell, asking, label)
    assert another != password
    assert shell("push") == 6


def test_a_password_goes_into_the_file_that_the_environment_names(
    asking: str, shell: Shell, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync(shell.database, [home])
    words, password = invited(shell, asking, f"m-{uuid4().hex[:6]}", "--all-projects")
    monkeypatch.setenv(PASSWORD_FILE, str(tmp_path / "kept" / "password"))
    types(monkeypatch, password)
    assert shell(*words[:-1]) == 0, shell.err
    file = tmp_path / "kept" / "password"
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (f"{password}\n", 0o600)
    assert not (tmp_path / ".pgpass").exists()
    assert shell("push") == 0, shell.err


def test_a_line_ends_where_something_is_wrong(
    asking: str, shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    types(monkeypatch, "x")
    assert shell("remote", "join", asking) == 4  # nothing was synced
    sync(shell.database, [home])
    assert shell("remote", "join", "postgresql://a:b@c/d") == 2
    assert shell("remote", "join", asking, "--allow", "/nowhere") == 1
    types(monkeypatch, "")
    assert shell("remote", "join", asking) == 2
    assert "A password" in shell.err


_PLACES = [
    (("a", "db.example.org", 5432, "fleet"), "postgresql://a@db.example.org/fleet"),
    (("a@b/ü", "::1", 6000, "x y"), "postgresql://a%40b%2F%C3%BC@[::1]:6000/x%20y"),
    (("a", "/run/a b", 5432, "f"), "postgresql://a@/f?host=/run/a%20b"),
]


@pytest.mark.parametrize(("given", "wanted"), _PLACES)
def test_a_destination_is_what_libpq_reads(given: tuple[Any, ...], wanted: str) -> None:
    conninfo = pytest.importorskip("psycopg.conninfo")
    assert passwords.url(*given) == wanted
    read = conninfo.conninfo_to_dict(wanted)
    assert (read["user"], read["host"], read["dbname"]) == (given[0], given[1], given[3])


# -- labels --------------------------------------------------------------------------------------


def test_an_invited_label_is_taken_by_no_other_login(
    login: Callable[..., Any], database: Any
) -> None:
    other = login("other")
    name = f"invited_{uuid4().hex[:6]}"
    try:
        devices.invite(database, "laptop", name, reads=False, team=None)
        with pytest.raises(FleetError, match="choose another one"):
            Server(other).register(str(uuid4()), "laptop", str(uuid4()), str(uuid4()))
        with pytest.raises(UsageError, match=f"belongs to the login {name}"):
            devices.invite(database, "laptop", other.info.user, reads=False, team=None)
        devices.remove_login(database, name)  # it never pushed, so the label is free
        Server(other).register(str(uuid4()), "laptop", str(uuid4()), str(uuid4()))
    finally:
        database.execute(f"drop role if exists {name}")


@pytest.mark.parametrize("label", ["", "-x", "a b", "a/b", "a'b", "ü", "x" * 64, "a\n"])
def test_a_label_that_no_machine_can_have_is_refused(database: Any, label: str) -> None:
    with pytest.raises(UsageError, match="A label has at most"):
        devices.invite(database, label, "someone", reads=False, team=None)


# -- who holds up the owner ----------------------------------------------------------------------


@pytest.fixture
def outdated(database: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that has something to migrate, and an owner in a hurry."""
    monkeypatch.setattr(server, "_PATIENCE", 1)
    database.execute("delete from assoc.schema_version where name like 'code-%'")
    return database


@pytest.mark.slow
@pytest.mark.parametrize("holds", ["lock", "transaction"])
def test_a_login_that_holds_up_a_migration_is_named_and_can_be_cut_off(
    login: Callable[..., Any], outdated: Any, holds: str
) -> None:
    psycopg = pytest.importorskip("psycopg")
    pushed(login("device"))
    hostile = login("hostile", reads=True)
    hostile.execute("set idle_in_transaction_session_timeout = 0; set statement_timeout = 0")
    if holds == "lock":
        hostile.execute("select pg_advisory_lock(%s)", (server._LOCK,))
    else:
        hostile.execute("begin; select * from assoc.messages")
    with pytest.raises(BusyError, match=f"{hostile.info.user} .*--force"):
        server.migrate(outdated)
    assert devices.migrate_by_force(outdated)
    with pytest.raises(psycopg.OperationalError):
        hostile.execute("select 1")
    assert seen(outdated) == ["said here"]


def test_an_owner_in_the_list_of_logins_is_not_cut_off(database: Any) -> None:
    database.execute("insert into assoc.logins (role_name) values (current_user)")
    assert devices._logins(database) == []


# -- the service ---------------------------------------------------------------------------------


def test_a_watch_waits_until_something_is_allowed(tmp_path: Path) -> None:
    stop, reports, said = Event(), list[Report](), list[str]()
    outcomes: list[Any] = [NothingAllowedError("Nothing may leave."), Report(calls=1)]

    def push() -> Report:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        stop.set()
        return outcome

    watch(tmp_path / "a.db", stop, push, reports.append, said.append, pause=0, first_retry=0)
    assert said == ["Nothing may leave. Trying again."]
    assert len(reports) == 1


def test_nobody_else_reads_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert passwords._password_file() == tmp_path / ".pgpass"
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "other"))
    assert passwords._password_file() == tmp_path / "other"
    (tmp_path / "other").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=PASSWORD_FILE):
        passwords._lines(tmp_path / "other")
    assert PASSWORD_FILE not in os.environ

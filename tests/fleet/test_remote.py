"""Two machines and a server, as a person sets them up: commands say what they did and what is next,
and nothing leaves before a project is named."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from time import time
from typing import Any

import pytest
from tests.support.hostile import EVIL
from tests.support.postgres import Postgres
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.test_every_command import harmful_in, hostile, touched_by

from assoc_ingest.errors import BusyError, DatabaseIOError, FleetError, UsageError
from assoc_ingest.fleet import administration
from assoc_ingest.fleet.administration import push_all
from assoc_ingest.fleet.push import Report, watch
from assoc_ingest.fleet.state import push_lock
from assoc_ingest.sync.run import sync

__all__ = ["hostile"]  # a fixture

GARDEN = "/srv/garden"
LAKE = "/srv/lake"


@pytest.fixture
def homes(tmp_path: Path) -> Path:
    """A home with a conversation in each of two projects."""
    home = tmp_path / "home"
    for number, path in enumerate((GARDEN, LAKE)):
        said = Transcript(
            home, f"5e1f0c9a-3b72-4d18-9c44-70a2d6b8e30{number}", path, path.replace("/", "-")
        )
        said.say(f"about {path}", 1)
        said.bash(2, "ls", "roses")
    return home


@pytest.fixture
def machine(
    homes: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    """A machine whose database is synced."""
    sync(tmp_path / "a.db", [homes])
    monkeypatch.setenv("ASSOC_INGEST_DB", str(tmp_path / "a.db"))
    return Shell(tmp_path / "a.db", capsys)


def allow(machine: Shell, *paths: str) -> None:
    """Let projects leave the machine, all without paths."""
    assert machine("remote", "allow", *(paths or ["--all-projects"])) == 0, machine.err


def lose(machine: Shell) -> None:
    """Delete the database, but not what the machine remembers of its pushes."""
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        machine.database.with_name(name).unlink(missing_ok=True)


def made_anew(machine: Shell, home: Path) -> None:
    """Sync a new database, with a name of its own: those of tests are copies of one."""
    sync(machine.database, [home])
    with closing(sqlite3.connect(machine.database)) as connection, connection:
        connection.execute("update identity set database_key = randomblob(16)")


def texts(database: str) -> set[str]:
    """What people said, as the server has it."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(database) as connection:
        rows = connection.execute("select text from assoc.messages where kind = 'prompt'")
        return {text for (text,) in rows}


def titles(database: str) -> set[str]:
    """The titles of sessions that the server has."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(database) as connection:
        return {title for (title,) in connection.execute("select title from assoc.sessions")}


def test_nothing_leaves_before_a_project_is_named(machine: Shell, empty_database: str) -> None:
    assert machine("push") == 2
    assert "remote init" in machine.err
    assert machine("remote", "init", empty_database, "--label", "laptop") == 0
    assert "Nothing was sent" in machine.err
    assert machine("push") == 2
    assert "remote allow" in machine.err
    assert texts(empty_database) == set()
    allow(machine, GARDEN)
    dry = json.loads(_json(machine, "push", "--dry-run"))
    assert [part["path"] for part in dry["projects"]] == [GARDEN]
    assert texts(empty_database) == set()
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}"}
    assert titles(empty_database) == {f"about {GARDEN}"}
    assert machine("push") == 0
    assert "is up to date" in machine.err
    allow(machine)
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}


def test_what_a_machine_remembers_is_private(machine: Shell, empty_database: str) -> None:
    machine("remote", "init", empty_database)
    state = machine.database.with_name("a.db.push")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert machine("remote", "init", "postgresql://me:secret@host/db") == 2
    assert "secret" not in machine.err + state.read_text()


def test_status_says_what_is_where(machine: Shell, empty_database: str, homes: Path) -> None:
    machine("remote", "init", empty_database, "--label", "laptop")
    assert machine("remote", "status") == 0
    assert "nothing yet" in machine.out
    allow(machine)
    machine("push")
    assert machine("remote", "status") == 0
    assert "2 files, up to date" in machine.out
    assert "no text index yet" in machine.out
    assert machine("remote", "index") == 0
    assert machine("remote", "status") == 0
    assert "index" not in machine.out
    (homes / "projects/-srv-lake").rename(homes.parent / "elsewhere")
    assert machine("sync", str(homes)) == 0
    assert machine("prune", "--gone", "--yes") == 0, machine.err
    status = machine.json("remote", "status", "--json")
    assert isinstance(status, dict)
    assert (status["files"], status["gone"], status["is_current"]) == (2, 1, False)
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}
    assert machine("remote", "prune", "--yes") == 0
    assert texts(empty_database) == {f"about {GARDEN}"}
    assert titles(empty_database) == {f"about {GARDEN}"}
    assert machine("remote", "status") == 0
    assert "1 file, up to date" in machine.out


def test_what_is_forgotten_here_is_deleted_there(machine: Shell, empty_database: str) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    machine("push")
    assert machine("forget", "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301", "--yes") == 0, machine.err
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}"}
    assert titles(empty_database) == {f"about {GARDEN}"}


def test_a_pull_does_not_bring_back_what_was_forgotten_or_pruned_here(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    machine("push")
    assert machine("forget", "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301", "--yes") == 0, machine.err
    (homes / "projects/-srv-garden").rename(homes.parent / "elsewhere")
    assert machine("sync", str(homes)) == 0
    assert machine("prune", "--gone", "--yes") == 0, machine.err
    assert machine("pull") == 0, machine.err
    assert "Skipped 2 files of this machine" in machine.err
    with closing(sqlite3.connect(machine.database)) as connection:
        assert connection.execute("select count(*) from messages").fetchone() == (0,)


def test_a_project_can_be_withdrawn(machine: Shell, empty_database: str) -> None:
    machine("remote", "init", empty_database)
    allow(machine, GARDEN, LAKE)
    machine("push")
    assert machine("remote", "withdraw", LAKE, "--yes") == 0, machine.err
    assert "Deleted 1 file on" in machine.err
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}"}
    assert titles(empty_database) == {f"about {GARDEN}"}
    assert machine("remote", "withdraw", "/srv/nowhere") == 1
    allow(machine)
    assert machine("remote", "withdraw", GARDEN) == 2
    assert "forget" in machine.err


def test_a_project_that_was_pruned_here_can_be_withdrawn(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    psycopg = pytest.importorskip("psycopg")
    machine("remote", "init", empty_database)
    allow(machine, GARDEN, LAKE)
    machine("push")
    with psycopg.connect(empty_database) as connection:  # as agents do that keep files by date
        connection.execute("update assoc.files set project_source_no = null, project_key = null")
    (homes / "projects/-srv-lake").rename(homes.parent / "elsewhere")
    assert machine("sync", str(homes)) == 0
    assert machine("prune", "--gone", "--yes") == 0, machine.err
    with closing(sqlite3.connect(machine.database)) as connection, connection:
        connection.execute("delete from projects where path = ?", (LAKE,))
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}
    assert machine("remote", "withdraw", LAKE, "--yes") == 0, machine.err
    assert "Deleted 1 file on" in machine.err
    assert texts(empty_database) == {f"about {GARDEN}"}
    assert LAKE not in json.loads(machine.database.with_name("a.db.push").read_text())["allowed"]


def test_what_was_allowed_is_taken_back(machine: Shell, empty_database: str, homes: Path) -> None:
    machine("remote", "init", empty_database)
    allow(machine, GARDEN)
    allow(machine)
    machine("push")
    assert machine("remote", "disallow") == 2
    assert machine("remote", "disallow", GARDEN) == 2
    assert "--all-projects" in machine.err
    assert machine("remote", "disallow", "--all-projects") == 0
    assert machine.out == f"{GARDEN}\n"
    assert "remote withdraw" in machine.err
    for path, number in ((GARDEN, 0), (LAKE, 1)):
        Transcript(
            homes, f"5e1f0c9a-3b72-4d18-9c44-70a2d6b8e30{number}", path, path.replace("/", "-")
        ).say(f"more of {path}", 9)
    sync(machine.database, [homes])
    assert machine("push") == 0
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}", f"more of {GARDEN}"}
    assert machine("remote", "disallow", f"{GARDEN}/") == 0
    assert machine("remote", "disallow", GARDEN) == 1
    assert machine("push") == 2
    assert machine("remote", "withdraw", GARDEN, "--yes") == 0, machine.err
    assert texts(empty_database) == {f"about {LAKE}"}


def test_a_new_database_goes_on_where_the_lost_one_was(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    machine("push")
    lose(machine)
    machine.database.with_name("a.db.push").unlink()
    (homes / "projects/-srv-lake").rename(homes.parent / "elsewhere")
    Transcript(homes, "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e300", GARDEN, "-srv-garden").say("more", 9)
    made_anew(machine, homes)
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    assert machine("remote", "adopt", "--yes") == 0, machine.err
    assert "Recognised 1 file." in machine.err
    assert machine("push") == 0
    status = machine.json("remote", "status", "--json")
    assert isinstance(status, dict)
    assert (status["files"], status["gone"], status["is_current"]) == (2, 1, True)
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}", "more"}


def test_a_database_made_anew_beside_what_was_remembered_asks_to_adopt(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    machine("push")
    lose(machine)
    made_anew(machine, homes)
    assert machine("push") == 6
    assert "remote adopt" in machine.err
    assert machine("remote", "adopt", "--yes") == 0
    assert machine("push") == 0
    assert json.loads(_json(machine, "push"))["rows"] == 0


def test_a_database_made_anew_deletes_nothing_on_the_server(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine, GARDEN, LAKE)
    machine("push")
    lose(machine)
    (homes / "projects/-srv-lake").rename(homes.parent / "elsewhere")
    made_anew(machine, homes)
    assert machine("remote", "prune", "--yes") == 2
    assert "push" in machine.err
    assert machine("remote", "withdraw", GARDEN, "--yes") == 6
    assert "remote adopt" in machine.err
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}


def test_a_database_restored_from_a_backup_deletes_nothing_before_a_push(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    (homes / "projects/-srv-lake").rename(tmp_path / "elsewhere")
    lose(machine)
    sync(machine.database, [homes])
    shutil.copy(machine.database, tmp_path / "backup")
    (tmp_path / "elsewhere").rename(homes / "projects/-srv-lake")
    sync(machine.database, [homes])
    machine("push")
    lose(machine)
    shutil.copy(tmp_path / "backup", machine.database)
    assert machine("remote", "prune", "--yes") == 2
    assert "backup" in machine.err
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}
    assert machine("push") == 0
    assert machine("remote", "prune", "--yes") == 0
    assert texts(empty_database) == {f"about {GARDEN}"}


def test_a_restored_database_that_adopts_has_nothing_twice_on_the_server(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    shutil.copy(machine.database, tmp_path / "backup")
    Transcript(homes, "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e302", GARDEN, "-srv-garden").say("new", 9)
    sync(machine.database, [homes])
    machine("push")
    lose(machine)
    shutil.copy(tmp_path / "backup", machine.database)
    sync(machine.database, [homes])
    assert machine("remote", "adopt", "--yes") == 0, machine.err
    assert machine("push") == 0, machine.err
    assert json.loads(_json(machine, "remote", "status"))["files"] == 3


@pytest.mark.parametrize("is_remembered", [True, False])
def test_what_was_pulled_before_does_not_hinder_an_adoption(
    machine: Shell, empty_database: str, homes: Path, *, is_remembered: bool
) -> None:
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    machine("push")
    lose(machine)
    if not is_remembered:
        machine.database.with_name("a.db.push").unlink()
    (homes / "projects/-srv-lake").rename(homes.parent / "elsewhere")
    made_anew(machine, homes)
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    assert machine("pull") == 0, machine.err
    assert machine("remote", "adopt", "laptop", "--yes") == 0, machine.err
    assert "Recognised 1 file." in machine.err
    assert machine("push") == 0, machine.err
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}
    with closing(sqlite3.connect(machine.database)) as connection:
        found = connection.execute("select text from messages where kind = 'prompt' order by text")
        only_pulled = [] if is_remembered else [(f"about {LAKE}",)]
        assert found.fetchall() == [(f"about {GARDEN}",), *only_pulled]


def test_a_path_that_came_back_is_adopted_as_what_it_is_now(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    psycopg = pytest.importorskip("psycopg")
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    said = Transcript(homes, transcript.stem, LAKE, "-srv-lake")
    said.bash(5, "ls", "w" * 1024)  # all generations begin alike
    said.bash(7, "ls", "tulips")
    sync(machine.database, [homes])
    older = transcript.read_bytes()
    for name in ("away", "away as well"):
        transcript.rename(homes.parent / name)
        sync(machine.database, [homes])
        transcript.write_bytes(older.replace(b"tulips", name.encode()))
        sync(machine.database, [homes])
    machine("remote", "init", empty_database)
    allow(machine)
    machine("push")
    lose(machine)
    made_anew(machine, homes)
    with psycopg.connect(empty_database) as connection:
        keys = [
            key
            for (key,) in connection.execute(
                "select file_key from assoc.files where path like '%lake%' order by generation"
            )
        ]
    assert machine("remote", "adopt", "--yes") == 0, machine.err
    assert "Recognised 2 files." in machine.err
    with closing(sqlite3.connect(machine.database)) as connection:
        found = connection.execute("select file_key from files where path like '%lake%'")
        assert found.fetchall() == [(keys[-1],)]
    assert len(keys) == 3
    assert machine("push") == 0, machine.err


def _json(machine: Shell, *arguments: str) -> str:
    assert machine(*arguments, "--json") == 0
    return machine.out


def test_a_copy_of_a_machine_becomes_another_one(
    machine: Shell, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    machine("push")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob("a.db*"):
        shutil.copy(path, copy)
    Transcript(
        tmp_path / "home", "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e300", GARDEN, "-srv-garden"
    ).say("on", 9)
    sync(machine.database, [tmp_path / "home"])
    machine("push")
    other = ("--db", str(copy / "a.db"))
    assert machine("push", *other) == 6
    assert "remote new-origin" in machine.err
    assert machine("remote", "new-origin", "--label", "laptop", "--yes", *other) == 2
    assert "another name" in machine.err
    assert machine("remote", "new-origin", "--label", "desktop", "--yes", *other) == 0
    assert machine("push", *other) == 0
    assert machine("push") == 0
    files = len(list((tmp_path / "home").rglob("*.jsonl")))
    for place, count in (("third.db", 2 * files), ("a.db", files), ("copy/a.db", files)):
        database = str(tmp_path / place)
        monkeypatch.setenv("ASSOC_INGEST_REMOTE", empty_database)
        assert machine("pull", "--db", database) == 0, machine.err
        assert f"Fetched {count} files" in machine.err
        assert machine("pull", "--db", database) == 0, machine.err
        assert "Fetched 0 files" in machine.err


def test_machines_that_name_their_files_alike_can_be_pulled(
    machine: Shell, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    machine("remote", "init", empty_database, "--label", "laptop")
    allow(machine)
    machine("push")
    monkeypatch.setenv("ASSOC_INGEST_REMOTE", empty_database)
    with psycopg.connect(empty_database) as connection:  # what an earlier version let copies do
        for table in ("origins", "origin_states", "sources", "files", "frames"):
            connection.execute(
                f"create temp table twin as select * from assoc.{table};"
                " update twin set origin_id = 99"
                + (", uuid = gen_random_uuid(), label = 'copy';" if table == "origins" else ";")
                + f" insert into assoc.{table} select * from twin; drop table twin"
            )
    for found in ("Fetched 4 files", "Fetched 0 files"):
        assert machine("pull", "--db", str(tmp_path / "third.db")) == 0, machine.err
        assert found in machine.err


def test_a_device_sets_itself_up_with_its_own_login(
    machine: Shell, empty_database: str, postgres: Postgres, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    psycopg = pytest.importorskip("psycopg")
    machine("remote", "init", empty_database)
    name = f"laptop_{os.getpid()}"
    assert machine("remote", "add-device", name, "--to", empty_database) == 0, machine.err
    line = machine.out.strip()
    assert line.split(":")[3] == name
    (tmp_path / "pgpass").write_text(f"{line}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    with psycopg.connect(empty_database) as connection:
        destination = postgres.dsn(connection.info.dbname, name)
    machine.database.with_name("a.db.push").unlink()
    assert machine("remote", "init", destination) == 0, machine.err
    assert "Set up" not in machine.err
    allow(machine)
    assert machine("push") == 0, machine.err
    assert machine("remote", "migrate") == 0
    assert machine("remote", "index") == 6
    with psycopg.connect(empty_database) as connection:
        connection.execute(f"drop owned by {name}; drop role {name}")


def test_two_pushes_at_once_are_refused(machine: Shell, empty_database: str) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    with push_lock(machine.database):
        assert machine("push") == 3
        with pytest.raises(BusyError):
            push_all(machine.database)


@pytest.mark.slow
def test_what_is_remembered_does_not_change_during_a_push(
    machine: Shell, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.fleet.state.PATIENCE", 0)
    machine("remote", "init", empty_database)
    state = machine.database.with_name("a.db.push")
    before = state.read_text()
    with push_lock(machine.database):
        assert machine("remote", "allow", GARDEN) == 3
        assert machine("remote", "init", empty_database) == 3
        assert machine("remote", "allow") == 0
    assert state.read_text() == before
    assert machine("remote", "allow", GARDEN) == 0


def test_a_machine_that_pushed_keeps_its_label(machine: Shell, empty_database: str) -> None:
    assert machine("remote", "init", empty_database, "--label", "laptop") == 0
    assert machine("remote", "init", empty_database, "--label", "tower") == 0
    allow(machine)
    machine("push")
    assert machine("remote", "init", empty_database, "--label", "tower") == 0
    assert machine("remote", "init", empty_database, "--label", "laptop") == 2
    assert "as tower" in machine.err
    assert json.loads(_json(machine, "remote", "status"))["label"] == "tower"


def test_a_server_by_another_name_goes_on_and_another_server_begins_anew(
    machine: Shell, empty_database: str, postgres: Postgres
) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(empty_database, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(
            f"create database {name}_b template template0 encoding 'UTF8' locale 'C'"
        )
    machine("remote", "init", empty_database)
    allow(machine)
    machine("push")
    again = f"{empty_database} application_name=again"
    assert machine("remote", "init", again) == 0, machine.err
    assert machine("push") == 0, machine.err
    assert "is up to date" in machine.err
    assert machine("remote", "init", postgres.dsn(f"{name}_b")) == 0, machine.err
    assert machine("push") == 0, machine.err
    assert texts(postgres.dsn(f"{name}_b")) == {f"about {GARDEN}", f"about {LAKE}"}
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(f"drop database {name}_b with (force)")


def test_a_watch_pushes_after_each_change_and_after_errors(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    stop, reports, complaints = Event(), list[Report](), list[str]()
    outcomes: list[Callable[[], Any]] = [
        lambda: _fail("one"), lambda: _fail("one"), lambda: _fail("two"), lambda: Report(calls=1),
        lambda: Report(calls=2),
    ]  # fmt: skip

    def push() -> Report:
        found: Report = outcomes.pop(0)()
        database.write_bytes(b"x" * len(outcomes))
        if not outcomes:
            stop.set()
        return found

    watch(database, stop, push, reports.append, complaints.append, pause=0.0, first_retry=0.0)
    assert [report.calls for report in reports] == [1, 2]
    assert complaints == ["one Trying again.", "two Trying again."]


def _fail(words: str) -> None:
    raise FleetError(words)


def test_a_watch_outlives_what_passes_and_ends_with_what_does_not(tmp_path: Path) -> None:
    stop, complaints = Event(), list[str]()
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
    errors: list[Exception] = [busy, DatabaseIOError("The disk failed.")]

    def push() -> Report:
        if errors:
            raise errors.pop(0)
        stop.set()
        return Report()

    def run() -> None:
        (tmp_path / "a.db").write_bytes(b"x")
        watch(
            *(tmp_path / "a.db", stop, push, lambda _: None, complaints.append),
            pause=0.0,
            first_retry=0.0,
        )

    run()
    assert ["locked" in complaints[0], complaints[1:]] == [True, ["The disk failed. Trying again."]]
    stop.clear()
    for ending in (UsageError("Not set up."), sqlite3.ProgrammingError("a bug")):
        errors.append(ending)
        with pytest.raises(type(ending)):
            run()


def test_the_variable_of_readers_does_not_change_where_a_push_goes(
    machine: Shell, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    before = machine.database.with_name("a.db.push").read_text()
    monkeypatch.setenv("ASSOC_INGEST_REMOTE", "host=/nowhere dbname=other")
    assert machine("push") == 0, machine.err
    assert texts(empty_database) == {f"about {GARDEN}", f"about {LAKE}"}
    after = machine.database.with_name("a.db.push").read_text()
    assert json.loads(after)["destination"] == json.loads(before)["destination"]


def test_without_the_library_the_command_says_how_to_install_it(
    machine: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    assert machine("remote", "init", "postgresql://host/db") == 2
    assert "assoc-ingest[fleet]" in machine.err
    with pytest.raises(UsageError, match=r"\[fleet\]"):
        __import__("assoc_ingest.fleet.connect", fromlist=["connect"]).connect("host=h")


@pytest.mark.slow
def test_what_machines_and_a_server_say_is_printed_harmlessly(
    hostile: Path,
    homes: Path,
    empty_database: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every name and text is hostile; in the end also the label of a machine on the server."""
    psycopg = pytest.importorskip("psycopg")
    shell = Shell(tmp_path / "a.db", capsys)
    sync(shell.database, [hostile])
    said: dict[str, str] = {}

    def run(*words: str, expected: tuple[int, ...] = (0, 1)) -> None:
        monkeypatch.setenv("ASSOC_INGEST_DB", str(shell.database))
        assert shell(*words) in expected, (words, shell.err)
        said[" ".join(words)] = shell.out + shell.err

    run("remote", "init", empty_database, "--label", EVIL, expected=(2,))
    run("remote", "init", empty_database)
    run("remote", "allow", EVIL, expected=(2,))
    run("remote", "allow", "--all-projects")
    run("push", "--dry-run")
    run("push", "--dry-run", "--json")
    run("push")
    run("remote", "index")
    run("remote", "status")
    run("remote", "disallow", EVIL, expected=(1, 2))
    run("remote", "withdraw", EVIL, expected=(1, 2))
    with psycopg.connect(empty_database) as connection:
        connection.execute("alter table assoc.origins drop constraint origins_label_plain")
        connection.execute("update assoc.origins set label = %s", [EVIL])
    shell = Shell(tmp_path / "b.db", capsys)
    sync(shell.database, [homes])
    run("remote", "init", empty_database, "--label", "desktop")
    for words in ("red", EVIL, f"nowhere{EVIL}"):
        run("search", "--remote", words)
        run("search", "--remote", "--json", words)
    run("search", "--remote", "red", "--origin", EVIL, expected=(0, 1, 2))
    for report in ("usage_by_session", "open_tasks", "errors_by_tool", EVIL):
        run("query", "--remote", report, expected=(0, 1, 2))
    for command in ("pull", "remote status", "remote reindex", "remote prune", "remote adopt"):
        named = [EVIL] if command.endswith(("reindex", "adopt")) else []
        run(*command.split(), *named, expected=(0, 1, 2, 4, 6))
    assert sum("OWNED" in text for text in said.values()) > 5
    assert {line: found for line, text in said.items() if (found := harmful_in(text))} == {}
    assert touched_by("\n".join(said.values()), tmp_path) == []


@pytest.mark.parametrize(("seconds", "told"), [(7200, "120 min ahead of"), (-600, "10 min behind")])
def test_a_wrong_clock_is_told(
    machine: Shell, empty_database: str, monkeypatch: pytest.MonkeyPatch, seconds: int, told: str
) -> None:
    assert machine("remote", "init", empty_database) == 0, machine.err
    assert machine("remote", "status") == 0, machine.err
    assert "clock" not in machine.out
    monkeypatch.setattr(administration, "time", lambda: time() + seconds)
    assert machine("remote", "status") == 0
    assert f"clock: {told} that of the server" in machine.out

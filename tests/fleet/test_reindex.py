"""The rows of a machine that is gone become those that it would push now, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.fleet import MadeMemory, on_server
from tests.support.machines import Fleet, Machine, demo
from tests.support.writing import SESSION, assistant, user, wait_for_clock, write

from assoc_ingest.cli import cli
from assoc_ingest.errors import FleetError, NotFoundError
from assoc_ingest.fleet import devices
from assoc_ingest.fleet.connect import DESTINATION, PASSWORD_FILE
from assoc_ingest.fleet.projection import EVERYTHING, Local, Masks
from assoc_ingest.fleet.push import Report, push
from assoc_ingest.fleet.server import Server
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.citus

LINES = [user("how does the pool wait", "u1"), assistant("it does not", "a1")]
MORE = user("then it should", "u2", "a1", 2)
TRANSCRIPT = f"projects/-srv-shop/{SESSION}.jsonl"
TOKEN = f"ghp_{'aB3dE6gH9j' * 3}aB3dE6"

_numbers = count()


@pytest.fixture
def fleet(
    tmp_path: Path, database: Any, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    """A server that nobody pushed to, and that commands ask."""
    monkeypatch.setenv(DESTINATION, empty_database)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return Fleet(tmp_path, empty_database, database)


@pytest.fixture
def laptop(fleet: Fleet, tmp_path: Path) -> Machine:
    """A machine that pushed one conversation."""
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    made = fleet.machine("laptop")
    made.push(tmp_path / "home")
    return made


@pytest.fixture
def use_login(
    empty_database: str, database: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Makes a login that commands use from then on, and returns a connection of it."""
    psycopg = pytest.importorskip("psycopg")
    made = []

    def make(*, is_admin: bool = False) -> Any:
        name = f"login_{next(_numbers)}_{os.getpid()}"
        password = devices.add_login(
            database, name, pushes=not is_admin, reads=not is_admin, team=None
        )
        if is_admin:
            database.execute(f"grant assoc_admin to {name}")
        place = tmp_path / "password"
        place.write_text(password)
        dsn = psycopg.conninfo.make_conninfo(empty_database, user=name)
        monkeypatch.setenv(PASSWORD_FILE, str(place))
        monkeypatch.setenv(DESTINATION, dsn)
        connection = psycopg.connect(f"{dsn} password={password}", autocommit=True)
        made.append((name, connection))
        return connection

    yield make
    for name, connection in made:
        connection.close()
        database.execute(f"drop owned by {name}; drop role {name}")


def reindex(origin: str = "laptop") -> str:
    """Run the command; return what it says."""
    run = CliRunner().invoke(cli, ["remote", "reindex", origin])
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    assert run.exit_code == 0, run.output
    return run.output


def there(machine: Machine, database: Any = None) -> dict[str, list[Any]]:
    """What the server has of a machine."""
    return on_server(database or machine.connection, machine.memory.uuid)


def pushed(machine: Machine, *, is_masked: bool = False) -> Report:
    """Push what is in the database of a machine."""
    with closing(open_reader(machine.database)) as reader:
        local = Local(reader, EVERYTHING, Masks(is_on=is_masked))
        return push(Server(machine.connection), local, machine.memory)


DAMAGE = """
    update assoc.messages set text = 'damaged', session_key = null, is_copy = 1;
    delete from assoc.tool_calls;
    delete from assoc.responses where byte_offset > 0;
    update assoc.frames set rows_digest = '' where data is not null;
    insert into assoc.messages (origin_id, file_no, byte_offset, block, kind, text)
    select origin_id, file_no, byte_offset, 900 + block, kind, 'nobody said this'
    from assoc.messages;
    update assoc.files set line_count = 0 where line_count > 0 and file_no in (
        select file_no from assoc.frames where data is not null
    );
    delete from assoc.subagents;
    update assoc.tasks set subject = 'damaged', digest = '';
"""


def test_damaged_rows_become_those_of_a_push(fleet: Fleet, tmp_path: Path, database: Any) -> None:
    laptop, other = fleet.machine("laptop"), fleet.machine("other")
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    other.push(tmp_path / "home")
    laptop.push(*demo(tmp_path / "homes"))
    before, of_other = there(laptop), there(other)
    assert "Kept the rows of" in reindex()  # the list of projects of Chorus has no bytes there
    assert there(laptop) == before
    database.execute(DAMAGE)
    damaged = there(other)
    assert damaged != of_other
    reindex()
    assert there(laptop) == before
    assert there(other) == damaged


def test_the_machine_goes_on_after_a_reindex(laptop: Machine, tmp_path: Path) -> None:
    before = there(laptop)
    laptop.connection.execute("update assoc.messages set text = 'damaged'")
    reindex()
    assert there(laptop) == before
    report = pushed(laptop)
    assert (report.is_full, report.frames, report.rows, report.deleted) == (True, 0, 0, 0)
    assert pushed(laptop).calls == 0
    for _ in range(2):
        reindex()
    write(tmp_path / "home", TRANSCRIPT, *LINES, MORE)
    laptop.push(tmp_path / "home")
    assert "then it should" in {row[4] for row in there(laptop)["messages"]}
    assert not pushed(laptop).is_full


def test_rows_of_a_file_without_bytes_stay(laptop: Machine, tmp_path: Path, database: Any) -> None:
    write(tmp_path / "home", TRANSCRIPT.replace("0b7c", "1b7c"), user("of another", "o1"))
    laptop.push(tmp_path / "home")
    database.execute("""
        update assoc.frames set data = null where file_no = 1;
        update assoc.messages set text = 'only here' where file_no = 1;
        update assoc.messages set text = 'damaged' where file_no = 2;
        update assoc.sessions set title = 'only here' where session_key like '0b7c%';
    """)
    assert "Kept the rows of 1 file," in reindex()
    after = there(laptop)
    assert {row[4] for row in after["messages"]} == {"only here", "of another"}
    assert "only here" in {row[2] for row in after["sessions"]}


def test_a_late_call_of_the_machine_does_nothing(laptop: Machine) -> None:
    server = Server(laptop.connection)
    known = server.hello(laptop.memory.uuid)
    assert known is not None
    reindex()
    before = there(laptop)
    late = (known.origin_id, known.version, known.nonce)
    assert not server.push(*late, b"[]", [], {}, {}).applied
    assert not server.forget(*late, [file.file_key for file in server.files_of(late[0])]).applied
    assert there(laptop) == before


def test_a_copied_identity_is_still_refused(laptop: Machine, tmp_path: Path) -> None:
    mine = laptop.memory
    copied = {**mine.__dict__, "nonces": list(mine.nonces)}
    laptop.memory = MadeMemory()
    laptop.memory.__dict__.update(copied)
    write(tmp_path / "home", TRANSCRIPT, *LINES, MORE)
    laptop.push(tmp_path / "home")
    reindex()
    laptop.memory = mine
    with pytest.raises(FleetError, match="remote new-origin"):
        pushed(laptop)


def test_what_the_machine_saw_on_its_disk_stays(laptop: Machine, database: Any) -> None:
    database.execute("""
        update assoc.projects
        set on_disk = 1, head_branch = 'trunk', repository = '/srv/r', parent_key = 'p',
            session_count = 900, digest = '';
        update assoc.sessions set git_branch = 'damaged', gone_at = '2026-01-21T10:00:00.000Z';
    """)
    reindex()
    found = database.execute("""
        select on_disk, head_branch, repository, parent_key, session_count from assoc.projects
    """)
    assert found.fetchall() == [(1, "trunk", "/srv/r", "p", 1)]
    found = database.execute("select git_branch, gone_at from assoc.sessions")
    assert found.fetchall() == [(None, "2026-01-21T10:00:00.000Z")]


def test_entries_that_went_from_a_list_stay(fleet: Fleet, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home, TRANSCRIPT, *LINES)
    todos = home / "todos" / f"{SESSION}-agent-{SESSION}.json"
    todos.parent.mkdir()
    todos.write_text('[{"content": "dig", "status": "pending"}]')
    laptop = fleet.machine("laptop")
    laptop.push(home)
    wait_for_clock(tmp_path)
    todos.write_text('[{"content": "plant", "status": "pending"}]')
    laptop.push(home)
    before = there(laptop)
    assert len(before["todos"]) == 2
    reindex()
    assert there(laptop) == before


def test_masked_bytes_give_masked_rows(fleet: Fleet, tmp_path: Path) -> None:
    write(tmp_path / "home", TRANSCRIPT, user(f"the token is {TOKEN}", "u1"), LINES[1])
    laptop = fleet.machine("laptop")
    sync(laptop.database, [tmp_path / "home"])
    pushed(laptop, is_masked=True)
    before = there(laptop)
    reindex()
    after = there(laptop)
    assert TOKEN not in repr(after)
    assert after["messages"] == before["messages"]
    assert after["frames"] == before["frames"]
    assert pushed(laptop, is_masked=True).is_full
    assert there(laptop) == before


def test_an_administrator_may_and_the_device_of_another_may_not(
    fleet: Fleet, tmp_path: Path, database: Any, use_login: Callable[..., Any]
) -> None:
    write(tmp_path / "home", TRANSCRIPT, *LINES)
    laptop = fleet.machine("laptop")
    laptop.connection = use_login()
    laptop.push(tmp_path / "home")
    before = there(laptop, database)
    assert "1 file of laptop" in reindex()
    use_login()
    with pytest.raises(FleetError, match="belongs to another login"):
        reindex()
    database.execute("update assoc.messages set text = 'damaged'")
    use_login(is_admin=True)
    assert "1 file of laptop" in reindex()
    assert there(laptop, database) == before
    assert pushed(laptop).frames == 0


def test_a_name_that_fits_none_is_told(laptop: Machine) -> None:
    with pytest.raises(NotFoundError, match="laptop"):
        reindex("desktop")
    assert "1 file of laptop" in reindex(laptop.memory.uuid)

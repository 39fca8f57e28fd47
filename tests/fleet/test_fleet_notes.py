"""Notes travel with what they are about, and only their own machine changes them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import Fleet
from tests.support.planted import planted
from tests.support.writing import OTHER, SESSION, assistant, user, write

from assoc_ingest.cli import cli
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.fleet.projection import Masks, of_paths
from assoc_ingest.store.database import open_reader
from assoc_ingest.upkeep.note import Change, remove_note, write_note

pytestmark = pytest.mark.citus

TRANSCRIPT = f"projects/-srv-shop/{SESSION}.jsonl"
KEY = SESSION[:8]
TOKEN = planted()["github"]
NOTES = "select origin, session_key, line_key, text, verdict, title, is_starred from notes"


@pytest.fixture
def fleet(
    tmp_path: Path, database: Any, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> Fleet:
    monkeypatch.setenv(DESTINATION, empty_database)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return Fleet(tmp_path, empty_database, database)


def _run(tmp_path: Path, *arguments: str) -> str:
    run = CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "team.db")])
    assert run.exit_code == 0, run.output
    return run.output


def _asked(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(open_reader(database)) as reader:
        return [tuple(row) for row in reader.execute(query)]


def test_notes_are_pushed_pulled_changed_and_removed_as_their_machine_has_them(
    fleet: Fleet, tmp_path: Path
) -> None:
    home, team = tmp_path / "home", tmp_path / "team.db"
    write(home, TRANSCRIPT, user("how does the pool wait", "u1"), assistant("not at all", "a1"))
    machine = fleet.machine("laptop", Masks(is_on=True))
    machine.push(home)
    write_note(machine.database, KEY, Change(title="Pools", is_starred=True))
    write_note(machine.database, f"{KEY}:2", Change(f"Rotate {TOKEN}", "kept"))
    machine.push(home)
    _run(tmp_path, "pull")
    [of_session, of_line] = sorted(_asked(team, NOTES), key=lambda row: row[2] or "")
    assert of_session == ("laptop", SESSION, None, None, None, "Pools", 1)
    assert of_line[:3] + of_line[4:] == ("laptop", SESSION, "a1", "kept", None, 0)
    assert of_line[3].startswith("Rotate [redacted")
    assert _asked(team, "select title, title_source from sessions") == [("Pools", "note")]
    assert f"{KEY}:2" in _run(tmp_path, "list", "notes")

    write_note(team, KEY, Change("Ours", title="Our pools"))  # this machine's own wins here
    assert _asked(team, "select title from sessions") == [("Our pools",)]
    write_note(machine.database, f"{KEY}:2", Change("Done", ""))
    remove_note(machine.database, KEY)
    machine.push(home)
    _run(tmp_path, "pull")
    _run(tmp_path, "rebuild")
    assert {row[3] for row in _asked(team, NOTES)} == {"Done", "Ours"}
    assert _asked(team, "select title from sessions") == [("Our pools",)]
    assert _asked(machine.database, NOTES) == [(None, SESSION, "a1", "Done", None, None, 0)]


def test_a_note_on_what_is_forgotten_here_is_not_pulled(fleet: Fleet, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home, TRANSCRIPT, user("how does the pool wait", "u1"))
    machine = fleet.machine("laptop")
    machine.push(home)
    write_note(machine.database, KEY, Change("Hm"))
    machine.push(home)
    _run(tmp_path, "pull")
    _run(tmp_path, "forget", SESSION, "--yes")
    _run(tmp_path, "pull")
    assert _asked(tmp_path / "team.db", NOTES) == []


def test_only_notes_on_what_may_leave_are_pushed(fleet: Fleet, tmp_path: Path) -> None:
    from assoc_ingest.fleet.projection import Local
    from assoc_ingest.sync.run import sync

    home = tmp_path / "home"
    write(home, TRANSCRIPT, user("Hi", "u1", cwd="/srv/shop"))
    write(home, f"projects/-srv-other/{OTHER}.jsonl",
          user("Hi", "o1", cwd="/srv/other", sessionId=OTHER))  # fmt: skip
    machine = fleet.machine("laptop")
    sync(machine.database, [home])
    write_note(machine.database, KEY, Change("may leave"))
    write_note(machine.database, OTHER[:8], Change("may not"))
    write_note(machine.database, str(write(tmp_path, "x.py", b"")), Change("nobody's"))
    with closing(open_reader(machine.database)) as reader:
        local = Local(reader, of_paths(reader, ["/srv/shop"]))
        (notes,) = [found for found in local.keyed(None) if found.table == "notes"]
        assert [row[3] for row in notes.rows] == ["may leave"]

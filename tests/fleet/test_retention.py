"""What is older than the limit of a server is deleted there, stays deleted, and comes back if it
grows."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.fleet import pushed
from tests.support.shell import Shell
from tests.support.transcripts import Transcript

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import deletion
from assoc_ingest.fleet.server import Server
from assoc_ingest.sync.run import sync

_LIMIT = "2026-06-01T00:00:00.000Z"
_OLD, _NEW = "2026-02-01T00:00:00+00:00", "2026-08-01T00:00:00+00:00"
_TO_COUNT = ("messages", "frames", "files", "sessions", "subagents", "tasks", "prompts")


class Home:
    """A home with a conversation for each name."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._told: dict[str, Transcript] = {}

    def say(self, name: str, text: str, at: str) -> None:
        """Let something be said in a conversation, and its file be as old as that."""
        number = list(dict.fromkeys([*self._told, name])).index(name)
        key = f"5e1f0c9a-3b72-4d18-9c44-70a2d6b8e30{number}"
        if name not in self._told:
            self._told[name] = Transcript(self.place, key, "/srv/lake", "-srv-lake")
        self._told[name].say(text, 1)
        (path,) = self.place.rglob(f"{key}.jsonl")
        moment = datetime.fromisoformat(at).timestamp()
        os.utime(path, (moment, moment))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.say("old", "said long ago", _OLD)
    home.say("new", "said lately", _NEW)
    return home


@pytest.fixture
def machine(
    home: Home, empty_database: str, database: Any, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> Shell:  # fmt: skip
    """A machine that pushed everything."""
    monkeypatch.setenv("ASSOC_INGEST_DB", str(tmp_path / "a.db"))
    monkeypatch.setattr(deletion, "limit_before", lambda *_: _LIMIT)
    shell = Shell(tmp_path / "a.db", capsys)
    sync(shell.database, [home.place])
    for words in (("remote", "init", empty_database), ("remote", "allow", "--all-projects")):
        assert shell(*words) == 0, shell.err
    assert shell("push") == 0, shell.err
    return shell


def told(connection: Any) -> set[str]:
    """What people said, and the titles of conversations, as the server has them."""
    rows = connection.execute(
        "select text from assoc.messages where kind = 'prompt'"
        " union select title from assoc.sessions"
    )
    return {text for (text,) in rows.fetchall() if text}


def test_what_is_old_goes_and_is_not_pushed_again(
    machine: Shell, home: Home, database: Any
) -> None:
    both = {"said long ago", "said lately"}
    assert told(database) == both
    span = ("remote", "retention", "--older-than", "180d")
    assert machine(*span, "--dry-run") == 0, machine.err
    assert f"Older than {_LIMIT}: 1 file of 1 machine." in machine.err
    assert told(database) == both
    assert machine("remote", "retention") == 0
    assert "Everything is kept" in machine.err
    for number in (1, 0):  # repeated, there is nothing left to do
        assert machine(*span, "--yes") == 0, machine.err
        assert f"Deleted {number} file" in machine.err
        assert told(database) == {"said lately"}
        for words in (("push",), ("push", "--full")):
            assert machine(*words) == 0, machine.err
            assert "up to date" in machine.err
        assert told(database) == {"said lately"}
    assert machine("remote", "retention") == 0
    assert _LIMIT in machine.err


def test_an_old_conversation_that_goes_on_comes_back_whole(
    machine: Shell, home: Home, database: Any
) -> None:
    before = _counts(database)
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert machine("push") == 0, machine.err
    home.say("old", "said again", _NEW)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    assert told(database) == {"said long ago", "said lately", "said again"}
    after = _counts(database)
    assert after == {**before, "messages": before["messages"] + 1, "prompts": after["prompts"]}


def test_without_a_limit_everything_comes_back(machine: Shell, database: Any) -> None:
    before = _counts(database)
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert _counts(database) != before
    assert machine("push") == 0
    assert machine("remote", "retention", "--off") == 0
    assert "Everything is kept" in machine.err
    assert machine("push") == 0, machine.err
    assert _counts(database) == before


def test_a_new_machine_leaves_out_what_is_old(
    machine: Shell, home: Home, database: Any, empty_database: str, tmp_path: Path
) -> None:
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    other = ("--db", str(tmp_path / "b.db"))
    sync(tmp_path / "b.db", [home.place])
    assert machine("remote", "init", empty_database, "--label", "other", *other) == 0, machine.err
    assert machine("remote", "allow", "/srv/lake", *other) == 0, machine.err
    assert machine("push", *other) == 0, machine.err
    assert told(database) == {"said lately"}
    (files,) = database.execute("select count(*) from assoc.files").fetchone()
    assert files == 2


def test_a_withdrawal_does_not_push_what_is_old(machine: Shell, database: Any, home: Home) -> None:
    assert machine("remote", "disallow", "--all-projects") == 0
    assert machine("remote", "allow", "/srv/lake") == 0, machine.err
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert machine("remote", "prune", "--yes") in (0, 2)
    assert machine("push") == 0
    assert machine("remote", "prune", "--yes") == 0, machine.err
    assert told(database) == {"said lately"}
    assert machine("remote", "withdraw", "/srv/lake", "--yes") == 0, machine.err
    assert told(database) == set()


def test_who_pulled_an_old_file_removes_it(
    machine: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: str
) -> None:
    monkeypatch.setenv("ASSOC_INGEST_REMOTE", empty_database)
    mine = ("--json", "--db", str(tmp_path / "mine.db"))
    first = machine.json("pull", *mine)
    assert isinstance(first, dict)
    assert first["files"] == 2
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    second = machine.json("pull", *mine)
    assert isinstance(second, dict)
    assert (second["removed"], second["unchanged"]) == (1, 1)


def test_a_wrong_clock_deletes_nothing(
    machine: Shell, home: Home, database: Any, login: Callable[..., Any]
) -> None:
    database.execute("update assoc.files set mtime = '1970-01-01T00:00:00.000Z'")
    assert deletion.older(database, _LIMIT) == []
    database.execute("update assoc.files set mtime = null")
    assert deletion.older(database, _LIMIT) == []


def test_the_limit_is_one_of_the_clock_of_the_server(database: Any) -> None:
    limit = deletion.limit_before(database, timedelta(days=10))
    (wanted,) = database.execute(
        "select extract(epoch from now() - interval '10 days')::float8"
    ).fetchone()
    assert abs(datetime.fromisoformat(limit).timestamp() - wanted) < 60


@pytest.mark.parametrize("span", ["0d", "1h", "2026-01-01", "x", "-5d", ""])
def test_a_limit_is_a_span_of_days(machine: Shell, span: str) -> None:
    assert machine("remote", "retention", "--older-than", span, "--yes") == 2
    assert "no span of at least a day" in machine.err


def test_a_device_cannot_change_the_limit_and_a_server_cannot_inject_one(
    login: Callable[..., Any], database: Any
) -> None:
    device = login("device", reads=True)
    pushed(device)
    with pytest.raises(FleetError, match="may not do that"):
        deletion.keep_since(device, _LIMIT)
    assert Server(device).kept_since() == ""
    database.execute("insert into assoc.retention values ($$' or 1=1 --$$)")
    with pytest.raises(FleetError, match="not one that an assoc-ingest server gives"):
        Server(device).kept_since()


def _counts(connection: Any) -> dict[str, int]:
    return {
        name: connection.execute(f"select count(*) from assoc.{name}").fetchone()[0]
        for name in _TO_COUNT
    }

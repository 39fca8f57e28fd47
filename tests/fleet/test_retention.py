"""What is older than the limit of a server is deleted there, stays deleted, and comes back if it
grows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.fleet import pushed
from tests.support.shell import Shell
from tests.support.transcripts import Transcript

from assoc_ingest.errors import FleetError
from assoc_ingest.fleet import deletion, server
from assoc_ingest.fleet.server import Server
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.citus

_LIMIT = "2026-06-01T00:00:00.000Z"
_OLD, _NEW = "2026-02-01T00:00:00.000Z", "2026-08-01T00:00:00.000Z"
_TO_COUNT = ("messages", "frames", "files", "sessions", "subagents", "tasks", "prompts")


class Home:
    """A home with a conversation for each name."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._told: dict[str, Transcript] = {}

    def say(self, name: str, text: str, at: str, changed: str = "") -> None:
        """Let something be said in a conversation, and its file be as old as that."""
        number = list(dict.fromkeys([*self._told, name])).index(name)
        key = f"5e1f0c9a-3b72-4d18-9c44-70a2d6b8e30{number}"
        if name not in self._told:
            self._told[name] = Transcript(self.place, key, "/srv/lake", "-srv-lake")
        self._told[name].say(text, timestamp=at)
        (path,) = self.place.rglob(f"{key}.jsonl")
        touch(path, changed or at)


def touch(path: Path, at: str) -> None:
    """Let a file have this time of change."""
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


def test_a_copied_file_is_as_old_as_its_last_line(
    machine: Shell, home: Home, database: Any
) -> None:
    for path in home.place.rglob("*.jsonl"):
        touch(path, _NEW)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert told(database) == {"said lately"}
    assert machine("push", "--full") == 0, machine.err
    assert "up to date" in machine.err
    assert told(database) == {"said lately"}
    assert machine("remote", "status") == 0
    assert "not pushed: 1 file older than 2026-06-01, which the server does not keep" in machine.out
    assert machine("remote", "retention", "--off") == 0
    assert machine("remote", "status") == 0
    assert "older than" not in machine.out


def test_a_file_that_was_restored_with_an_old_time_stays_for_its_new_lines(
    machine: Shell, home: Home, database: Any
) -> None:
    home.say("restored", "said today", _NEW, changed=_OLD)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    for _ in range(2):
        assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
        assert told(database) == {"said lately", "said today"}
        assert machine("push", "--full") == 0, machine.err


def test_what_belongs_to_a_conversation_is_as_old_as_that(
    machine: Shell, home: Home, database: Any
) -> None:
    """The output of a tool has no time of its own, and was copied."""
    for name, number in (("old", 0), ("new", 1)):
        key = f"5e1f0c9a-3b72-4d18-9c44-70a2d6b8e30{number}"
        result = home.place / "projects" / "-srv-lake" / key / "tool-results" / f"{name}.txt"
        result.parent.mkdir(parents=True)
        result.write_text(f"output of {name}")
        touch(result, _NEW if name == "old" else _OLD)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert "Deleted 2 files" in machine.err
    for words in (("push",), ("push", "--full")):
        assert machine(*words) == 0, machine.err
        (names,) = database.execute(
            "select array_agg(name) from assoc.tool_result_files"
        ).fetchone()
        assert names == ["new.txt"]


def test_a_history_is_as_old_as_its_last_prompt(machine: Shell, home: Home, database: Any) -> None:
    history = home.place / "history.jsonl"

    def type_(prompt: str, at: str) -> None:
        milliseconds = int(datetime.fromisoformat(at).timestamp() * 1000)
        line = {"display": prompt, "timestamp": milliseconds, "project": "/srv/lake"}
        with history.open("a") as file:
            file.write(json.dumps(line) + "\n")
        touch(history, _NEW)

    def typed() -> list[str]:
        rows = database.execute("select text from assoc.prompts order by byte_offset").fetchall()
        return [text for (text,) in rows]

    type_("an old prompt", _OLD)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    assert typed() == ["an old prompt"]
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert machine("push") == 0, machine.err
    assert typed() == []
    type_("a new one", _NEW)
    assert machine("sync", str(home.place)) == 0
    for _ in range(2):
        assert machine("push") == 0, machine.err
        assert typed() == ["an old prompt", "a new one"]
        assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err


def test_a_line_of_the_future_stays(machine: Shell, home: Home, database: Any) -> None:
    home.say("ahead", "said by a wrong clock", "2099-01-01T00:00:00.000Z", changed=_OLD)
    assert machine("sync", str(home.place)) == 0
    assert machine("push") == 0, machine.err
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert "said by a wrong clock" in told(database)


def test_a_machine_that_is_locked_is_named_and_the_others_go_on(
    machine: Shell, home: Home, database: Any, empty_database: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, login: Callable[..., Any],
) -> None:  # fmt: skip
    monkeypatch.setattr(server, "_PATIENCE", 1)
    hostile = login("hostile")
    memory = pushed(hostile, "of hostile")
    database.execute("update assoc.files set recorded_at = %s where path = 'a.jsonl'", (_OLD,))
    known = Server(hostile).hello(memory.uuid)
    assert known is not None
    hostile.execute("begin")
    Server(hostile).fence(known.origin_id, str(uuid4()))
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 1
    assert f"perhaps not done: {memory.label}." in machine.err
    assert told(database) == {"said lately", "of hostile"}
    hostile.execute("rollback")
    assert machine("remote", "retention", "--older-than", "180d", "--yes") == 0, machine.err
    assert told(database) == {"said lately"}


def test_machines_compare_everything_only_if_something_changed_for_them(
    machine: Shell, database: Any
) -> None:
    version = "select version from assoc.origin_states"
    deletion.keep_since(database, "2026-01-01T00:00:00.000Z")
    deletion.delete_older(database, "2026-01-01T00:00:00.000Z")
    before = database.execute(version).fetchone()
    deletion.keep_since(database, _LIMIT)
    assert database.execute(version).fetchone() == before
    deletion.delete_older(database, _LIMIT)
    after = database.execute(version).fetchone()
    assert after > before
    deletion.keep_since(database, "2026-01-01T00:00:00.000Z")  # older files may come back
    assert database.execute(version).fetchone() > after


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
    database.execute("update assoc.files set recorded_at = '1970-01-01T00:00:00.000Z'")
    assert deletion.older(database, _LIMIT) == []
    database.execute("update assoc.files set recorded_at = null, mtime = null")
    database.execute("update assoc.sessions set started_at = null, ended_at = null")
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

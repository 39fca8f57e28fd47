"""Nothing leaves this machine before it is allowed, and then only what was: a dry run says what."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.planted import planted
from tests.support.writing import OTHER, SESSION, THIRD, assistant, jsonl, user, write, write_bytes

from assoc_ingest.commands.fleet import allow
from assoc_ingest.errors import DatabaseError, NotFoundError, UsageError
from assoc_ingest.fleet import state
from assoc_ingest.fleet.projection import (
    EVERYTHING,
    FILES,
    KEYED,
    PLACED,
    Cursor,
    Local,
    Masks,
    Scope,
    known_paths,
    of_paths,
)
from assoc_ingest.fleet.push import preview, report
from assoc_ingest.fleet.state import State
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

_PATH = FILES.names.index("path")
MESSAGES = next(table for table in PLACED if table.name == "messages")


@pytest.fixture
def home(place: Path) -> Path:
    """A home with two projects, of which one repeats a line of the other, and shared files."""
    home = place / "home"
    garden, garage = ({"cwd": "/srv/garden"}, {"cwd": "/srv/garage"})
    write(home, f"projects/-srv-garden/{SESSION}.jsonl", {**user("Sow beans"), **garden})
    write(
        home,
        f"projects/-srv-garage/{OTHER}.jsonl",
        {**user("Sow beans", sessionId=OTHER), **garage},
        {**assistant("Oil the chain", "g2", "u1", 2, sessionId=OTHER), **garage},
    )
    write(home, f"projects/-srv-garden-shed/{THIRD}.jsonl",
          {**user("Shed", "s1", sessionId=THIRD), "cwd": "/srv/garden/shed"})  # fmt: skip
    write(home, "history.jsonl", {"display": "Sow beans", "timestamp": 1768905000000,
                                  "project": "/srv/garden"})  # fmt: skip
    return home


@pytest.fixture
def database(home: Path, fresh: Callable[[], Path]) -> Path:
    path = fresh()
    sync(path, [home])
    return path


def everything_of(database: Path, scope: Scope | None, *paths: str) -> dict[str, list[Any]]:
    """Return all rows that are in scope, by table; `files` has the paths."""
    connection = open_reader(database)
    try:
        scope = scope or of_paths(connection, paths)
        local = Local(connection, scope)
        found: dict[str, list[Any]] = {"files": []}
        for file in local.files(None):
            content = local.content(file)
            found["files"].append(content.attributes[_PATH])
            for frame in content.frames:
                for name, rows in frame.rows.items():
                    found.setdefault(name, []).extend(rows)
        for keyed in local.keyed(None):
            found[keyed.table] = keyed.rows
        return found
    finally:
        connection.close()


def test_without_an_allowed_project_nothing_is_in_scope(database: Path) -> None:
    found = everything_of(database, None)
    assert {name: rows for name, rows in found.items() if rows and name != "prices"} == {}


def test_only_what_belongs_to_an_allowed_project_is_in_scope(database: Path) -> None:
    found = everything_of(database, None, "/srv/garden")
    assert found["files"] == [f"projects/-srv-garden/{SESSION}.jsonl"]
    shown = repr(found)
    assert "Sow beans" in shown
    for foreign in ("garage", "Oil the chain", "shed", "Shed", OTHER, THIRD):
        assert foreign not in shown


def test_a_directory_whose_name_is_written_alike_is_another_project(
    home: Path, fresh: Callable[[], Path]
) -> None:
    """Claude Code keeps /srv/my_shop and /srv/my-shop in one directory."""
    said = {
        "allowed": ["/srv/my_shop", "/srv/my_shop/till"],
        "other": ["/srv/my-shop"],
        "below": ["/srv/my-shop/till"],
        "both": ["/srv/my_shop", "/srv/my-shop"],
        "elsewhere": ["/opt"],
    }
    for n, (name, places) in enumerate(said.items()):
        key = f"{n:08}-0000-4000-8000-000000000000"
        lines = [
            {**user(f"Said {name}", f"{name}{line}", sessionId=key), "cwd": cwd}
            for line, cwd in enumerate(places)
        ]
        write(home, f"projects/-srv-my-shop/{key}.jsonl", *lines)
    write_bytes(home, "projects/-srv-my-shop/memory/MEMORY.md", b"Said in notes")
    sync(database := fresh(), [home])
    shown = repr(everything_of(database, None, "/srv/my_shop"))
    assert "Said allowed" in shown
    for text in ("Said other", "Said below", "Said both", "Said elsewhere", "Said in notes"):
        assert text not in shown


def test_what_several_projects_share_is_in_scope_only_with_everything(database: Path) -> None:
    both = everything_of(database, None, "/srv/garden", "/srv/garage", "/srv/garden/shed")
    assert len(both["files"]) == 3
    assert "history.jsonl" in everything_of(database, EVERYTHING)["files"]


def test_a_copy_whose_original_stays_here_is_no_copy_there(database: Path) -> None:
    is_copy = MESSAGES.names.index("is_copy")
    text = MESSAGES.names.index("text")

    def copies(*paths: str) -> list[int]:
        rows = everything_of(database, None, *paths)["messages"]
        return sorted(row[is_copy] for row in rows if row[text] == "Sow beans")

    assert copies("/srv/garden", "/srv/garage") == [0, 1]
    assert copies("/srv/garden") == copies("/srv/garage") == [0]


def test_every_keyed_table_is_limited(database: Path) -> None:
    everything, part = everything_of(database, EVERYTHING), everything_of(database, None)
    for table in KEYED:
        if everything[table.name] and table.name != "prices":
            assert not part[table.name], table.name


def test_a_project_is_allowed_by_its_whole_directory(database: Path) -> None:
    connection = open_reader(database)
    try:
        assert known_paths(connection, "/srv/garden/") == ["/srv/garden"]
        with pytest.raises(NotFoundError, match="list projects"):
            known_paths(connection, "/srv")
        with pytest.raises(UsageError, match="absolute path"):
            known_paths(connection, "garden")
    finally:
        connection.close()


# -- the state -------------------------------------------------------------------------------------


def a_state(database: Path, **more: Any) -> State:
    place = state.place_of(database)
    made = State(place, "u-1", "laptop", "d-1", "postgresql://fleet.example/assoc", **more)
    made.save()
    return made


def test_the_state_comes_back_as_it_was_and_only_its_user_can_read_it(database: Path) -> None:
    made = a_state(database, version=3, nonces=["n"], cursor=Cursor(7, -5), allowed=["/srv/garden"])
    assert state.load(database) == made
    assert stat.S_IMODE(made.place.stat().st_mode) == 0o600
    assert made.place.name == f"{database.name}.push"


def test_without_a_state_there_is_none(database: Path) -> None:
    assert state.load(database) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": 2}', b'{"format": 1}', b"\xff"]
)
def test_a_damaged_state_is_said_in_one_sentence(database: Path, content: bytes) -> None:
    state.place_of(database).write_bytes(content)
    with pytest.raises(DatabaseError, match="remote adopt"):
        state.load(database)


def test_more_that_is_allowed_or_other_masks_are_compared_as_a_whole(database: Path) -> None:
    made = a_state(database, cursor=Cursor(7, 5))
    made.cover(Masks())
    assert made.cursor is None
    made.cursor = Cursor(7, 5)
    made.cover(Masks())
    assert made.cursor == Cursor(7, 5)
    made.allow(["/srv/garden"])
    assert made.cursor is None


# -- commands --------------------------------------------------------------------------------------


def run_allow(database: Path, *arguments: str) -> str:
    result = CliRunner().invoke(allow, [*arguments, "--db", str(database)], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_allowing_needs_a_server_first(database: Path) -> None:
    with pytest.raises(UsageError, match="remote init"):
        run_allow(database, "/srv/garden")


def test_what_is_allowed_is_kept_and_listed(database: Path) -> None:
    a_state(database)
    assert run_allow(database) == "Nothing is allowed yet.\n"
    assert run_allow(database, "/srv/garden") == "/srv/garden\n"
    run_allow(database, "/srv/garage")
    assert json.loads(run_allow(database, "--json")) == {
        "all_projects": False,
        "allowed": ["/srv/garage", "/srv/garden"],
    }
    with pytest.raises(NotFoundError):
        run_allow(database, "/srv/garden", "/srv/nowhere")
    assert run_allow(database, "--all-projects") == "Everything may leave this machine.\n"


def shown(database: Path, scope: Scope | None, *paths: str) -> tuple[dict[str, Any], str]:
    connection = open_reader(database)
    try:
        local = Local(connection, scope or of_paths(connection, paths), Masks())
        found = preview(local, None, "postgresql://fleet.example/assoc", "laptop")
        return found.as_json(), "\n".join(report(found))
    finally:
        connection.close()


def test_a_dry_run_counts_what_would_leave_and_shows_no_text(home: Path, database: Path) -> None:
    token = planted()["github"]
    lines = jsonl({**user("Sow beans"), "cwd": "/srv/garden"}, user(f"It is {token}", "u2"))
    write_bytes(home, f"projects/-srv-garden/{SESSION}.jsonl", lines)
    sync(database, [home])
    found, text = shown(database, None, "/srv/garden")
    assert [part["path"] for part in found["projects"]] == ["/srv/garden"]
    assert (found["files"], found["messages"], found["masks"]) == (1, 2, {"GitHub token": 1})
    assert found["bytes"] > 0
    assert not found["is_everything"]
    assert "GitHub token (1)" in text
    for secret in (token, "Sow beans", "/srv/garage"):
        assert secret not in text + json.dumps(found)


def test_a_dry_run_says_what_to_do_when_nothing_is_allowed(database: Path) -> None:
    assert "remote allow" in shown(database, None)[1]

"""A file that comes back is the one that the server has, unless it is another one.

It gets a new key when it is read again: after `prune`, by a database that was restored from a
backup, after `forget --remember`.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
from tests.fleet.test_remote import GARDEN, LAKE, allow, homes, lose, machine, texts
from tests.support.cases import DEMO
from tests.support.shell import Shell
from tests.support.transcripts import Transcript

from assoc_ingest.store.database import writing
from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.citus

__all__ = ["homes", "machine"]

OTHER = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e309"


def there(database: str) -> list[tuple[str, int, int]]:
    """The paths of files that the server has, with how often and with how many messages."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(database) as connection:
        return list(connection.execute(
            "select f.path, count(distinct f.file_no), count(m.byte_offset) from assoc.files f"
            " left join assoc.messages m using (origin_id, file_no)"
            " group by f.path order by f.path"
        ))  # fmt: skip


def test_a_file_that_was_pruned_and_came_back_is_the_file_that_the_server_has(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    set_up(machine, empty_database)
    before = there(empty_database)
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    transcript.rename(tmp_path / "away")
    prune(machine, homes)
    assert machine("push") == 0, machine.err
    assert there(empty_database) == before
    (tmp_path / "away").rename(transcript)
    sync(machine.database, [homes])
    assert machine("push") == 0, machine.err
    assert there(empty_database) == before
    Transcript(homes, transcript.stem, LAKE, "-srv-lake").say("more", 30)
    sync(machine.database, [homes])
    assert machine("push") == 0, machine.err
    assert [row[:2] for row in there(empty_database)] == [row[:2] for row in before]
    assert "more" in texts(empty_database)


@pytest.mark.parametrize("is_shorter", [True, False])
def test_a_file_that_came_back_otherwise_replaces_nothing_on_the_server(
    machine: Shell, empty_database: str, homes: Path, *, is_shorter: bool
) -> None:
    set_up(machine, empty_database)
    before = there(empty_database)
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    content = transcript.read_bytes()
    transcript.unlink()
    prune(machine, homes)
    other = content.replace(b"roses", b"rosebuds")  # not in the first lines
    transcript.write_bytes(content.splitlines(keepends=True)[0] if is_shorter else other)
    sync(machine.database, [homes])
    assert machine("push") == 0, machine.err
    after = there(empty_database)
    for was, is_now in zip(before, after, strict=True):
        came_back = "lake" in was[0]
        assert is_now[1] == was[1] + came_back
        assert (is_now[2] > was[2]) == came_back


def test_a_restored_database_that_pushes_has_nothing_twice_on_the_server(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    machine("remote", "init", empty_database)
    allow(machine)
    shutil.copy(machine.database, tmp_path / "backup")
    Transcript(homes, "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e302", GARDEN, "-srv-garden").say("new", 9)
    sync(machine.database, [homes])
    machine("push")
    before = there(empty_database)
    lose(machine)
    shutil.copy(tmp_path / "backup", machine.database)
    sync(machine.database, [homes])
    assert machine("push") == 0, machine.err
    assert there(empty_database) == before


def set_up(machine: Shell, database: str) -> None:
    machine("remote", "init", database)
    allow(machine)
    assert machine("push") == 0, machine.err


def prune(machine: Shell, homes: Path) -> None:
    """Remove what is no longer in the homes."""
    sync(machine.database, [homes])
    assert machine("prune", "--gone", "--yes") == 0, machine.err


def filler(chance: random.Random, letters: int) -> str:
    return "".join(chance.choice("abcdefgh ijkl") for _ in range(letters))


def test_what_is_forgotten_twice_is_deleted_twice(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    set_up(machine, empty_database)
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    assert machine("forget", transcript.stem, "--yes") == 0, machine.err
    assert machine("forget", "--remember", transcript.stem) == 0, machine.err
    for _ in range(2):
        sync(machine.database, [homes])
        assert machine("push") == 0, machine.err
        assert f"about {LAKE}" in texts(empty_database)
    # Nothing that happens later deletes it again.
    assert machine("rebuild") == 0, machine.err
    for number in range(3):
        assert machine("push") == 0, machine.err
        Transcript(homes, OTHER, GARDEN, "-srv-garden").say(f"news {number}", 40 + number)
        sync(machine.database, [homes])
    assert machine("push") == 0, machine.err
    assert f"about {LAKE}" in texts(empty_database)
    assert machine("forget", transcript.stem, "--yes") == 0, machine.err
    assert machine("push") == 0, machine.err
    assert f"about {LAKE}" not in texts(empty_database)


def test_what_was_deleted_long_ago_is_not_deleted_again(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    set_up(machine, empty_database)
    said = Transcript(homes, OTHER, GARDEN, "-srv-garden")
    for number in range(6):
        said.say(f"news {number}", 40 + number)
        sync(machine.database, [homes])
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    assert machine("forget", transcript.stem, "--yes") == 0, machine.err
    for command in ("push", "rebuild", "push"):
        assert machine(command) == 0, machine.err
    said.say("later", 50)
    sync(machine.database, [homes])
    assert machine("push", "--dry-run") == 0
    assert "forgotten" not in machine.out + machine.err


@pytest.mark.slow
def test_a_copy_of_a_file_that_was_moved_does_not_take_its_key(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    """The moved one, which would be sent as a new one, would not be seen to have changed."""
    chance, home = random.Random(2), tmp_path / "codex"
    rollout = next(path for path in sorted(DEMO.rglob("rollout-*.jsonl")) if path.stat().st_size)
    first, *rest = rollout.read_bytes().splitlines(keepends=True)
    moment = json.loads(first)["timestamp"]
    long = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in (filler(chance, 300_000) for _ in range(8))
    ]
    lines = [
        json.dumps({"timestamp": moment, "type": "response_item", "payload": payload}).encode()
        for payload in long
    ]
    here = home / "sessions/2026/05/23" / rollout.name
    here.parent.mkdir(parents=True)
    here.write_bytes(first + b"\n".join(lines) + b"\n" + b"".join(rest))
    sync(machine.database, [homes, home])
    set_up(machine, empty_database)
    archived = home / "archived_sessions" / rollout.name
    archived.parent.mkdir()
    here.rename(archived)
    sync(machine.database, [homes, home])
    shutil.copy(archived, here)
    sync(machine.database, [homes, home])
    assert machine("push") == 0, machine.err
    after = there(empty_database)
    assert machine("push", "--full") == 0, machine.err
    assert there(empty_database) == after
    assert len([path for path, _, _ in after if rollout.name in path]) == 2


@pytest.mark.slow
def test_a_first_stretch_of_a_few_lines_is_not_enough(
    machine: Shell, empty_database: str, homes: Path
) -> None:
    """Two conversations can begin alike."""
    chance = random.Random(3)
    set_up(machine, empty_database)
    said = Transcript(homes, OTHER, GARDEN, "-srv-garden")
    for number in range(3):
        said.say(f"as always {number} {'x' * 2_500}", number)
    path = homes / f"projects/-srv-garden/{OTHER}.jsonl"
    beginning = path.read_bytes()
    for words in ("the first", "the second, longer"):
        path.write_bytes(beginning)
        sync(machine.database, [homes])
        for number in range(500):
            said.say(f"{words} {number} {filler(chance, 2_500)}", 2)
        sync(machine.database, [homes])
        assert machine("push") == 0, machine.err
        path.unlink()
        prune(machine, homes)
    found = {text[:8] for text in texts(empty_database)}
    assert {"the firs", "the seco"} <= found


def test_while_somebody_writes_all_else_is_pushed(
    machine: Shell, empty_database: str, homes: Path, tmp_path: Path
) -> None:
    set_up(machine, empty_database)
    (transcript,) = (homes / "projects/-srv-lake").iterdir()
    transcript.rename(tmp_path / "away")
    prune(machine, homes)
    before = there(empty_database)
    (tmp_path / "away").rename(transcript)
    Transcript(homes, OTHER, GARDEN, "-srv-garden").say("other news", 40)
    Transcript(homes, transcript.stem, LAKE, "-srv-lake").say("and it goes on", 40)
    sync(machine.database, [homes])
    with writing(machine.database):
        assert machine("push") == 0, machine.err
        assert "stop `watch`" in machine.err
    assert "other news" in texts(empty_database)
    assert "and it goes on" not in texts(empty_database)
    assert machine("push") == 0, machine.err
    assert "and it goes on" in texts(empty_database)
    assert len(there(empty_database)) == len(before) + 1
    assert {files for _, files, _ in there(empty_database)} == {1}

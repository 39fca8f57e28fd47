"""What is named as never opened is opened by no command, whatever system a directory looks like.

The names are those of the sources; the interpreter tells what is opened, and so does the system
where `strace` is there to ask it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.support.cases import CASES, home_of, told_by_sources
from tests.support.cases import SOURCES as FOLDERS
from tests.support.child import Child
from tests.support.writing import PROJECT, SESSION, user, write, write_bytes

from assoc_ingest.__main__ import main
from assoc_ingest.errors import AmbiguousHomeError, UsageError
from assoc_ingest.files.walk import recognised
from assoc_ingest.source import claim_at
from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.watch import WatchOptions, watch
from assoc_ingest.testing.dump import connect

Fresh = Callable[[], Path]

INGEST = Path(__file__).parents[1] / "ingest"
SECRET = "sk-planted-7d1e0b"
CONTENT = json.dumps({"workspaces": [], "id": SECRET, "worktrees": {}, "primaryApiKey": SECRET})

PRIVATE: dict[str, list[str]] = told_by_sources("private")
"""By system, what is never opened in its home."""
EVERYTHING = {path for paths in PRIVATE.values() for path in paths}

COMMANDS = (
    "sync HOME", "sync HOME --dry-run", "sync --full", "watch HOME", "verify", "rebuild", "status",
    "restore --all --to TO", "prune --gone",
)  # fmt: skip


def plant(home: Path, paths: Collection[str]) -> set[str]:
    """Write what is never opened into a home; return where it lies."""
    planted = {str(write_bytes(home, path, CONTENT.encode())) for path in paths}
    return planted | {str(Path(path).parent) for path in planted} - {
        str(home), str(home / "file-history" / SESSION),
    }  # fmt: skip


def run(command: str, home: Path, database: Path) -> int:
    """Run a command; a watch for one pass."""
    words = [word.replace("HOME", str(home)) for word in command.split(" ")]
    words = [word.replace("TO", f"{home.parent}/rescued") for word in words]
    if words[0] != "watch":
        return main([*words, "-d", str(database)])
    stop = Event()

    def tell(news: Report | str) -> None:
        stop.set()

    watch(database, [Path(words[1])], WatchOptions(), stop, tell)
    return 0


def opened_by(command: str, home: Path, database: Path) -> tuple[list[str], int]:
    """Run a command in a process of its own; return what it opened, and its exit code."""

    def traced() -> tuple[list[str], int]:
        opened: list[str] = []

        def see(event: str, arguments: tuple[Any, ...]) -> None:
            if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str):
                opened.append(arguments[0])

        sys.addaudithook(see)
        code = run(command, home, database)
        return opened, code

    found: tuple[list[str], int] = Child(traced).result()
    return found


def assert_never_opened(
    paths: Collection[str], home: Path, database: Path, monkeypatch: pytest.MonkeyPatch,
    commands: Sequence[str] = COMMANDS,
) -> None:  # fmt: skip
    """Plant what nobody opens, run every command, and see that none opens it."""
    planted = plant(home, paths)
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    for command in commands:
        opened, code = opened_by(command, home, database)
        assert code in (0, 1), command
        assert planted.isdisjoint(opened), command
        assert command != "sync HOME" or any(str(home) in path for path in opened), "it is traced"
        shutil.rmtree(home.parent / "rescued", ignore_errors=True)
    connection = connect(database)
    assert SECRET not in "".join(connection.iterdump())
    assert connection.execute("select 1 from files where offset > 0").fetchone(), "all else is read"
    connection.close()


SLOW = pytest.mark.slow
ONE_EACH = {case.split("/")[0]: case for case in reversed(CASES)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "cortex" else SLOW) for kind in ONE_EACH]
)
def test_no_command_opens_what_is_private_in_a_home(
    kind: str, place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(ONE_EACH[kind], place)
    sources = [root.source for root in recognised(home, SOURCES) if root.path == home]
    read = {path for path in EVERYTHING if any(claim_at(source, path) for source in sources)}
    assert_never_opened(EVERYTHING - read, home, fresh(), monkeypatch)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")
@pytest.mark.parametrize("kinds", [("ccinsights", "chorus"), ("claude", "chorus")])
def test_no_command_opens_what_is_private_to_one_of_the_systems_that_share_a_home(
    kinds: tuple[str, ...], place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = place / "home"
    for kind in kinds:
        shutil.copytree(FOLDERS / ONE_EACH[kind] / "home", home, dirs_exist_ok=True)
    with pytest.raises(AmbiguousHomeError):
        recognised(home, SOURCES)
    database = fresh()
    planted = plant(home, PRIVATE[kinds[0]])
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    for kind in kinds:
        opened, code = opened_by(f"sync HOME --source {kind}", home, database)
        assert (code, planted.isdisjoint(opened)) == (0, True)
        assert any(str(home) in path for path in opened), "it is traced"
    without_home = [command for command in COMMANDS if "HOME" not in command]
    assert_never_opened(PRIVATE[kinds[0]], home, database, monkeypatch, without_home)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")
def test_nothing_private_is_opened_to_find_out_whose_a_directory_is(
    place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The homes that every system has by default, with nothing in them but what is private."""
    home_directory = str(Path.home())
    places = [
        *(Path(root) for s in SOURCES.values() for root in s.default_roots({}, home_directory)),
        *(place / name for s in SOURCES.values() if (name := s.directory_in_project)),
    ]
    monkeypatch.chdir(place)
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    planted = {path for home in places for path in plant(home, EVERYTHING)}
    for home in places:
        (home / "projects").mkdir(parents=True, exist_ok=True)
        (home / "sessions").mkdir(exist_ok=True)
    database = fresh()
    for command in ("sync", "sync --dry-run", *(f"sync {home}" for home in places)):
        opened, _ = opened_by(command, place, database)
        assert planted.isdisjoint(opened), command
        assert str(Path.home() / ".claude") in opened or "sync /" in command


def test_a_home_of_chorus_is_known_by_its_conversations_alone(tmp_path: Path) -> None:
    write_bytes(tmp_path, "config.json", b'{"workspaces":[]}')
    with pytest.raises(UsageError):
        recognised(tmp_path, SOURCES)
    write(tmp_path, "sessions/w1/g1/k1-messages.jsonl", {"uuid": "m", "type": "user"})
    assert [root.source.name for root in recognised(tmp_path, SOURCES)] == ["chorus"]


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_claims_nothing_that_it_withholds(kind: str) -> None:
    source = SOURCES[kind]
    for path in PRIVATE.get(kind, ()):
        parts = tuple(path.split("/"))
        if parts[0] == "file-history":  # that it is there is all that is wanted
            continue
        assert source.withholds(parts), path
        assert source.claim(parts) is None, path
    for case in CASES:
        if case.startswith(f"{kind}/"):
            home = FOLDERS / case / "home"
            for file in filter(Path.is_file, home.rglob("*")):
                parts = file.relative_to(home).parts
                assert source.claim(parts) is None or not source.withholds(parts)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")
@pytest.mark.parametrize("name", [".credentials.json", "settings.local.json"])
def test_another_name_of_a_private_file_is_not_opened_either(
    name: str, place: Path, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    home, database = home_of("claude/a-plain-session", place), fresh()
    private = write_bytes(home, name, CONTENT.encode())
    links = [home / "history.jsonl", home / PROJECT / f"{SESSION}.jsonl", home / "plans" / "a.md"]
    for link in links:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.hardlink_to(private)
    (home / "zzz.jsonl").hardlink_to(private)
    write(home, f"{PROJECT}/a-session.jsonl", user("here", "u1"))
    for command in COMMANDS:
        opened, _ = opened_by(command, home, database)
        assert {str(link) for link in links}.isdisjoint(opened), command


STRACE = shutil.which("strace")


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="needs strace")
@pytest.mark.parametrize("kind", ["claude", "ccinsights"])
def test_the_system_sees_nothing_private_opened(kind: str, place: Path) -> None:
    home = home_of(ONE_EACH[kind], place)
    planted = plant(home, PRIVATE[kind])
    trace = place / "trace"
    environment = {**os.environ, "ASSOC_INGEST_DB": str(place / "index.db"), "HOME": str(place)}
    asked = [str(STRACE), "-f", "-qq", "-s", "4096", "-o", str(trace), "-e", "trace=%file"]
    program = [sys.executable, "-m", "assoc_ingest", "sync", str(home)]
    done = subprocess.run(
        [*asked, *program], env=environment, cwd=INGEST, capture_output=True, text=True
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip("this system lets nobody be traced")
    lines = [line for line in trace.read_text("utf-8", "replace").split("\n") if "open" in line]
    assert any(str(home / "projects") in line for line in lines), done.stderr
    assert [line for line in lines if any(f'"{path}"' in line for path in planted)] == []

"""What others stumbled over does not happen here: traps that no other test steps into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults.changing import Fresh, Home, assert_ends_as_from_scratch
from tests.faults.damage import FUZZED, fixtures
from tests.support.child import Child, as_nobody
from tests.support.shell import running
from tests.support.writing import PROJECT, TRANSCRIPT, assistant, call, jsonl, result, user, write

import assoc_ingest
from assoc_ingest.__main__ import main
from assoc_ingest.source import Line
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.damage import assert_storable, ways_into, with_part
from assoc_ingest.testing.dump import assert_same, check, connect, dump


@pytest.mark.parametrize("depth", [60, 250, 260, 900, 1000, 1030, 5000, 100_000])
def test_no_depth_of_nesting_ends_a_sync(depth: int, fresh: Fresh, place: Path) -> None:
    """Decoders, encoders, Python and SQLite each have another limit."""
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    lists = b"[" * depth + b"]" * depth
    marked = [
        jsonl(assistant([call("toolu_1", given="HERE")], "a1")),
        jsonl(user([result("toolu_1", "HERE")], "u1", toolUseResult="HERE")),
        jsonl({"type": "a-new-kind", "content": "HERE", "sessionId": "s"}),
        jsonl({"type": "attachment", "attachment": "HERE", "uuid": "x", "sessionId": "s"}),
    ]
    lines = [line.replace(b'"HERE"', value) for line in marked for value in (nested, lists)]
    file = place / "home" / TRANSCRIPT
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(lines) + jsonl(user("behind it", "u9")))
    database = fresh()
    sync(database, [place / "home"])
    check(database, place / "home")
    assert dump(database)["files"][0]["line_count"] == len(lines) + 1
    assert "behind it" in [row["text"] for row in dump(database)["messages"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZED)
def test_no_depth_of_nesting_in_any_field_makes_a_parser_fail(name: str) -> None:
    deep = b"[" * 900 + b'"x"' + b"]" * 900
    looked_at = set()
    for fixture in fixtures(name):
        for line in fixture.lines:
            for path in ways_into(line):
                field = (fixture.claim.kind, *(step for step in path if isinstance(step, str)))
                if field in looked_at:
                    continue
                looked_at.add(field)
                data = with_part(line, path, "HERE").replace(b'"HERE"', deep)
                for record in fixture.source.parse(fixture.claim, [Line(0, data)]):
                    assert_storable(record)
    assert len(looked_at) > 3


def test_what_others_take_for_the_end_of_a_line_is_none(fresh: Fresh, place: Path) -> None:
    text = "one\u2028two\u2029three\u0085four\x0bfive\x0csix\rseven\x1ceight"
    raw = jsonl(user("RAW", "u2")).replace(b"RAW", b"a\xe2\x80\xa8b\xc2\x85c\xe2\x80\xa9d")
    write(place / "home", TRANSCRIPT, user(text, "u1"), raw[:-1])
    database = fresh()
    sync(database, [place / "home"])
    check(database, place / "home")
    texts = [row["text"] for row in dump(database)["messages"]]
    assert sorted(texts) == sorted([text, "a\u2028b\u0085c\u2029d"])


@pytest.mark.slow
def test_a_database_that_is_vacuumed_is_searched_and_synced_as_before(
    fresh: Fresh, place: Path
) -> None:
    """An index over a table whose rows have no ids of their own would point elsewhere."""
    home, database = Home(place / "home", 15), fresh()
    for _ in range(4):
        sync(database, [home.root])
        home.change()
        home.rewrite()
    sync(database, [home.root])
    before = dump(database)
    connection = connect(database)
    connection.execute("vacuum")
    connection.close()
    check(database, home.root)
    assert_same(dump(database), before)
    home.change()
    assert_ends_as_from_scratch(database, home.root, fresh)


HOSTILE = ("../../../etc/passwd", "/etc/passwd", "..", "C:\\secret", "a/b", "\0", "~root", "%2e%2e")


def test_no_file_is_opened_because_a_line_names_it_and_no_network_is_used(
    fresh: Fresh, place: Path
) -> None:
    """Every name that a transcript can state is hostile; the interpreter tells what is opened."""
    home, database = place / "home", fresh()
    lines: list[Any] = []
    for number, name in enumerate(HOSTILE):
        spawned = {"agentId": name, "transcript_path": name, "outputFile": name}
        stated = {"sessionId": name, "agentId": name, "cwd": name, "gitBranch": name}
        lines += [
            user(f"text {number}", name, name, **stated),
            assistant([call(name, "Read", file_path=name)], f"a{number}", name, **stated),
            user([result(name, f"see {name}")], f"r{number}", toolUseResult=spawned),
            {"type": "summary", "summary": "x", "leafUuid": name},
            {"type": "file-history-snapshot", "messageId": name, "snapshot": {
                "trackedFileBackups": {name: {"backupFileName": name, "version": 1}}}},
        ]  # fmt: skip
    write(home, TRANSCRIPT, *lines)
    write(home, f"{PROJECT}/agent-a1b2c3d.jsonl", *lines)
    sync(fresh(), [home])  # whatever Python still has to import is imported

    def watched() -> tuple[list[str], list[str]]:
        opened: list[str] = []
        connected: list[str] = []

        def see(event: str, arguments: tuple[Any, ...]) -> None:
            if event in ("open", "os.open", "os.listdir", "os.scandir"):
                opened.append(str(arguments[0]))
            elif event.startswith(("socket.", "urllib.", "subprocess.", "os.system", "os.exec")):
                connected.append(event)

        sys.addaudithook(see)
        sync(database, [home])
        return opened, connected

    opened, connected = Child(watched).result()
    ours = (str(place), sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]))
    assert any(path.endswith(".jsonl") for path in opened)
    assert [path for path in opened if not path.startswith(ours) and not path.isdigit()] == []
    assert connected == []
    check(database, home)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="of POSIX systems only")
@pytest.mark.parametrize("is_there", [False, True], ids=["new", "existing"])
def test_a_directory_that_cannot_be_written_is_told_in_one_sentence(
    is_there: bool, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    home, locked = place / "home", place / "locked"
    write(home, TRANSCRIPT, user("hello", "u1"))
    arguments = ["sync", str(home), "--db", str(locked / "index.db")]
    assert main(arguments) == 0  # all modules that are needed are now imported
    if not is_there:
        shutil.rmtree(locked)
        locked.mkdir()
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    capfd.readouterr()
    try:
        code = as_nobody(lambda: main(arguments))
    finally:
        for path in (place, *place.rglob("*")):
            path.chmod(0o755)
    words = capfd.readouterr().err
    assert code == 5, words
    assert words.count("\n") == 1, words
    assert "internal error" not in words


def test_a_database_below_a_file_is_told_in_one_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assoc_ingest.__main__.raise_on_sigterm", lambda: None)
    write(place / "home", TRANSCRIPT, user("hello", "u1"))
    (place / "file").write_text("not a directory")
    for below in ("x.db", "deeper/x.db"):
        code = main(["sync", str(place / "home"), "--db", str(place / "file" / below)])
        words = capsys.readouterr().err
        assert code == 5, words
        assert words.count("\n") == 1, words
        assert "internal error" not in words


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit has no effect")
def test_a_limit_of_memory_is_one_sentence_and_costs_nothing(fresh: Fresh, place: Path) -> None:
    home = place / "home"
    write(home, TRANSCRIPT, *(user("hello " * 300, f"u{line}") for line in range(1500)))
    told, database = set(), place / "assoc.db"
    for megabytes in (30, 36, 42, 2000):  # between them, libraries of others crash
        limit = f'ulimit -v {megabytes * 1024}; exec "$@"'
        done = subprocess.run(
            ["sh", "-c", limit, "sh", *running("sync", str(home), "--db", str(database))],
            capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(Path(assoc_ingest.__file__).parents[1])},
        )  # fmt: skip
        assert "internal error" not in done.stderr
        assert done.returncode in (0, 5), done.stderr
        if done.returncode:
            told.add(done.stderr)
            assert done.stderr.count("\n") == 1, done.stderr
    assert any("not have enough memory" in words for words in told)
    assert done.returncode == 0, done.stderr
    check(database, home)

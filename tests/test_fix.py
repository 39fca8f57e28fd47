"""`fix` finds an error whatever its numbers and paths are, and says what ended it, if anything."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.support.writing import OTHER, SESSION, THIRD

from assoc_ingest.ask.command_text import is_same, only_reads
from assoc_ingest.ask.error_text import line_with, telling_line, words_of
from assoc_ingest.sync.run import sync

ERROR = "E   ImportError: cannot import name 'Pool' from 'basin' (/srv/demo/basin.py)"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/demo/app.py", line 12, in <module>
    from basin import Pool
ImportError: cannot import name 'Pool' from 'basin' (/home/ada/basin.py)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fixed(home: Path, session: str, second: int, name: str = "basin.py") -> None:
    """Write a conversation in which an edit ended the error."""
    talk = Transcript(home, session, "/srv/demo")
    talk.bash(second, "pytest -q tests", f"line {second}\n{ERROR}\n", is_error=True)
    talk.bash(second + 2, "cat basin.py", "size = 1")
    talk.tool(
        second + 4, "Edit", file_path=f"/srv/demo/{name}", old_string="size = 1",
        new_string="class Pool: ...",
    )  # fmt: skip
    talk.bash(second + 6, "cd /srv/demo && pytest -q", "3 passed")


def test_what_ended_an_error_comes_with_its_steps(shell: Shell, home: Path) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    (item,) = shell.items("fix", "ImportError: cannot import name Pool from basin")
    assert (item["kind"], item["what"], item["count"]) == ("edited", "edited basin.py", 1)
    (one,) = item["occurrences"]
    assert one["ref"] == f"{SESSION[:8]}:2"
    assert one["error"] == ERROR.replace("   ", " ")
    assert [(step["ref"], step["action"], step["text"]) for step in one["steps"]] == [
        (f"{SESSION[:8]}:5", "edit", "-1 +1 · size = 1 → class Pool: ...")
    ]
    assert one["ended"]["ref"] == f"{SESSION[:8]}:7"
    assert shell("show", one["ended"]["ref"]) == 0
    assert shell("fix", ERROR) == 0
    assert "Found 1 time in 1 conversation; 1 ended." in shell.out
    assert f"{SESSION[:8]}:5  edit  /srv/demo/basin.py" in shell.out


def test_the_most_frequent_ending_comes_first_and_what_never_ended_last(
    shell: Shell, home: Path
) -> None:
    fixed(home, SESSION, 10)
    fixed(home, OTHER, 500)
    fixed(home, THIRD, 900, "other.py")
    hopeless = Transcript(home, THIRD[:-1] + "9", "/srv/demo")
    hopeless.bash(2000, "pytest", ERROR, is_error=True)
    hopeless.bash(2010, "pytest", ERROR, is_error=True)
    sync(shell.database, [home])
    found = shell.items("fix", ERROR)
    assert [(one["what"], one["count"]) for one in found] == [
        ("edited basin.py", 2), ("edited other.py", 1), ("did not end in its conversation", 1),
    ]  # fmt: skip
    first, *_, last = found
    assert [one["key"] for one in first["occurrences"]] == [OTHER[:8], SESSION[:8]]
    assert (last["kind"], last["occurrences"][0]["times"]) == ("never", 2)
    shell("fix", ERROR, "--json", "-n", "1")
    page = json.loads(shell.out)
    assert page["of"] | {"error": ""} == {
        "error": "", "errors": 4, "ended": 3, "conversations": 4, "is_exact": True,
    }  # fmt: skip
    shell("fix", ERROR, "--json", "-n", "5", "--cursor", page["next"])
    assert json.loads(shell.out)["items"] == found[1:]
    contract = shell.json("schema", "--json")
    assert isinstance(contract, dict)
    assert first.keys() == contract["fix"].keys()
    assert first["occurrences"][0].keys() == contract["fix"]["occurrences"].keys()


def test_a_traceback_on_standard_input_is_known_by_its_last_line(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    monkeypatch.setattr("sys.stdin", io.StringIO(TRACEBACK))
    assert shell("fix") == 0
    assert "edited basin.py (1 time" in shell.out


def test_an_error_about_something_else_is_said_to_be_one(shell: Shell, home: Path) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    assert shell("fix", "cannot import name 'Tap' from 'sink'") == 0
    assert "The same one about something else" in shell.out
    assert shell("fix", "cannot import word 'Pool' from 'basin'") == 1
    assert "No output has this error" in shell.err


def test_an_error_that_a_command_only_showed_is_none(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    talk.bash(1, "grep -n ImportError build.log", ERROR)
    talk.tool(5, "Read", ERROR, file_path="/srv/demo/build.log")
    sync(shell.database, [home])
    assert shell("fix", ERROR) == 1
    talk.bash(9, "pytest | tail -3", ERROR)  # it failed, though its last program did not
    sync(shell.database, [home])
    assert [one["kind"] for one in shell.items("fix", ERROR)] == ["never"]


def test_what_was_run_or_read_in_between_is_what_ended_it(shell: Shell, home: Path) -> None:
    ran = Transcript(home, SESSION, "/srv/demo")
    ran.bash(1, "npm test", "Error: Cannot find module 'left-pad'", is_error=True)
    ran.bash(3, "npm install left-pad", "added 1 package")
    ran.bash(5, "npm test", "ok")
    read = Transcript(home, OTHER, "/srv/demo")
    unread = "File has not been read yet. Read it first."
    path = "/srv/demo/a.py"
    read.tool(1, "Edit", unread, is_error=True, file_path=path, old_string="a", new_string="b")
    read.tool(3, "Read", "a", file_path=path)
    read.tool(5, "Edit", file_path=path, old_string="a", new_string="b")
    sync(shell.database, [home])
    assert [one["what"] for one in shell.items("fix", "Cannot find module left-pad")] == [
        "ran npm install"
    ]
    assert [one["kind"] for one in shell.items("fix", unread)] == ["looked"]


def test_numbers_paths_hashes_and_quotes_make_no_difference() -> None:
    one = "E  KeyError: 'x' at 0x7f3a99 in /srv/a/b.py:12 (took 3.5s, 1a2b3c4d5e6f7)"
    other = 'KeyError: "x" at 0xdead1 in C:\\work\\b.py (took 17s, ffeeddccbbaa998)'
    assert words_of(one)[1:] == words_of(other) == ["keyerror", "x", "at", "in", "took"]
    assert line_with(f"first\n{one}\n", words_of(other)) == one
    assert line_with("KeyError: 'y' at 1", ["keyerror", "x"]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRACEBACK, TRACEBACK.split("\n")[3]),
        (
            "compiling\nerror[E0308]: mismatched types\n --> a.rs:1\n",
            "error[E0308]: mismatched types",
        ),
        ("one\ntwo", "one"),
        ("Exit code 2\nmake: *** [all] stopped\n", "make: *** [all] stopped"),
        ("Exit code 2", "Exit code 2"),
        ("\n \n12:34\n", ""),
    ],
)
def test_the_line_that_tells_what_is_wrong_is_found(text: str, line: str) -> None:
    assert telling_line(text) == line


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("pytest -q tests/a.py", "cd x && pytest 2>&1 | tail -3", True),
        ("npm test", "npm install", False),
        ("FOO=1 cargo build", "cargo build --release", True),
        ("cat a", "cat b", False),
        ("", "", False),
    ],
)
def test_the_same_check_is_the_same_program(one: str, other: str, *, expected: bool) -> None:
    assert is_same(one, other) is expected


def test_a_command_that_changes_something_does_not_only_read() -> None:
    assert only_reads("cd /srv && git status && cat a | head -3")
    assert not only_reads("git commit -m x; git status")


def test_a_text_without_words_or_a_terminal_is_one_clear_error(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    assert shell("fix", "12 / 34") == 2
    assert "no word in this text" in shell.err
    monkeypatch.setattr("assoc_ingest.terminal.is_terminal", lambda stream: True)
    assert shell("fix") == 2
    assert 'assoc-ingest fix "ERROR TEXT"' in shell.err

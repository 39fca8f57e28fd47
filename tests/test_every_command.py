"""What holds of every command: sources are only read, the database is private, text stays text.

The homes are hostile: what agents fetched and named is full of what acts on a terminal or in a
shell that a printed command is pasted into.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.support.cases import DEMO, home_of
from tests.support.hostile import EVIL, SHELL, spoil
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    call,
    jsonl,
    result,
    user,
    write,
    write_bytes,
)
from tests.test_conformance import tree
from tests.test_first_steps import at_a_terminal

from assoc_ingest import sql
from assoc_ingest.cli import cli
from assoc_ingest.sync.run import sync

NAMED = "k" + SHELL.partition("\n")[0].replace("/", "")
"""The key of a session: what its lines and the name of its file say."""
PLAIN = "k;touch"  # what finds it

QUERIES = [f"query {name}" for name in sql.named_queries()]
LISTS = [f"list {what}" for what in sql.queries("lists")]
COMMANDS = [
    "remote --help", "push --help", "pull --help",
    "sync", "sync --full", "sync --dry-run", "sync --json", "search red", "search red --json",
    f"export {SESSION}", f"export {SESSION} --format md", f"export {SESSION} --format jsonl",
    "export --project demo -o OUT",
    "search --tools red", "search --all-hits red", "search --all-hits --raw touch -n 400",
    f"show {PLAIN}", f"show {PLAIN}:1", "show plan:evil", "show tasks:crew",
    f"show {SESSION}", f"show {SESSION} --json", "stats", "stats --by tool",
    "stats --by session", "status", "status --json", "schema", "schema --json", "verify",
    "verify --json", "rebuild",
    "restore --all --to OUT", "restore --all --to OUT --dry-run",
    f"restore {SESSION} --to OUT --json",
    "prune --gone --dry-run", "prune --gone", f"forget {SESSION} --dry-run", f"forget {SESSION}",
    f"forget {SESSION} --json", "forget --list", "compact", "service print --kind systemd",
    "secrets", "secrets --json", "secrets --rules", "price list", "price list --json",
    "mcp config", "service print --kind launchd",
    "skill print", "skill install --to OUT",
    "blame red", "blame red --json", "blame 1234567", "blame #1 --json",
    "fix red", "fix red --json",
    *LISTS, *QUERIES,
]  # fmt: skip

PROMPT = f"please {EVIL} do it"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which every text and every name that may be is hostile."""
    home = tmp_path_factory.mktemp("hostile") / "home"
    write(
        home,
        TRANSCRIPT,
        user(PROMPT, cwd=f"/srv/{EVIL}", gitBranch=EVIL),
        assistant(
            [{"type": "text", "text": EVIL}, {"type": "thinking", "thinking": EVIL},
             call("toolu_1", "Bash", command=EVIL, description=EVIL),
             call("toolu_2", "Task", prompt=EVIL, subagent_type=EVIL, description=EVIL),
             call("toolu_3", EVIL, file_path=EVIL)],
            model=EVIL, usage={"input_tokens": 5, "output_tokens": 7},
        ),
        user([result("toolu_1", EVIL, is_error=True)], "u2"),
        {"type": "custom-title", "customTitle": EVIL, "sessionId": SESSION},
        {"type": "system", "subtype": EVIL, "content": EVIL, "uuid": "s1"},
        {"type": EVIL}, f"garbage {EVIL}".encode(),
    )  # fmt: skip
    write(home, f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl", agent("a1", user(EVIL, "u9")))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user(EVIL, "u5", sessionId=OTHER))
    write(home, "history.jsonl", {"display": EVIL, "project": EVIL, "sessionId": SESSION,
                                  "timestamp": 1768900000000})  # fmt: skip
    write(home, f"tasks/{SESSION}/1.json", {"id": "1", "subject": EVIL, "description": EVIL,
                                            "status": "pending", "owner": EVIL})  # fmt: skip
    write(home, f"{PROJECT}/{NAMED}.jsonl", user(f"red {EVIL}", "u8", sessionId=NAMED),
          {"type": "summary", "summary": EVIL, "leafUuid": "u8"})  # fmt: skip
    write(home, "tasks/crew/1.json", {"id": f"1{EVIL}", "subject": f"red {EVIL}", "status": EVIL})
    write(home, f"tasks/red{SHELL}/1.json", {"id": "1", "subject": "red", "status": "pending"})
    write(home, f"teams/t{SHELL}/inboxes/b{SHELL}.json", [{"from": EVIL, "text": "red"}])
    write(home, "teams/crew/config.json", {"name": EVIL, "members": [{"name": EVIL}]})
    write(home, "teams/crew/inboxes/bob.json", [{"from": EVIL, "text": EVIL, "read": False}])
    write(home, f"todos/{SESSION}-agent-{SESSION}.json", [{"content": EVIL, "status": "pending"}])
    write_bytes(home, "plans/evil.md", f"# {EVIL}\n\n{EVIL}\n".encode())
    write_bytes(home, f"projects/-srv-\x1b[31m\u202e/{OTHER[:-1]}9.jsonl", jsonl(user(EVIL, "u7")))
    return home


@pytest.fixture(scope="module")
def filled(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("filled") / "assoc.db"
    demos = shutil.copytree(DEMO, hostile.parent / "demos")
    for case in ("codex/databases-and-what-their-events-say", "opencode/a-database"):
        home_of(case, demos, case.replace("/", "-"))
    spoil(demos)
    sync(database, [hostile, *demos.iterdir()])
    (hostile / PROJECT / f"{OTHER}.jsonl").unlink()
    sync(database, [hostile])
    return database


ELSEWHERE = {
    *("watch", "serve", "mcp", "service install", "service uninstall"),  # have tests of their own
    *("push", "pull"),  # as all of `remote` that needs a server: tests/fleet
    *(f"remote {name}" for name in (
        "init", "migrate", "add-device", "disallow", "adopt", "new-origin", "withdraw", "prune",
        "index", "reindex",
    )),
}  # fmt: skip


def _commands(group: click.Group, before: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_command_is_tried() -> None:
    tried = {" ".join(line.split()[:words]) for line in COMMANDS for words in (1, 2)}
    tried |= {" ".join(words[:2]) for words in TYPED.values()}
    assert set(_commands(cli)) - tried - ELSEWHERE == set()


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_writes_where_it_may_and_prints_what_is_harmless(
    line: str,
    hostile: Path,
    filled: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "data"
    place.mkdir(mode=0o700)
    database = Path(shutil.copy(filled, place / "assoc.db"))
    database.chmod(0o600)
    monkeypatch.setenv("ASSOC_INGEST_DB", str(database))
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    before = tree(hostile)
    if line.startswith("skill"):
        (tmp_path / "out").mkdir()
    code = Shell(database, capsys)
    status = code(*line.replace("OUT", str(tmp_path / "out")).split())
    assert status in (0, 1), code.err
    assert tree(hostile) == before
    assert harmful_in(code.out + code.err) == []
    assert touched_by(code.out + code.err, tmp_path) == []
    assert _readable_by_others(place) == []
    if not line.startswith("skill"):  # which holds nothing of anybody
        assert _readable_by_others(tmp_path / "out") == []


TYPED = {
    "a query": ["search", EVIL],
    "a query of all hits": ["search", "--all-hits", f"red {EVIL}"],
    "an expression": ["search", "--raw", EVIL],
    "an option": ["search", f"--{SHELL}"],
    "an error": ["fix", f"Error: red {EVIL}"],
    "a reference": ["show", EVIL],
    "a key": ["show", NAMED],
    "a line": ["show", f"{NAMED}:1"],
    "a plan": ["show", f"plan:{EVIL}"],
    "a project": ["list", "sessions", "--project", EVIL],
    "a time": ["list", "sessions", "--since", EVIL],
    "a list": ["list", EVIL],
    "a report": ["query", EVIL],
    "a command": [EVIL],
    "a file": ["blame", EVIL],
    "a format": ["stats", "--by", EVIL],
    "a database": ["status", "--db", f"none/{SHELL}"],
    "a home": ["sync", f"none/{SHELL}"],
    "a session to forget": ["forget", EVIL, "--dry-run"],
    "a session to restore": ["restore", EVIL, "--to", "out"],
    "a session to export": ["export", EVIL],
    "a model to price": ["price", "set", EVIL, "--input", "1", "--output", "2"],
    "a model without a price": ["price", "remove", EVIL],
    "a server": ["remote", "init", f"postgresql://{SHELL}"],
    "nothing, without a server": ["remote", "status"],
    "a project that may leave": ["remote", "allow", SHELL],
    "a project of the server": ["mcp", "--project", EVIL, "config"],
}


@pytest.mark.parametrize("name", TYPED)
def test_what_is_typed_is_repeated_harmlessly(
    name: str,
    filled: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ASSOC_INGEST_DB", str(filled))
    monkeypatch.chdir(tmp_path)
    code = Shell(filled, capsys)
    assert code(*TYPED[name]) != 70, code.err
    assert code.out + code.err
    assert harmful_in(code.out + code.err) == []
    assert touched_by(code.out + code.err, tmp_path) == []


def test_a_command_that_is_printed_opens_what_it_names(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is in a key, a shell hands it back as it is."""
    code = Shell(filled, capsys)
    assert code("show", PLAIN, "--db", str(filled)) == 0, code.err
    match = re.search(r"(show .*):LINE", code.out)
    assert match
    words = shlex.split(f"{match[1]}:1'" if "'" in match[1] else f"{match[1]}:1")
    assert words[1].startswith(PLAIN)
    assert code(*words, "--db", str(filled)) == 0, code.err


@pytest.mark.slow
def test_on_a_terminal_only_our_own_colours_act(filled: Path) -> None:
    """A colour that is in a text is shown, not obeyed, whether or not a pager is there."""
    for pager, kind in (("cat", "xterm"), ("no-such-pager", "emacs")):
        for line in ("search red", "search --all-hits red", f"show {PLAIN}", "list sessions"):
            _, text = at_a_terminal(filled, "", *line.split(), pager=pager, kind=kind)
            painted = re.sub(r"\x1b\[(?:[012]|3[1-7])m", "", text.replace("\r\n", "\n"))
            assert painted != text or line.startswith("list")
            assert "red \x1b" not in text
            assert r"\x1b[2m" not in text  # ours are not shown
            assert harmful_in(painted) == []


STUBS = (
    "assoc-ingest",
    "claude",
    "codex",
    "copilot",
    "gemini",
    "opencode",
    "pi",
    "show",
    "baseline",
)
_begins = re.compile(rf"(?:^|[\s`(])((?:{'|'.join(STUBS)}|cd|--root|--baseline) .*)")


def touched_by(text: str, place: Path) -> list[str]:
    """Paste each command that was printed into a shell; return those that did anything."""
    programs, here = place / "programs", place / "here"
    if not programs.exists():
        programs.mkdir()
        here.mkdir()
        for name in STUBS:
            (programs / name).write_text("#!/bin/sh\n")
            (programs / name).chmod(0o700)
        (programs / "touch").symlink_to("/bin/touch")
    lines = dict.fromkeys(
        match[1] for line in text.splitlines() for match in [_begins.search(line)] if match
    )
    did = []
    for line in lines:
        environment = {"PATH": str(programs), "HOME": str(here)}
        subprocess.run(["/bin/sh", "-c", line], cwd=here, env=environment,
                       stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip
        if os.listdir(here):
            did.append(line)
            for name in os.listdir(here):
                (here / name).unlink()
    return did


def harmful_in(text: str) -> list[str]:
    """Return the characters that act on a terminal, or on how a line is read."""
    return sorted({
        f"U+{ord(letter):04X}" for letter in text
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and letter not in "\n\t\u200c\u200d\u00ad"
    })  # fmt: skip


def _readable_by_others(place: Path) -> list[str]:
    paths = [place, *place.rglob("*")] if place.exists() else []
    return [str(path) for path in paths if path.stat().st_mode & 0o077]

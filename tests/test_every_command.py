"""What holds of every command: sources are only read, the database is private, text stays text.

The home is hostile: what an agent fetched is full of what acts on a terminal.
"""

from __future__ import annotations

import shutil
import signal
import unicodedata
from pathlib import Path

import click
import pytest
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

from assoc_ingest import sql
from assoc_ingest.cli import cli
from assoc_ingest.sync.run import sync

EVIL = (
    "red \x1b[31m title \x1b]0;owned\x07 clip \x1b]52;c;ZXZpbA==\x07 link \x1b]8;;http://x\x1b\\"
    " dcs \x1bPq\x1b\\ c1 \x9b31m bell \x07 bidi \u202e\u2066 tag \U000e0041 bom \ufeff\r\x08"
)

QUERIES = [f"query {name}" for name in sql.named_queries()]
LISTS = [f"list {what}" for what in sql.queries("lists")]
COMMANDS = [
    "remote --help", "push --help", "pull --help",
    "sync", "sync --full", "sync --dry-run", "sync --json", "search red", "search red --json",
    f"export {SESSION}", f"export {SESSION} --format md", f"export {SESSION} --format jsonl",
    "export --project demo -o OUT",
    "search --tools red", f"show {SESSION}", f"show {SESSION} --json", "stats", "stats --by tool",
    "stats --by session", "status", "status --json", "schema", "schema --json", "verify",
    "verify --json", "rebuild",
    "restore --all --to OUT", "restore --all --to OUT --dry-run",
    f"restore {SESSION} --to OUT --json",
    "prune --gone --dry-run", "prune --gone", f"forget {SESSION} --dry-run", f"forget {SESSION}",
    f"forget {SESSION} --json", "forget --list", "compact", "service print --kind systemd",
    "secrets", "secrets --json", "secrets --rules",
    "mcp config", "skill print", "skill install --to OUT",
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
    write(home, "teams/crew/config.json", {"name": EVIL, "members": [{"name": EVIL}]})
    write(home, "teams/crew/inboxes/bob.json", [{"from": EVIL, "text": EVIL, "read": False}])
    write(home, f"todos/{SESSION}-agent-{SESSION}.json", [{"content": EVIL, "status": "pending"}])
    write_bytes(home, "plans/evil.md", f"# {EVIL}\n\n{EVIL}\n".encode())
    write_bytes(home, f"projects/-srv-\x1b[31m\u202e/{OTHER[:-1]}9.jsonl", jsonl(user(EVIL, "u7")))
    return home


@pytest.fixture(scope="module")
def filled(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("filled") / "assoc.db"
    sync(database, [hostile])
    (hostile / PROJECT / f"{OTHER}.jsonl").unlink()
    sync(database, [hostile])
    return database


def test_every_command_is_tried() -> None:
    tried = {line.split()[0] for line in COMMANDS}
    tried |= {"watch", "serve", "mcp"}  # those have tests of their own
    assert tried == set(cli.list_commands(click.Context(cli)))


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
    assert _harmful(code.out + code.err) == []
    assert _readable_by_others(place) == []
    if not line.startswith("skill"):  # which holds nothing of anybody
        assert _readable_by_others(tmp_path / "out") == []


def _harmful(text: str) -> list[str]:
    """Return the characters that act on a terminal, or on how a line is read."""
    return sorted({
        f"U+{ord(letter):04X}" for letter in text
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and letter not in "\n\t\u200c\u200d\u00ad"
    })  # fmt: skip


def _readable_by_others(place: Path) -> list[str]:
    paths = [place, *place.rglob("*")] if place.exists() else []
    return [str(path) for path in paths if path.stat().st_mode & 0o077]

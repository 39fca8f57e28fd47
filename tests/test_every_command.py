"""What holds of every command: sources are only read, the database is private, text stays text.

The homes are hostile: what agents fetched and named is full of what acts on a terminal or in a
shell that a printed command is pasted into.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import click
import pytest
from tests.support.cases import DEMO, home_of
from tests.support.hostile import EVIL, SHELL, spoil
from tests.support.shell import Shell, running
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
from tests.test_first_steps import at_a_terminal

from assoc_ingest import sql
from assoc_ingest.cli import cli
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.promises import tree

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
    f"note {PLAIN} --star --kept text", f"note {PLAIN}:1 text", f"note {PLAIN} --json",
    "list notes", "show note:1", f"note {PLAIN}:1 --remove",
    f"show {PLAIN}", f"show {PLAIN}:1", "show plan:evil", "show tasks:crew",
    f"show {SESSION}", f"show {SESSION} --json", "stats", "stats --by tool",
    "recent", "recent -n 50 --json", "recent --cwd /srv/demo",
    "recap --since 2020-01-01", "recap --since 2020-01-01 --markdown", "recap 2026 --json",
    "stats --by session", "status", "status --json", "schema", "schema --json", "verify",
    "verify --json", "rebuild",
    "restore --all --to OUT", "restore --all --to OUT --dry-run",
    f"restore {SESSION} --to OUT --json",
    "prune --gone --dry-run", "prune --gone", f"forget {SESSION} --dry-run", f"forget {SESSION}",
    f"forget {SESSION} --json", "forget --list", "compact", "service print --kind systemd",
    "secrets", "secrets --json", "secrets --rules", "price list", "price list --json",
    "mcp config", "service print --kind launchd",
    "skill print", "skill install --to OUT", "recall --hook session-start",
    "recall --hook compact", "plugin print --for codex", "plugin install --to OUT",
    "blame red", "blame red --json", "blame 1234567", "blame #1 --json",
    "fix red", "fix red --json", "how touch", "how touch --json",
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
    *("watch", "serve", "mcp"),  # below
    *("service install", "service uninstall"),  # tests/test_service.py
    *("push", "pull"),  # as all of `remote` that needs a server: tests/fleet
    *(f"remote {name}" for name in (
        "init", "migrate", "add-device", "disallow", "adopt", "new-origin", "withdraw", "prune",
        "index", "reindex", "join", "devices", "invite", "quota", "remove-device", "remove-origin",
        "health", "retention", "erase",
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
    if line.startswith(("skill", "plugin")):
        (tmp_path / "out").mkdir()
    code = Shell(database, capsys)
    status = code(*line.replace("OUT", str(tmp_path / "out")).split())
    assert status in (0, 1), code.err
    assert tree(hostile) == before
    assert harmful_in(code.out + code.err) == []
    assert touched_by(code.out + code.err, tmp_path) == []
    assert _readable_by_others(place) == []
    if not line.startswith(("skill", "plugin")):  # which holds nothing of anybody
        assert _readable_by_others(tmp_path / "out") == []


TYPED = {
    "a query": ["search", EVIL],
    "a query of all hits": ["search", "--all-hits", f"red {EVIL}"],
    "an expression": ["search", "--raw", EVIL],
    "an option": ["search", f"--{SHELL}"],
    "an error": ["fix", f"Error: red {EVIL}"],
    "a program": ["how", EVIL],
    "a reference": ["show", EVIL],
    "a note": ["note", PLAIN, EVIL, "--title", EVIL],
    "a note on nothing": ["note", EVIL, "text"],
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


LONG_NAME = ("\x1b]0;owned\x07\x1b[31m\x9b\u202e" + SHELL).replace("/", "")[:200]
"""What a directory may be called: the system takes no longer names."""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")
@pytest.mark.parametrize("options", [[], ["--log-json"]], ids=["for people", "as JSON"])
def test_what_a_watch_tells_is_harmless(options: list[str], hostile: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(hostile, tmp_path / LONG_NAME / "home"))
    (home / "plans/evil.md").write_bytes(b"\xff\x00" + EVIL.encode())
    arguments = [str(home), "--rescan", "0.2", *options, "--db", str(tmp_path / "assoc.db")]
    with _started("watch", *arguments) as process:
        said = _until(process, b"could not be parsed" if not options else b'"pass"')
        home.rename(home.with_name("away"))
        said += _until(process, b"issing")
        said += _ended(process)
    assert harmful_in(said) == []
    assert touched_by(said, tmp_path) == []
    for line in said.splitlines() if options else ():
        json.loads(line)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="of POSIX systems only")
def test_what_a_server_logs_is_harmless(filled: Path, tmp_path: Path) -> None:
    place = tmp_path / LONG_NAME
    place.mkdir()
    database = Path(shutil.copy(filled, place / "assoc.db"))
    with _started("serve", "--watch", "--port", "0", "--db", str(database)) as process:
        said = _until(process, b"Uvicorn running")
        match = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        assert match
        evil = quote(EVIL, safe="")
        addresses = [
            b"/", f"/assoc/{evil}".encode(), f"/-/assoc/search?q={evil}".encode(),
            f"/assoc?sql=select+{evil}".encode(), f"/assoc/sessions/{evil}".encode(),
            b"/\x1b[31m\x9b\xe2\x80\xae", b"\x1b]0;owned\x07",
        ]  # fmt: skip
        for address in addresses:
            with socket.create_connection(("127.0.0.1", int(match[1])), timeout=60) as asking:
                asking.sendall(
                    b"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: \x1b[31m\r\n"
                    b"Connection: close\r\n\r\n" % (address, int(match[1]))
                )
                assert asking.recv(4096).startswith(b"HTTP/1.1 ")
        database.unlink()
        said += _until(process, b"while being served")
    assert harmful_in(said) == []
    assert touched_by(said, tmp_path) == []


_CALLS: list[tuple[str, dict[str, object]]] = [
    *(("recent", given) for given in ({}, {"cwd": f"/{EVIL}"}, {"project": EVIL})),
    *(("search", {"query": query, "limit": 20}) for query in ("red", "touch", EVIL)),
    ("recap", {"since": "2020-01-01"}), ("recap", {"when": EVIL}),
    ("search", {"query": "red", "kinds": [EVIL]}),
    *(("open", {"ref": ref}) for ref in (SESSION, NAMED, PLAIN, f"{PLAIN}:1", "plan:evil", EVIL)),
    *(("blame", {"what": what}) for what in ("red", EVIL)),
    *(("fix", {"error": error}) for error in ("red", EVIL)),
    *(("sql", {"query": f"select * from {table}"}) for table in ("sessions", "tasks")),
    *(("sql", given) for given in ({"query": EVIL}, {"schema": EVIL}, {"schema": "all"})),
    (EVIL, {}), ("open", {EVIL: EVIL}), ("recent", {"limit": EVIL}), ("recent", {"cursor": EVIL}),
]  # fmt: skip


@pytest.mark.slow
def test_what_a_server_answers_an_agent_is_harmless(filled: Path, tmp_path: Path) -> None:
    def request(method: str, number: object, **parameters: object) -> bytes:
        asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        return json.dumps(asked).encode() + b"\n"

    client = {"name": EVIL, "version": EVIL}
    lines = [
        request("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo=client),
        *(
            request("tools/call", number, name=name, arguments=given)
            for number, (name, given) in enumerate(_CALLS, 1)
        ),
        *(request(EVIL, 0), request("ping", EVIL), f"garbage {EVIL}\n".encode()),
    ]
    run = subprocess.run(
        running("mcp", "--no-sync", "--db", str(filled)),
        input=b"".join(lines), capture_output=True, env=_environment(tmp_path),
    )  # fmt: skip
    assert run.returncode == 0
    out, said = run.stdout.decode(), run.stderr.decode()
    assert harmful_in(out + said) == []
    answers = [json.loads(line) for line in out.splitlines()]
    texts = {
        answer["id"]: answer["result"]["content"][0]["text"]
        for answer in answers
        if "content" in answer.get("result", {})
    }
    assert len(texts) >= len(_CALLS) - 1  # an unknown tool is an error of the protocol
    assert {number: found for number, text in texts.items() if (found := harmful_in(text))} == {}
    assert touched_by("\n".join([said, *texts.values()]), tmp_path) == []


def _environment(place: Path) -> dict[str, str]:
    return {**os.environ, **dict.fromkeys(("HOME", "USERPROFILE", "XDG_DATA_HOME"), str(place))}


@contextmanager
def _started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        running(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _until(process: subprocess.Popen[bytes], words: bytes) -> str:
    """Return what a process says up to the line with these words."""
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return b"".join(lines).decode()
    raise AssertionError(b"".join(lines))


def _ended(process: subprocess.Popen[bytes]) -> str:
    """End a process; return what it says until then."""
    process.terminate()
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return said.decode()


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
    "systemctl",
    "launchctl",
)
_begins = re.compile(rf"(?:^|[\s`(])((?:{'|'.join(STUBS)}|cd|--root|--baseline) (?! ).*)")
"""Where a command begins. An agent in a column of a table has two spaces behind its name."""


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

"""No credential that a rule knows leaves this machine, in bytes or rows.

What leaves instead is what would leave if the files had never held one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import Fleet
from tests.support.planted import WORDS
from tests.support.shell import Shell
from tests.support.writing import (
    PROJECT,
    SESSION,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)
from tests.test_forget_secrets import KINDS, TOKEN, a_home

from assoc_ingest.cli import cli
from assoc_ingest.files import archive
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.fleet.projection import EVERYTHING, FILES, Local, Masks
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.secrets.mask import redact, redact_bytes
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

_PATH = FILES.names.index("path")

Placed = dict[tuple[str, int], tuple[bytes | None, dict[str, list[tuple[Any, ...]]]]]


def projected(database: Path, masks: Masks) -> tuple[Placed, dict[str, list[tuple[Any, ...]]]]:
    """Return all frames by path and start, their bytes not compressed, and the keyed rows."""
    connection = open_reader(database)
    try:
        placed: Placed = {}
        local = Local(connection, EVERYTHING, masks)
        for file in local.files(None):
            content = local.content(file)
            for frame in content.frames:
                data = frame.data and archive.zstd.decompress(frame.data)
                placed[content.attributes[_PATH], frame.start] = data, frame.rows
        return placed, {keyed.table: keyed.rows for keyed in local.keyed(None)}
    finally:
        connection.close()


@pytest.mark.parametrize("kind", KINDS)
def test_no_credential_leaves_in_bytes_or_rows(
    kind: str, place: Path, fresh: Callable[[], Path]
) -> None:
    database, text = fresh(), KINDS[kind]
    sync(database, [a_home(place / "home", text)])
    body = text.splitlines()[len(text.splitlines()) // 2]
    assert body in repr(projected(database, Masks(is_on=False)))
    masks = Masks()
    covered = repr(projected(database, masks))
    if kind == "a password":  # where nothing names it, it is a word like any other
        assert f"DB_PASSWORD={body}" not in covered
    else:
        assert body not in covered
    assert masks.counts.total() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_covered_bytes(
    kind: str, place: Path, fresh: Callable[[], Path]
) -> None:
    text, ours, theirs = KINDS[kind], fresh(), fresh()
    home = a_home(place / "home", text)
    sync(ours, [home])
    for path in (path for path in home.rglob("*") if path.is_file()):
        data, _ = redact_bytes(path.read_bytes(), is_log=path.suffix == ".jsonl")
        before = path.stat()
        path.write_bytes(data)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    sync(theirs, [home])
    placed, _ = projected(ours, Masks())
    expected, _ = projected(theirs, Masks(is_on=False))
    assert placed.keys() == expected.keys()
    for key, (data, rows) in expected.items():
        assert placed[key][0] == data, key
        assert placed[key][1] == rows, key


def test_escapes_within_a_credential_are_covered_whole(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    line = dumps_escaped(user(f"It is {TOKEN} now"))
    write(home, f"{PROJECT}/{SESSION}.jsonl", line, user("Nothing here", "u2", "u1", 2))
    sync(database, [home])
    placed, _ = projected(database, Masks())
    (text,) = [
        row[3]
        for _, rows in placed.values()
        for row in rows.get("messages", ())
        if row[3].startswith("It is")
    ]
    assert text == f"It is {'*' * (len(TOKEN) + 5)} now"


def dumps_escaped(value: dict[str, Any]) -> bytes:
    """Return a line of JSON in which the token's underscore is written as an escape."""
    return dumps(value).replace(TOKEN.encode(), TOKEN.replace("_", "\\u005f", 1).encode())


def test_a_credential_behind_the_first_frame_of_a_line_is_covered(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    blocks = [{"type": "text", "text": text} for text in ("x" * 5_000_000, f"It is {TOKEN} now")]
    write(home, f"{PROJECT}/{SESSION}.jsonl", assistant(blocks))
    sync(database, [home])
    placed, _ = projected(database, Masks(is_on=False))
    assert max(start for _, start in placed) > 1_000_000, "there are several frames"
    assert TOKEN in repr(placed[f"{PROJECT}/{SESSION}.jsonl", 0][1])
    assert TOKEN not in repr(projected(database, Masks()))


def test_a_credential_across_a_border_of_frames_is_covered(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home, frame = fresh(), place / "home", 1024 * 1024
    line = dumps(user("x" * 5 * frame))
    start = line.index(b"xxxx")
    middle = frame - start - 20
    line = line.replace(b"x" * 5 * frame, b" " * middle + TOKEN.encode() + b" " * 4 * frame)
    write_bytes(home, f"{PROJECT}/{SESSION}.jsonl", line + b"\n")
    sync(database, [home])
    placed, _ = projected(database, Masks())
    assert next(start for _, start in placed if start > 0) == frame
    data = b"".join(data for (_, start), (data, _) in sorted(placed.items()) if data)
    assert len(data) == len(line) + 1
    assert TOKEN[:15].encode() not in data
    assert TOKEN[-15:].encode() not in data
    assert TOKEN not in repr(placed)


def test_a_pasted_text_is_covered_where_a_prompt_repeats_it(
    place: Path, fresh: Callable[[], Path]
) -> None:
    database, home = fresh(), place / "home"
    pasted = {"1": {"id": 1, "type": "text", "contentHash": "0123456789abcdef"}}
    write(
        home,
        "history.jsonl",
        {"display": "Look [Pasted text #1]", "pastedContents": pasted, "timestamp": 1768905000000,
         "project": "/srv/demo"},
    )  # fmt: skip
    write_bytes(home, "paste-cache/0123456789abcdef.txt", f"It is {TOKEN} now".encode())
    sync(database, [home])
    assert TOKEN in repr(projected(database, Masks(is_on=False))[0]["history.jsonl", 0][1])
    assert TOKEN not in repr(projected(database, Masks()))


def test_what_has_no_credential_is_sent_as_it_is(place: Path, fresh: Callable[[], Path]) -> None:
    database, home = fresh(), place / "home"
    write(
        home,
        f"{PROJECT}/{SESSION}.jsonl",
        user("Sow beans"),
        assistant([call("t1", command="ls")]),
        user([result("t1", "beans.txt")], "u2", "a1", 2),
    )
    sync(database, [home])
    masks = Masks()
    assert projected(database, masks) == projected(database, Masks(is_on=False))
    assert not masks.counts


# -- one table for everything that leaves the machine --------------------------------------------

PLANTED = {name: (text.format(word), word) for name, (text, word) in WORDS.items()}


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """A home that has each of them in a prompt, in calls, a result, a plan and the history."""
    home = tmp_path / "home"
    texts = [text for text, _ in PLANTED.values()]
    lines: list[Any] = []
    for n, text in enumerate(texts):
        lines += [
            user(f"Look:\n{text}\nplease", f"u{n}"),
            assistant([call(f"t{n}", command=f"echo\n{text}")], f"a{n}", f"u{n}", id=f"m{n}"),
            user([result(f"t{n}", f"first\n{text}\nlast")], f"r{n}", f"a{n}"),
        ]
    write(home, f"{PROJECT}/{SESSION}.jsonl", *lines)
    write_bytes(home, "plans/all.md", "\n\n".join(["# All", *texts]).encode())
    history = [{"display": text, "timestamp": 1768905000000, "project": "/srv/demo",
                "sessionId": SESSION} for text in texts]  # fmt: skip
    write(home, "history.jsonl", *history)
    return home


def _leaked(shown: str) -> list[str]:
    """Which of them stand in what was shown, however it is escaped."""
    plain = shown.replace("\\_", "_").replace("\\\\", "\\").replace("\\\\", "\\")
    return [name for name, (_, word) in PLANTED.items() if word in plain]


@pytest.mark.parametrize("form", ["md", "html", "jsonl"])
def test_no_planted_credential_is_in_an_export(form: str, leaky: Path, shell: Shell) -> None:
    sync(shell.database, [leaky])
    assert shell("export", SESSION, "--format", form, "--no-redact") == 0
    assert _leaked(shell.out) == list(PLANTED)
    assert shell("export", SESSION, "--format", form) == 0
    assert _leaked(shell.out) == []


def test_no_planted_credential_is_in_an_answer_of_mcp(leaky: Path, shell: Shell) -> None:
    sync(shell.database, [leaky])
    queries = [
        *(f"select {column} from {table}" for table, column in
          (("messages", "text"), ("messages", "tool_text"), ("plans", "content"),
           ("prompts", "text"))),
        "select group_concat(text, ' ') from messages",
    ]  # fmt: skip
    said = {}
    for is_masked in (False, True):
        tools = Tools(Index(Settings(shell.database, is_masked=is_masked)))
        asked = [("sql", {"query": query, "max_chars": 100_000}) for query in queries]
        asked += [("open", {"ref": f"{SESSION}:{n + 1}", "max_chars": 20_000})
                  for n in range(3 * len(PLANTED))]  # fmt: skip
        said[is_masked] = "".join(json.dumps(tools.call(*each)) for each in asked)
    assert _leaked(said[False]) == list(PLANTED)
    assert _leaked(said[True]) == []


def test_no_planted_credential_is_pushed_or_pulled(
    leaky: Path, tmp_path: Path, database: Any, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path, empty_database, database)
    for name, masks in (("bare", Masks(is_on=False)), ("covered", Masks())):
        machine = fleet.machine(name, masks)
        machine.push(leaky)
        if masks.is_on:
            assert {"password", "GitHub token", "secret"} <= masks.counts.keys()
    monkeypatch.setenv(DESTINATION, fleet.destination)
    for name, expected in (("bare", list(PLANTED)), ("covered", [])):
        team = tmp_path / f"{name}-pulled.db"
        run = CliRunner().invoke(cli, ["pull", "--origin", name, "--db", str(team)])
        assert run.exit_code == 0, run.output
        with closing(open_reader(team)) as connection:
            rows = "\n".join(connection.iterdump())
            files = [id_ for (id_,) in connection.execute("select id from files")]
            data = b"".join(b"".join(archive.read(connection, id_)) for id_ in files).decode()
        assert _leaked(rows) == expected, name
        assert _leaked(data) == expected, name
    rows = database.execute(
        "select string_agg(m::text, ' ') from assoc.messages m join assoc.origins o"
        " using (origin_id) where o.label = 'covered'"
    ).fetchone()[0]
    assert len(rows) > 1_000
    assert _leaked(rows) == []


def test_what_is_covered_of_a_line_leaves_it_json(leaky: Path) -> None:
    odd = [
        {"password": 12345678, "has_token": True, "secret": None, "a": {"token": 1.5e300}},
        {"text": "the password: ", "next": 1234567, "Authorization": False},
        ["--password ", 1234567, "password:", 123456, "password=", "x"],
        {"authorization": 123456789.5, "pwd": [1, 2], "x": {"api_key": 1234567}},
        {"a": "-----BEGIN RSA PRIVATE KEY-----", "b": "q" * 40, "c": ["x" * 70, "y" * 64]},
        {"a": 'say "password": "', "b": "c"},
        {"é": "motdepasse: àà\x85\xa0ààà, mot de passe=«sécretà»"},
    ]
    lines = [dumps(item) for item in odd]
    lines += [dumps({"a": dumps(item).decode()}) for item in odd]
    lines += (leaky / f"{PROJECT}/{SESSION}.jsonl").read_bytes().splitlines()
    covered, _ = redact_bytes(b"\n".join(lines), is_log=True)
    for before, after in zip(lines, covered.split(b"\n"), strict=True):
        assert len(before) == len(after)
        assert _shape(json.loads(before)) == _shape(json.loads(after)), after
        redacted = json.loads(redact(before.decode())[0])
        assert _shape(json.loads(before)) == _shape(redacted)


def _shape(value: object) -> object:
    """A value without its texts."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    return list(map(_shape, value)) if isinstance(value, list) else value if (
        not isinstance(value, str)
    ) else ""  # fmt: skip

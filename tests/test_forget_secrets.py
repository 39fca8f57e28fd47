"""A credential that is forgotten is gone from every table, every index and the archive.

And it stays away, whatever is synced, though the agent's own files still have it; nothing else
changes.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.pieces import Killed, killed_at
from tests.support.planted import password, planted, private_key
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    assistant,
    call,
    dumps,
    jsonl,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.files import archive, tail
from assoc_ingest.files.exclusions import stretches_without
from assoc_ingest.secrets.find import find
from assoc_ingest.secrets.forget import ForgottenSecrets, fingerprint, forgotten_secret
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump, rows
from assoc_ingest.testing.promises import read_in_pieces, tree
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.forget import Target, forget, tombstones
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

TOKEN = planted()["github"]
WORD = password(3, 14)
KEY = private_key()
SALT = b"s" * 16
KINDS = {"a token": TOKEN, "a password": WORD, "a private key": KEY}


def a_home(home: Path, text: str) -> Path:
    """Write a home in which a credential stands in every store, named as one once."""
    named = f"export DB_PASSWORD={text}" if text == WORD else text
    message = f"It is {text} now"
    write(
        home,
        TRANSCRIPT,
        {"type": "custom-title", "customTitle": f"About {text}", "sessionId": SESSION},
        user(f"Deploy with\n{named}\nplease"),
        assistant(
            [{"type": "thinking", "thinking": message}, call("t1", command=f"echo '{text}'")]
        ),
        user([result("t1", f"{text}\n{text}")], "u2", "a1", 2),
        b'{"torn": "%s' % json.dumps(text)[1:-1].encode(),
        assistant("Done, nothing to see", "a3", "u2", 3, id="msg_2"),
    )
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "o1", sessionId=OTHER))
    write(home, f"{PROJECT}/{SESSION}/subagents/agent-a1b2c3d.jsonl",
          {**user(message, "g1"), "isSidechain": True, "agentId": "a1b2c3d"})  # fmt: skip
    write_bytes(home, f"{PROJECT}/{SESSION}/tool-results/t9.txt", f"{text}\n".encode())
    write(home, "history.jsonl", {"display": message, "timestamp": 1768905000000,
                                  "project": "/srv/demo", "sessionId": SESSION})  # fmt: skip
    task = {"id": "1", "subject": f"Use {text}", "description": message, "status": "pending"}
    write_bytes(home, f"tasks/{SESSION}/1.json", dumps(task))
    todos = [{"content": message, "status": "pending", "activeForm": text}]
    write_bytes(home, f"todos/{SESSION}-agent-{SESSION}.json", dumps(todos))
    mail = {"from": "bob", "text": message, "timestamp": "2026-01-20T10:00:00.000Z", "read": False}
    write_bytes(home, "teams/crew/config.json", dumps({"name": "crew", "members": []}))
    write_bytes(home, "teams/crew/inboxes/ada.json", dumps([mail]))
    write_bytes(home, "plans/deploy.md", f"# With {text}\n\n{message}\n".encode())
    event = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt": message}
    write(home, "theassociate/hook-events.jsonl", event)
    entry = {"sessionId": SESSION, "summary": message, "projectPath": "/srv/demo"}
    index = {"version": 1, "entries": [entry]}
    write_bytes(home, f"{PROJECT}/sessions-index.json", dumps(index))
    return home


def letters_of(text: str) -> list[bytes]:
    """Return what must be nowhere: a credential, or each line of a key."""
    return [line.encode() for line in text.split("\n") if "-----" not in line]


def name_of(text: str) -> str:
    data = text.encode() if text != WORD else b"password=" + text.encode()
    (secret,) = find(data, is_log=False)
    return fingerprint(secret.text)


def remains(database: Path, text: str) -> list[str]:
    """Return where the letters of a credential still are."""
    found = []
    with closing(connect(database)) as connection:
        for (table,) in connection.execute(
            "select name from sqlite_master where type = 'table' and sql not like '%virtual%'"
        ).fetchall():
            for row in connection.execute(f'select * from "{table}"'):
                values = str(tuple(row)).encode()
                found += [table for part in letters_of(text) if part in values]
        for (file_id,) in connection.execute("select id from files").fetchall():
            data = b"".join(archive.read(connection, file_id))
            found += ["archive" for part in letters_of(text) if part in data]
    for path in database.parent.glob(f"{database.name}*"):
        found += [path.name for part in letters_of(text) if part in path.read_bytes()]
    return found


def forgotten(shell: Shell, home: Path, text: str) -> None:
    sync(shell.database, [home])
    assert remains(shell.database, text)
    assert shell("forget", "--secret", name_of(text)) == 0, shell.err


def with_the_same_list(database: Path, other: Path) -> Path:
    """Let an empty database know what is forgotten in this one."""
    with closing(connect(database)) as source, closing(connect(other)) as target:
        rows = [tuple(row) for row in source.execute("select * from forgotten_secrets")]
        target.executemany(f"insert into forgotten_secrets values ({','.join('?' * 10)})", rows)
    return other


# -- it is gone ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_credential_is_gone_from_every_place_and_nothing_else_is(
    kind: str, shell: Shell, tmp_path: Path
) -> None:
    home = a_home(tmp_path / "home", KINDS[kind])
    before = tree(home)
    forgotten(shell, home, KINDS[kind])
    assert remains(shell.database, KINDS[kind]) == []
    assert tree(home) == before
    assert verify(shell.database).findings == []
    assert shell("search", "please") == 0
    assert f"{SESSION[:8]}:2" in shell.out
    assert shell("search", "nothing to see") == 0
    assert shell("secrets") == 0
    assert not any(part.decode() in shell.out + shell.err for part in letters_of(KINDS[kind]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_forgetting_ends_as_a_sync_that_never_stored_it(
    kind: str, shell: Shell, tmp_path: Path, fresh: Callable[[], Path]
) -> None:
    home = a_home(tmp_path / "home", KINDS[kind])
    forgotten(shell, home, KINDS[kind])
    scratch = with_the_same_list(shell.database, fresh())
    sync(scratch, [home])
    assert remains(scratch, KINDS[kind]) == []
    assert verify(scratch).findings == []
    assert_same(dump(shell.database), dump(scratch))
    check(shell.database)


@pytest.mark.slow
def test_it_stays_away_whatever_is_synced_and_rebuilt(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", WORD)
    forgotten(shell, home, WORD)
    once = dump(shell.database)
    sync(shell.database, [home])
    sync(shell.database, [home], SyncOptions(full=True))
    assert_same(dump(shell.database), once)
    rebuild(shell.database)
    assert_same(dump(shell.database), once)
    with (home / TRANSCRIPT).open("ab") as file:  # it grows
        file.write(jsonl(user(f"again: {WORD}!", "u9", "a3", 9)))
    shutil.copytree(home, tmp_path / "copy")  # it is copied, and a file is rewritten
    write_bytes(home, "plans/deploy.md", f"# New\n\npassword: {WORD}\n".encode())
    sync(shell.database, [home, tmp_path / "copy"])
    assert remains(shell.database, WORD) == []
    assert verify(shell.database).findings == []
    assert shell("search", "again") == 0


@pytest.mark.parametrize("name", ["{}.txt", "it-is-{}", "x {} y.log"])
def test_a_file_whose_name_has_it_is_left_out_and_told(
    name: str, shell: Shell, tmp_path: Path
) -> None:
    home = a_home(tmp_path / "home", TOKEN)
    results = f"{TRANSCRIPT.removesuffix('.jsonl')}/tool-results"
    path = write_bytes(home, f"{results}/{name.format(TOKEN)}", b"the large marmalade")
    forgotten(shell, home, TOKEN)
    assert remains(shell.database, TOKEN) == []
    with path.open("ab") as file:
        file.write(b" grows")
    for options in ((), ("--full",), ()):
        assert shell("sync", *options, str(home)) == 0
        assert "its name contains a forgotten credential. To read it, rename it" in shell.err
        assert TOKEN not in shell.out + shell.err
        assert remains(shell.database, TOKEN) == []
    assert shell("verify") == 0, shell.out
    assert TOKEN not in shell.out + shell.err
    path.rename(path.with_name("plain.txt"))
    assert shell("sync", str(home)) == 0
    assert "credential" not in shell.err
    assert remains(shell.database, TOKEN) == []
    assert shell("search", "marmalade grows") == 0


@pytest.mark.slow
def test_a_new_file_is_read_without_it_in_any_pieces(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", TOKEN)
    forgotten(shell, home, TOKEN)
    lines = [user(f"{n} {TOKEN} {'x' * n}", f"n{n}", second=n) for n in range(60)]
    new = f"{PROJECT}/{OTHER[:-1]}7.jsonl"
    write(home, new, *lines[:20])
    sync(shell.database, [home])
    write(home, new, *lines)
    with read_in_pieces(700, 2000):
        sync(shell.database, [home])
    with closing(connect(shell.database)) as connection:
        (file_id,) = connection.execute("select id from files where path = ?", (new,)).fetchone()
        data = b"".join(archive.read(connection, file_id))
    assert data == jsonl(*lines).replace(TOKEN.encode(), b" " * len(TOKEN))
    assert remains(shell.database, TOKEN) == []


@pytest.mark.slow
def test_a_file_is_restored_with_spaces_in_its_place(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", TOKEN)
    forgotten(shell, home, TOKEN)
    assert shell("restore", "--all", "--to", str(tmp_path / "back")) == 0
    assert "spaces in place of forgotten parts" in shell.out + shell.err
    original = (home / TRANSCRIPT).read_bytes()
    restored = next((tmp_path / "back").rglob(f"{SESSION}.jsonl")).read_bytes()
    assert restored == original.replace(TOKEN.encode(), b" " * len(TOKEN))


@pytest.mark.slow
def test_entries_that_a_list_dropped_lose_it_too(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", TOKEN)
    sync(shell.database, [home])
    write_bytes(home, f"tasks/{SESSION}/1.json", dumps({"id": "1", "subject": "Else"}))
    write_bytes(home, "teams/crew/inboxes/ada.json", b"[]")
    write_bytes(home, f"todos/{SESSION}-agent-{SESSION}.json", b"[]")
    (home / "plans/deploy.md").unlink()
    sync(shell.database, [home])
    ((kept,),) = rows(shell.database, "select text from inbox_items")
    assert TOKEN in kept
    assert shell("forget", "--secret", name_of(TOKEN)) == 0
    assert remains(shell.database, TOKEN) == []
    assert verify(shell.database).findings == []
    kept = rows(shell.database, "select text from inbox_items")
    assert kept == [(f"It is {' ' * len(TOKEN)} now",)]


@pytest.mark.slow
def test_escapes_and_line_breaks_do_not_save_it(shell: Shell, tmp_path: Path) -> None:
    token = planted()["gitlab"]
    home = tmp_path / "home"
    escaped = token.replace("-", "\\u002d")
    line = dumps(user("say TOKEN")).replace(b"TOKEN", escaped.encode())
    inner = json.dumps({"key": token})
    write(home, TRANSCRIPT, line, user(f"first\n{token}\nlast", "u2"), user(inner, "u3"))
    sync(shell.database, [home])
    assert shell("forget", "--secret", name_of(token)) == 0
    assert remains(shell.database, token) == []
    assert escaped.encode() not in (shell.database.read_bytes())
    texts = [text for (text,) in rows(shell.database, "select text from messages order by id")]
    assert texts == [f"say {' ' * len(escaped)}", f"first\n{' ' * len(token)}\nlast",
                     inner.replace(token, " " * len(token))]  # fmt: skip
    assert verify(shell.database).findings == []


@pytest.mark.slow
def test_a_longer_word_stays_and_is_told(shell: Shell, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home, TRANSCRIPT, user(f"password={WORD} and the file x{WORD}y"))
    sync(shell.database, [home])
    assert shell("forget", "--secret", name_of(WORD)) == 0
    assert "Kept 1 place where it is part of a longer word." in shell.err
    assert verify(shell.database).findings == []
    assert shell("search", f"x{WORD}y") == 0


# -- the command ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_forgetting_is_previewed_and_changes_nothing_then(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", TOKEN)
    sync(shell.database, [home])
    before = dump(shell.database)
    assert shell("forget", "--secret", name_of(TOKEN), "--dry-run") == 0
    assert "Would forget GitHub token ghp_… (40 letters)" in shell.err
    assert ": 19 places in 10 files." in shell.err
    assert f"{home}/{TRANSCRIPT}" in shell.out
    assert TOKEN not in shell.out + shell.err
    assert_same(dump(shell.database), before)
    done = shell.json("forget", "--secret", name_of(TOKEN)[:8], "--json")
    assert isinstance(done, dict)
    assert done["fingerprint"] == name_of(TOKEN)
    assert TOKEN not in shell.out + shell.err


@pytest.mark.slow
def test_what_is_forgotten_is_listed_and_can_be_remembered(shell: Shell, tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", KEY)
    for path in (f"todos/{SESSION}-agent-{SESSION}.json", "teams/crew/inboxes/ada.json"):
        (home / path).unlink()  # entries without it would be kept as such that went
    sync(shell.database, [home])
    before = dump(shell.database)
    name = name_of(KEY)
    assert shell("forget", "--secret", name) == 0
    assert shell("forget", "--secret", name) == 1
    assert "it may be forgotten already" in shell.err
    assert shell("forget", "--list") == 0
    assert f"credential {name}\n" in shell.out
    assert shell("forget", "--remember", name) == 0
    sync(shell.database, [home])
    assert_same(dump(shell.database), before)
    assert shell("forget", "--list") == 0
    assert shell.out == ""


@pytest.mark.parametrize(
    "arguments",
    [("--secret", "xyz"), ("--secret", "abc"), ("--secret", "0" * 17), ("--secret", "0" * 16, "a"),
     ("--secret", "0" * 16, "--copies"), ("--secret", "0" * 16, "--root", "/srv")],
)  # fmt: skip
def test_bad_usage_is_told_in_one_sentence(
    shell: Shell, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    sync(shell.database, [a_home(tmp_path / "home", TOKEN)])
    assert shell("forget", *arguments) == 2
    assert shell.err.count("\n") <= 2


# -- what is recognised --------------------------------------------------------------------------


def excluding(text: str) -> ForgottenSecrets:
    data = text.encode() if text != WORD else b"password=" + text.encode()
    (secret,) = find(data, is_log=False)
    return ForgottenSecrets.of([forgotten_secret(secret, SALT)])


@pytest.mark.parametrize("around", ["{}", "a {} b", '"{}"', "x={}", "-{}-", "\\n{}\\n", "\\\\t{}",
                                    "/{}/", "{}{{}}", "p:{}@h", "_{}_"])  # fmt: skip
def test_a_password_is_recognised_without_its_name(around: str) -> None:
    data = around.format(WORD).encode()
    left, spans = excluding(WORD).without(data, is_log=True)
    assert left == data.replace(WORD.encode(), b" " * len(WORD))
    assert len(spans) == 1


def test_passwords_side_by_side_are_each_recognised() -> None:
    other = password(4, len(WORD))
    both = ForgottenSecrets.of(
        forgotten_secret(secret, SALT)
        for text in (WORD, other)
        for secret in find(f"export DB_PASSWORD={text}".encode(), is_log=False)
    )
    data = f"{WORD},{other} {WORD}".encode()
    assert len(both.spans(data, is_log=True)) == 3
    assert both.without(data, is_log=True)[0].split() == [b","]


def test_nothing_is_left_of_a_password_that_ends_with_another() -> None:
    longer = f"Qx7-{WORD}-9"
    both = ForgottenSecrets.of(
        forgotten_secret(secret, SALT)
        for text in (WORD, longer)
        for secret in find(f"export DB_PASSWORD={text}".encode(), is_log=False)
    )
    assert both.covered(f"notes/{longer}.md") == "notes/***.md"
    assert both.covered(f"notes/{WORD}.md") == "notes/***.md"


@pytest.mark.slow
def test_all_kinds_are_recognised_again_and_nothing_else_is() -> None:
    for text in [*planted().values(), WORD, KEY]:
        other = json.dumps(" ".join(planted(2).values()) + private_key(2)).encode()
        data = b'{"a":"' + json.dumps(f"\n{text}\n")[1:-1].encode() + b'"}' + other
        left, spans = excluding(text).without(data, is_log=True)
        assert len(spans) == 1
        assert left.endswith(other)
        assert len(left) == len(data)
        assert not any(part in left for part in letters_of(text))


def test_a_line_too_long_to_be_parsed_loses_it_wherever_its_pieces_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tail, "MAX_LINE", 150_000)
    monkeypatch.setattr(tail, "CHUNK", 40_000)
    rng = random.Random(4)
    noise = [base64.b64encode(rng.randbytes(rng.randrange(9000))).decode() for _ in range(60)]
    data = f" {TOKEN} ".join(noise).encode() + b"\n" + jsonl(user(TOKEN))
    expected = data.replace(TOKEN.encode(), b" " * len(TOKEN))
    for size in (40_000, 39_999, 7_001):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        parts = list(stretches_without(excluding(TOKEN), tail.cut(pieces, 0, len)))
        assert b"".join(part.data for part, _, _ in parts) == expected
        assert b"".join(original for _, original, _ in parts) == data
        assert sum(len(issues) for _, _, issues in parts) == 60
        assert [part.start for part, _, _ in parts[1:]] == [part.end for part, _, _ in parts[:-1]]


def test_nothing_stored_of_a_forgotten_credential_tells_what_it_was(
    shell: Shell, tmp_path: Path
) -> None:
    forgotten(shell, a_home(tmp_path / "home", WORD), WORD)
    with closing(connect(shell.database)) as connection:
        (row,) = connection.execute("select * from forgotten_secrets").fetchall()
    assert len(row["salt"]) == 16
    assert row["rule"] == "named"
    assert row["is_pending"] == 0
    assert not any(WORD[at : at + 3] in str(tuple(row)) for at in range(len(WORD) - 2))


@pytest.mark.slow
def test_whoever_is_killed_while_forgetting_has_forgotten_all_or_nothing(
    tmp_path: Path, place: Path
) -> None:
    """And what was begun is finished by `compact`, to the last byte of the file."""
    database = place / "assoc.db"
    sync(database, [a_home(tmp_path / "home", WORD)])
    before = dump(database)

    def outcome(step: int) -> str:
        victim = Path(shutil.copy(database, place / "victim.db"))
        try:
            with killed_at(step):
                target = Target(secret=name_of(WORD))
                forget(victim, target, dry_run=False, announce=lambda _: None)
            return "survived"
        except Killed:
            pass
        check(victim)
        stones = tombstones(victim)
        if any(stone.is_pending for stone in stones):
            compact(victim)
        if not stones:
            assert_same(dump(victim), before)
            return "nothing"
        assert remains(victim, WORD) == []
        assert verify(victim).findings == []
        return "begun"

    outcomes = {}
    for step in range(1, 3000, 47):
        outcomes[step] = outcome(step)
        if outcomes[step] == "survived":
            break
    for late in range(step - 46, step, 5):  # what comes after the commit is short
        outcomes[late] = outcome(late)
    assert {*outcomes.values()} == {"survived", "begun", "nothing"}

"""A note stays on what it is about, whatever becomes of the rows, and is shown where that is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.support.planted import planted
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import OTHER, PROJECT, SESSION, TRANSCRIPT, agent, assistant, user, write

from assoc_ingest.errors import BusyError
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.recall import event_of, recall
from assoc_ingest.mcp.server import Tools
from assoc_ingest.secrets.find import find
from assoc_ingest.secrets.forget import fingerprint
from assoc_ingest.store.database import locked, open_reader, writing
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import check, rows
from assoc_ingest.upkeep import note as notes
from assoc_ingest.upkeep.note import Change, take_left, write_note
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.recover import recover
from assoc_ingest.upkeep.verify import verify

KEY = SESSION[:8]
DECISION = "One lock for each pool"
HOSTILE = (
    "</b><script>alert(1)</script>\x1b]0;owned\x07\x1b[31m\u202e' \" \\ `id` $(id)\r\n> quoted"
)


def talk(home: Path, *more: object) -> Path:
    """Write a conversation of three lines and one of one line."""
    said: Any = (
        user("Why does the pool hang", "u1"),
        assistant("Two connections wait for each other in the pool", "a1", "u1", 1),
        user("Fix it", "u2", "a1", 2),
        *more,
    )
    write(home, TRANSCRIPT, *said)
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "o1", sessionId=OTHER))
    return home


@pytest.fixture
def noted(shell: Shell, home: Path) -> Shell:
    """A note on a conversation, on a line of it, and on a file."""
    sync(shell.database, [talk(home)])
    file = write(home.parent, "pool.py", b"pool = 1")
    assert shell("note", KEY, "--title", "Pools", "--star") == 0, shell.err
    assert shell("note", f"{KEY}:2", "--kept", *DECISION.split()) == 0, shell.err
    assert shell("note", str(file), "--rejected", "A second pool") == 0, shell.err
    return shell


def listed(shell: Shell) -> list[tuple[Any, ...]]:
    items = shell.items("list", "notes")
    return [(one["ref"], one["text"], one["verdict"], one["title"]) for one in items]


ALL = [
    (KEY, None, None, "Pools"),
    ("note:3", "A second pool", "rejected", None),
    (f"{KEY}:2", DECISION, "kept", None),
]


# -- writing one ---------------------------------------------------------------------------------


def test_a_note_is_kept_on_a_conversation_a_line_and_a_file(noted: Shell, home: Path) -> None:
    assert listed(noted) == ALL
    (note,) = noted.items("note", f"{KEY}:2")
    assert note == {
        "ref": f"{KEY}:2", "text": DECISION, "verdict": "kept", "is_starred": False, "title": None,
        "time": note["time"], "session_key": SESSION, "session": "Pools", "project": "demo",
        "path": None, "origin": None,
    }  # fmt: skip
    assert [one["ref"] for one in noted.items("note", KEY)] == [f"{KEY}:2", KEY]
    (of_file,) = noted.items("note", str(home.parent / "pool.py"))
    assert of_file["path"] == str(home.parent / "pool.py")
    assert noted("show", "note:2") == 0
    assert f"on {KEY}:2" in noted.out
    assert DECISION in noted.out


def test_what_is_not_given_stays_and_what_is_empty_goes(noted: Shell) -> None:
    assert noted("note", f"{KEY}:2", "--star") == 0
    assert noted.items("note", f"{KEY}:2")[0]["text"] == DECISION
    assert noted("note", f"{KEY}:2", "--no-verdict", "--no-star", "Another") == 0
    (note,) = noted.items("note", f"{KEY}:2")
    assert (note["text"], note["verdict"], note["is_starred"]) == ("Another", None, False)
    assert noted("note", KEY, "--title", "", "--no-star") == 2
    assert "--remove" in noted.err
    assert noted("note", KEY, "--remove") == 0
    assert "Removed the note" in noted.err
    assert noted.items("note", KEY) == noted.items("note", f"{KEY}:2")


def test_a_title_of_the_user_wins_until_it_is_taken_away(noted: Shell, home: Path) -> None:
    title = "select title, title_source from sessions where session_key = ?"
    assert rows(noted.database, title, SESSION) == [("Pools", "note")]
    talk(home, {"type": "custom-title", "customTitle": "Stated", "sessionId": SESSION})
    sync(noted.database, [home])
    assert rows(noted.database, title, SESSION) == [("Pools", "note")]
    rebuild(noted.database)
    assert rows(noted.database, title, SESSION) == [("Pools", "note")]
    assert noted("note", KEY, "--remove") == 0
    assert rows(noted.database, title, SESSION) == [("Stated", "custom-title")]
    check(noted.database)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["note", f"{KEY[:-1]}x", "text"], f"the nearest key is {KEY}"),
        (["note", f"{KEY}:99", "text"], f"Its last line: {KEY}:3"),
        (["note", f"{KEY}:two", "text"], "is not the number of a line"),
        (["note", f"{KEY}:2", "--title", "T"], "Only a conversation has a title"),
        (["note", "", "text"], "Name what the note is about"),
        (["note", KEY, "--remove", "text"], "--remove takes nothing beside it"),
        (["note", KEY, "--title", ""], "The note would say nothing"),
        (["note", KEY, "x" * 20_001], "at most 20,000 letters"),
        (["note", KEY, "--title", "x" * 201], "at most 200 letters"),
        (["note", KEY, "--remove"], "There is no note on it"),
        (["note", "note:7", "text"], "There is no note '7'"),
        (["note", "note:x"], "There is no note 'x'"),
    ],
)
def test_bad_usage_gets_one_sentence_and_the_nearest(
    words: list[str], said: str, shell: Shell, home: Path
) -> None:
    sync(shell.database, [talk(home)])
    assert shell(*words) in (1, 2)
    assert said in shell.err
    assert shell.err.count("\n") == 1
    assert listed(shell) == []


def test_a_file_that_is_not_there_gets_the_nearest(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync(shell.database, [talk(home)])
    write(home.parent, "pool.py", b"pool = 1")
    monkeypatch.chdir(home.parent)
    assert shell("note", "pol.py", "text") != 0
    assert "the nearest: pool.py" in shell.err
    assert shell("note", ".", "text") == 2
    assert "is a directory" in shell.err


def test_a_subagent_is_noted_on_its_lines(shell: Shell, home: Path) -> None:
    side = f"{PROJECT}/{SESSION}/subagents/agent-a1b2c3d4e5.jsonl"
    write(talk(home), side, agent("a1b2c3d4e5", user("Look for locks", "g1")))
    sync(shell.database, [home])
    assert shell("note", "a1b2c3d4e5", "text") != 0
    assert f"Give its session: {KEY}" in shell.err
    assert shell("note", "a1b2c3d4e5:1", "text") == 0
    assert [ref for ref, *_ in listed(shell)] == ["a1b2c3d4:1"]


def test_a_line_without_a_message_is_not_noted(shell: Shell, home: Path) -> None:
    talk(home, {"type": "custom-title", "customTitle": "Stated", "sessionId": SESSION})
    sync(shell.database, [home])
    assert shell("note", f"{KEY}:4", "text") != 0
    assert "the nearest that does is line 3" in shell.err
    assert listed(shell) == []


def test_hostile_text_is_stored_as_it_is_and_printed_without_effect(
    shell: Shell, home: Path
) -> None:
    sync(shell.database, [talk(home)])
    assert shell("note", KEY, HOSTILE + "\udcff\x00", "--title", HOSTILE) == 0
    ((text,),) = rows(shell.database, "select text from notes")
    assert text == f"{HOSTILE}  ".strip()
    for words in (("note", KEY), ("list", "notes"), ("show", "note:1"), ("list", "sessions")):
        assert shell(*words) == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(shell.out)
    assert shell.items("note", KEY)[0]["text"] == text


# -- it is found ---------------------------------------------------------------------------------


def test_a_note_with_all_words_is_found_before_what_was_said(noted: Shell) -> None:
    hits = noted.items("search", "pool")
    assert [(one["what"], one["kind"], one["ref"]) for one in hits[:2]] == [
        ("note", "rejected", "note:3"), ("note", "kept", f"{KEY}:2"),
    ]  # fmt: skip
    assert {one["what"] for one in hits[2:]} == {"message"}
    assert hits[0]["file"].endswith("/pool.py")
    assert hits[1]["key"] == KEY
    assert noted("search", "lock", "pool") == 0
    assert f"{KEY}:2  note, kept: One [lock] for each [pool]" in noted.out
    assert [one["what"] for one in noted.items("search", "lock kind:note")] == ["note"]
    assert noted("search", "lock kind:prompt") == 1


def test_a_note_with_one_of_many_words_does_not_displace_what_has_more(noted: Shell) -> None:
    assert noted("note", OTHER[:8], "wait") == 0
    first = noted.items("search", "connections wait hang mutex semaphore")[0]
    assert first["what"] == "message"


def test_letters_and_hidden_letters_of_notes_are_found(noted: Shell) -> None:
    assert noted("note", OTHER[:8], "dead\u00adlock 死锁问题") == 0
    for words in ("deadlock", "死锁", "锁问题"):
        assert [one["ref"] for one in noted.items("search", words)] == [OTHER[:8]], words


def test_a_note_is_found_in_its_project_and_not_in_others(noted: Shell, home: Path) -> None:
    assert [one["what"] for one in noted.items("search", "lock project:demo")] == ["note"]
    file = write(home.parent / "srv", "pool.py", b"pool = 1")
    write(home, "projects/-other/x.jsonl", user("Hi", "x1", cwd=str(file.parent), sessionId="x"))
    sync(noted.database, [home])
    assert noted("note", str(file), "An inner lock") == 0
    found = noted.items("search", "lock", "project:srv")
    assert [one["snippet"] for one in found] == ["An inner lock"]


# -- it is shown -------------------------------------------------------------------------------


def test_show_begins_with_the_notes_of_what_is_opened(noted: Shell) -> None:
    assert noted("show", KEY) == 0
    assert f"{KEY}:2 kept note: {DECISION}" in noted.out
    assert noted("show", f"{KEY}:2") == 0
    assert f"{KEY}:2 kept note: {DECISION}" in noted.out
    assert noted("show", f"{KEY}:1") == 0
    assert DECISION not in noted.out
    session: Any = noted.json("show", KEY, "--json")
    assert session["session"]["noted"] == [
        {"ref": f"{KEY}:2", "is": "kept note", "time": session["session"]["noted"][0]["time"],
         "text": DECISION},
    ]  # fmt: skip


def test_a_list_of_conversations_has_the_star_and_the_own_title(noted: Shell) -> None:
    stars = {one["session_key"]: (one["title"], one["is_starred"])
             for one in noted.items("list", "sessions")}  # fmt: skip
    assert stars == {SESSION: ("Pools", 1), OTHER: ("Sow beans", 0)}


def test_recent_and_recap_tell_the_notes_on_a_conversation(noted: Shell) -> None:
    assert noted("note", f"{KEY}:1", HOSTILE) == 0
    for command in (("recent",), ("recap", "2026"), ("recap", "2026", "--markdown")):
        assert noted(*command) == 0, noted.err
        assert DECISION in noted.out
        assert "Pools" in noted.out
        assert "\x1b]0" not in noted.out
    for command in (("recent",), ("recap", "2026")):
        of_session = [one for one in noted.items(*command) if one["key"] == KEY]
        assert {note["ref"]: note["is"] for note in of_session[0]["noted"]} == {
            f"{KEY}:1": "note", f"{KEY}:2": "kept note",
        }  # fmt: skip
    site = Site(noted.database)
    for page in ("recent", "recap?when=2026"):
        found = site.get(f"/{noted.database.stem}/-/{page}")
        assert DECISION in found.words
        assert found.harmful() == []


@pytest.mark.parametrize("page", ["recent", "recap?when=2026", "blame?what=pool.py"])
def test_who_may_not_see_notes_sees_no_page_that_tells_them(page: str, noted: Shell) -> None:
    name, hidden = noted.database.stem, {"tables": {"notes": {"allow": False}}}
    assert Site(noted.database).get(f"/{name}/-/{page}").status == 200
    closed = Site(noted.database, databases={name: hidden}).get(f"/{name}/-/{page}")
    assert closed.status == 403
    assert DECISION not in closed.words


def test_blame_names_what_was_noted_on_the_file(noted: Shell, home: Path) -> None:
    noted("blame", str(home.parent / "pool.py"))
    assert "note:3 rejected note A second pool" in noted.out + noted.err


def test_agents_are_given_the_notes_quoted_and_masked(noted: Shell) -> None:
    token = planted()["github"]
    hostile = f"{HOSTILE} {token}"
    assert noted("note", f"{KEY}:2", "--rejected", hostile) == 0
    index = Index(Settings(noted.database))
    try:
        for ref in (KEY, f"{KEY}:2"):
            answer: Any = Tools(index).call("open", {"ref": ref})
            said = answer["content"][0]["text"]
            assert f"{KEY}:2 rejected note" in said
            assert token not in json.dumps(answer)
            assert "\x1b" not in said
            assert all(line[:2] == "> " for line in said.split("\n") if "script" in line), said
    finally:
        index.close()


def test_hooks_say_the_verdict_on_a_file_first_and_kept_decisions_at_the_start(
    noted: Shell, home: Path
) -> None:
    edit = {"hook_event_name": "PreToolUse", "cwd": "/srv/demo", "transcript_path": str(home / "x"),
            "tool_input": {"file_path": "/srv/demo/pool.py"}}  # fmt: skip
    start = {"hook_event_name": "SessionStart", "source": "startup", "cwd": "/srv/demo"}
    with writing(noted.database) as connection, connection:
        connection.execute("update notes set path = '/srv/demo/pool.py' where path is not null")
    for hook, event, said in (
        ("tool", edit, "note:3 note rejected\n> A second pool"),
        ("session-start", start, f"{KEY}:2 note kept\n> {DECISION}"),
    ):
        connection = open_reader(noted.database)
        try:
            parsed = event_of(json.dumps(event).encode())
            assert parsed is not None
            assert said in recall(connection, hook, parsed)
        finally:
            connection.close()


def test_an_export_has_the_notes_masked_and_as_text(noted: Shell) -> None:
    token = planted()["github"]
    assert noted("note", f"{KEY}:2", f"{HOSTILE} {token}") == 0
    for form in ("md", "html", "jsonl"):
        assert noted("export", KEY, "--format", form) == 0, noted.err
        assert "redacted: GitHub" in noted.out
        assert token not in noted.out
        assert "<script>alert" not in noted.out or form == "jsonl"


# -- it stays ------------------------------------------------------------------------------------


def test_notes_survive_a_rebuild_and_a_recovery(noted: Shell) -> None:
    rebuild(noted.database)
    assert listed(noted) == ALL
    with locked(noted.database):
        recover(noted.database)
    rebuild(noted.database)
    assert listed(noted) == ALL
    assert verify(noted.database).findings == []


def test_a_note_stays_on_its_line_when_lines_are_put_before_it(noted: Shell, home: Path) -> None:
    lines = (home / TRANSCRIPT).read_bytes().splitlines(keepends=True)
    (home / TRANSCRIPT).write_bytes(b"".join(lines[:1] + lines[2:] + lines[1:2]))
    sync(noted.database, [home], SyncOptions(full=True))
    assert [ref for ref, text, *_ in listed(noted) if text == DECISION] == [f"{KEY}:3"]


def test_a_line_without_an_id_is_known_by_its_place(shell: Shell, home: Path) -> None:
    first, second = user("One", None), user("Two", None)
    write(home, TRANSCRIPT, first, second)
    sync(shell.database, [home])
    assert shell("note", f"{KEY}:2", "text") == 0
    rebuild(shell.database)
    assert [ref for ref, *_ in listed(shell)] == [f"{KEY}:2"]


def test_a_note_on_a_line_that_a_fork_repeats_stays_where_it_was_written(
    shell: Shell, home: Path
) -> None:
    talk(home)
    fork = [json.loads(line) for line in (home / TRANSCRIPT).read_bytes().splitlines()]
    write(home, f"{PROJECT}/{OTHER}.jsonl", *({**line, "sessionId": OTHER} for line in fork))
    sync(shell.database, [home])
    for key in (KEY, OTHER[:8]):
        assert shell("note", f"{key}:2", f"of {key}") == 0
    assert {ref: text for ref, text, *_ in listed(shell)} == {
        f"{key}:2": f"of {key}" for key in (KEY, OTHER[:8])
    }


def test_a_note_stays_when_what_it_is_about_is_forgotten_and_is_found_again(
    noted: Shell, home: Path
) -> None:
    assert noted("forget", KEY, "--yes") == 0
    assert "Kept 2 notes (note:1, note:2): your own words." in noted.err
    assert {ref for ref, *_ in listed(noted)} == {"note:1", "note:2", "note:3"}
    assert noted("show", "note:2") == 0
    assert DECISION in noted.out
    assert noted("note", "note:2", "--star") == 0
    assert noted("forget", "--remember", KEY) == 0
    sync(noted.database, [home])
    assert {ref for ref, *_ in listed(noted)} == {KEY, f"{KEY}:2", "note:3"}
    assert rows(noted.database, "select title from sessions where session_key = ?", SESSION) == [
        ("Pools",)
    ]


def test_a_note_that_quotes_what_is_forgotten_goes_with_it(noted: Shell) -> None:
    quote = "It says: two\nTwo connections wait for each other in the pool!"
    assert noted("note", OTHER[:8], quote) == 0
    assert noted("forget", KEY, "--dry-run") == 0
    assert "Would forget 1 note (note:4), with a sentence of it." in noted.err
    assert len(listed(noted)) == 4
    assert noted("forget", KEY, "--yes") == 0
    assert "note:4" not in {ref for ref, *_ in listed(noted)}
    assert len(listed(noted)) == 3
    for path in noted.database.parent.glob(f"{noted.database.name}*"):
        assert b"wait for each other" not in path.read_bytes()


def test_a_forgotten_credential_leaves_notes_and_never_comes_back_into_one(
    noted: Shell, home: Path
) -> None:
    token = planted()["github"]
    talk(home, user(f"It is {token}", "u3", "u2", 3))
    sync(noted.database, [home])
    assert noted("note", KEY, f"Rotate {token} soon", "--title", f"About {token}") == 0
    (secret,) = find(token.encode(), is_log=False)
    assert noted("forget", "--secret", fingerprint(secret.text), "--yes") == 0, noted.err
    assert noted("note", OTHER[:8], f"Was it {token}", "--title", token) == 0
    for path in noted.database.parent.glob(f"{noted.database.name}*"):
        assert token.encode() not in path.read_bytes()
    texts = {text.split()[0] for _, text, *_ in listed(noted) if text}
    assert texts == {"Rotate", "Was", "One", "A"}


# -- beside another writer -----------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(notes, "_PATIENCE", 0.05)
    monkeypatch.setattr(notes, "_PAUSE", 0.01)
    return


def test_a_watch_takes_the_note_that_has_to_wait_for_it(shell: Shell, home: Path) -> None:
    sync(shell.database, [talk(home)])
    written: list[object] = []
    thread = Thread(target=lambda: written.append(write_note(shell.database, KEY, Change("Hm"))))
    with writing(shell.database) as connection:
        thread.start()
        while not Path(f"{shell.database}.note").exists():
            thread.join(0.01)
        take_left(connection, shell.database)
        thread.join()
    assert [one.text for one in written] == ["Hm"]  # type: ignore[attr-defined]
    assert not Path(f"{shell.database}.note").exists()


@pytest.mark.usefixtures("impatient")
def test_a_note_that_nobody_takes_is_not_written_later(shell: Shell, home: Path) -> None:
    sync(shell.database, [talk(home)])
    with writing(shell.database) as connection:
        with pytest.raises(BusyError):
            write_note(shell.database, KEY, Change("Hm"))
        take_left(connection, shell.database)
    assert listed(shell) == []


@pytest.mark.parametrize("left", [b"", b"{", b"[1]", b"null"])
def test_what_no_note_is_does_not_stop_a_watch(left: bytes, shell: Shell, home: Path) -> None:
    sync(shell.database, [talk(home)])
    Path(f"{shell.database}.note").write_bytes(left)
    with writing(shell.database) as connection:
        take_left(connection, shell.database)
    assert listed(shell) == []

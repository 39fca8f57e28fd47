"""What is forgotten stays so wherever it lies: in a home that moved, in a copy, at another path.

And nothing else is left out: who only has the same name, or the same words elsewhere, is read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cases import CASES, home_of
from tests.support.pieces import Killed, killed_at
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    agent,
    dumps,
    jsonl,
    user,
    write,
    write_bytes,
)
from tests.test_forget import (
    PASTE,
    SECRET,
    SIDE,
    TEAM,
    forgotten,
    private_home,
    secret,
    traces,
    turns_of,
)

from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.forget import remember, tombstones
from assoc_ingest.upkeep.verify import verify

Fresh = Callable[[], Path]
PLAN = "plans/brave-green-fern.md"


@pytest.fixture
def home(place: Path) -> Path:
    return private_home(place / "home")


@pytest.fixture
def database(home: Path, fresh: Fresh) -> Path:
    """A database of which the conversation was forgotten while its home was where it had been."""
    database = fresh()
    sync(database, [home])
    forgotten(database)
    return database


def copied(home: Path, name: str = "other") -> Path:
    return Path(shutil.copytree(home, home.parent / name / ".claude"))


def assert_nothing_returned(database: Path) -> None:
    check(database)
    assert traces(database) == []
    shown = dump(database)
    assert SECRET not in json.dumps(shown, ensure_ascii=False)
    assert SESSION not in json.dumps(shown["sessions"])
    named = [row["path"] for row in shown["files"] if SESSION in row["path"]]
    assert named == []
    assert [row for row in shown["teams"] if row["key"] == "garden"] == []


def session_keys(database: Path) -> set[str]:
    return {key for (key,) in rows(database, "select session_key from sessions")}


def append(path: Path, *lines: object) -> None:
    with path.open("ab") as file:
        file.write(jsonl(*lines))


# -- a home that moved, or was copied ------------------------------------------------------------


def test_a_home_that_moved_brings_nothing_back(database: Path, home: Path) -> None:
    moved = home.rename(home.parent / "moved")
    for options in (SyncOptions(), SyncOptions(), SyncOptions(full=True)):
        sync(database, [moved], options)
        assert_nothing_returned(database)
    assert OTHER in {row["session_key"] for row in dump(database)["sessions"]}
    assert sync(database, [moved]).files_read == 0


def test_a_copy_of_the_home_brings_nothing_back(database: Path, home: Path) -> None:
    copy = copied(home)
    sync(database, [home, copy])
    assert_nothing_returned(database)
    sync(database, [], SyncOptions(full=True))
    assert_nothing_returned(database)
    assert not [warning for warning in verify(database).warnings if warning.check == "disk"]


def test_what_is_added_to_a_moved_home_stays_out_too(database: Path, home: Path) -> None:
    """Files that other bytes show: only the home in which they lie tells whose they are."""
    moved = home.rename(home.parent / "moved")
    _go_on(moved)
    sync(database, [moved])
    assert_nothing_returned(database)
    _go_on(moved)
    sync(database, [])
    assert_nothing_returned(database)


def _go_on(home: Path) -> None:
    append(home / TRANSCRIPT, user(secret("Later"), "u9"))
    append(home / f"{SIDE}/subagents/agent-a1.jsonl", agent("a1", user(secret("Later"), "s9")))
    append(home / f"{PROJECT}/agent-old1.jsonl", agent("old1", user(secret("Later"), "s8")))
    prompt = {"display": secret("Later"), "timestamp": 1768905000009, "sessionId": SESSION}
    append(home / "history.jsonl", prompt)
    with (home / PLAN).open("a") as plan:
        plan.write(secret("EditedPlan"))
    item = {"from": "ada", "text": secret("Later"), "timestamp": "2026-01-20T11:00:00.000Z"}
    write_bytes(home, f"{TEAM}/inboxes/ada.json", dumps([item]))
    write_bytes(home, f"{TEAM}/inboxes/bo.json", dumps([item]))
    task = {"id": "2", "subject": secret("Later"), "status": "pending"}
    write_bytes(home, "tasks/garden/2.json", dumps(task))


@pytest.mark.slow
def test_what_both_homes_had_is_forgotten_in_both(home: Path, fresh: Fresh) -> None:
    database, copy = fresh(), copied(home)
    sync(database, [home, copy])
    forgotten(database)
    assert_nothing_returned(database)
    sync(database, [], SyncOptions(full=True))
    assert_nothing_returned(database)


@pytest.mark.slow
def test_a_sync_of_a_moved_home_may_be_killed_at_any_step(
    database: Path, home: Path, place: Path
) -> None:
    """What it has learned of the home is noted before anything is read."""
    moved = home.rename(home.parent / "moved")
    _go_on(moved)
    outcomes = set()
    for step in range(20, 1000, 45):
        victim = Path(shutil.copy(database, place / "victim.db"))
        transcript = (moved / TRANSCRIPT).read_bytes()
        try:
            with killed_at(step):
                sync(victim, [moved])
            outcomes.add("survived")
        except Killed:
            outcomes.add("killed")
        (moved / TRANSCRIPT).unlink()  # it tells no more what this home is
        assert_nothing_returned(victim)
        sync(victim, [moved])
        assert_nothing_returned(victim)
        write_bytes(moved, TRANSCRIPT, transcript)
    assert outcomes == {"survived", "killed"}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_copy_read_later_ends_as_one_that_was_there_before(
    case: str, fresh: Fresh, place: Path
) -> None:
    """The conversations of every golden case: forgotten in one root, then in both."""
    home = home_of(case, place)
    copy = Path(shutil.copytree(home, place / "copy"))
    whole, both = fresh(), fresh()
    sync(whole, [home])
    sync(both, [home, copy])
    for keys in turns_of(whole):
        later = Path(shutil.copy(whole, place / "later.db"))
        before = Path(shutil.copy(both, place / "before.db"))
        for key in keys:
            forgotten(later, key, root=str(home))
            for root in (home, copy):
                if key in session_keys(before):
                    forgotten(before, key, root=str(root))
        sync(later, [home, copy])
        check(later)
        assert_same(dump(later), dump(before))
        assert sync(later, [home, copy]).files_read == 0


# -- at another path -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["plans/kept-elsewhere.md", f"{PROJECT}/memory/kept.md"])
def test_a_copy_at_another_path_is_left_out(path: str, database: Path, home: Path) -> None:
    write_bytes(home, path, (home / PLAN).read_bytes())
    sync(database, [])
    assert_nothing_returned(database)
    assert sync(database, []).files_read == 0
    assert not [warning for warning in verify(database).warnings if warning.check == "disk"]
    write_bytes(home, path, b"# Another text\n")
    sync(database, [])
    assert "Another text" in json.dumps(dump(database)), "the path itself is not forgotten"


def test_a_copy_that_was_read_before_goes_with_it(home: Path, fresh: Fresh) -> None:
    database = fresh()
    backup = home.parent / "backup/.claude"
    write(backup, f"{PROJECT}/{THIRD}.jsonl", user("Sow beans", "t1", sessionId=THIRD))
    write_bytes(backup, PLAN, (home / PLAN).read_bytes())
    write_bytes(backup, f"paste-cache/{PASTE}.txt", secret("Paste").encode())
    sync(database, [home, backup])
    forgotten(database)
    assert_nothing_returned(database)
    assert THIRD in {row["session_key"] for row in dump(database)["sessions"]}


def test_a_copy_that_was_half_written_when_it_was_read_goes_when_it_is_whole(
    database: Path, home: Path, place: Path
) -> None:
    """And the database says that its traces are to be removed."""
    whole = (home / PLAN).read_bytes()
    write_bytes(home, "plans/copy.md", whole[:-4])
    log = (home / f"{PROJECT}/agent-old1.jsonl").read_bytes()
    write_bytes(home, f"{PROJECT}/agent-copy.jsonl", log[:40])
    sync(database, [])
    assert "the word is" in json.dumps(dump(database)["plans"])
    write_bytes(home, "plans/copy.md", whole)
    write_bytes(home, f"{PROJECT}/agent-copy.jsonl", log)
    sync(database, [])
    assert not [row for row in dump(database)["files"] if "copy" in row["path"]]
    assert any(stone.is_pending for stone in tombstones(database))
    compact(database)
    assert not any(stone.is_pending for stone in tombstones(database))
    assert_nothing_returned(database)


@pytest.mark.slow
def test_a_file_that_was_forgotten_alone_stays_out_of_a_copy(home: Path, fresh: Fresh) -> None:
    database = fresh()
    sync(database, [home])
    forgotten(database)
    forgotten(database, "history.jsonl")  # of which lines are blank already
    copy = copied(home)
    append(copy / "history.jsonl", {"display": "sow again", "timestamp": 1768905000099})
    sync(database, [home, copy])
    assert dump(database)["prompts"] == []
    assert_nothing_returned(database)


# -- keys that mean something only in their root -------------------------------------------------


def _cortex(root: Path, *texts: str, name: str = "main") -> None:
    lines = [
        {"role": "user", "content": text, "timestamp": 1771250400123 + number}
        for number, text in enumerate(texts)
    ]
    write(root, f"transcripts/{name}/transcript.jsonl", *lines)


@pytest.mark.slow
def test_an_agent_whose_root_moved_is_known_by_what_was_said(place: Path, fresh: Fresh) -> None:
    database, old, new = fresh(), place / "one/.cortex", place / "two/.cortex"
    _cortex(old, secret("A"), "and more")
    _cortex(old, "of another agent", name="side")
    sync(database, [old])
    forgotten(database, "main")
    new.parent.mkdir()
    old.rename(new)
    _cortex(new, secret("A"), "and more", secret("Appended"))
    sync(database, [new])
    sync(database, [])
    assert traces(database) == []
    _cortex(new, "written anew", secret("Anew"))
    sync(database, [])
    assert traces(database) == [], "as in the root where it was forgotten"
    rows = dump(database)["sessions"]
    assert {row["session_key"] for row in rows} == {"side"}


@pytest.mark.slow
def test_an_agent_of_the_same_name_elsewhere_is_read(place: Path, fresh: Fresh) -> None:
    database, old, new = fresh(), place / "one/.cortex", place / "two/.cortex"
    _cortex(old, secret("A"))
    sync(database, [old])
    forgotten(database, "main")
    _cortex(new, "somebody else", secret("A"))
    sync(database, [new])
    assert "somebody else" in json.dumps(dump(database)["messages"])


@pytest.mark.slow
def test_the_list_of_a_moved_chorus_names_it_no_more(place: Path, fresh: Fresh) -> None:
    database = fresh()
    home = home_of("chorus/a-conversation-in-a-worktree", place)
    sync(database, [home])
    keys = {row["session_key"] for row in dump(database)["sessions"]}
    key = sorted(keys)[0]
    title = next(r["title"] for r in dump(database)["session_entries"] if r["title"])
    forgotten(database, key)
    moved = home.rename(place / "moved")
    for path in moved.rglob("conversations.json"):
        path.write_bytes(path.read_bytes() + b"\n")
    sync(database, [moved])
    assert key not in {row["session_key"] for row in dump(database)["sessions"]}
    assert title not in json.dumps(dump(database)["session_entries"])


# -- who is not it -------------------------------------------------------------------------------


def test_a_home_that_only_has_the_same_names_is_read(database: Path, place: Path) -> None:
    other = place / "another/.claude"
    write(other, f"{PROJECT}/{OTHER}.jsonl", user("Hi", "h1", sessionId=OTHER))
    write_bytes(other, PLAN, b"# A plan of its own\n")
    config = {"name": "garden", "leadSessionId": OTHER, "members": [{"name": "eve"}]}
    write_bytes(other, f"{TEAM}/config.json", dumps(config))
    task = {"id": "1", "subject": "of its own", "status": "pending"}
    write_bytes(other, "tasks/garden/1.json", dumps(task))
    sync(database, [other])
    shown = json.dumps(dump(database))
    for text in ("A plan of its own", "eve", "of its own"):
        assert text in shown, text


@pytest.mark.slow
def test_a_home_that_shares_some_conversations_is_no_copy(home: Path, fresh: Fresh) -> None:
    """As two machines do, each of which has a history of its own."""
    database, other = fresh(), home.parent / "second/.claude"
    sync(database, [home])
    forgotten(database, "history.jsonl")
    (other / PROJECT).mkdir(parents=True)
    shutil.copy(home / PROJECT / f"{OTHER}.jsonl", other / PROJECT)
    for number in range(2):
        key = f"{number:08x}-1111-4222-8333-444455556666"
        write(other, f"{PROJECT}/{key}.jsonl", user("its own", f"k{number}", sessionId=key))
    prompt = {"display": "of the second", "timestamp": 1768905000000, "sessionId": OTHER}
    write(other, "history.jsonl", prompt)
    sync(database, [other])
    assert [row["text"] for row in dump(database)["prompts"]] == ["of the second"]


def test_a_team_that_a_known_home_makes_later_is_read(database: Path, home: Path) -> None:
    """That a home holds the conversation tells of what it held when it was first read."""
    moved = home.rename(home.parent / "moved")
    for directory in ("teams", "tasks"):
        shutil.rmtree(moved / directory)
    sync(database, [moved])
    write_bytes(moved, f"{TEAM}/config.json", dumps({"name": "garden", "leadSessionId": OTHER}))
    sync(database, [])
    assert [row["lead_session_key"] for row in dump(database)["teams"]] == [OTHER]


def test_the_same_task_of_another_list_is_read(database: Path, home: Path) -> None:
    """Tasks have no times: two lists may well begin with the same."""
    content = (home / "tasks/garden/1.json").read_bytes()
    write_bytes(home, "tasks/orchard/1.json", content)
    sync(database, [])
    assert [row["list_key"] for row in dump(database)["tasks"]] == ["orchard"]


def test_the_same_output_in_another_conversation_is_that_ones(database: Path, home: Path) -> None:
    write_bytes(home, f"{PROJECT}/{OTHER}/tool-results/toolu_9.txt", (home / PLAN).read_bytes())
    sync(database, [])
    assert [row["name"] for row in dump(database)["tool_result_files"]] == ["toolu_9.txt"]


@pytest.mark.slow
def test_an_empty_file_is_nothing_to_be_known_by(home: Path, fresh: Fresh) -> None:
    database = fresh()
    write_bytes(home, PLAN, b"")
    sync(database, [home])
    forgotten(database)
    write_bytes(home, "plans/empty.md", b"")
    sync(database, [])
    assert "plans/empty.md" in {row["path"] for row in dump(database)["files"]}


# -- the way back --------------------------------------------------------------------------------


@pytest.mark.slow
def test_remembered_it_is_read_in_the_copy_too(home: Path, fresh: Fresh) -> None:
    expected, database, copy = fresh(), fresh(), copied(home)
    sync(expected, [home, copy])
    sync(database, [home])
    forgotten(database)
    sync(database, [copy])
    assert str(copy) in {stone.root for stone in tombstones(database)}
    remember(database, SESSION[:8])
    assert tombstones(database) == []
    sync(database, [])
    assert_same(dump(database), dump(expected))


def test_what_tells_a_copy_gives_away_no_text(database: Path) -> None:
    """A fingerprint of the whole: nobody who does not have the text finds it."""
    query = "select path, content_hash from forgotten where content_hash is not null"
    hashes = dict(rows(database, query))
    assert {len(content_hash) for content_hash in hashes.values()} == {16}
    assert PLAN in hashes
    assert SECRET.encode() not in b"".join(hashes.values())

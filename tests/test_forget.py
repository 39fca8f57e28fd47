"""What is forgotten is gone for good: from every table, from the archive, from the file's bytes.

And it stays gone, whatever is synced; nothing else changes.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.faults.amounts import SCALE
from tests.support.cases import CASES, GROUPS, home_of, homes_of
from tests.support.child import Child, usual_seconds
from tests.support.pieces import Killed, killed_at, worth_killing_at
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    Object,
    agent,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.errors import NotFoundError
from assoc_ingest.files import archive
from assoc_ingest.store.database import _SAFE, open_reader
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import Dump, assert_same, check, connect, dump
from assoc_ingest.upkeep import recover
from assoc_ingest.upkeep.compact import compact
from assoc_ingest.upkeep.forget import Forgetting, Target, forget, remember, tombstones
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.restore import restore, select, select_all
from assoc_ingest.upkeep.verify import verify

SECRET = "Qwertzuiop77"
SIDE = f"{PROJECT}/{SESSION}"


def secret(place: str) -> str:
    """Return a text with a word that stands nowhere else, and tells where it was."""
    return f"the word is {SECRET}{place} and no other"


def prompt(text: str, session: str | None, **more: object) -> Object:
    named = {"sessionId": session} if session else {}
    return {"display": text, "timestamp": 1768905000000, "project": "/srv/demo", **named, **more}


def event(session: str, **more: object) -> Object:
    return {"session_id": session, "hook_event_name": "UserPromptSubmit", **more}


def index_entry(session: str, title: str) -> Object:
    return {"sessionId": session, "summary": title, "projectPath": "/srv/demo"}


PASTE = "3f8a0c1d22e4b567"
TEAM = "teams/garden"


def private_home(home: Path, *, with_session: bool = True) -> Path:
    """Write a home in which a conversation says its secret in every store; or all but that one."""
    mine = [SESSION] if with_session else []
    write(home, f"{PROJECT}/{OTHER}.jsonl", user("Sow beans", "o1", sessionId=OTHER))
    if with_session:
        _own_files(home)
    write(
        home,
        "history.jsonl",
        prompt("Sow beans", OTHER),
        *(prompt(secret("History"), s, pastedContents=_pasted()) for s in mine),
        *(b'{"sessionId":"%s","display":"torn %s' % (s.encode(), SECRET.encode()) for s in mine),
        prompt("unnamed", None),
    )
    write(
        home,
        "theassociate/hook-events.jsonl",
        event(OTHER, prompt="Sow beans"),
        *(event(s, prompt=secret("Hook")) for s in mine),
        *(event(OTHER, prompt=f"{SECRET}Mention of {s}") for s in mine),
    )
    entries = [index_entry(OTHER, "Beans"), *(index_entry(s, secret("Index")) for s in mine)]
    write_bytes(home, f"{PROJECT}/sessions-index.json", dumps({"version": 1, "entries": entries}))
    links = {"beans.md": OTHER, **{f"{SECRET}Link.md": s for s in mine}}
    write_bytes(home, "theassociate/projects/-srv-demo/plan-links.json", dumps(links))
    return home


def _pasted() -> Object:
    return {"1": {"id": 1, "type": "text", "contentHash": PASTE}}


def _own_files(home: Path) -> None:
    write(
        home,
        TRANSCRIPT,
        {"type": "custom-title", "customTitle": secret("Title"), "sessionId": SESSION},
        user(secret("Prompt"), "u1", slug="brave-green-fern"),
        assistant(secret("Answer"), "a1", "u1", usage={"output_tokens": 3}),
        assistant([call("toolu_1", command=secret("Call"))], "a2", "a1", id="msg_2"),
        user([result("toolu_1", secret("Result"))], "u2", "a2"),
        {"type": "pr-link", "prUrl": f"https://example.org/{SECRET}Url", "sessionId": SESSION},
        b"torn " + SECRET.encode(),
        user(f"{SECRET}汉字", "u3", "u2"),
    )
    write(home, f"{SIDE}/subagents/agent-a1.jsonl", agent("a1", user(secret("Agent"), "s1")))
    write(home, f"{PROJECT}/agent-old1.jsonl", agent("old1", user(secret("OldAgent"), "s2")))
    write_bytes(home, f"{SIDE}/tool-results/toolu_1.txt", secret("ResultFile").encode())
    write_bytes(home, f"paste-cache/{PASTE}.txt", secret("Paste").encode())
    write_bytes(home, "plans/brave-green-fern.md", f"# {secret('Plan')}\n".encode())
    todo = [{"content": secret("Todo"), "status": "pending", "activeForm": "x"}]
    write_bytes(home, f"todos/{SESSION}-agent-{SESSION}.json", dumps(todo))
    task = {"id": "1", "subject": secret("Task"), "status": "pending"}
    write_bytes(home, f"tasks/{SESSION}/1.json", dumps(task))
    write_bytes(home, "tasks/garden/1.json", dumps({**task, "subject": secret("TeamTask")}))
    member = {"name": "bo", "agentId": "bo@garden", "prompt": secret("Member")}
    team = {"name": "garden", "leadSessionId": SESSION, "members": [member]}
    write_bytes(home, f"{TEAM}/config.json", dumps(team))
    item = {"from": "bo", "text": secret("Inbox"), "timestamp": "2026-01-20T10:00:00.000Z"}
    write_bytes(home, f"{TEAM}/inboxes/ada.json", dumps([item]))
    job = {"state": "done", "sessionId": SESSION, "intent": secret("Job"), "cwd": "/srv/demo"}
    write_bytes(home, "jobs/0a1b2c3d/state.json", dumps(job))
    summary = f"{SESSION}-summary-001.md"
    write_bytes(
        home, f"theassociate/projects/-srv-demo/summaries/{summary}", secret("Summary").encode()
    )


def forgotten(
    database: Path, name: str = SESSION, *, root: str | None = None, **more: object
) -> Forgetting:
    told: list[Forgetting] = []
    options = {"with_copies": False, "dry_run": False, **more}
    forget(database, Target(name, root=root), announce=told.append, **options)  # type: ignore[arg-type]
    return told[0]


def traces(database: Path) -> list[str]:
    """Return where the secret still stands: in bytes on the disk, or compressed in the archive."""
    word = SECRET.lower().encode()
    found = [
        ending
        for ending in ("", "-wal", "-shm")
        if (file := Path(f"{database}{ending}")).exists() and word in file.read_bytes().lower()
    ]
    connection = connect(database)
    for file in connection.execute("select id, path from files").fetchall():
        if word in b"".join(archive.read(connection, file["id"])).lower():
            found.append(f"archive of {file['path']}")
    connection.close()
    return found


@pytest.fixture
def home(place: Path) -> Path:
    return private_home(place / "home")


@pytest.fixture
def database(home: Path, fresh: Callable[[], Path]) -> Path:
    database = fresh()
    sync(database, [home])
    return database


def test_the_secret_is_in_every_store_before(database: Path) -> None:
    """Else the tests below would prove nothing."""
    text = json.dumps(dump(database), ensure_ascii=False)
    for where in (
        *("Title", "Prompt", "Answer", "Call", "Result", "Url", "Agent", "OldAgent", "ResultFile"),
        *("Paste", "Plan", "Todo", "Task", "TeamTask", "Member", "Inbox", "Job", "Summary"),
        *("History", "Hook", "Mention", "Index", "Link"),
    ):
        assert f"{SECRET}{where}" in text, where
    assert traces(database)


def test_nothing_of_it_is_left_and_no_sync_brings_it_back(database: Path, home: Path) -> None:
    forgotten(database)
    assert traces(database) == []
    check(database)
    sync(database, [])
    assert traces(database) == []
    sync(database, [], SyncOptions(full=True))
    assert traces(database) == []
    for file in (TRANSCRIPT, "history.jsonl", "theassociate/hook-events.jsonl"):
        data = (home / file).read_bytes()
        (home / file).write_bytes(data[len(data) // 7 :] + data)
    (home / PROJECT).rename(home / "projects/-srv-moved")
    (home / "theassociate/projects/-srv-demo/plan-links.json").touch()
    sync(database, [], SyncOptions(full=True))
    check(database)
    assert traces(database) == []
    assert not [row for row in dump(database)["sessions"] if row["session_key"] == SESSION]


def test_the_other_conversation_is_as_if_this_one_had_never_been(
    database: Path, home: Path, place: Path, fresh: Callable[[], Path]
) -> None:
    forgotten(database)
    shutil.rmtree(home)
    oracle = fresh()
    sync(oracle, [private_home(home, with_session=False)])
    assert_same(_without_places(dump(database)), _without_places(dump(oracle)))


def _without_places(shown: Dump) -> Dump:
    """Leave out where lines stand, and what was left out: a file without them is shorter."""
    shown["issues"] = [row for row in shown["issues"] if "forgotten" not in row["reason"]]
    for table, column in (("files", "path"), ("line_types", "file_id")):
        shown[table] = [row for row in shown[table] if "jobs/" not in row[column]]
    hidden = ("byte_offset", "archived", "offset", "size", "head_hash", "tail_hash", "prefix_crc")
    for rows in shown.values():
        for row in rows:
            for column in (*hidden, "issue_count", "line_count", "byte_length"):
                row.pop(column, None)
    return shown


def turns_of(database: Path) -> list[list[str]]:
    """Return the keys of conversations to forget together: each alone, or every other one."""
    keys = sorted({str(row["session_key"]) for row in dump(database)["sessions"]})
    if SCALE >= 1:
        return [[key] for key in keys]
    return [keys[::2]] if keys else []


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_forgotten_late_is_as_forgotten_before_the_first_sync(
    case: str, fresh: Callable[[], Path], place: Path
) -> None:
    """Conversations of every golden case."""
    home, whole = home_of(case, place), fresh()
    sync(whole, [home])
    for keys in turns_of(whole):
        database, before = Path(shutil.copy(whole, place / "one.db")), fresh()
        for key in keys:
            forgotten(database, key)
        check(database)
        forget_as(database, before)
        sync(before, [home])
        expected = dump(before)
        assert_same(dump(database), expected)
        assert sync(database, [home]).files_read == 0
        assert sync(database, [home], SyncOptions(full=True)).rows == 0
        assert_same(dump(database), expected)


def test_a_log_of_another_program_is_the_same_whenever_it_is_forgotten(
    fresh: Callable[[], Path], place: Path
) -> None:
    home, late, early = place / "home", fresh(), fresh()
    write(home, TRANSCRIPT, user("hello", "u1"))
    write(home, f"{PROJECT}/notes.jsonl", {"a": "b"}, {"about": SESSION}, {"a": "c"})
    sync(late, [home])
    forgotten(late)
    check(late)
    forget_as(late, early)
    sync(early, [home])
    assert_same(dump(late), dump(early))
    assert not verify(late).findings


def test_a_key_that_one_root_alone_uses_touches_nothing_of_another_root(
    place: Path, fresh: Callable[[], Path]
) -> None:
    """What is there of a document that is broken is the same whenever it is forgotten."""
    homes = [
        home_of("chorus/a-conversation-in-a-worktree", place, "home"),
        home_of("chorus/the-basic-form-and-an-unlisted-conversation", place, "other"),
    ]
    late, early = fresh(), fresh()
    sync(late, homes)
    keys = {str(row["session_key"]) for row in dump(late)["sessions"]}
    key = min(key for key in keys if roots_with(late, key) == [str(homes[0])])
    forgotten(late, key)
    check(late)
    forget_as(late, early)
    sync(early, homes)
    assert_same(dump(late), dump(early))
    assert [row for row in dump(late)["issues"] if row["quarantined"] and row["sample"]]


def forget_as(database: Path, before: Path) -> None:
    """Let another database leave out what was forgotten in this one."""
    connection = connect(before)
    connection.execute("attach ? as other", (str(database),))
    connection.execute("insert into forgotten select * from other.forgotten")
    connection.close()


# -- a file that the program cannot rewrite yet --------------------------------------------------


@pytest.mark.slow
def test_a_reader_that_keeps_old_pages_is_told_about(database: Path, shell: Shell) -> None:
    shutil.move(database, shell.database)
    reader = connect(shell.database)
    reader.execute("begin")
    reader.execute("select count(*) from messages").fetchone()
    settings = ["busy_timeout = 50", *_SAFE[1:]]
    with patch("assoc_ingest.store.database._SAFE", settings):
        assert shell("forget", SESSION) == 3
    assert "assoc-ingest compact" in shell.err
    assert "assoc.db-wal" in shell.err
    assert SESSION in shell.out
    assert traces(shell.database), "old pages are still there, else this proves nothing"
    assert shell("status") == 0
    assert "assoc-ingest compact" in shell.out
    reader.close()
    assert shell("compact") == 0
    assert traces(shell.database) == []
    assert shell("status") == 0
    assert "assoc-ingest compact" not in shell.out


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")
def test_a_kill_leaves_it_as_it_was_or_forgotten(
    database: Path, home: Path, place: Path, fresh: Callable[[], Path]
) -> None:
    """Killed at any statement: nothing has happened, or `compact` ends what was begun."""
    before, done = dump(database), place / "done.db"
    shutil.copy(database, done)
    with killed_at(sys.maxsize) as statements:
        forgotten(done)
    after, outcomes = dump(done), set()
    for step in worth_killing_at(statements, 25):
        victim = Path(shutil.copy(database, place / "victim.db"))
        try:
            with killed_at(step):
                forgotten(victim)
            outcomes.add("survived")
            break
        except Killed:
            pass
        check(victim)
        if stones := tombstones(victim):
            if any(stone.is_pending for stone in stones):  # else it was closing the database
                compact(victim)
            assert traces(victim) == [], step
            assert_same(dump(victim), after)
            outcomes.add("begun")
        else:
            assert_same(dump(victim), before)
            outcomes.add("nothing")
    assert outcomes == {"survived", "begun", "nothing"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")
def test_sigkill_at_any_instant(database: Path, place: Path) -> None:
    before, killed, outcomes = dump(database), 0, set()
    whole = Path(shutil.copy(database, place / "whole.db"))
    usual = usual_seconds(lambda: forgotten(whole) and None)
    delays = random.Random(7)
    for _ in range(12):
        victim = Path(shutil.copy(database, place / "victim.db"))
        for ending in ("-wal", "-shm"):
            Path(f"{victim}{ending}").unlink(missing_ok=True)
        child = Child(lambda victim=victim: forgotten(victim) and None)
        if not child.is_done_within(delays.uniform(0, 1.5 * usual)):
            killed += 1
        child.kill()
        check(victim)
        if tombstones(victim):
            compact(victim)
            assert traces(victim) == []
            outcomes.add("forgotten")
        else:
            assert_same(dump(victim), before)
            outcomes.add("nothing")
    assert killed
    assert "forgotten" in outcomes


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="of POSIX systems only")
def test_nothing_of_it_survives_in_a_copy_that_a_killed_process_left(
    database: Path, place: Path
) -> None:
    """A rebuild of a damaged database makes a whole copy. Killed, it leaves it beside the other."""
    (place / "lone").mkdir(mode=0o700)
    victim = Path(shutil.copy(database, place / "lone" / "victim.db"))
    _zero_page_of(victim, "tool_calls")

    def rebuild_and_die() -> None:
        copy = recover._copy_tables

        def copy_and_die(*arguments: Any) -> None:
            copy(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        with patch("assoc_ingest.upkeep.recover._copy_tables", copy_and_die):
            rebuild(victim)

    child = Child(rebuild_and_die)
    assert child.is_done_within(60)
    child.kill()
    assert _files_with_the_secret(victim) > {victim}, "a copy was left, else this proves nothing"
    shutil.copy(database, victim)
    forgotten(victim)
    assert _files_with_the_secret(victim) == set()
    assert traces(victim) == []


def _zero_page_of(database: Path, table: str) -> None:
    connection = connect(database)
    (page,) = connection.execute(
        "select rootpage from sqlite_master where name = ?", (table,)
    ).fetchone()
    (size,) = connection.execute("pragma page_size").fetchone()
    connection.close()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def _files_with_the_secret(database: Path) -> set[Path]:
    """Return the files beside a database, and in directories there, in which the word stands."""
    files = [path for path in database.parent.rglob("*") if path.is_file()]
    return {path for path in files if SECRET.lower().encode() in path.read_bytes().lower()}


# -- the way back --------------------------------------------------------------------------------


def test_what_is_remembered_is_read_again(
    database: Path, fresh: Callable[[], Path], home: Path
) -> None:
    before = dump(database)
    forgotten(database)
    assert remember(database, SESSION[:8])
    assert tombstones(database) == []
    sync(database, [])
    check(database, home)
    assert_same(dump(database), before)


@pytest.mark.slow
def test_two_forgotten_one_remembered(database: Path, home: Path) -> None:
    """The lines of the other stay blank, though the log is read again from its first byte."""
    forgotten(database)
    forgotten(database, OTHER)
    remember(database, OTHER)
    sync(database, [])
    assert traces(database) == []
    check(database)
    sessions = {row["session_key"] for row in dump(database)["sessions"]}
    assert sessions == {OTHER}
    history = dump(database, tables=["prompts"])["prompts"]
    assert {row["session_key"] for row in history} == {OTHER, None}


# -- what else can be named ----------------------------------------------------------------------


def fork(home: Path, **more: object) -> None:
    """Write a conversation that repeats the first line of the one to be forgotten."""
    first = user(secret("Prompt"), "u1", slug="brave-green-fern")
    own = user("Go on", "t1", "u1", second=9, sessionId=THIRD)
    write(home, f"{PROJECT}/{THIRD}.jsonl", first, own)


def test_copies_in_other_conversations_are_named_and_stay(database: Path, home: Path) -> None:
    fork(home)
    sync(database, [])
    told = forgotten(database)
    assert [(copy.session_key, copy.why) for copy in told.copies] == [(THIRD, "lines")]
    assert f"archive of {PROJECT}/{THIRD}.jsonl" in traces(database)
    rows = dump(database, tables=["messages"])["messages"]
    assert not [row for row in rows if row["copy_of"]], "the fork's line is the original now"


def test_copies_go_too_when_asked(database: Path, home: Path) -> None:
    fork(home)
    sync(database, [])
    assert forgotten(database, with_copies=True).copies == []
    assert traces(database) == []


def test_a_file_is_forgotten_by_its_name(database: Path, home: Path) -> None:
    told = forgotten(database, "history.jsonl")
    assert [Path(file).name for file in told.files] == ["history.jsonl"]
    sync(database, [], SyncOptions(full=True))
    assert dump(database)["prompts"] == []
    assert SESSION in {row["session_key"] for row in dump(database)["sessions"]}


def test_a_pasted_text_leaves_the_prompts_too(database: Path, home: Path) -> None:
    assert f"{SECRET}Paste" in json.dumps(dump(database, tables=["prompts"]))
    forgotten(database, PASTE)
    sync(database, [], SyncOptions(full=True))
    assert f"{SECRET}Paste" not in json.dumps(dump(database))


def test_a_session_that_only_shared_logs_name_is_forgotten_by_its_whole_key(
    place: Path, shell: Shell
) -> None:
    home = place / "home"
    write(home, "history.jsonl", prompt(secret("History"), SESSION), prompt("Sow beans", OTHER))
    assert shell("sync", str(home)) == 0
    assert shell("forget", SESSION[:8]) == 1
    assert shell("forget", SESSION) == 0
    assert traces(shell.database) == []
    assert [row["text"] for row in dump(shell.database)["prompts"]] == ["Sow beans"]


OLD_AGENT = f"{PROJECT}/agent-a1b2c3d.jsonl"


def test_a_call_and_its_result_stay_one_in_a_log_that_is_searched_for_what_is_forgotten(
    place: Path, fresh: Callable[[], Path]
) -> None:
    home, database = place / "home", fresh()
    write(home, TRANSCRIPT, user("Sow beans"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", user(secret("Transcript"), "o1", sessionId=OTHER))
    sync(database, [home])
    forgotten(database, OTHER)
    write(
        home, OLD_AGENT,
        agent("a1b2c3d", user("look", "u1")),
        agent("a1b2c3d", assistant([call("t1", "Bash", command="ls")], "a1")),
        agent("a1b2c3d", user([result("t1", "file")], "u2", "a1", 5)),
    )  # fmt: skip
    sync(database, [home])
    (made,) = dump(database)["tool_calls"]
    assert (made["status"], made["duration_ms"]) == ("ok", 4000)
    check(database, home)


@pytest.mark.parametrize("is_late", [True, False], ids=["read before", "read after"])
def test_lines_of_another_conversation_in_an_agents_file_go_with_it(
    place: Path, fresh: Callable[[], Path], is_late: bool
) -> None:
    home, database = place / "home", fresh()
    write(home, f"{PROJECT}/{OTHER}.jsonl", user(secret("Transcript"), "o1", sessionId=OTHER))
    lines = (
        agent("a1b2c3d", user(f"what was said in {OTHER}", "u1")),
        agent("a1b2c3d", user(secret("Agent"), "u2", sessionId=OTHER)),
    )
    if is_late:
        write(home, OLD_AGENT, *lines)
    sync(database, [home])
    found = forgotten(database, OTHER)
    assert [Path(path).name for path in found.shared] == [Path(OLD_AGENT).name] * is_late
    write(home, OLD_AGENT, *lines)
    sync(database, [home])
    assert traces(database) == []
    assert [row["text"] for row in dump(database)["messages"]] == [f"what was said in {OTHER}"]
    check(database, home)


def test_a_transcript_stands_for_its_conversation(database: Path) -> None:
    forgotten(database, TRANSCRIPT)
    assert traces(database) == []


def test_a_project_is_forgotten_with_all_its_conversations(
    database: Path, home: Path, shell: Shell
) -> None:
    write_bytes(home, f"{PROJECT}/memory/MEMORY.md", secret("Memory").encode())
    elsewhere = user("Stays", cwd="/srv/demo-else", sessionId=THIRD)
    write(home, f"projects/-srv-demo-else/{THIRD}.jsonl", elsewhere)
    sync(database, [])
    shutil.move(database, shell.database)
    assert shell("forget", "--project", "srv/dem") == 2
    assert "/srv/demo-else" in shell.err
    assert shell("forget", "--project", "demo", "--dry-run") == 0
    assert shell("forget", "--project", "demo") == 0
    assert {row["session_key"] for row in dump(shell.database)["sessions"]} == {THIRD}
    assert shell("sync", "--full") == 0
    assert {row["session_key"] for row in dump(shell.database)["sessions"]} == {THIRD}
    assert traces(shell.database) == []


def _in_projects(home: Path, *paths: str) -> dict[str, str]:
    """Write a conversation in each of these directories; return its key by the directory."""
    keys = {}
    for number, path in enumerate(paths):
        keys[path] = f"{number:08x}-1111-4222-8333-444455556666"
        line = user(f"in {path}", f"u{number}", cwd=path, sessionId=keys[path])
        directory = re.sub("[^A-Za-z0-9]", "-", path)
        write(home, f"projects/{directory}/{keys[path]}.jsonl", line)
    return keys


@pytest.mark.parametrize("there", [True, False])
def test_a_whole_path_means_what_lies_there_and_nothing_else(
    there: bool, place: Path, shell: Shell
) -> None:
    """Not what begins with it, what ends with it, nor what lies in it."""
    others = ("/srv/shop-two", "/mnt/srv/shop", "/srv/shop/till", "/srv/Shop-Old")
    keys = _in_projects(place / "home", *others, *(["/srv/shop"] if there else []))
    assert shell("sync", str(place / "home")) == 0
    for name in ("/srv/shop", "/srv/shop/"):
        code = shell("forget", "--project", name, "--json")
        assert code == (0 if there else 1)
        there = False  # by then it is gone
    assert "list projects" in shell.out
    left = {row["session_key"] for row in dump(shell.database)["sessions"]}
    assert left == {keys[path] for path in others}


@pytest.mark.slow
def test_a_forgotten_project_does_not_come_back_as_an_empty_directory(
    place: Path, shell: Shell
) -> None:
    """Its agent may delete its files and leave their directory, which has the name."""
    home = place / "home"
    keys = _in_projects(home, "/srv/Shop", "/srv/garden")
    (home / "projects/-srv-bare").mkdir()

    def names(*options: str) -> list[str]:
        assert shell("sync", str(home), *options) == 0
        assert verify(shell.database).findings == []
        return sorted({row["name"] for row in dump(shell.database)["projects"]})

    assert names() == ["-srv-bare", "Shop", "garden"]
    assert shell("forget", "--project", "/srv/Shop") == 0, shell.err
    assert names() == ["-srv-bare", "garden"]
    transcript = home / "projects/-srv-Shop" / f"{keys['/srv/Shop']}.jsonl"
    transcript.unlink()
    for options in ((), ("--full",)):
        assert names(*options) == ["-srv-bare", "garden"]
    assert shell("forget", "--project", "-srv-bare") == 0, "it has nothing but its name"
    for options in ((), ("--full",)):
        assert names(*options) == ["garden"]
    copy = home.rename(place / "moved")
    assert shell("sync", str(copy)) == 0
    assert {row["name"] for row in dump(shell.database)["projects"]} == {"garden"}
    copy.rename(home)
    # A conversation that begins there later is not forgotten.
    line = user("a new start", "n1", cwd="/srv/Shop", sessionId=OTHER)
    later = write(home, f"projects/-srv-Shop/{OTHER}.jsonl", line)
    assert names() == ["Shop", "garden"]
    later.unlink()
    assert shell("sync", str(home)) == 0
    assert shell("prune", "--gone", "--yes") == 0, shell.err
    assert names() == ["garden"]
    assert shell("forget", "--list") == 0
    assert re.search(r"projects/-srv-bare/$", shell.out, re.MULTILINE)
    assert shell("forget", "--remember", "projects/-srv-bare") == 0
    assert names() == ["-srv-bare", "garden"]


def test_a_whole_path_is_no_part_of_the_only_project(place: Path, shell: Shell) -> None:
    _in_projects(place / "home", "/srv/shop-two")
    assert shell("sync", str(place / "home")) == 0
    before = dump(shell.database)
    assert shell("forget", "--project", "/srv/shop") == 1
    assert shell("forget", "--project", "/srv/shop", "--dry-run") == 1
    assert_same(dump(shell.database), before)
    assert shell("forget", "--project", "shop-tw") == 2, "a part of a name is none"
    assert shell("forget", "--project", "shop-two") == 0


def test_a_key_that_several_roots_use_has_to_be_told_apart(place: Path, shell: Shell) -> None:
    """Agents of Cortex bear names, not uuids: the same name elsewhere is somebody else."""
    roots = [place / name / ".cortex" for name in ("one", "two")]
    for root in roots:
        write(root, "transcripts/main/transcript.jsonl", {"role": "user", "content": str(root)})
    assert shell("sync", *map(str, roots)) == 0
    assert shell("forget", "main") == 2
    assert "--root" in shell.err
    assert shell("forget", "main", "--root", str(roots[0])) == 0
    assert shell("sync", "--full") == 0
    (left,) = dump(shell.database)["messages"]
    assert left["text"] == str(roots[1])


def test_a_log_that_is_gone_is_blanked_and_stays_gone(database: Path, home: Path) -> None:
    (home / "history.jsonl").unlink()
    sync(database, [])
    forgotten(database)
    assert traces(database) == []
    (history,) = (f for f in dump(database)["files"] if f["path"] == "history.jsonl")
    assert history["is_gone"]
    check(database)


# -- what the command says -----------------------------------------------------------------------


def test_a_dry_run_lists_what_would_go_and_changes_nothing(database: Path, shell: Shell) -> None:
    shutil.move(database, shell.database)
    before = shell.database.read_bytes()
    assert shell("forget", SESSION[:6], "--dry-run") == 0
    for said in (SESSION, f"{SIDE}/tool-results/toolu_1.txt", "history.jsonl", "the word is"):
        assert said in shell.out, said
    assert "Would forget 1 conversation" in shell.err
    assert "untouched" in shell.err
    assert shell.database.read_bytes() == before


def test_a_damaged_database_that_was_put_aside_is_named(database: Path, shell: Shell) -> None:
    """It is the user's only way to what could not be mended, so only the user removes it."""
    shutil.move(database, shell.database)
    aside = [f"{shell.database}.damaged-20260120T100000Z{end}" for end in ("", "-wal")]
    for path in aside:
        shutil.copy(shell.database, path)
    other = Path(shutil.copy(shell.database, shell.database.with_name("other.db.damaged-1")))
    assert shell("forget", SESSION, "--dry-run") == 0
    assert all(path in shell.err for path in aside)
    assert shell("forget", SESSION) == 0
    assert all(path in shell.err for path in aside)
    assert str(other) not in shell.err
    assert all(Path(path).exists() for path in aside)


def test_what_is_forgotten_is_listed(database: Path, shell: Shell) -> None:
    shutil.move(database, shell.database)
    assert shell("forget", "--list") == 0
    assert "Nothing is forgotten" in shell.err
    told = shell.json("forget", SESSION, "--json")
    assert isinstance(told, dict)
    assert told["conversations"][0]["session_key"] == SESSION
    listed = shell.json("forget", "--list", "--json")
    assert isinstance(listed, list)
    assert {row["session_key"] for row in listed} == {SESSION}
    assert SECRET not in json.dumps(listed), "the list repeats nothing of what was said"
    assert shell("forget", "--list") == 0
    assert shell.out.count("teams/garden") == 1, "a directory stands for what is in it"
    assert shell.out.count("plans/brave-green-fern.md") == 1


def test_nothing_is_forgotten_that_is_not_named(database: Path, shell: Shell) -> None:
    shutil.move(database, shell.database)
    before = dump(shell.database)
    assert shell("forget") == 2
    assert shell("forget", SESSION, "--project", "demo") == 2
    assert shell("forget", "nobody") == 1
    assert shell("forget", "--remember", "nobody") == 1
    assert_same(dump(shell.database), before)


def test_the_agents_files_are_untouched(database: Path, home: Path) -> None:
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    forgotten(database)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


# -- beside the other commands -------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_forgotten_is_no_damage(database: Path, home: Path, place: Path) -> None:
    """`verify` finds nothing, before and after `rebuild`; `restore` gives back the rest."""
    forgotten(database)
    for step in (lambda: None, lambda: rebuild(database), lambda: sync(database, [home])):
        step()
        verdict = verify(database)
        assert verdict.findings == []
        assert traces(database) == []
        check(database)
    assert not [warning for warning in verdict.warnings if warning.check == "disk"]
    with open_reader(database) as connection:
        restored = list(restore(connection, select_all(connection), place / "restored"))
    by_path = {file.path: file for file in restored}
    assert by_path["history.jsonl"].status == "written"
    assert "forgotten" in (by_path["history.jsonl"].note or "")
    assert not [file for file in restored if file.status == "refused"]
    assert (place / "restored" / "history.jsonl").stat().st_size == (
        home / "history.jsonl"
    ).stat().st_size


def roots_with(database: Path, key: str) -> list[str]:
    with closing(connect(database)) as connection:
        rows = connection.execute(
            "select x.root from sessions s join sources x on x.id = s.source_id"
            " where s.session_key = ? order by x.root",
            (key,),
        )
        return [root for (root,) in rows]


def forgotten_everywhere(database: Path, key: str) -> None:
    """Forget a conversation in each root, unless it went as a copy of that in another one."""
    for root in roots_with(database, key):
        if root in roots_with(database, key):
            forgotten(database, key, root=root)


def _restored(database: Path, place: Path, name: str | None = None) -> dict[tuple[str, str], bytes]:
    """Return the files that `restore` writes: those of a conversation, or all."""
    to = Path(tempfile.mkdtemp(dir=place))
    with closing(open_reader(database)) as connection:
        files = select_all(connection) if name is None else select(connection, name)
        written = [file for file in restore(connection, files, to) if file.status == "written"]
    return {(file.root, file.path): Path(str(file.target)).read_bytes() for file in written}


def assert_taken(database: Path, place: Path, *keys: str) -> set[str]:
    """Assert that of what `restore` writes of conversations nothing is left, once forgotten."""
    mine: dict[tuple[str, str], bytes] = {}
    for key in keys:
        with suppress(NotFoundError):  # only lists name it
            mine |= _restored(database, place, key)
            forgotten_everywhere(database, key)
    left = _restored(database, place)
    kept = {file for file, data in mine.items() if left.get(file) == data}
    assert kept == set()
    return {path for _, path in mine}


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_what_restore_writes_of_a_conversation_is_what_forget_takes(
    group: str, fresh: Callable[[], Path], place: Path
) -> None:
    whole = fresh()
    sync(whole, homes_of(group, place))
    for keys in turns_of(whole):
        assert_taken(Path(shutil.copy(whole, place / "one.db")), place, *keys)


def test_restore_writes_all_that_forget_would_take(database: Path, place: Path) -> None:
    told = forgotten(database, dry_run=True)
    home = f"{place}/home/"
    own = {file.removeprefix(home).removeprefix("theassociate/") for file in told.files}
    assert assert_taken(database, place, SESSION) == own
    for path in ("plans/brave-green-fern.md", f"paste-cache/{PASTE}.txt", "tasks/garden/1.json"):
        assert path in own


@pytest.mark.slow
def test_a_sync_reports_nothing_that_it_leaves_out(database: Path, home: Path) -> None:
    forgotten(database)
    for options in (SyncOptions(), SyncOptions(full=True)):
        rebuild(database)
        assert sync(database, [home], options).quarantined == 0

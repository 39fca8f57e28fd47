"""The stores of Claude Code beside its transcripts: what changes, vanishes and returns between
syncs, what is left alone, and what is never read.

What each store looks like in the tables is shown by the golden cases; that it does not matter in
which order files come, by the conformance tests.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import CASES, expected
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    assistant,
    dumps,
    user,
    write,
    write_bytes,
)

from assoc_ingest import sql
from assoc_ingest.errors import UsageError
from assoc_ingest.files import archive, changes
from assoc_ingest.files.tail import NOT_A_TRANSCRIPT
from assoc_ingest.files.walk import recognised
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.status import status as current
from assoc_ingest.sources import SOURCES
from assoc_ingest.sources.claude.transcript import PRIVATE
from assoc_ingest.store import batch
from assoc_ingest.store.rows import Written
from assoc_ingest.sync.plan import Report
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_as_rebuilt, assert_same, check, connect, dump
from assoc_ingest.upkeep.prune import prune_gone

SECRET = "sk-planted-4f2a9c"
INBOX = "teams/crew/inboxes/alice.json"


class Place:
    """A home and its index."""

    def __init__(self, home: Path, database: Path, template: Path) -> None:
        self.home, self.database, self._template = home, database, template
        self._clock = 1_768_900_000
        write(home, f"{PROJECT}/{SESSION}.jsonl", user("plan the loader", slug="nimble-comet"))

    def put(self, path: str, value: Any) -> Path:
        """Write a document, later than all before."""
        file = write_bytes(self.home, path, value if isinstance(value, bytes) else dumps(value))
        self._clock += 1
        os.utime(file, (self._clock, self._clock))
        return file

    def remove(self, path: str) -> None:
        (self.home / path).unlink()

    def sync(self) -> Report:
        report = sync(self.database, [self.home])
        check(self.database, self.home)
        return report

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        connection = connect(self.database)
        try:
            return [tuple(row) for row in connection.execute(question)]
        finally:
            connection.close()

    def is_as_from_scratch(self) -> None:
        """Assert that one sync of what lies there now gives the same rows."""
        oracle = self.database.with_name("oracle.db")
        shutil.copy(self._template, oracle)
        sync(oracle, [self.home])
        assert_same(dump(self.database), dump(oracle))


@pytest.fixture
def place(tmp_path: Path, fresh: Callable[[], Path], template: Path) -> Place:
    return Place(tmp_path / "home", fresh(), template)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all files that a sync opens."""
    paths = []
    open_regular = changes.open_content

    def remembering(path: str) -> int:
        paths.append(path)
        return open_regular(path)

    monkeypatch.setattr(changes, "open_content", remembering)
    return paths


def task(number: str, **more: Any) -> dict[str, Any]:
    return {"id": number, "subject": f"Task {number}", "status": "pending", **more}


def message(text: str, *, read: bool = False, second: int = 0) -> dict[str, Any]:
    moment = f"2026-02-17T07:{second // 60:02d}:{second % 60:02d}.000Z"
    return {"from": "bob", "text": text, "timestamp": moment, "read": read}


# -- tasks ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_changes_of_a_task_are_kept(place: Place) -> None:
    place.put(f"tasks/{SESSION}/1.json", task("1"))
    place.sync()
    place.put(f"tasks/{SESSION}/1.json", task("1", status="in_progress", owner="alice"))
    place.sync()
    place.put(f"tasks/{SESSION}/1.json", task("1", status="completed", owner="alice"))
    place.sync()
    assert place.rows("select field, old_value, new_value from task_changes order by id") == [
        ("status", "pending", "in_progress"),
        ("owner", None, "alice"),
        ("status", "in_progress", "completed"),
    ]
    place.is_as_from_scratch()


def test_a_transcript_states_how_a_task_went_on(place: Place) -> None:
    place.put(f"tasks/{SESSION}/1.json", task("1", status="completed"))
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]
    done = {"taskId": "1", "statusChange": {"from": "in_progress", "to": "completed"}}
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", user(result, toolUseResult=done))
    place.sync()
    assert place.rows(
        "select t.subject, c.field, c.old_value, c.new_value, c.timestamp is not null"
        " from task_changes c join tasks t on t.id = c.task_id"
    ) == [("Task 1", "status", "in_progress", "completed", 1)]


@pytest.mark.slow
def test_a_finished_list_is_deleted_and_its_tasks_stay(place: Place) -> None:
    place.put(f"tasks/{SESSION}/1.json", task("1"))
    place.put(f"tasks/{SESSION}/2.json", task("2"))
    place.sync()
    before = place.rows("select id, task_key from tasks order by id")
    place.remove(f"tasks/{SESSION}/1.json")
    place.sync()
    assert place.rows("select task_key from tasks where gone_at is not null") == [("1",)]
    place.put(f"tasks/{SESSION}/1.json", task("1"))
    place.sync()
    assert place.rows("select task_key from tasks where gone_at is not null") == []
    assert place.rows("select id, task_key from tasks order by id") == before
    place.is_as_from_scratch()


def test_a_task_with_the_content_of_a_vanished_one_is_another_task(place: Place) -> None:
    place.put("tasks/a/1.json", {"subject": "the same"})
    place.sync()
    (place.home / "tasks/b").mkdir()
    (place.home / "tasks/a/1.json").rename(place.home / "tasks/b/1.json")
    place.sync()
    assert place.rows("select list_key, gone_at is null from tasks order by 1") == [
        ("a", 0),
        ("b", 1),
    ]


@pytest.mark.slow
def test_a_half_written_task_keeps_what_was_read_and_is_read_again(place: Place) -> None:
    path = f"tasks/{SESSION}/1.json"
    place.put(path, task("1", blockedBy=["2"]))
    place.sync()
    place.put(path, b'{"id":"1","subject":"Ta')
    place.sync()
    assert place.rows("select subject, gone_at from tasks") == [("Task 1", None)]
    assert place.rows("select blocker_key from task_dependencies") == [("2",)]
    assert place.rows("select quarantined from issues") == [(1,)]
    place.put(path, task("1", status="completed"))
    place.sync()
    assert place.rows("select status from tasks") == [("completed",)]
    assert place.rows("select count(*) from issues") == [(0,)]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_an_edge_stands_once_as_long_as_one_of_its_tasks_states_it(place: Place) -> None:
    place.put("tasks/a/1.json", task("1", blocks=["2"]))
    place.put("tasks/a/2.json", task("2", blockedBy=["1"]))
    place.sync()
    edges = "select task_key, blocker_key, task_id is not null from task_dependencies"
    assert place.rows(edges) == [("2", "1", 1)]
    place.put("tasks/a/1.json", task("1"))
    place.sync()
    assert place.rows(edges) == [("2", "1", 1)]
    place.is_as_from_scratch()
    place.put("tasks/a/2.json", task("2"))
    place.sync()
    assert place.rows(edges) == []
    place.is_as_from_scratch()


# -- inboxes and teams ---------------------------------------------------------------------------


@pytest.mark.slow
def test_one_of_a_thousand_messages_is_read_and_little_is_written(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [message(f"number {second}", second=second) for second in range(1000)]
    place.put(INBOX, messages)
    place.sync()
    before = place.rows("select id, text from inbox_items order by id")
    messages[500]["read"] = True
    place.put(INBOX, messages)
    changes = []
    finish = batch.Batch.finish

    def counting(batch: batch.Batch) -> Written:
        changes.append(batch.connection.total_changes)
        return finish(batch)

    monkeypatch.setattr(batch.Batch, "finish", counting)
    place.sync()
    assert len(changes) == 1, "one transaction"
    assert changes[0] < 50
    assert place.rows("select id, text from inbox_items order by id") == before
    assert place.rows("select text from inbox_items where is_read = 1") == [("number 500",)]
    place.is_as_from_scratch()


def test_a_message_that_vanished_is_kept_and_may_return(place: Place) -> None:
    place.put(INBOX, [message("one"), message("two"), message("two")])
    place.sync()
    place.put(INBOX, [message("two")])
    place.sync()
    gone = "select text, ordinal from inbox_items where gone_at is not null order by 1, 2"
    assert place.rows(gone) == [("one", 0), ("two", 1)]
    place.remove(INBOX)
    place.sync()
    assert place.rows(gone) == [("one", 0), ("two", 0), ("two", 1)]
    place.put(INBOX, [message("one"), message("two"), message("two")])
    place.sync()
    assert place.rows(gone) == []
    place.is_as_from_scratch()


def test_an_inbox_with_the_content_of_a_vanished_one_is_another_inbox(place: Place) -> None:
    place.put(INBOX, [message("hello")])
    place.sync()
    target = place.home / "teams/other/inboxes/carol.json"
    target.parent.mkdir(parents=True)
    (place.home / INBOX).rename(target)
    place.sync()
    assert place.rows(
        "select t.name, i.recipient, i.gone_at is null from inbox_items i"
        " join teams t on t.id = i.team_id order by 1"
    ) == [("crew", "alice", 0), ("other", "carol", 1)]


def test_a_team_that_no_longer_names_the_session_of_its_lead_has_none(place: Place) -> None:
    place.put(f"{PROJECT}/{SESSION}.jsonl", user("lead"))
    for lead in ({"leadSessionId": SESSION}, {}, {"leadSessionId": SESSION}):
        place.put("teams/crew/config.json", {"name": "crew", "members": [], **lead})
        place.sync()
        assert place.rows("select lead_session_id is not null from teams") == [(len(lead),)]


def test_a_team_outlives_its_directory(place: Place) -> None:
    place.put("teams/crew/config.json", {"name": "crew", "members": [{"name": "alice"}]})
    place.put(INBOX, [message("hello")])
    place.sync()
    assert place.rows("select name, gone_at from teams") == [("crew", None)]
    place.remove("teams/crew/config.json")
    place.sync()
    assert place.rows("select name, gone_at from teams") == [("crew", None)]
    place.remove(INBOX)
    place.sync()
    assert place.rows("select name, gone_at is null from teams") == [("crew", 0)]
    assert place.rows("select name from team_members") == [("alice",)]
    place.put(INBOX, [message("hello")])
    place.sync()
    assert place.rows("select gone_at from teams") == [(None,)]


@pytest.mark.slow
def test_a_new_lead_of_a_team_is_found(place: Place) -> None:
    write(place.home, f"{PROJECT}/{OTHER}.jsonl", user("lead", sessionId=OTHER))
    for lead in (SESSION, OTHER, "1c8d3a5f-0000-4333-9444-555566667777"):
        place.put("teams/crew/config.json", {"leadSessionId": lead})
        place.sync()
        place.is_as_from_scratch()
    assert place.rows("select lead_session_id from teams") == [(None,)]


@pytest.mark.slow
def test_messages_in_a_transcript_find_their_inbox_whichever_comes_first(place: Place) -> None:
    line = '<teammate-message teammate_id="bob" color="blue">\nhello\n</teammate-message>'
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", user(line, teamName="Crew"))
    place.sync()
    repeated = "select count(*), count(copy_of) from inbox_items where channel = 'transcript'"
    assert place.rows(repeated) == [(1, 0)]
    place.put(INBOX, [message("hello")])
    place.sync()
    assert place.rows(repeated) == [(1, 1)]
    place.is_as_from_scratch()
    place.put(INBOX, [message("goodbye")])
    place.sync()
    assert place.rows(repeated) == [(1, 1)], "the inbox row is kept as gone"


def test_the_halves_of_a_sent_message_meet_across_syncs(place: Place) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "SendMessage"}
    call["input"] = {"recipient": "alice", "content": "hello", "summary": "hi"}  # type: ignore[assignment]
    lines = [
        {**user("x", "a1"), "type": "assistant", "message": {"content": [call]}},
        user(
            [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sent"}],
            "u2",
            toolUseResult={"msg_id": "m1", "routing": {"sender": "lead", "target": "@alice"}},
        ),
    ]
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", lines[0])
    place.sync()
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", *lines)
    place.sync()
    assert place.rows("select sender, recipient, text, summary, message_key from inbox_items") == [
        ("lead", "alice", "hello", "hi", "m1")
    ]
    place.is_as_from_scratch()


WHOLE = "Please rebase on main first; then run all tests, not only those of the parser."


@pytest.mark.parametrize("halves", [(0, 1), (1, 0)], ids=["call first", "result first"])
def test_a_sent_message_is_stored_whole_and_not_its_preview(
    place: Place, halves: tuple[int, int]
) -> None:
    arguments = {"to": "alice", "message": WHOLE, "content": WHOLE[:50], "recipient": "alice"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "SendMessage", "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sent"}
    routing = {"sender": "lead", "target": "@alice", "content": WHOLE[:50]}
    lines = [
        {**user("x", "a1"), "type": "assistant", "message": {"content": [call]}},
        user([answer], "u2", toolUseResult={"routing": routing}),
    ]
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", *(lines[half] for half in halves))
    place.put(INBOX, [{**message(WHOLE), "from": "lead"}])
    place.sync()
    rows = place.rows("select channel, text, sender from inbox_items order by channel")
    assert rows == [("inbox", WHOLE, "lead"), ("transcript", WHOLE, "lead")]
    place.is_as_from_scratch()


# -- other stores --------------------------------------------------------------------------------


@pytest.mark.slow
def test_todo_lists_that_say_nothing_are_opened_once(place: Place, opened: list[str]) -> None:
    for number in range(200):
        content = b"[]" if number % 2 else b""
        place.put(f"todos/{SESSION}-agent-{number:07x}.json", content)
    place.sync()
    assert place.rows("select count(*) from todos") == [(0,)]
    assert place.rows("select count(*) from issues") == [(0,)]
    opened.clear()
    assert place.sync().files_read == 0
    assert opened == []


def test_todos_replace_those_before_and_keep_them_as_gone(place: Place) -> None:
    path = f"todos/{SESSION}-agent-{SESSION}.json"
    todos = "select content, status, position from todos where gone_at is null order by position"
    place.put(path, [{"content": "one"}, {"content": "two"}])
    place.sync()
    place.put(path, [{"content": "two", "status": "completed"}, {"content": "three"}])
    place.sync()
    assert place.rows(todos) == [("two", "completed", 0), ("three", None, 1)]
    place.put(path, [])
    place.sync()
    assert place.rows(todos) == []
    assert place.rows("select content from todos order by id") == [("one",), ("two",), ("three",)]


@pytest.mark.parametrize("name", ["notes", f"{SESSION}", "1-agent-2", f"{SESSION}-agent-"])
def test_todos_under_any_name_are_read_and_listed_without_a_session(
    place: Place, name: str
) -> None:
    place.put(f"todos/{name}.json", [{"content": "water the beans", "status": "pending"}])
    place.sync()
    (listed,) = _listed(place, "todos")
    assert (listed["content"], listed["session"], listed["session_key"]) == (
        *("water the beans", None, None),
    )
    place.is_as_from_scratch()


def test_a_paste_is_put_into_its_prompt_when_it_comes(place: Place) -> None:
    pasted = {"1": {"content": "inline"}, "2": {"contentHash": "00112233445566aa"}}
    prompt = {"display": "look", "timestamp": 1768900000000, "project": "/srv/demo"}
    place.put("history.jsonl", dumps({**prompt, "pastedContents": pasted}) + b"\n")
    place.sync()
    assert place.rows("select pasted from prompts") == [("inline",)]
    place.put("paste-cache/00112233445566aa.txt", b"from a file")
    place.sync()
    assert place.rows("select pasted from prompts") == [("inline\nfrom a file",)]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_a_prompt_titles_a_session_without_one_whichever_comes_first(place: Place) -> None:
    mode = {"type": "mode", "mode": "plan", "sessionId": OTHER}
    write(place.home, f"{PROJECT}/{OTHER}.jsonl", mode)
    place.sync()
    prompt = {"display": "first", "timestamp": 1768900000000, "sessionId": OTHER}
    later = {"display": "second", "timestamp": 1768900001000, "sessionId": OTHER}
    title = f"select title, title_source from sessions where session_key = '{OTHER}'"
    place.put("history.jsonl", dumps(prompt) + b"\n")
    place.sync()
    assert place.rows(title) == [("first", "history")]
    place.put("history.jsonl", dumps(prompt) + b"\n" + dumps(later) + b"\n")
    place.sync()
    assert place.rows(title) == [("first", "history")]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_a_plan_finds_its_session_whichever_comes_first(place: Place) -> None:
    place.put("plans/brisk-maple.md", b"# Later\n")
    place.put("plans/nimble-comet-agent-a1b2c3d.md", b"# Now\n")
    place.sync()
    found = "select title, session_id is not null from plans order by title"
    assert place.rows(found) == [("Later", 0), ("Now", 1)]
    line = user("build", sessionId=OTHER, slug="brisk-maple")
    write(place.home, f"{PROJECT}/{OTHER}.jsonl", line)
    place.sync()
    assert place.rows(found) == [("Later", 1), ("Now", 1)]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_a_plan_that_is_rewritten_replaces_its_lines(place: Place) -> None:
    place.put("plans/nimble-comet.md", b"# One\n\ntext\n")
    place.sync()
    place.put("plans/nimble-comet.md", b"# Two\n")
    place.sync()
    assert place.rows("select title from plans") == [("Two",)]
    assert place.rows("select number, kind, text from plan_lines") == [(1, "heading", "# Two")]
    place.remove("plans/nimble-comet.md")
    place.sync()
    assert place.rows("select title from plans") == [("Two",)], "a file that vanishes keeps rows"


@pytest.mark.slow
def test_an_open_session_is_busy_until_its_file_is_gone(place: Place) -> None:
    entry = {"sessionId": SESSION, "status": "busy", "cwd": "/srv/demo"}
    place.put("sessions/4711.json", entry)
    place.sync()
    status = "select status from sessions"
    assert place.rows(status) == [("busy",)]
    place.put("sessions/4711.json", {**entry, "status": "idle"})
    place.sync()
    assert place.rows(status) == [("idle",)]
    place.remove("sessions/4711.json")
    place.sync()
    assert place.rows(status) == [(None,)]


def test_how_long_transcripts_are_kept_is_known(place: Place) -> None:
    place.sync()
    assert place.rows("select cleanup_period_days from sources") == [(None,)]
    place.put("settings.json", {"cleanupPeriodDays": 365, "model": "opus"})
    place.sync()
    assert place.rows("select cleanup_period_days from sources") == [(365,)]


def test_a_document_that_is_replaced_while_it_is_read_is_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put(INBOX, [message("before")])
    place.sync()
    place.put(INBOX, [message("meanwhile")])
    open_regular, replaced = changes.open_content, []

    def replacing(path: str) -> int:
        descriptor = open_regular(path)
        if path.endswith("alice.json") and not replaced:
            other = place.put(f"{INBOX}.tmp.77", [message("at last")])
            other.replace(path)
            replaced.append(path)
        return descriptor

    monkeypatch.setattr(changes, "open_content", replacing)
    sync(place.database, [place.home])
    present = "select text from inbox_items where gone_at is null"
    assert replaced
    assert place.rows(present) == [("meanwhile",)]
    place.sync()
    assert place.rows(present) == [("at last",)]


# -- what is left alone --------------------------------------------------------------------------

IGNORED = (
    f"tasks/{SESSION}/.lock",
    f"tasks/{SESSION}/.highwatermark",
    f"tasks/{SESSION}/1.json.tmp.4711.1768900000000",
    f"tasks/{SESSION}/1.json.lock",
    f"todos/{SESSION}-agent-{SESSION}.json.bak",
    "todos/notes.txt",
    f"{INBOX}.tmp",
    f"{INBOX}.tmp.77.1768900000000.ab12",
    "teams/crew/inboxes/alice.json.lock",
    "teams/crew/notes.json",
    "plans/draft.bak.md",
    "plans/notes.txt",
    ".last-cleanup",
    "stats-cache.json",
    f"backups/home/{PROJECT}/{OTHER}.jsonl",
    f"backup/{PROJECT}/{OTHER}.jsonl",
    f"projects.bak-1/-srv-demo/{OTHER}.jsonl",
    f"{PROJECT}/{OTHER}.jsonl.bak",
    f"{PROJECT}/{OTHER}.tmp.jsonl",
    "home.zip",
    "plugins/cache/listing.jsonl",
    "skills/tidy/SKILL.md",
    "commands/tidy.md",
    "agents/tidy.md",
    "output-styles/terse.md",
    "cache/changelog.md",
    "downloads/a.jsonl",
    "uploads/a.txt",
    "statsig/statsig.cached.json",
    "chrome/a.json",
    "homunculus/observations.jsonl",
    "transcripts/ses_0001.jsonl",
    "jobs/0b7c2f4e/timeline.jsonl",
    "ide/4711.lock",
    f"file-history/{SESSION}/notes",
)


def test_what_is_no_store_is_left_alone(place: Place, opened: list[str]) -> None:
    place.sync()
    before = dump(place.database)
    for path in IGNORED:
        place.put(path, dumps(user("foreign", sessionId="ses_0001")) + b"\n")
    opened.clear()
    place.sync()
    assert opened == []
    assert_same(dump(place.database), before)


NEVER_OPENED = (
    ".credentials.json",
    ".claude.json",
    "oauth.json",
    "my-auth-token.json",
    "settings.local.json",
    ".mcp.json",
    f"session-env/{SESSION}/hook-0.sh",
    "shell-snapshots/snapshot-zsh-1.sh",
    "debug/latest.txt",
    "security/findings.json",
    "daemon/state.json",
    "daemon.json",
    "telemetry/1p_failed_events.json",
    f"file-history/{SESSION}/0123456789abcdef@v1",
)


def test_secrets_are_in_no_table_and_never_opened_files_are_not_opened(
    place: Place, opened: list[str]
) -> None:
    for path in NEVER_OPENED:
        place.put(path, {"token": SECRET})
    place.put("settings.json", {"cleanupPeriodDays": 30, "env": {"KEY": SECRET}})
    registry = {"sessionId": SESSION, "bridgeSessionId": SECRET, "messagingSocketPath": SECRET}
    place.put("sessions/4711.json", registry)
    place.put("sessions/4712.json", f'{{"bridgeSessionId":"{SECRET}"'.encode())
    place.put("jobs/0b7c2f4e/state.json", {"sessionId": SESSION, "providerEnv": {"KEY": SECRET}})
    bridge = dict.fromkeys(["bridgeSessionId", "ownerAccountUuid", "ownerOrganizationUuid"], SECRET)
    signed = {"type": "thinking", "thinking": "hm", "signature": SECRET}
    image = {"type": "image", "source": {"type": "base64", "data": SECRET}}
    error = {"status": 529, "headers": {"authorization": SECRET}, "message": "overloaded"}
    status = {"subtype": "bridge_status", "url": SECRET, "content": "connected"}
    write(
        place.home,
        f"{PROJECT}/{SESSION}.jsonl",
        user([{"type": "text", "text": "hello"}, image]),
        {"type": "bridge-session", "sessionId": SESSION, **bridge},
        f'{{"type":"bridge-session","ownerAccountUuid":"{SECRET}"'.encode(),
        *(
            {"type": kind, "sessionId": SESSION, "accountUuid": SECRET, "text": SECRET}
            for kind in PRIVATE
        ),
        f'{{"accountUuid":"{SECRET}","type":"session-ow'.encode(),
        {**user("x", "a1"), "type": "assistant", "message": {"content": [signed]}},
        {**user("x", "s1"), "type": "system", **status},
        {**user("x", "s2"), "type": "system", "subtype": "api_error", "error": error},
    )
    place.sync()
    assert [path for path in opened if path.endswith(NEVER_OPENED)] == []
    assert _tables_with(place.database, SECRET) == {"archive"}
    assert place.rows(
        "select path from files join archive a on a.file_id = files.id"
        " where path in ('settings.json', 'sessions/4711.json', 'jobs/0b7c2f4e/state.json')"
    ) == []  # fmt: skip


def test_seeds_progress_text_of_the_oldest_form(place: Place) -> None:
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", {**user(None), "type": "progress",
          "content": "half of it is done"})  # fmt: skip
    place.sync()
    said = "select kind, tool_text from messages"
    assert place.rows(said) == [("attachment", "half of it is done")]


def test_seeds_an_empty_file_history_snapshot_is_kept(place: Place) -> None:
    snapshot = {"messageId": "m1", "timestamp": "2026-01-20T10:00:00.000Z"}
    line = {"type": "file-history-snapshot", "messageId": "m1"}
    write(
        place.home, f"{PROJECT}/{SESSION}.jsonl", user("hello"),
        {**line, "snapshot": {**snapshot, "trackedFileBackups": {}}},
        {**line, "snapshot": {**snapshot, "trackedFileBackups": {"a.ts": {"version": 1}}}},
    )  # fmt: skip
    place.sync()
    assert place.rows("select type, extra from line_extras") == [
        ("file-history-snapshot", '{"messageId":"m1"}')
    ]
    assert place.rows("select path from file_snapshots") == [("a.ts",)]


def test_seeds_a_paste_in_a_directory_of_its_session(place: Place) -> None:
    pasted = {"1": {"id": 1, "type": "text", "contentHash": "3f8a0c1d22e4b567"}}
    place.put("history.jsonl", {"display": "look", "timestamp": 1, "pastedContents": pasted})
    place.put(f"paste-cache/{SESSION}/3f8a0c1d22e4b567.txt", b"what was pasted")
    place.sync()
    assert place.rows("select pasted from prompts") == [("what was pasted",)]
    place.is_as_from_scratch()


def test_seeds_a_top_level_message_id_names_the_response(place: Place) -> None:
    usage = {"input_tokens": 1, "output_tokens": 2}
    message = {"role": "assistant", "model": "claude-x", "content": "hi", "usage": usage}
    lines = [
        {**user(None, uuid), "type": "assistant", "id": "msg_9", "message": message}
        for uuid in ("a1", "a2")
    ]
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", *lines)
    place.sync()
    assert place.rows("select response_key, output_tokens from responses") == [("msg_9", 2)]


def test_seeds_a_call_and_its_result_in_one_line_without_ids_are_joined(place: Place) -> None:
    def call(name: str) -> dict[str, Any]:
        return {"type": "tool_use", "name": name, "input": {}}

    failed = {"type": "tool_result", "content": "no such file", "is_error": True}
    done = {"type": "tool_result", "content": "done"}
    write(
        place.home, f"{PROJECT}/{SESSION}.jsonl",
        assistant([call("Read"), failed, call("Bash"), done], "a1", second=5),
        assistant([call("Glob"), call("Grep"), done], "a2", second=6),  # of which nobody can say
        assistant([call("Edit")], "a3", second=7),
        user([done], "u4", second=8),
    )  # fmt: skip
    place.sync()
    assert place.rows(
        "select t.name, t.status, r.tool_text, t.ended_at from tool_calls t"
        " left join messages r on r.id = t.result_id order by t.byte_offset, t.block"
    ) == [
        ("Read", "error", "no such file", None),
        ("Bash", "ok", "done", None),
        ("Glob", "pending", None, None),
        ("Grep", "pending", None, None),
        ("Edit", "pending", None, None),
    ]
    assert place.rows("select reason from issues") == [("tool_use_id: missing",)] * 2
    place.is_as_from_scratch()


def test_seeds_user_type_can_be_asked_for(place: Place) -> None:
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", user("hello", userType="external"))
    place.sync()
    assert place.rows("select user_type from transcripts") == [("external",)]


def _unsigned(*lines: dict[str, Any]) -> bytes:
    return b"".join(
        dumps({key: value for key, value in line.items() if key != "sessionId"}) + b"\n"
        for line in lines
    )


NAMED = f"{PROJECT}/rename-button.jsonl"
INDEX = f"{PROJECT}/sessions-index.json"


def _index(*sessions: str) -> dict[str, Any]:
    return {"version": 1, "entries": [{"sessionId": session} for session in sessions]}


def test_seeds_a_transcript_that_an_index_names_is_read_though_no_line_names_a_session(
    place: Place,
) -> None:
    """Seed: the index decides what a transcript is whose lines have no `sessionId`."""
    read = (
        "select f.kind, s.session_key, m.text from messages m join files f on f.id = m.file_id"
        " join sessions s on s.id = m.session_id where f.path like '%button%' order by 3"
    )
    hello = ("transcript", "rename-button", "hello")
    place.put(NAMED, _unsigned(user("hello", "v1"), assistant("hi", "v2")))
    place.sync()
    assert place.rows(read) == []
    assert place.rows("select kind from files where path like '%button%'") == [("foreign",)]
    place.put(INDEX, _index("another", "rename-button"))
    place.sync()
    assert place.rows(read) == [hello, ("transcript", "rename-button", "hi")]
    assert place.rows("select count(*) from issues") == [(0,)]
    place.is_as_from_scratch()
    assert_as_rebuilt(place.database)
    place.put(NAMED, _unsigned(user("hello", "v1"), user("more", "v3")))
    place.sync()
    assert place.rows(read) == [hello, ("transcript", "rename-button", "more")]
    place.is_as_from_scratch()
    place.put(INDEX, _index("another"))
    place.sync()
    assert place.rows(read) == []
    assert [row[0] for row in place.rows("select reason from issues")] == [NOT_A_TRANSCRIPT]
    assert_as_rebuilt(place.database)
    with (place.home / NAMED).open("ab") as stream:
        stream.write(dumps(user("signed", "v4", sessionId="rename-button")) + b"\n")
    place.sync()
    assert len(place.rows(read)) == 3
    place.put(INDEX, _index())
    place.sync()
    assert len(place.rows(read)) == 3, "now its own lines say what it is"


def test_a_transcript_that_an_index_named_stays_one_until_the_index_is_pruned(
    place: Place,
) -> None:
    kinds = "select kind from files where path like '%button%'"
    place.put(INDEX, _index("rename-button"))
    place.put(NAMED, _unsigned(user("hello", "v1")))
    place.sync()
    place.remove(INDEX)
    place.sync()
    assert place.rows(kinds) == [("transcript",)], "what is gone keeps what it said"
    assert_as_rebuilt(place.database)
    prune_gone(place.database, None, dry_run=False)
    assert place.rows(kinds) == [("foreign",)]
    place.is_as_from_scratch()


def test_lines_of_unknown_types_are_reported_with_the_version_that_wrote_them(
    place: Place,
) -> None:
    seen = {"sessionId": SESSION, "content": "x"}
    lines = [
        user("a", "u1", version="2.1.300"),
        {"type": "tag", "tag": "known", "sessionId": SESSION},
        user("b", "u2", version="2.1.330"),
        {"type": "of-tomorrow", **seen},
        {"type": "attachment", "uuid": "u3", **seen, "attachment": {"type": "of-tomorrow"}},
        {"type": "attachment", "uuid": "u4", **seen, "attachment": {"type": "hook_success"}},
        {"type": "of-another-program", "content": "without a session"},
        user("c", "u5", version="2.1.331"),
        {"type": "of-tomorrow", **seen},
        {"type": "of-next-week\x1b[2J", **seen},
    ]
    for count in range(1, len(lines) + 1):  # it grows line by line
        write(place.home, f"{PROJECT}/{SESSION}.jsonl", *lines[:count])
        place.sync()
    connection = connect(place.database)
    connection.row_factory = sqlite3.Row
    status = current.ask(Reader(connection, 0))
    connection.close()
    assert [(row["version"], row["type"], row["lines"]) for row in status.new_lines] == [
        ("2.1.330", "attachment", 1),
        ("2.1.330", "of-tomorrow", 2),
        ("2.1.331", "of-next-week\x1b[2J", 1),
    ]
    assert status.news == [
        "2 kinds of lines are new in Claude Code 2.1.330: attachment of-tomorrow (1 line),"
        " of-tomorrow (2 lines)",
        "1 kind of line is new in Claude Code 2.1.331: of-next-week\\x1b[2J (1 line)",
        "Claude Code 2.1.331 is newer than what its reader was checked with (1.0.0 to 2.1.330):"
        " 1 conversation",
    ]


def test_directories_and_databases_that_no_reader_knows_are_named_and_not_opened(
    place: Place, opened: list[str]
) -> None:
    write(place.home, f"{PROJECT}/{SESSION}.jsonl", user("a", "u1", version="2.1.330"))
    for directory in ("mail-v2", "plugins", "daemon-3", "theassociate", ".cache", "tasks"):
        (place.home / directory).mkdir()
    place.put("mail-v2/secret.json", {"key": SECRET})
    place.put("mail_1.sqlite", b"SQLite format 3")
    place.put("mail_1.sqlite-wal", b"")
    place.put("notes.txt", b"x")
    codex = place.home.with_name("codex")
    rollout = f"sessions/2026/05/23/rollout-2026-05-23T18-25-15-{SESSION}.jsonl"
    write_bytes(codex, rollout, b"{}\n")
    for name in ("queue_1.sqlite", "logs_1.sqlite", "thread_history_2.sqlite", "mail_1.sqlite"):
        write_bytes(codex, name, b"")
    place.sync()
    sync(place.database, [place.home, codex])
    with closing(connect(place.database)) as connection:
        status = current.ask(Reader(connection, 0))
    assert [
        (row["source"], row["kind"], row["name"], row["version"]) for row in status.new_places
    ] == [
        ("claude", "directory", "mail-v2", "2.1.330"),
        ("claude", "database", "mail_1.sqlite", "2.1.330"),
        ("codex", "database", "mail_1.sqlite", None),
    ]
    assert status.news == [
        f"Not known and not opened in {place.home}: directory mail-v2, database mail_1.sqlite"
        " (last read there: Claude Code 2.1.330)",
        f"Not known and not opened in {codex}: database mail_1.sqlite",
    ]
    assert not [path for path in opened if "mail" in path]


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_says_which_lines_it_knows(name: str) -> None:
    assert SOURCES[name].known_lines
    assert not SOURCES[name].knows("of-tomorrow", "")


INVENTED = {
    "associate": {"user/"},  # a line of another agent
    "chorus": {"brand_new/"},
    "claude": {
        *("a-new-silent-type/", "a-new-type/", "a-newer-type/", "of-another-program/"),
        *(
            f"attachment/{kind}"
            for kind in (
                *("a_kind_of_tomorrow", "a_long_kind", "a_new_kind"),
                "another_kind_of_tomorrow",
            )
        ),
        *("message/", "nothing/", "session/"),  # of files of other programs
    },
    "cline": {"shown/moonlight"},
    "codex": {"response_item/new_thing"},
    "kimi": {"SubagentEvent/", "SubagentEvent/SubagentEvent", "Weather/"},
    "qwen": {"gesture/", "system/", "system/horoscope", "user/telepathy"},
    "copilot": {"session.weather_changed/"},
    "copilot_chat": {"1/", "9/", "append/hologram"},
    "cursor": {"bubbleId/3"},
    "cursor_cli": {"blobs/oracle"},
    "gemini": {"riddle/"},
    "pi": {"tick/", "weather_report/"},
    "goose": {"messages/robot"},
}
"""The types of lines of the golden homes that no reader knows."""


def test_no_line_that_a_reader_knows_is_called_new() -> None:
    new: dict[str, set[str]] = {}
    for case in CASES:
        name = case.partition("/")[0]
        files = json.loads(expected(case).read_text("utf-8")).get("line_types", {})
        for row in chain.from_iterable(files.values()):
            if not SOURCES[name].knows(row["type"], row["subtype"]):
                new.setdefault(name, set()).add(f"{row['type']}/{row['subtype']}")
    assert new == INVENTED


def _tables_with(database: Path, needle: str) -> set[str]:
    """Return the tables in which a text stands; the archive's are its decompressed bytes."""
    connection = connect(database)
    tables = connection.execute(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    ).fetchall()
    found = {"archive"} if _is_archived(connection, needle) else set()
    for (table,) in tables:
        for row in connection.execute(f'select * from "{table}"'):
            if any(needle in _text(value) for value in row):
                found.add(table)
    connection.close()
    return found


def _is_archived(connection: sqlite3.Connection, needle: str) -> bool:
    ids = connection.execute("select distinct file_id from archive").fetchall()
    return any(needle.encode() in b"".join(archive.read(connection, id_)) for (id_,) in ids)


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


# -- which directories are homes -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "content", "is_home"),
    [
        ("history.jsonl", {"display": "hello", "timestamp": 1768900000000}, True),
        ("history.jsonl", {"session_id": "x", "ts": 1768900000, "text": "another agent's"}, False),
        (f"todos/{SESSION}-agent-{SESSION}.json", [], True),
        ("todos/shopping.json", [], False),
        (f"tasks/{SESSION}/1.json", {}, True),
        ("tasks/build.json", {}, False),
        ("teams/crew/config.json", {}, True),
        ("plans/brisk-maple.md", {}, False),
        ("settings.json", {}, False),
    ],
)
def test_a_home_is_recognised_by_any_of_its_stores(
    tmp_path: Path, path: str, content: Any, is_home: bool
) -> None:
    write_bytes(tmp_path, path, json.dumps(content).encode() + b"\n")
    if is_home:
        (root,) = recognised(tmp_path, SOURCES, "claude")
        assert root.path == tmp_path.resolve()
    else:
        with pytest.raises(UsageError):
            recognised(tmp_path, SOURCES, "claude")


# -- lists ---------------------------------------------------------------------------------------


def _listed(place: Place, what: str, **given: Any) -> list[dict[str, Any]]:
    query = sql.query(f"lists/{what}")
    connection = connect(place.database)
    rows = connection.execute(query.sql, {name: given.get(name) for name in query.parameters})
    found = [dict(row) for row in rows]
    connection.close()
    return found


def test_tasks_are_listed_by_number_and_deleted_ones_only_when_asked_for(place: Place) -> None:
    for number in ("10", "9", "b"):
        place.put(f"tasks/{SESSION}/{number}.json", task(number))
    place.put(f"tasks/{SESSION}/11.json", task("11", blockedBy=["b", "10", "9"]))
    place.put(f"tasks/{SESSION}/1.json", task("1", status="deleted"))
    place.put(f"tasks/{SESSION}/2.json", task("2"))
    place.sync()
    place.remove(f"tasks/{SESSION}/2.json")
    place.sync()
    assert [row["task"] for row in _listed(place, "tasks")] == ["9", "10", "11", "b"]
    assert [row["task"] for row in _listed(place, "tasks", all=1)] == [
        *("1", "2", "9", "10", "11", "b")
    ]
    assert _listed(place, "tasks")[2]["waits_for"] == "9, 10, b"


def test_teams_are_listed_by_where_their_members_work_or_all(place: Place) -> None:
    for name, cwd in (("one", "D:\\Code\\Demo"), ("two", "/srv/demo/"), ("three", None)):
        place.put(f"teams/{name}/config.json", {"name": name, "members": [{"cwd": cwd}]})
    place.sync()

    def names(cwd: str | None) -> set[str]:
        return {row["name"] for row in _listed(place, "teams", cwd=cwd)}

    assert names("/srv/demo") == {"two"}
    assert names("d:/code/demo/") == {"one"}
    assert names("/srv/elsewhere") == names(None) == {"one", "two", "three"}


def test_prompts_that_repeat_are_listed_once(place: Place) -> None:
    line = dumps({"display": "go on", "timestamp": 1768900000000, "project": "/srv/demo"}) + b"\n"
    place.put("history.jsonl", line * 3)
    place.sync()
    assert [row["text"] for row in _listed(place, "prompts")] == ["go on"]

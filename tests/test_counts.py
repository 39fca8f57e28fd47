"""Counts add up: of sessions and projects, in every list and report, each line counts once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.dump import assert_same, check, dump
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    Object,
    assistant,
    call,
    result,
    user,
    write,
)

from assoc_ingest import sql
from assoc_ingest.ask.conversation import Conversation
from assoc_ingest.mcp.summary import summary
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.web.conversation_map import Mapper, Stretch

ELSEWHERE = TRANSCRIPT.replace("-srv-demo", "-srv-other")
COUNTS = (
    "select message_count, copied_message_count, prompt_count, tool_call_count"
    " from sessions order by session_key"
)


@pytest.fixture
def read(fresh: Callable[[], Path], home: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Syncs the home and opens the database."""
    database = fresh()
    opened = []

    def run() -> sqlite3.Connection:
        sync(database, [home])
        check(database, home)
        opened.append(open_reader(database))
        return opened[-1]

    yield run
    for connection in opened:
        connection.close()


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(query)]


def lines() -> list[Object]:
    counts = {"input_tokens": 10, "output_tokens": 5}
    return [
        user("begin", "u1", None, 0),
        assistant([call("t1")], "a1", "u1", 1, usage=counts),
        user([result("t1")], "u2", "a1", 2),
        assistant("ready", "a2", "u2", 3, id="msg_2", usage=counts),
    ]


# -- one session, several transcripts ------------------------------------------------------------


def test_a_session_is_described_by_all_of_its_transcripts(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    more = [user("go on", "u3", "a2", 10), assistant("done", "a3", "u3", 20, id="msg_3")]
    titled = {"type": "custom-title", "customTitle": "The whole", "sessionId": SESSION}
    write(home, TRANSCRIPT, *lines(), titled)
    write(home, ELSEWHERE, *lines(), *more)
    connection = read()
    assert rows(connection, COUNTS) == [(6, 0, 2, 1)]
    facts = "select title, substr(started_at, 18, 2), substr(ended_at, 18, 2) from sessions"
    assert rows(connection, facts) == [("The whole", "00", "20")]


@pytest.mark.slow
def test_each_line_of_it_is_shown_once(home: Path, read: Callable[[], sqlite3.Connection]) -> None:
    write(home, TRANSCRIPT, *lines())
    write(home, ELSEWHERE, *lines(), user("go on", "u3", "a2", 10))
    conversation = Conversation(read(), SESSION)
    shown = [m.text for file in conversation.files for m in conversation.messages(file) if m.text]
    assert sorted(shown) == ["begin", "go on", "ready"]


@pytest.mark.slow
def test_no_order_of_syncing_changes_the_description(home: Path, fresh: Callable[[], Path]) -> None:
    grown = fresh()
    more = [user("go on", "u3", "a2", 10), assistant("done", "a3", "u3", 20, id="msg_3")]
    for count in range(1, 7):
        write(home, ELSEWHERE, *[*lines(), *more][:count])
        sync(grown, [home])
        write(home, TRANSCRIPT, *[*lines(), *more][: max(0, count - 2)])
        write(home, f"{PROJECT}/{OTHER}.jsonl", *lines()[:count], user("fork", "f1", "u1", 30))
        sync(grown, [home])
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(grown), dump(scratch))


# -- sums ----------------------------------------------------------------------------------------


def test_what_a_fork_repeats_counts_where_it_was_first_said(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    write(home, TRANSCRIPT, *lines(), user("go on", "u3", "a2", 10))
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines(), user("try this", "u4", "a2", 20))
    connection = read()
    assert rows(connection, COUNTS) == [(5, 0, 2, 1), (1, 4, 1, 0)]


@pytest.fixture
def busy(home: Path, read: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """A home in which lines are repeated in all ways: forks, exports, compaction, the queue."""
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    delivered = {**queued, "content": "later", "timestamp": "2026-01-20T10:00:04.000Z"}
    own = [*lines(), delivered, user("later", "u5", "a2", 5), lines()[0]]
    write(home, TRANSCRIPT, *own)
    write(home, ELSEWHERE, *own, user("go on", "u3", "a2", 10))
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines(), user("fork", "u4", "a2", 20))
    write(home, f"projects/-srv-third/{THIRD}.jsonl", *lines()[:2], user("fork", "u6", "a1", 30))
    return read()


def total(connection: sqlite3.Connection, query: str, column: str) -> int:
    found = list(sql.ask(connection, query, limit=1000))
    assert found, query
    return sum(row[column] or 0 for row in found)


@pytest.mark.parametrize(
    ("what", "once", "reports"),
    [
        (
            "messages",
            "select count(*) from (select distinct uuid from messages where copy_of is null"
            " and role in ('user', 'assistant') and kind <> 'queued_prompt')",
            [("lists/sessions", "message_count"), ("reports/longest_sessions", "message_count")],
        ),
        (
            "prompts",
            "select count(*) from messages where copy_of is null and kind in"
            " ('prompt', 'command', 'bash_input', 'queued_prompt')",
            [
                ("lists/sessions", "prompt_count"),
                ("reports/longest_sessions", "prompt_count"),
                ("reports/projects_overview", "prompts"),
                ("pages/dashboard_projects", "prompts"),
            ],
        ),
        (
            "calls",
            "select count(*) from tool_calls c join messages m on m.id = c.call_id"
            " where m.copy_of is null",
            [
                ("lists/sessions", "tool_call_count"),
                ("reports/longest_sessions", "tool_call_count"),
                ("reports/projects_overview", "tool_calls"),
                ("pages/dashboard_projects", "tool_calls"),
                ("reports/tool_use", "calls"),
            ],
        ),
        (
            "output tokens",
            "select sum(output_tokens) from responses",
            [
                ("lists/sessions", "output_tokens"),
                ("reports/longest_sessions", "output_tokens"),
                ("reports/projects_overview", "output_tokens"),
                ("pages/dashboard_usage", "output_tokens"),
                ("reports/activity_by_hour", "output_tokens"),
                ("reports/usage_by_day", "output_tokens"),
                ("reports/usage_by_model", "output_tokens"),
                ("reports/usage_by_project", "output_tokens"),
                ("reports/usage_by_session", "output_tokens"),
                ("reports/usage_by_subagent_type", "output_tokens"),
            ],
        ),
    ],
)
def test_reports_that_count_the_same_agree(
    busy: sqlite3.Connection, what: str, once: str, reports: list[tuple[str, str]]
) -> None:
    (expected,) = rows(busy, once)[0]
    assert expected > 0
    for query, column in reports:
        assert total(busy, query, column) == expected, (what, query)


# -- files that were changed ---------------------------------------------------------------------


def edited(number: int, name: str, said: str = "done", **more: Any) -> list[Object]:
    """Return a call that edits a file, and its result."""
    key = f"e{number}"
    change = call(key, "Edit", file_path=f"/srv/demo/{name}", old_string="a", new_string="b")
    answer = result(key, said, **more)
    return [
        assistant([change], f"x{number}", None, 2 * number, id=f"msg_{key}"),
        user([answer], f"y{number}", f"x{number}", 2 * number + 1),
    ]


def test_each_file_has_its_own_edits(home: Path, read: Callable[[], sqlite3.Connection]) -> None:
    """Not what failed or was declined, and what a second transcript repeats once."""
    declined = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    edits = [
        *edited(1, "beds.py"), *edited(2, "soil.py"), *edited(3, "beds.py"),
        *edited(4, "soil.py", "no such text", is_error=True),
        *edited(5, "seeds.py", declined, is_error=True),
    ]  # fmt: skip
    write(home, TRANSCRIPT, user("begin", "u1", None, 0), *edits)
    write(home, ELSEWHERE, user("begin", "u1", None, 0), *edits)
    connection = read()
    conversation = Conversation(connection, SESSION)
    assert [(one["path"], one["edits"]) for one in summary(conversation)["changed_files"]] == [
        ("/srv/demo/beds.py", 2), ("/srv/demo/soil.py", 1)
    ]  # fmt: skip
    files = [file.id for file in conversation.files]
    mapper = Mapper(conversation, None, files, lambda place: "", lambda subagent: "")
    (changed,) = [
        part.lines for part in mapper.map(Stretch((0, -1, 0), (0, -1, 0))).parts
        if part.name == "Files changed"
    ]  # fmt: skip
    assert [(line.text, line.facts) for line in changed] == [
        ("beds.py", "2 changes"), ("soil.py", "1 change")
    ]  # fmt: skip

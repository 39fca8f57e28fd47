"""What a person typed is told apart from everything else, and counts once, wherever it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.writing import OTHER, PROJECT, SESSION, TRANSCRIPT, at, result, user, write

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import Ask, assert_same, check, dump, rows

SAID = "select kind, coalesce(text, tool_text) from messages order by file_id, byte_offset, block"
SHOWN = "select kind, text from messages where copy_of is null order by byte_offset, block"
PROMPTS = "select prompt_count from sessions order by session_key"
TITLE = "select title, title_source from sessions order by session_key"


def queue(operation: str, second: int, content: object = None, **more: Any) -> dict[str, Any]:
    line = {"type": "queue-operation", "operation": operation, "timestamp": at(second)}
    return {**line, "sessionId": SESSION, **({"content": content} if content else {}), **more}


# -- the title of a conversation without a prompt ------------------------------------------------


def command(name: str, arguments: str = "") -> str:
    return f"<command-name>/{name}</command-name><command-args>{arguments}</command-args>"


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([user(command("clear")), user(command("init"), second=2)], ("/init", "command")),
        ([user(command("review", "the tests"))], ("/review the tests", "command")),
        ([user(command("init")), queue("enqueue", 2, "be brief")], ("be brief", "prompt")),
        ([user(command("clear"))], (SESSION, "id")),
        ([user(command("init")), user("build it", second=2)], ("build it", "prompt")),
    ],
)
def test_without_a_prompt_a_queued_one_or_a_command_is_the_title(
    home: Path, ask: Ask, lines: list[dict[str, Any]], title: tuple[str, str]
) -> None:
    write(home, TRANSCRIPT, *lines)
    assert ask(TITLE) == [title]


# -- beside a tool's result ----------------------------------------------------------------------


def test_text_beside_a_result_is_judged_by_itself(home: Path, ask: Ask) -> None:
    beside = [result("t1", "1 file"), {"type": "text", "text": "stop, use the other branch"}]
    write(home, TRANSCRIPT, user(beside))
    assert ask(SAID) == [("tool_result", "1 file"), ("prompt", "stop, use the other branch")]
    assert ask(PROMPTS) == [(1,)]
    assert ask(TITLE) == [("stop, use the other branch", "prompt")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<system-reminder>Mind the time.</system-reminder>", "meta"),
        ("[Request interrupted by user for tool use]", "interrupt"),
        ("<task-notification><task-id>a1</task-id></task-notification>", "task_notification"),
    ],
)
def test_what_the_program_puts_beside_a_result_is_no_prompt(
    home: Path, ask: Ask, text: str, kind: str
) -> None:
    write(home, TRANSCRIPT, user([result("t1", "1 file"), {"type": "text", "text": text}]))
    assert ask(SAID) == [("tool_result", "1 file"), (kind, text)]
    assert ask(PROMPTS) == [(0,)]


# -- the queue -----------------------------------------------------------------------------------


NOTICES = [
    "<agent-notification><agent>a1</agent>done</agent-notification>",
    "<ci-monitor-event><status>failed</status></ci-monitor-event>",
    "<weather-report>\nrain\n</weather-report>",
    "<task-notification>\n<status>completed</status>\n</task-notification>\n"
    "Full transcript available at: /tmp/tasks/a1.output",
]


@pytest.mark.parametrize("notice", NOTICES)
def test_a_queued_notice_is_that_notice(home: Path, ask: Ask, notice: str) -> None:
    write(home, TRANSCRIPT, queue("enqueue", 1, notice))
    assert ask(SAID) == [("task_notification", notice)]
    assert ask(PROMPTS) == [(0,)]
    assert ask(TITLE) == [(SESSION, "id")]


@pytest.mark.parametrize("notice", NOTICES[:2])
def test_a_notice_that_was_delivered_is_one_row_of_a_notice(
    home: Path, ask: Ask, notice: str
) -> None:
    write(home, TRANSCRIPT, queue("enqueue", 1, notice), user(notice, second=2))
    assert ask(SHOWN) == [("task_notification", notice)]
    assert ask(PROMPTS) == [(0,)]


def test_text_about_a_tag_is_a_prompt(home: Path, ask: Ask) -> None:
    text = "<my-widget> does not close: why?"
    write(home, TRANSCRIPT, queue("enqueue", 1, text))
    assert ask(SAID) == [("queued_prompt", text)]


def test_a_queued_command_that_was_delivered_counts_once(home: Path, ask: Ask) -> None:
    delivered = (
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>src --deep</command-args>"
    )
    write(home, TRANSCRIPT, queue("enqueue", 1, "/review src --deep"), user(delivered, second=2))
    assert ask(PROMPTS) == [(1,)]
    assert ask(SHOWN) == [("command", delivered)]


def test_queued_shell_input_that_was_delivered_counts_once(home: Path, ask: Ask) -> None:
    delivered = "<bash-input>ls -la</bash-input>"
    write(home, TRANSCRIPT, queue("enqueue", 1, "ls -la"), user(delivered, second=2))
    assert ask(PROMPTS) == [(1,)]
    assert ask(SHOWN) == [("bash_input", delivered)]


def test_a_draft_is_no_prompt_beside_what_became_of_it(home: Path, ask: Ask) -> None:
    write(
        home, TRANSCRIPT,
        queue("enqueue", 1, "also fix the tests"),
        queue("popAll", 2, "also fix the tests"),
        queue("enqueue", 3, "also fix the tests and the docs"),
        queue("popAll", 4, "also fix the tests and the docs"),
        user("also fix the tests and the docs, please", second=5),
    )  # fmt: skip
    assert ask(PROMPTS) == [(1,)]
    assert ask(SHOWN) == [("prompt", "also fix the tests and the docs, please")]


def test_what_was_given_back_and_never_sent_stays(home: Path, ask: Ask) -> None:
    write(
        home, TRANSCRIPT,
        queue("enqueue", 1, "is it still running?"),
        queue("popAll", 2, "is it still running?"),
        user("something else", second=3),
    )  # fmt: skip
    assert ask(PROMPTS) == [(2,)]


def test_a_text_that_was_not_given_back_is_no_draft(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, queue("enqueue", 1, "go"), user("go on with the rest", second=2))
    assert ask(PROMPTS) == [(2,)]


def test_a_queue_line_in_two_files_of_a_session_counts_once(home: Path, ask: Ask) -> None:
    lines = [
        user("begin"),
        queue("enqueue", 1, "then this"),
        queue("enqueue", 2, "again"),
        queue("enqueue", 3, "again"),
    ]
    write(home, TRANSCRIPT, *lines)
    write(home, TRANSCRIPT.replace("-srv-demo", "-srv-other"), *lines)
    assert ask("select text from messages where copy_of is null order by byte_offset") == [
        ("begin",), ("then this",), ("again",), ("again",),
    ]  # fmt: skip


def test_a_queue_line_is_delivered_in_whichever_file_shows_it(home: Path, ask: Ask) -> None:
    lines = [user("begin"), queue("enqueue", 1, "then this")]
    write(home, TRANSCRIPT, *lines)
    write(
        home, TRANSCRIPT.replace("-srv-demo", "-srv-other"), *lines,
        user("then this", "u2", "u1", 2),
    )  # fmt: skip
    assert ask("select kind, text from messages where copy_of is null order by byte_offset") == [
        ("prompt", "begin"), ("prompt", "then this"),
    ]  # fmt: skip


def test_equal_queue_lines_of_two_sessions_are_two(home: Path, ask: Ask) -> None:
    write(home, TRANSCRIPT, queue("enqueue", 1, "then this"))
    write(home, f"{PROJECT}/{OTHER}.jsonl", queue("enqueue", 1, "then this", sessionId=OTHER))
    assert ask(PROMPTS) == [(1,), (1,)]


def _steps(home: Path) -> Iterator[None]:
    """Write two files of one session, line by line and in turn."""
    lines = [
        queue("enqueue", 1, "one"),
        queue("enqueue", 2, "draft"),
        queue("popAll", 3, "draft"),
        user("one", "u1", second=4),
        queue("enqueue", 5, "/run now"),
        user("draft, and more", "u2", "u1", 6),
        user("<command-name>/run</command-name><command-args>now</command-args>", "u3", "u2", 7),
        queue("enqueue", 8, "last"),
    ]
    other = TRANSCRIPT.replace("-srv-demo", "-srv-a")
    for count in range(1, len(lines) + 1):
        write(home, TRANSCRIPT, *lines[:count])
        yield
        write(home, other, *lines[: count // 2 * 2])
        yield


@pytest.mark.slow
def test_no_order_of_syncing_changes_what_counts(
    home: Path, fresh: Callable[[], Path], place: Path
) -> None:
    grown = fresh()
    for _ in _steps(home):
        sync(grown, [home])
        scratch = place / "scratch.db"
        sync(scratch, [home])
        assert_same(dump(grown), dump(scratch))
        for file in place.glob("scratch.db*"):
            file.unlink()
    check(grown, home)
    assert rows(grown, "select prompt_count from sessions") == [(4,)]

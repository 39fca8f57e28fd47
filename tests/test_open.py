"""`list open` has all that waits for somebody, and nothing that is done, by project."""

from __future__ import annotations

import pytest
from tests.support.reading import index
from tests.support.rows import Rows
from tests.support.shell import Shell

KEY = "{}0000000-1111-4222-8333-444455556666"
NOW, LATER, LONG_AGO = (
    "2026-03-10T10:00:00.000Z", "2026-03-10T11:00:00.000Z", "2026-01-01T10:00:00.000Z"
)  # fmt: skip


def session_that_ends(rows: Rows, *kinds: str, **values: object) -> None:
    row = {"title": "Repair", "message_count": 2, "ended_at": NOW, **values}
    _, file = rows.session(KEY.format(len(kinds)), None, **row)
    for kind in kinds:
        rows.message(file, kind, "words")


def found(shell: Shell, *options: str) -> list[tuple[str, str, str]]:
    items = shell.items("list", "open", *options)
    return [(item["what"], item["text"], item["status"]) for item in items]


ENDS = {
    ("prompt", "text"): None,
    ("prompt", "text", "hook", "system"): None,
    ("prompt", "error"): "ended with an error",
    ("prompt", "error", "prompt", "text"): None,
    ("prompt", "text", "interrupt"): "interrupted",
    ("prompt", "text", "tool_use"): "unfinished",
    ("prompt", "text", "tool_use", "tool_result"): "unfinished",
    ("prompt", "text", "prompt"): "unfinished",
    ("prompt", "text", "prompt", "system"): "unfinished",
}


@pytest.mark.parametrize("kinds", ENDS, ids=" ".join)
def test_a_session_is_open_if_its_last_turn_was_not_answered(
    shell: Shell, kinds: tuple[str, ...]
) -> None:
    with index(shell.database) as rows:
        session_that_ends(rows, *kinds)
    status = ENDS[kinds]
    assert found(shell) == ([("session", "Repair", status)] if status else [])


def test_what_is_done_read_or_gone_is_not_open(shell: Shell) -> None:
    with index(shell.database) as rows:
        session, file = rows.session(KEY.format("a"), rows.project("shop"), message_count=1,
                                     ended_at=NOW)  # fmt: skip
        rows.message(file, "text", "done")
        for number, (status, gone) in enumerate(
            [("pending", None), ("in_progress", None), ("completed", None), ("pending", NOW)]
        ):
            rows.add("tasks", subject=f"{status} {gone}", status=status, gone_at=gone,
                     task_key=str(number), list_key="l", session_id=session, file_id=file,
                     source_id=rows.source)  # fmt: skip
            rows.add("todos", content=f"{status} {gone}", status=status, gone_at=gone,
                     position=number, session_id=session, file_id=file)  # fmt: skip
        for number, (is_read, gone) in enumerate([(0, None), (1, None), (0, NOW)]):
            rows.add("inbox_items", sender="ann", text=f"hello {number}", is_read=is_read,
                     gone_at=gone, channel="inbox", timestamp=NOW, session_id=session,
                     file_id=file, kind="message", byte_offset=number, byte_length=1)  # fmt: skip
        rows.add("inbox_items", sender="ann", text="idle", is_read=0, channel="inbox",
                 timestamp=NOW, session_id=session, file_id=file, kind="idle_notification",
                 byte_offset=9, byte_length=1)  # fmt: skip
    assert sorted(found(shell)) == [
        ("inbox", "ann: hello 0", "unread"),
        ("task", "in_progress None", "in_progress"),
        ("task", "pending None", "pending"),
        ("todo", "in_progress None", "in_progress"),
        ("todo", "pending None", "pending"),
    ]


@pytest.mark.parametrize(
    ("status", "edited", "is_open"),
    [
        ("proposed", None, True),
        ("accepted", None, True),
        ("accepted", LONG_AGO, True),
        ("accepted", LATER, False),
        ("rejected", None, False),
        (None, None, False),
    ],
)
def test_a_plan_is_open_until_it_is_answered_and_something_is_edited(
    shell: Shell, status: str | None, edited: str | None, is_open: bool
) -> None:
    with index(shell.database) as rows:
        project = rows.project("shop")
        session, file = rows.session(KEY.format("a"), project, message_count=1, ended_at=LATER)
        rows.message(file, "text", "done")
        rows.add("plans", title="Paint", text="# Paint", name="p", status=status, modified_at=NOW,
                 session_id=session, file_id=file)  # fmt: skip
        if edited:
            _, other = rows.session(KEY.format("b"), project, message_count=1, ended_at=LATER)
            rows.call(other, "Edit", {}, "ok", started_at=edited)
            rows.message(other, "text", "done")
    plans = [row for row in found(shell) if row[0] == "plan"]
    assert plans == ([("plan", "Paint", status)] if is_open else [])


def test_what_is_long_ago_is_shown_on_demand(shell: Shell) -> None:
    with index(shell.database) as rows:
        session_that_ends(rows, "prompt", "interrupt", ended_at=LONG_AGO)
        session_that_ends(rows, "prompt", "text", "error")
    assert [row[2] for row in found(shell)] == ["ended with an error"]
    assert shell("list", "open") == 0
    assert "1 more with --all." in shell.err
    assert len(found(shell, "--all")) == 2
    assert len(found(shell, "--all", "--until", "2026-02-01")) == 1
    assert shell("list", "open", "--all", "-n", "1") == 0
    assert "Only the first 1 of 2 are shown; --limit 0 shows all." in shell.err


@pytest.mark.parametrize(
    ("entrypoint", "kinds", "prompts", "is_open"),
    [
        ("sdk-cli", ("prompt",), 1, False),
        ("sdk-cli", ("prompt", "error"), 1, False),
        ("sdk-cli", ("prompt", "thinking"), 1, True),
        ("sdk-cli", ("prompt", "text", "prompt"), 2, True),
        ("cli", ("prompt",), 1, True),
    ],
)
def test_a_test_call_that_nobody_answered_is_no_work(
    shell: Shell, entrypoint: str, kinds: tuple[str, ...], prompts: int, is_open: bool
) -> None:
    with index(shell.database) as rows:
        _, file = rows.session(KEY.format("a"), None, title="Ok?", message_count=prompts,
                               prompt_count=prompts, ended_at=NOW)  # fmt: skip
        rows.add("transcripts", file_id=file, entrypoint=entrypoint)
        for kind in kinds:
            rows.message(file, kind, "reply with ok")
    assert bool(found(shell)) is is_open


@pytest.mark.parametrize(
    ("kinds", "offset", "is_open"),
    [(("prompt",), 10_000, False), (("prompt", "tool_use"), 10_000, True), (("prompt",), 1, True)],
)
def test_an_empty_answer_ends_a_turn(
    shell: Shell, kinds: tuple[str, ...], offset: int, is_open: bool
) -> None:
    with index(shell.database) as rows:
        session, file = rows.session(KEY.format("a"), None, title="Ok?", message_count=1,
                                     prompt_count=1, ended_at=NOW)  # fmt: skip
        for kind in kinds:
            rows.message(file, kind, "write it")
        rows.add("responses", session_id=session, file_id=file, response_key="r", byte_length=1,
                 byte_offset=offset)  # fmt: skip
    assert bool(found(shell)) is is_open

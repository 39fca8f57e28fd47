"""Tasks, todos and plans are what the calls of transcripts made of them, while no file says it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from tests.support.rows import Rows, at

from assoc_ingest.derive.statements import expected


def states(
    rows: Rows, file: int, kind: str, second: int = 0, ended: str = "ok", **said: Any
) -> int:
    """Insert what a call states, and how it ended. Returns the message of the call."""
    message = rows.message(file, "tool_use", "{}", subagent_id=said.pop("subagent", None))
    offset = rows.get("messages", message, "byte_offset")
    use = f"t{message}"
    rows.add(
        "tool_calls", tool_use_id=use, status=ended, file_id=file, call_id=message,
        byte_offset=offset,
    )  # fmt: skip
    answered = said.pop("answered", None)
    rows.add(
        "statements", kind=kind, list_key=said.pop("list_key", "one"), file_id=file,
        task_key=said.pop("task", None), timestamp=at(second), tool_use_id=use,
        byte_offset=offset, stated=json.dumps(said), answered=answered and json.dumps(answered),
    )  # fmt: skip
    return message


def task(rows: Rows, file: int, key: str = "1", second: int = 0, **said: Any) -> int:
    return states(rows, file, "task", second, task=key, **said)


def tasks(rows: Rows, *columns: str) -> dict[str, Any]:
    """Return these columns of the expected tasks, by key."""
    found = expected(rows.connection, (rows.source, "task", "one"))["tasks"]
    values = {row["task_key"]: tuple(row[column] for column in columns) for row in found}
    return {key: row[0] if len(row) == 1 else row for key, row in values.items()}


def todos(rows: Rows) -> list[tuple[str, str, int]]:
    """Return agent, content and number among equals of the expected todos."""
    found = expected(rows.connection, (rows.source, "todos", "one"))["todos"]
    return [(row["agent_key"], row["content"], row["ordinal"]) for row in found]


def plans(rows: Rows) -> list[tuple[str, str, str | None]]:
    """Return name, text and status of the expected plans."""
    found = expected(rows.connection, (rows.source, "plan", "one"))["plans"]
    return [(row["name"], row["text"], row["status"]) for row in found]


def test_a_task_is_what_its_calls_made_of_it(rows: Rows, file: int) -> None:
    task(rows, file, is_new=True, subject="Dig", metadata={"a": 1, "b": 2})
    task(rows, file, second=1, owner="ada", metadata={"b": None, "c": 3})
    assert tasks(rows, "subject", "owner", "metadata", "stated_at") == {
        "1": ("Dig", "ada", '{"a":1,"c":3}', at(1))
    }


def test_a_new_task_is_pending_and_has_the_subject_of_its_result(rows: Rows, file: int) -> None:
    task(rows, file, is_new=True, answered={"subject": "Dig"})
    (one,) = rows.all("select session_id from files")
    assert tasks(rows, "subject", "status", "task_number", "session_id") == {
        "1": ("Dig", "pending", 1, one)
    }


def test_a_list_that_counts_from_1_again_has_new_tasks(rows: Rows, file: int) -> None:
    task(rows, file, is_new=True, owner="ada", blocked_by=["2"])
    task(rows, file, second=1, is_new=True, subject="Sow")
    assert tasks(rows, "subject", "owner", "blocked_by") == {"1": ("Sow", None, None)}


@pytest.mark.parametrize("status", ["error", "declined", "pending"])
def test_a_call_that_did_not_go_well_changes_nothing(rows: Rows, file: int, status: str) -> None:
    task(rows, file, is_new=True, subject="Dig")
    states(rows, file, "task", 1, status, task="1", subject="Weed")
    states(rows, file, "task", 2, task="1", subject="Sow", answered={"is_refused": True})
    states(rows, file, "todos", 0, status, items=[{"content": "Dig"}])
    assert tasks(rows, "subject") == {"1": "Dig"}
    assert todos(rows) == []


def test_a_line_that_a_fork_repeats_states_nothing_new(rows: Rows, file: int) -> None:
    original = task(rows, file, subject="Dig")
    task(rows, file, second=1, subject="Sow")
    _, fork = rows.session("fork")
    rows.set("messages", task(rows, fork, second=9, subject="Dig"), copy_of=original)
    assert tasks(rows, "subject") == {"1": "Sow"}


def test_statements_follow_each_other_in_time_whatever_was_read_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations([("b", 1), ("a", 2), ("c", 3)]):
        rows = empty()
        for key, second in order:
            task(rows, rows.session(key)[1], second=second, subject=key)
        assert tasks(rows, "subject") == {"1": "c"}, order


def test_a_clock_that_goes_back_does_not_turn_a_file_around(rows: Rows, file: int) -> None:
    _, other = rows.session("two")
    task(rows, file, second=5, subject="before")
    task(rows, file, second=1, subject="after")
    task(rows, other, second=3, subject="between")
    assert tasks(rows, "subject") == {"1": "after"}


def test_a_task_waits_for_what_either_side_states_but_not_for_what_is_deleted(
    rows: Rows, file: int
) -> None:
    task(rows, file, "1", blocked_by=["2", "4"])
    task(rows, file, "3", blocks=["1"])
    assert tasks(rows, "blocked_by")["1"] == '["2","3","4"]'
    task(rows, file, "4", second=1, status="deleted", blocked_by=["5"])
    assert tasks(rows, "blocked_by") == {"1": '["2","3"]', "3": None, "4": None}


def test_a_task_that_has_a_file_has_no_row_from_a_transcript(rows: Rows, file: int) -> None:
    task(rows, file, "1", subject="Dig")
    task(rows, file, "2", subject="Sow")
    stored = rows.file("tasks/one/1.json", kind="task")
    kept = rows.add("tasks", task_key="1", list_key="one", file_id=stored, source_id=rows.source)
    assert tasks(rows, "subject") == {"2": "Sow"}
    rows.set("tasks", kept, gone_at="2026-01-21")
    assert tasks(rows, "subject") == {"1": "Dig", "2": "Sow"}


def test_the_leader_of_a_team_calls_for_the_list_of_the_team(rows: Rows, file: int) -> None:
    task(rows, file, "1", subject="Dig")
    team = rows.add("teams", key="the-team", lead_session_key="one", source_id=rows.source)
    stored = rows.file("tasks/The_Team/1.json", kind="task")
    row = {"task_key": "1", "list_key": "The_Team", "file_id": stored, "source_id": rows.source}
    rows.add("tasks", **row)
    assert tasks(rows, "subject") == {}
    rows.set("teams", team, lead_session_key="another")
    assert tasks(rows, "subject") == {"1": "Dig"}


def test_todos_are_those_of_the_last_call_of_each_agent(rows: Rows, file: int) -> None:
    session = rows.get("files", file, "session_id")
    agent = rows.add("subagents", session_id=session, agent_key="x", source_id=rows.source)
    states(rows, file, "todos", 0, items=[{"content": "Dig"}])
    states(rows, file, "todos", 2, items=[{"content": "Sow"}, {"content": "Sow"}])
    states(rows, file, "todos", 1, items=[{"content": "Weed"}], subagent=agent)
    assert sorted(todos(rows)) == [("one", "Sow", 0), ("one", "Sow", 1), ("x", "Weed", 0)]


def test_an_agent_whose_file_names_a_todo_has_none_from_its_calls(rows: Rows, file: int) -> None:
    states(rows, file, "todos", 0, items=[{"content": "Dig"}])
    stored = rows.file("todos/one.json", kind="todo")
    item = rows.add("todos", file_id=stored, session_key="one", agent_key="one", content="Dig")
    assert todos(rows) == []
    rows.set("todos", item, gone_at="2026-01-21")
    assert todos(rows) == [("one", "Dig", 0)]


@pytest.mark.parametrize(
    ("calls", "status"),
    [
        (["ok"], "accepted"),
        (["declined"], "rejected"),
        (["pending"], "proposed"),
        (["declined", "ok"], "accepted"),
        (["declined", "error"], "rejected"),
    ],
)
def test_a_plan_is_as_the_last_call_that_proposed_it_was_answered(
    rows: Rows, file: int, calls: list[str], status: str
) -> None:
    for second, ended in enumerate(calls):
        states(rows, file, "plan", second, ended, by="call", name="fern", text="Dig")
    assert plans(rows) == [("fern", "Dig", status)]


def test_the_text_of_a_call_that_failed_is_no_plan(rows: Rows, file: int) -> None:
    states(rows, file, "plan", 0, "declined", by="call", name="fern", text="Dig")
    states(rows, file, "plan", 1, "error", by="call", name="fern", text="Sow")
    assert plans(rows) == [("fern", "Dig", "rejected")]


def test_a_plan_that_awaits_its_leader_is_proposed(rows: Rows, file: int) -> None:
    answered = {"is_awaiting": True}
    states(rows, file, "plan", by="call", name="fern", text="Dig", answered=answered)
    assert plans(rows) == [("fern", "Dig", "proposed")]


def test_a_plan_with_which_a_conversation_begins_is_accepted(rows: Rows, file: int) -> None:
    states(rows, file, "plan", 0, "declined", by="call", name="fern", text="Dig")
    states(rows, file, "plan", 1, by="prompt", name="fern", text="Dig")
    states(rows, file, "plan", 2, by="attachment", name="fern", text="Dig deeper")
    assert plans(rows) == [("fern", "Dig deeper", "accepted")]


def test_the_text_of_a_plan_is_the_one_that_was_answered(rows: Rows, file: int) -> None:
    states(rows, file, "plan", by="call", name="fern", text="Dig", answered={"text": "Sow"})
    assert plans(rows) == [("fern", "Sow", "accepted")]


def test_plans_without_a_name_are_known_by_their_text(rows: Rows, file: int) -> None:
    for second, text in enumerate(("Dig", "Sow", "Dig")):
        status = "ok" if second else "declined"
        states(rows, file, "plan", second, status, by="call", text=text)
    assert plans(rows) == [("", "Dig", "accepted"), ("", "Sow", "accepted")]


def test_a_plan_whose_file_is_known_has_no_row_from_a_transcript(rows: Rows, file: int) -> None:
    states(rows, file, "plan", 5, by="call", name="fern", text="Dig")
    stored = rows.file("plans/fern.md", kind="plan")
    plan = rows.add("plans", name="fern", text="Weed", file_id=stored, modified_at=at(0))
    assert plans(rows) == []
    rows.set("files", stored, gone_at="2026-01-21")
    assert plans(rows) == [("fern", "Dig", "accepted")]  # another text was proposed since
    for same in ({"text": "Dig"}, {"text": "Weed", "modified_at": at(9)}):
        rows.set("plans", plan, **same)
        assert plans(rows) == []


def test_statements_of_another_home_are_about_another_list(rows: Rows) -> None:
    home = rows.add("sources", kind="claude", root="/elsewhere")
    _, file = rows.session("one", source_id=home)
    task(rows, file, subject="Dig")
    states(rows, file, "todos", items=[{"content": "Dig"}])
    assert tasks(rows, "subject") == {}
    assert todos(rows) == []

"""What is stated of a list, a session's todos or a plan is derived again when any of it changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.changeset import Touched
from assoc_ingest.derive.statements import (
    all_groups,
    are_same,
    known,
    note_groups,
    refresh_statements,
)


def states(rows: Rows, file: int, kind: str, list_key: str = "one", **said: Any) -> str:
    """Insert a call that states something and went well. Returns its id."""
    message = rows.message(file, "tool_use", "{}")
    offset = rows.get("messages", message, "byte_offset")
    use = f"t{message}"
    rows.add("tool_calls", tool_use_id=use, file_id=file, call_id=message, byte_offset=offset)
    rows.add(
        "statements", kind=kind, list_key=list_key, file_id=file, tool_use_id=use,
        task_key=said.pop("task", None), byte_offset=offset, stated=json.dumps(said),
    )  # fmt: skip
    return use


def derive(rows: Rows, affected: tuple[int, ...] = (), **touched: Any) -> Touched:
    found = rows.touch(**touched)
    refresh_statements(rows.connection, found, set(affected))
    return found


def stored(rows: Rows, table: str = "tasks", column: str = "subject") -> list[Any]:
    return rows.all(f"select {column} from {table} where channel = 'transcript' order by id")


def test_rows_follow_from_statements_and_go_with_them(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    states(rows, file, "todos", items=[{"content": "Sow"}])
    states(rows, file, "plan", list_key="fern", name="fern", text="Weed", by="call")
    derive(rows, stated={file})
    tables = {"tasks": "subject", "todos": "content", "plans": "text"}
    assert [stored(rows, *table) for table in tables.items()] == [["Dig"], ["Sow"], ["Weed"]]
    touched = rows.touch()
    note_groups(rows.connection, touched, file)
    rows.connection.execute("delete from statements")
    refresh_statements(rows.connection, touched, set())
    assert [stored(rows, *table) for table in tables.items()] == [[], [], []]


@pytest.mark.parametrize("why", ["stated", "sidechains", "moved", "affected"])
def test_a_file_is_derived_again_for_every_reason_that_changes_what_it_states(
    rows: Rows, file: int, why: str
) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    derive(rows)
    assert stored(rows) == []
    derive(rows, **{why: {file}})
    assert stored(rows) == ["Dig"]


def test_a_call_that_is_answered_later_is_derived_again(rows: Rows, file: int) -> None:
    use = states(rows, file, "task", task="1", subject="Dig")
    derive(rows, answered={file: {"another"}})
    assert stored(rows) == []
    derive(rows, answered={file: {use}})
    assert stored(rows) == ["Dig"]


def test_a_file_that_comes_or_goes_decides_whether_a_transcript_counts(
    rows: Rows, file: int
) -> None:
    states(rows, file, "task", "the-team", task="1", subject="Dig")
    derive(rows, stated={file})
    document = rows.file("tasks/The_Team/1.json", kind="task")
    row = {"list_key": "The_Team", "task_key": "1", "source_id": rows.source, "file_id": document}
    rows.add("tasks", **row)
    derive(rows, files=[document])
    assert stored(rows) == []
    rows.connection.execute("update tasks set gone_at = '2026-01-21'")
    derive(rows, files=[document])
    assert stored(rows) == ["Dig"]


@pytest.mark.parametrize("touched", ["config", "task"])
def test_the_files_of_a_team_bear_on_what_its_leader_states(
    rows: Rows, file: int, touched: str
) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    derive(rows, stated={file})
    config = rows.file("teams/t/config.json", kind="team")
    rows.add("teams", key="the-team", lead_session_key="one", source_id=rows.source, file_id=config)
    document = rows.file("tasks/The_Team/1.json", kind="task")
    row = {"list_key": "The_Team", "task_key": "1", "source_id": rows.source, "file_id": document}
    rows.add("tasks", **row)
    derive(rows, files=[config if touched == "config" else document])
    assert stored(rows) == []


def test_the_file_of_a_plan_has_the_answer_of_its_last_call(rows: Rows, file: int) -> None:
    document = rows.file("plans/fern.md", kind="plan")
    plan = rows.add("plans", name="fern", text="Weed", file_id=document)
    states(rows, file, "plan", list_key="fern", name="fern", text="Weed", by="call")
    derive(rows, stated={file})
    assert rows.get("plans", plan, "status") == "accepted"
    assert stored(rows, "plans", "text") == []


def test_what_does_not_change_keeps_its_row(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    states(rows, file, "task", task="2", subject="Sow")
    derive(rows, stated={file})
    ids = stored(rows, column="id")
    rows.add("tasks", list_key="other", source_id=rows.source)  # ids that go are not given again
    states(rows, file, "task", task="2", subject="Weed")
    states(rows, file, "task", task="3", subject="Rest")
    derive(rows, stated={file})
    assert stored(rows, column="id")[:2] == ids
    assert stored(rows) == ["Dig", "Weed", "Rest"]


def test_other_lists_are_left_alone(rows: Rows, file: int) -> None:
    _, other = rows.session("two")
    states(rows, file, "task", task="1", subject="Dig")
    states(rows, other, "task", list_key="two", task="1", subject="Sow")
    derive(rows, stated={file})
    assert stored(rows) == ["Dig"]


def test_new_edges_are_noticed_and_nothing_else(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    assert not derive(rows, stated={file}).has_new_edges
    states(rows, file, "task", task="1", blocked_by=["2"])
    assert derive(rows, stated={file}).has_new_edges
    states(rows, file, "task", task="1", subject="Sow")
    assert not derive(rows, stated={file}).has_new_edges


def test_a_change_that_a_file_states_outlives_the_task(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    derive(rows, stated={file})
    (task,) = stored(rows, column="id")
    stating = rows.add("task_changes", task_id=task, file_id=file, field="status")
    seen = rows.add("task_changes", task_id=task, field="status")
    rows.connection.execute("delete from statements")
    derive(rows, groups={(rows.source, "task", "one")})
    assert rows.all("select id, task_id from task_changes") == [(stating, None)]
    assert seen != stating


def test_deriving_again_changes_nothing(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig", blocked_by=["2"])
    states(rows, file, "todos", items=[{"content": "Sow"}, {"content": "Sow"}])
    states(rows, file, "plan", name="", text="Weed", by="call")
    states(rows, file, "plan", name="", text="Mow", by="call")
    derive(rows, stated={file})
    for table in ("tasks", "todos", "plans"):
        found = rows.all(f"select * from {table}")
        assert not derive(rows, stated={file}).has_new_edges
        assert rows.all(f"select * from {table}") == found != []


def test_what_is_stored_can_be_compared_with_what_follows(rows: Rows, file: int) -> None:
    states(rows, file, "task", task="1", subject="Dig")
    derive(rows, stated={file})
    (group,) = all_groups(rows.connection)
    assert group == (rows.source, "task", "one")
    (row,) = known(rows.connection, "tasks", group).values()
    assert row["subject"] == "Dig"
    assert are_same([row], [dict(row)])
    assert not are_same([row], [{**row, "subject": "Sow"}])
    assert not are_same([row], [])

"""Tasks, todos and plans are there as the calls of a transcript state them, whether or not their
files were ever seen, and whatever becomes of those.

What each shape of a call means is shown by the golden cases (`tasks-of-calls`, `todos-of-calls`,
`plans-of-calls`); that it does not matter how they are cut and in which order files come, by the
conformance tests over them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    SESSION,
    TRANSCRIPT,
    Object,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, differences, dump
from assoc_ingest.upkeep.rebuild import rebuild
from assoc_ingest.upkeep.verify import verify

TASK = f"tasks/{SESSION}/1.json"
TODOS = f"todos/{SESSION}-agent-{SESSION}.json"
PLAN = "plans/brave-green-fern.md"


class Place:
    """A home, its index, and what one sync of the home would make."""

    def __init__(self, home: Path, fresh: Callable[[], Path]) -> None:
        self.home, self._fresh, self.database = home, fresh, fresh()

    def sync(self) -> None:
        sync(self.database, [self.home])
        check(self.database, self.home)
        assert verify(self.database).findings == []

    def rows(self, question: str) -> list[tuple[Any, ...]]:
        connection = connect(self.database)
        try:
            return [tuple(row) for row in connection.execute(question)]
        finally:
            connection.close()

    def is_as_from_scratch(self) -> None:
        oracle = self._fresh()
        sync(oracle, [self.home])
        assert_same(dump(self.database), dump(oracle))


@pytest.fixture
def place(tmp_path: Path, fresh: Callable[[], Path]) -> Place:
    return Place(tmp_path / "home", fresh)


def said(
    number: int, name: str, text: str = "done", *, extra: Any = None, **arguments: Any
) -> list[Object]:
    """Return a call, a second each, and its result."""
    more = {} if extra is None else {"toolUseResult": extra}
    return [
        assistant(
            [call(f"toolu_{number}", name, **arguments)],
            f"a{number}",
            None,
            2 * number,
            id=f"msg_{number}",
        ),
        user([result(f"toolu_{number}", text)], f"r{number}", None, 2 * number + 1, **more),
    ]


def created(number: int, key: str, subject: str) -> list[Object]:
    text = f"Task #{key} created successfully: {subject}"
    return said(number, "TaskCreate", text, subject=subject, description=f"{subject}!")


def updated(number: int, key: str, **fields: Any) -> list[Object]:
    return said(number, "TaskUpdate", f"Updated task #{key} status", taskId=key, **fields)


def planned(number: int, text: str, answer: str = "User has approved your plan.") -> list[Object]:
    path = "/home/ada/.claude/plans/brave-green-fern.md"
    return said(number, "ExitPlanMode", answer, plan=text, planFilePath=path)


def todos(number: int, *items: tuple[str, str]) -> list[Object]:
    listed = [{"content": content, "status": status} for content, status in items]
    return said(number, "TodoWrite", "Todos have been modified successfully.", todos=listed)


def side_files(home: Path) -> None:
    write_bytes(home, TASK, dumps({"id": "1", "subject": "Dig", "status": "in_progress"}))
    write_bytes(home, TODOS, dumps([{"content": "Rake", "status": "in_progress"}]))
    write_bytes(home, PLAN, b"# Ferns, in spring\n")


LINES = [
    *created(1, "1", "Dig"),
    *updated(2, "1", status="completed"),
    *todos(3, ("Rake", "completed"), ("Sow", "pending")),
    *planned(4, "# Ferns"),
]
OF_CALLS = [
    ("task", "Dig", "completed", "transcript"),
    ("todo", "Rake", "completed", "transcript"),
    ("todo", "Sow", "pending", "transcript"),
    ("plan", "Ferns", "accepted", "transcript"),
]
ALL = """
select 'task', subject, status, channel from tasks where gone_at is null
union all select * from (select 'todo', content, status, channel from todos where gone_at is null
    order by position)
union all select 'plan', title, status, channel from plans
"""


def test_they_are_there_without_files(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    place.sync()
    assert place.rows(ALL) == OF_CALLS


@pytest.mark.slow
def test_a_file_counts_from_when_it_is_there(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    place.sync()
    side_files(place.home)
    place.sync()
    assert place.rows(ALL) == [
        ("task", "Dig", "in_progress", "file"),
        ("todo", "Rake", "in_progress", "file"),
        ("plan", "Ferns, in spring", "accepted", "file"),
    ]
    assert place.rows("select * from task_changes where seen_at is not null") == []
    place.is_as_from_scratch()


@pytest.mark.slow
def test_what_was_called_holds_on_when_the_files_go(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    side_files(place.home)
    place.sync()
    (place.home / TASK).unlink()
    write_bytes(place.home, TODOS, b"[]")
    place.sync()
    assert place.rows(ALL) == [*OF_CALLS[:3], ("plan", "Ferns, in spring", "accepted", "file")]
    gone = "select subject, status from tasks where gone_at is not null"
    assert place.rows(gone) == [("Dig", "in_progress")]
    side_files(place.home)
    place.sync()
    assert place.rows(gone) == []
    place.is_as_from_scratch()


@pytest.mark.slow
@pytest.mark.parametrize("order", list(permutations(("lines", "team", "task"))))
def test_what_the_leader_of_a_team_calls_is_about_the_list_of_the_team(
    place: Place, order: tuple[str, ...]
) -> None:
    config = dumps({"name": "bed-team", "leadSessionId": SESSION, "members": []})
    task = dumps({"id": "1", "subject": "Dig", "status": "in_progress"})
    puts: dict[str, Callable[[], object]] = {
        "lines": lambda: write(place.home, TRANSCRIPT, *created(1, "1", "Dig")),
        "team": lambda: write_bytes(place.home, "teams/bed-team/config.json", config),
        "task": lambda: write_bytes(place.home, "tasks/bed-team/1.json", task),
    }
    for what in order:
        puts[what]()
        place.sync()
    assert place.rows("select subject, list_key, status from tasks") == [
        ("Dig", "bed-team", "in_progress")
    ]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_a_plan_whose_file_is_gone_gives_way_to_one_that_was_proposed_since(place: Place) -> None:
    write(place.home, TRANSCRIPT, *planned(1, "# Ferns"))
    file = write_bytes(place.home, PLAN, b"# Ferns, in spring\n")
    os.utime(file, (1_768_900_000, 1_768_900_000))  # before the calls
    place.sync()
    file.unlink()
    place.sync()
    write(place.home, TRANSCRIPT, *planned(1, "# Ferns"), *planned(2, "# Ferns and moss"))
    place.sync()
    assert place.rows("select title, channel from plans order by channel") == [
        ("Ferns, in spring", "file"),
        ("Ferns and moss", "transcript"),
    ]


def test_one_line_can_propose_a_plan_with_a_name_and_one_without(place: Place) -> None:
    file = "/home/ada/.claude/plans/ferns.md"
    calls = [
        call("toolu_1", "ExitPlanMode", plan="# Ferns", planFilePath=file),
        call("toolu_2", "ExitPlanMode", plan="# Moss"),
    ]
    write(place.home, TRANSCRIPT, assistant(calls, "a1"))
    place.sync()
    assert place.rows("select name, text from plans order by name") == [
        ("", "# Moss"),
        ("ferns", "# Ferns"),
    ]
    assert verify(place.database).findings == []


def test_a_result_counts_whenever_it_comes(place: Place) -> None:
    for count in range(1, len(LINES) + 1):
        write(place.home, TRANSCRIPT, *LINES[:count])
        place.sync()
    assert place.rows(ALL) == OF_CALLS
    place.is_as_from_scratch()


def test_a_clock_that_goes_back_does_not_turn_calls_round(place: Place) -> None:
    late = [
        {**line, "timestamp": "2026-01-20T09:00:00.000Z"}
        for line in updated(2, "1", status="completed")
    ]
    write(place.home, TRANSCRIPT, *created(1, "1", "Dig"), *late)
    place.sync()
    assert place.rows("select status from tasks") == [("completed",)]


@pytest.mark.slow
def test_calls_that_a_rewrite_takes_back_have_changed_nothing(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    place.sync()
    write(place.home, TRANSCRIPT, user("begin anew", "x1"), *LINES[:2])
    place.sync()
    assert place.rows(ALL) == [("task", "Dig", "pending", "transcript")]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_changes_that_a_transcript_states_outlive_the_row_of_their_task(place: Place) -> None:
    change = {"success": True, "taskId": "1", "statusChange": {"from": "pending", "to": "done"}}
    lines = said(2, "TaskUpdate", "Updated task #1", extra=change, taskId="1", status="done")
    write(place.home, TRANSCRIPT, *created(1, "1", "Dig"), *lines)
    place.sync()
    side_files(place.home)
    place.sync()
    rows = place.rows(
        "select c.new_value, t.channel from task_changes c join tasks t on t.id = c.task_id"
    )
    assert rows == [("done", "file")]
    place.is_as_from_scratch()


@pytest.mark.slow
def test_a_rebuild_ends_with_the_same_rows(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    side_files(place.home)
    place.sync()
    (place.home / TASK).unlink()
    place.sync()
    before = dump(place.database)
    rebuild(place.database)
    assert differences(before, dump(place.database)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "update tasks set status = 'pending'",
        "delete from todos where content = 'Sow'",
        "update plans set text = 'another'",
        "insert into tasks (task_key, list_key, source_id, channel)"
        " values ('9', 'x', 1, 'transcript')",
    ],
)
def test_a_row_that_no_call_states_is_found_and_mended(place: Place, damage: str) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    place.sync()
    connection = connect(place.database)
    connection.execute(damage)
    connection.close()
    assert [finding.check for finding in verify(place.database).findings] == ["statements"]
    rebuild(place.database)
    assert verify(place.database).findings == []
    assert place.rows(ALL) == OF_CALLS


@pytest.mark.slow
def test_a_forgotten_session_leaves_none(place: Place, shell: Shell) -> None:
    other = [
        {**line, "sessionId": OTHER, "uuid": f"o{line['uuid']}"} for line in created(9, "1", "Stay")
    ]
    write(place.home, TRANSCRIPT, *LINES)
    write(place.home, f"projects/-srv-demo/{OTHER}.jsonl", *other)
    assert shell("sync", str(place.home)) == 0
    assert shell("forget", SESSION) == 0, shell.err
    place.database = shell.database
    assert place.rows(ALL) == [("task", "Stay", "pending", "transcript")]
    assert place.rows("select count(*) from statements") == [(1,)]
    assert b"Rake" not in shell.database.read_bytes()


def test_a_hit_names_the_line_that_states_it(place: Place, shell: Shell) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    assert shell("sync", str(place.home)) == 0
    for word, what, line in (("Dig", "task", 3), ("Rake", "todo", 5), ("Ferns", "plan", 7)):
        hits = shell.items("search", word, "--kind", what)
        assert isinstance(hits, list)
        assert [(hit["what"], hit["line"]) for hit in hits] == [(what, line)]


def test_a_task_that_has_a_row_of_a_gone_file_is_one_hit(place: Place, shell: Shell) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    side_files(place.home)
    assert shell("sync", str(place.home)) == 0
    (place.home / TASK).unlink()
    (place.home / TODOS).unlink()
    assert shell("sync", str(place.home)) == 0
    for word in ("Dig", "Rake"):
        hits = shell.items("search", word)
        assert isinstance(hits, list)
        assert [hit["kind"] for hit in hits if hit["what"] in ("task", "todo")] == ["completed"]


def test_tasks_are_listed_by_their_numbers(place: Place, shell: Shell) -> None:
    lines = [line for n, key in enumerate(("10", "9", "a", "2")) for line in created(n, key, key)]
    write(place.home, TRANSCRIPT, *lines)
    assert shell("sync", str(place.home)) == 0
    listed = shell.items("list", "tasks")
    asked = shell.items("query", "open_tasks")
    assert isinstance(listed, list)
    assert isinstance(asked, list)
    assert [row["task"] for row in listed] == ["2", "9", "10", "a"]
    assert [row["task_key"] for row in asked] == ["2", "9", "10", "a"]


def test_a_moved_home_keeps_them(place: Place) -> None:
    write(place.home, TRANSCRIPT, *LINES)
    place.sync()
    moved = place.home / "projects/-srv-elsewhere"
    shutil.move(place.home / "projects/-srv-demo", moved)
    place.sync()
    assert place.rows(ALL) == OF_CALLS

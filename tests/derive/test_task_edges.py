"""An edge between two tasks is one row, whichever files state it, as long as one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.references import refresh_edges


def derive(rows: Rows, *files: int, has_new_edges: bool = False) -> None:
    refresh_edges(rows.connection, rows.touch(files, has_new_edges=has_new_edges))


def states(rows: Rows, path: str, task: str, blocker: str, **values: object) -> int:
    """Insert the file of a task that states one edge."""
    list_key = values.pop("list_key", "one")
    file = rows.file(path, kind="task", **values)
    rows.add("task_links", file_id=file, list_key=list_key, task_key=task, blocker_key=blocker)
    return file


def calls(rows: Rows, task: str, *blockers: str) -> int:
    """Insert a transcript that states what a task waits for."""
    _, file = rows.session("talk")
    rows.add(
        "tasks", task_key=task, list_key="one", channel="transcript", file_id=file,
        source_id=rows.source, blocked_by=json.dumps(blockers),
    )  # fmt: skip
    return file


def edges(rows: Rows) -> list[tuple[str, str, str]]:
    """Return the edges, each with the file that states it."""
    return rows.all(
        "select d.task_key, d.blocker_key, f.path from task_dependencies d"
        " join files f on f.id = d.file_id order by 1, 2"
    )


def test_an_edge_that_two_files_state_is_one_row_whatever_their_order(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations(["tasks/one/1.json", "tasks/one/2.json", "tasks/one/3.json"]):
        rows = empty()
        for path in order:
            derive(rows, states(rows, path, "1", "2"))
        assert edges(rows) == [("1", "2", "tasks/one/1.json")], order


def test_a_file_that_is_there_counts_before_one_that_is_gone(rows: Rows) -> None:
    gone = states(rows, "1.json", "1", "2", gone_at="2026-01-21")
    derive(rows, gone, states(rows, "2.json", "1", "2"))
    assert edges(rows) == [("1", "2", "2.json")]


def test_an_edge_that_no_file_states_any_more_goes(rows: Rows) -> None:
    first, second = states(rows, "1.json", "1", "2"), states(rows, "2.json", "2", "3")
    derive(rows, first, second)
    rows.connection.execute("delete from task_links where file_id = ?", (first,))
    derive(rows, first)
    assert edges(rows) == [("2", "3", "2.json")]


def test_an_edge_keeps_its_row_when_another_file_states_it(rows: Rows) -> None:
    file = states(rows, "2.json", "1", "2")
    derive(rows, file)
    (id_,) = rows.all("select id from task_dependencies")
    derive(rows, states(rows, "1.json", "1", "2"))
    assert rows.all("select id from task_dependencies") == [id_]
    assert edges(rows) == [("1", "2", "1.json")]


def test_a_task_of_a_transcript_waits_for_what_its_calls_state(rows: Rows) -> None:
    calls(rows, "1", "2", "3")
    derive(rows, has_new_edges=True)
    path = "projects/-srv-None/talk.jsonl"
    assert edges(rows) == [("1", "2", path), ("1", "3", path)]


def test_the_same_keys_in_another_list_or_home_are_another_edge(rows: Rows) -> None:
    home = rows.add("sources", kind="claude", root="/elsewhere")
    states(rows, "1.json", "1", "2")
    states(rows, "2.json", "1", "2", list_key="two")
    derive(rows, states(rows, "1.json", "1", "2", source_id=home))
    found = rows.all("select source_id, list_key from task_dependencies order by 1, 2")
    assert found == [(rows.source, "one"), (rows.source, "two"), (home, "one")]


@pytest.mark.parametrize(("kind", "count"), [("task", 1), ("task_snapshot", 1), ("transcript", 0)])
def test_edges_are_looked_at_only_if_the_batch_had_a_file_that_states_some(
    rows: Rows, kind: str, count: int
) -> None:
    states(rows, "1.json", "1", "2")
    derive(rows, rows.file("other", kind=kind))
    assert len(edges(rows)) == count


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    file = states(rows, "1.json", "1", "2")
    derive(rows, file)
    found = rows.all("select * from task_dependencies")
    derive(rows, file)
    assert rows.all("select * from task_dependencies") == found != []

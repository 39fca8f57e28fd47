"""Lines of agents inside a main file belong to a subagent for each chain, whatever their order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive import refresh


def transcript(rows: Rows, *lines: tuple[str, str | None]) -> int:
    """Insert a transcript with these lines of sidechains: their uuids and their parents."""
    _, file = rows.session("one")
    rows.add("transcripts", file_id=file, sidechain_count=len(lines))
    for uuid, parent in lines:
        rows.message(file, "prompt", uuid, uuid=uuid, parent_uuid=parent, is_sidechain=1)
    return file


def derive(rows: Rows, file: int) -> dict[str, str | None]:
    """Derive, and return the subagent of each line."""
    refresh(rows.connection, rows.touch([file], rows.all("select id from sessions")))
    found = rows.all(
        "select m.uuid, a.agent_key from messages m left join subagents a on a.id = m.subagent_id"
    )
    return dict(found)


@pytest.mark.slow
def test_a_chain_is_a_subagent_named_by_its_root_whatever_the_order(
    empty: Callable[[], Rows],
) -> None:
    chain = [("s1", "main"), ("s2", "s1"), ("s3", "s2"), ("t1", None)]
    for order in permutations(chain):
        rows = empty()
        found = derive(rows, transcript(rows, *order))
        assert found == {"s1": "s1", "s2": "s1", "s3": "s1", "t1": "t1"}, order
        assert set(rows.all("select kind from subagents")) == {"sidechain"}


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")])
def test_a_chain_that_goes_in_a_circle_is_named_by_its_first_line(
    rows: Rows, order: tuple[str, ...]
) -> None:
    parents = {"a": "b", "b": "c", "c": "a"}
    file = transcript(rows, *((uuid, parents[uuid]) for uuid in order), ("z", "b"))
    assert set(derive(rows, file).values()) == {order[0]}


def test_a_line_that_comes_later_joins_two_chains(rows: Rows) -> None:
    file = transcript(rows, ("s1", None), ("s3", "s2"))
    assert derive(rows, file) == {"s1": "s1", "s3": "s3"}
    rows.message(file, "prompt", "s2", uuid="s2", parent_uuid="s1", is_sidechain=1)
    assert set(derive(rows, file).values()) == {"s1"}
    assert rows.all("select agent_key from subagents") == ["s1"]


def test_calls_go_with_their_lines(rows: Rows) -> None:
    file = transcript(rows, ("s1", None))
    call, message = rows.call(file, "Bash", {})
    rows.set("messages", message, uuid="s2", parent_uuid="s1", is_sidechain=1)
    assert derive(rows, file)["s2"] == "s1"
    assert rows.get("tool_calls", call, "subagent_id") == rows.all("select id from subagents")[0]


def test_lines_that_a_transcript_repeats_of_an_agent_are_no_chain(rows: Rows) -> None:
    file = transcript(rows, ("s1", None))
    offset = rows.all("select byte_offset from messages")[0]
    rows.add("agent_lines", agent_key="x", file_id=file, byte_offset=offset)
    assert derive(rows, file) == {"s1": None}


def test_a_long_chain_takes_no_recursion(rows: Rows) -> None:
    file = transcript(rows, *((f"s{n}", f"s{n - 1}") for n in range(2000, 0, -1)))
    assert set(derive(rows, file).values()) == {"s1"}

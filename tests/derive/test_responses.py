"""Each API response counts once, with its best line, for the session that it really was in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations

import pytest
from tests.support.rows import AT, Rows

from assoc_ingest.derive.responses import refresh_responses, refresh_tokens


def derive(rows: Rows, *keys: str, affected: Iterable[int] = (), **more: set[int]) -> None:
    touched = rows.touch(responses=set(keys), **more)
    refresh_responses(rows.connection, touched, set(affected))


def line(rows: Rows, file: int, key: str = "msg_1", output: int = 1, **values: object) -> int:
    """Insert what a line of a file says of a response."""
    message = rows.message(file, "text", "hello")
    offset = rows.get("messages", message, "byte_offset")
    return rows.add(
        "usage",
        **{
            "response_key": key, "api_message_id": key, "output_tokens": output, "file_id": file,
            "byte_offset": offset, **values,
        },
    )  # fmt: skip


def responses(rows: Rows, *columns: str) -> list[object]:
    return rows.all(f"select {', '.join(columns)} from responses order by response_key")


def test_the_line_with_the_most_output_counts_as_a_whole(rows: Rows) -> None:
    _, file = rows.session("one")
    line(rows, file, output=10, input_tokens=5, request_id="r1")
    _, fork = rows.session("two")
    line(rows, fork, output=30, input_tokens=4, stop_reason="end_turn")
    derive(rows, "msg_1")
    assert responses(rows, "input_tokens", "output_tokens", "stop_reason", "request_id") == [
        (4, 30, "end_turn", None)
    ]


def test_of_equal_lines_that_of_the_first_file_counts(rows: Rows) -> None:
    _, file = rows.session("a")
    _, fork = rows.session("b")
    line(rows, file, input_tokens=2)
    line(rows, fork, input_tokens=1)
    derive(rows, "msg_1")
    assert responses(rows, "input_tokens", "file_id") == [(2, file)]


def test_it_has_the_first_time_that_any_of_its_lines_states(rows: Rows) -> None:
    _, file = rows.session("a")
    _, fork = rows.session("b")
    line(rows, file, output=9, timestamp=None)
    line(rows, fork, timestamp=AT)
    derive(rows, "msg_1")
    assert responses(rows, "timestamp", "output_tokens") == [(AT, 9)]


def test_a_response_belongs_to_the_session_of_its_first_file_whatever_was_read_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations("abc"):
        rows = empty()
        for key in order:
            _, file = rows.session(key)
            line(rows, file, output=ord(key))  # the best line is in c
            derive(rows, "msg_1")
        (found,) = rows.all(
            "select s.session_key, r.output_tokens from responses r"
            " join sessions s on s.id = r.session_id"
        )
        assert found == ("a", ord("c")), order


def test_a_response_in_a_main_file_belongs_to_the_subagent_that_said_it(rows: Rows) -> None:
    session, file = rows.session("one")
    agent = rows.add("subagents", session_id=session, agent_key="x", source_id=rows.source)
    line(rows, file)
    rows.connection.execute("update messages set subagent_id = ?", (agent,))
    derive(rows, "msg_1")
    assert responses(rows, "subagent_id") == [agent]


def test_the_subagent_of_a_file_has_its_responses(rows: Rows) -> None:
    session, _ = rows.session("one")
    agent = rows.add("subagents", session_id=session, agent_key="x", source_id=rows.source)
    line(rows, rows.file("agent-x.jsonl", kind="agent", session_id=session, subagent_id=agent))
    derive(rows, "msg_1")
    assert responses(rows, "session_id", "subagent_id") == [(session, agent)]


@pytest.mark.parametrize(
    ("key", "values", "count"),
    [
        ("gen-1", {}, 2),
        ("msg_1", {}, 1),  # Anthropic's own ids are unique
        ("gen-1", {"request_id": "r1"}, 1),
        ("line-1", {"api_message_id": None}, 1),
    ],
)
def test_the_id_of_a_gateway_is_one_response_per_session(
    rows: Rows, key: str, values: dict[str, object], count: int
) -> None:
    for session in ("one", "two"):
        _, file = rows.session(session)
        line(rows, file, key, stated_session_key=session, **values)
    derive(rows, key)
    assert len(responses(rows, "id")) == count


def test_a_copy_of_a_line_counts_as_its_original_whatever_session_it_names(rows: Rows) -> None:
    """A fork names its own session in the lines that it copied."""
    files = []
    for session in ("one", "two"):
        _, file = rows.session(session)
        line(rows, file, "gen-1", stated_session_key=session)
        files.append(file)
    derive(rows, "gen-1")
    assert len(responses(rows, "id")) == 2
    first, copy = rows.all("select id from messages order by id")
    rows.connection.execute("update messages set copy_of = ? where id = ?", (first, copy))
    derive(rows, affected={files[1]})
    assert responses(rows, "response_key", "file_id") == [("gen-1 in one", files[0])]


def test_a_response_that_turns_out_to_be_one_leaves_no_rows_for_each_session(rows: Rows) -> None:
    for session in ("one", "two"):
        _, file = rows.session(session)
        line(rows, file, "gen-1", stated_session_key=session)
    derive(rows, "gen-1")
    assert responses(rows, "response_key") == ["gen-1 in one", "gen-1 in two"]
    rows.connection.execute("update usage set request_id = 'r1' where file_id = ?", (file,))
    derive(rows, "gen-1")
    assert responses(rows, "response_key") == ["gen-1"]


def test_a_response_whose_lines_are_gone_goes_and_no_other(rows: Rows) -> None:
    _, file = rows.session("one")
    for key in ("gen-1", "gen-10", "msg_1", "msg_10"):
        line(rows, file, key)
    derive(rows, "gen-1", "gen-10", "msg_1", "msg_10")
    rows.connection.execute("delete from usage where response_key in ('gen-1', 'msg_1')")
    derive(rows, "gen-1", "msg_1")
    assert responses(rows, "response_key") == ["gen-10 in ", "msg_10"]


def test_sessions_that_win_or_lose_a_response_are_touched(rows: Rows) -> None:
    two, b = rows.session("b")
    line(rows, b)
    derive(rows, "msg_1")
    one, a = rows.session("a")
    line(rows, a)
    derive(rows, "msg_1")
    assert set(rows.all("select id from touched_sessions")) == {one, two}
    assert responses(rows, "session_id") == [one]


def test_responses_of_files_whose_rank_or_subagents_changed_are_looked_at_again(
    rows: Rows,
) -> None:
    for why in ("affected", "sidechains"):
        session, file = rows.session(why)
        line(rows, file, f"msg_{why}")
        derive(rows, **{why: {file}})
        assert rows.all("select session_id from responses where file_id = ?", file) == [session]


def test_what_the_batch_did_not_touch_is_left_alone(rows: Rows) -> None:
    _, file = rows.session("one")
    line(rows, file, "msg_1")
    line(rows, file, "msg_2")
    derive(rows, "msg_2")
    assert responses(rows, "response_key") == ["msg_2"]


def test_deriving_again_changes_nothing(rows: Rows) -> None:
    _, file = rows.session("one")
    line(rows, file, "msg_1")
    line(rows, file, "gen-1", stated_session_key="one")
    derive(rows, "msg_1", "gen-1")
    found = responses(rows, "*")
    derive(rows, "msg_1", "gen-1")
    assert responses(rows, "*") == found


# -- tokens of subagents -------------------------------------------------------------------------


def test_a_subagent_used_what_its_responses_state_else_what_its_call_does(rows: Rows) -> None:
    session, file = rows.session("one")
    agents = [
        rows.add("subagents", session_id=session, agent_key=key, source_id=rows.source)
        for key in ("own", "stated", "silent")
    ]
    counts = {"input_tokens": 1, "output_tokens": 20, "cache_read_tokens": 300}
    counts |= {"cache_write_5m_tokens": 4000, "cache_write_1h_tokens": 50000}
    for key in ("r1", "r2"):
        rows.add("responses", response_key=key, file_id=file, subagent_id=agents[0], **counts)
    for offset, key in enumerate(("own", "stated", "stated")):
        rows.add("agent_totals", agent_key=key, tokens=7 + offset, file_id=file, byte_offset=offset)
    rows.touch(sessions=[session])
    refresh_tokens(rows.connection)
    assert rows.all("select tokens from subagents order by id") == [108642, 9, None]


def test_only_subagents_of_touched_sessions_are_summed_up(rows: Rows) -> None:
    session, _ = rows.session("one")
    rows.add("subagents", session_id=session, agent_key="x", source_id=rows.source, tokens=5)
    rows.touch()
    refresh_tokens(rows.connection)
    assert rows.all("select tokens from subagents") == [5]

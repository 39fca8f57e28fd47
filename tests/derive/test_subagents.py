"""A subagent is there as long as something names it, and is what its lines show it to be."""

from __future__ import annotations

import pytest
from tests.support.rows import Rows, at

from assoc_ingest.derive.subagents import refresh_subagents


@pytest.fixture
def session(rows: Rows) -> int:
    return rows.session("one")[0]


def main_file(rows: Rows) -> int:
    (file,) = rows.all("select id from files where kind = 'transcript'")
    return int(file)


def agent(rows: Rows, session: int, key: str, **values: object) -> int:
    row = {"session_id": session, "session_key": "one", "source_id": rows.source, **values}
    return rows.add("subagents", agent_key=key, **row)


def own_file(rows: Rows, session: int, agent_id: int, **values: object) -> int:
    """Insert the transcript of an agent."""
    row = {"path": f"agent-{agent_id}.jsonl", "kind": "agent", "session_id": session, **values}
    path = row.pop("path")
    file = rows.file(str(path), subagent_id=agent_id, **row)
    rows.add("transcripts", file_id=file, started_at=at(1), ended_at=at(9), message_count=4)
    return file


def totals(rows: Rows, file: int, key: str, **values: object) -> int:
    """Insert the result of a call that names an agent. Returns its message."""
    message = rows.message(file, "tool_result", "done")
    offset = rows.get("messages", message, "byte_offset")
    rows.add("agent_totals", agent_key=key, file_id=file, byte_offset=offset, **values)
    return message


def derive(rows: Rows, *sessions: int) -> dict[str, str]:
    """Derive, and return the kind of each agent."""
    rows.touch(sessions=sessions or rows.all("select id from sessions"))
    refresh_subagents(rows.connection)
    return dict(rows.all("select agent_key, kind from subagents"))


def test_an_agent_that_nothing_names_goes(rows: Rows, session: int) -> None:
    agent(rows, session, "nameless")
    kept = agent(rows, session, "kept")
    own_file(rows, session, kept)
    assert derive(rows) == {"kept": "task"}


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a1b2", "task"),
        ("acompact-a1b2", "compact"),
        ("aprompt_suggestion-a1b2", "prompt_suggestion"),
        ("apromptxsuggestion-a1b2", "task"),  # the underscore of LIKE is any letter
        ("aside_question-a1b2", "side_question"),
    ],
)
def test_the_key_of_a_side_agent_says_what_it_is(
    rows: Rows, session: int, key: str, kind: str
) -> None:
    own_file(rows, session, agent(rows, session, key))
    assert derive(rows) == {key: kind}


def test_an_agent_whose_first_text_is_a_warmup_is_one(rows: Rows, session: int) -> None:
    for key, texts in {"a": ["Warmup", "go on"], "b": ["go on", "Warmup"]}.items():
        file = own_file(rows, session, agent(rows, session, key))
        for text in texts:
            rows.message(file, "prompt", text)
    assert derive(rows) == {"a": "warmup", "b": "task"}


def test_times_and_counts_are_those_of_its_own_file(rows: Rows, session: int) -> None:
    agent_id = agent(rows, session, "a")
    own_file(rows, session, agent_id)
    own_file(rows, session, agent_id, path="projects/other/agent.jsonl")
    derive(rows)
    columns = ("started_at", "ended_at", "message_count")
    assert rows.get("subagents", agent_id, *columns) == (at(1), at(9), 4)


def test_an_agent_without_a_file_is_what_its_lines_in_the_main_file_show(
    rows: Rows, session: int
) -> None:
    agent_id = agent(rows, session, "a")
    for second, kind in ((3, "prompt"), (5, "text"), (7, "system")):
        role = {"role": "system"} if kind == "system" else {}
        rows.message(
            main_file(rows), kind, "hello", subagent_id=agent_id, timestamp=at(second), **role
        )
    assert derive(rows) == {"a": "sidechain"}
    columns = ("started_at", "ended_at", "message_count")
    assert rows.get("subagents", agent_id, *columns) == (at(3), at(7), 2)


def test_lines_that_a_transcript_repeats_of_an_agent_are_no_sidechain(
    rows: Rows, session: int
) -> None:
    agent_id = agent(rows, session, "a")
    message = rows.message(main_file(rows), "text", "hello", subagent_id=agent_id)
    offset = rows.get("messages", message, "byte_offset")
    rows.add("agent_lines", agent_key="a", file_id=main_file(rows), byte_offset=offset)
    assert derive(rows) == {"a": "task"}


def test_what_its_sidecar_states_counts_for_more(rows: Rows, session: int) -> None:
    agent_id = agent(rows, session, "a")
    own_file(rows, session, agent_id)
    sidecar = rows.file("a.meta.json", kind="agent_meta", session_id=session, subagent_id=agent_id)
    rows.add("agent_metas", file_id=sidecar, agent_type="Plan", description="Beds", name="ada")
    journal = rows.file("journal.jsonl", kind="journal", session_id=session, workflow="run")
    rows.add("workflow_agents", file_id=journal, agent_key="a", label="Labelled")
    assert derive(rows) == {"a": "workflow"}
    found = rows.get("subagents", agent_id, "agent_type", "description", "name", "workflow")
    assert found == ("Plan", "Beds", "ada", "run")


def test_an_agent_that_only_a_journal_names_is_one_of_its_run(rows: Rows, session: int) -> None:
    journal = rows.file(
        "journal.jsonl", kind="journal", session_id=session, session_key="one", workflow="run"
    )
    rows.add("workflow_agents", file_id=journal, agent_key="w", label="Weeds")
    rows.add("workflow_agents", file_id=journal, agent_key="")
    assert derive(rows) == {"w": "workflow"}
    assert rows.all("select workflow, description from subagents") == [("run", "Weeds")]
    rows.connection.execute("delete from workflow_agents")
    assert derive(rows) == {}


def test_an_agent_that_only_the_result_of_a_call_names_is_there(rows: Rows, session: int) -> None:
    totals(rows, main_file(rows), "c", agent_type="Plan", tool_call_count=3)
    totals(rows, main_file(rows), "c", agent_type="Plan", tool_call_count=7)
    assert derive(rows) == {"c": "task"}
    assert rows.all("select session_id, agent_type, tool_call_count from subagents") == [
        (session, "Plan", 7)
    ]


def test_a_result_that_is_a_copy_names_an_agent_of_the_original(rows: Rows, session: int) -> None:
    original = totals(rows, main_file(rows), "c")
    _, fork = rows.session("fork")
    rows.set("messages", totals(rows, fork, "c"), copy_of=original)
    derive(rows)
    assert rows.all("select session_id from subagents") == [session]


def test_an_agent_with_a_file_in_another_session_is_not_added(rows: Rows, session: int) -> None:
    other, _ = rows.session("two")
    rows.file("agent-c.jsonl", kind="agent", agent_key="c", session_id=other)
    (file,) = rows.all("select id from files where session_key = 'one'")
    totals(rows, file, "c")
    assert derive(rows) == {}


def test_an_agent_that_came_before_its_session_gets_it(rows: Rows, session: int) -> None:
    agent_id = agent(rows, session, "a", session_id=None)
    own_file(rows, session, agent_id)
    assert derive(rows) == {"a": "task"}
    assert rows.get("subagents", agent_id, "session_id") == session


def test_only_agents_of_touched_sessions_are_looked_at(rows: Rows, session: int) -> None:
    other, _ = rows.session("two")
    agent(rows, session, "a")
    agent(rows, other, "b", session_key="two")
    assert set(derive(rows, session)) == {"b"}


def test_deriving_again_changes_nothing(rows: Rows, session: int) -> None:
    own_file(rows, session, agent(rows, session, "a"))
    totals(rows, main_file(rows), "c", tool_call_count=3)
    derive(rows)
    found = rows.all("select * from subagents")
    derive(rows)
    assert rows.all("select * from subagents") == found

"""A subagent is linked to the call that spawned it, by the best evidence that any line gives."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.subagents import Agent, link

META, RESULT, PROGRESS, RESULT_TEXT, NOTIFICATION = range(1, 6)


class Session:
    """A session with a transcript, subagents, and calls that spawn them."""

    def __init__(self, rows: Rows, key: str = "one") -> None:
        self.rows = rows
        self.id, self.file = rows.session(key)

    def agent(self, key: str, text: str | None = None, kind: str = "task", **values: object) -> int:
        """Insert a subagent with a file of its own, whose first message is the text."""
        agent = self.rows.add(
            "subagents", session_id=self.id, agent_key=key, kind=kind, source_id=self.rows.source,
            **values,
        )  # fmt: skip
        file = self.rows.file(f"{key}.jsonl", session_id=self.id, subagent_id=agent, kind="agent")
        if text is not None:
            self.rows.message(file, "prompt", text, subagent_id=agent)
        return agent

    def call(self, name: str = "Task", **arguments: object) -> int:
        return self.rows.call(self.file, name, arguments)[0]

    def says(self, key: str, call: int, method: int, file: int | None = None) -> None:
        """Insert a line that says that a call spawned an agent."""
        self.rows.add(
            "agent_links", agent_key=key, method=method, file_id=file or self.file,
            tool_use_id=self.rows.get("tool_calls", call, "tool_use_id"),
        )  # fmt: skip

    def links(self) -> dict[str, tuple[int | None, int | None, str | None]]:
        """Derive, and return the call, the parent and the method of each agent."""
        agents = self.rows.all(
            "select id, agent_key, kind, session_id, workflow from subagents"
            " where session_id = ? order by agent_key",
            self.id,
        )
        link(self.rows.connection, self.id, [Agent(*row) for row in agents])
        found = self.rows.all(
            "select agent_key, spawned_by, parent_id, link_method from subagents"
            " where session_id = ?",
            self.id,
        )
        return {key: tuple(rest) for key, *rest in found}  # type: ignore[misc]


@pytest.fixture
def session(rows: Rows) -> Session:
    return Session(rows)


def test_the_best_evidence_wins_whatever_stands_first(empty: Callable[[], Rows]) -> None:
    names = ["meta", "result", "progress", "result-text", "notification"]
    for best in range(1, 6):
        session = Session(empty())
        session.agent("x")
        for method in reversed(range(best, 6)):
            session.says("x", session.call(), method)
        ((call, _, found),) = session.links().values()
        assert found == names[best - 1]
        assert session.rows.all("select max(id) from tool_calls") == [call]


def test_of_equal_evidence_the_first_line_counts_whatever_was_read_first(
    empty: Callable[[], Rows],
) -> None:
    for order in permutations([100, 200, 300]):
        session = Session(empty())
        session.agent("x")
        calls = {offset: session.call() for offset in order}
        for offset, call in calls.items():
            session.says("x", call, RESULT)
            session.rows.connection.execute(
                "update agent_links set byte_offset = ? where byte_offset = 0", (offset,)
            )
        assert session.links()["x"][0] == calls[100], order


def test_only_a_call_that_spawns_is_found_by_the_text_of_its_result(session: Session) -> None:
    session.agent("x")
    session.says("x", session.call("Bash"), RESULT_TEXT)
    assert session.links() == {"x": (None, None, None)}


def test_an_agent_that_an_agent_spawned_has_it_as_its_parent(rows: Rows, session: Session) -> None:
    parent = session.agent("parent")
    session.agent("child")
    (file,) = rows.all("select id from files where subagent_id = ?", parent)
    call, _ = rows.call(file, "Task", {}, subagent_id=parent)
    session.says("child", call, RESULT, file)
    assert session.links()["child"] == (call, parent, "result")


def test_seeds_an_agent_whose_first_line_follows_a_skill_call_is_linked_to_it(
    rows: Rows, session: Session
) -> None:
    calls = {name: session.call(name, skill="tidy") for name in ("Skill", "Bash")}
    for name, call in calls.items():
        agent = session.agent(f"after-{name}", "tidy the menus")
        uuid = f"line-{name}"
        rows.connection.execute(
            "update messages set uuid = ? where id = (select call_id from tool_calls where id = ?)",
            (uuid, call),
        )
        rows.connection.execute(
            "update messages set parent_uuid = ? where subagent_id = ?", (uuid, agent)
        )
    assert session.links() == {
        "after-Skill": (calls["Skill"], None, "skill"),
        "after-Bash": (None, None, None),
    }
    session.says("after-Skill", calls["Bash"], NOTIFICATION)  # anything else is better evidence
    assert session.links()["after-Skill"] == (calls["Bash"], None, "notification")


def test_agents_that_would_spawn_themselves_are_not_linked(rows: Rows, session: Session) -> None:
    agents = {key: session.agent(key) for key in ("a", "b", "self")}
    calls = {}
    for key, agent in agents.items():
        (file,) = rows.all("select id from files where subagent_id = ?", agent)
        calls[key], _ = rows.call(file, "Task", {}, subagent_id=agent)
    below = session.agent("below")
    session.says("a", calls["b"], META)
    session.says("b", calls["a"], META)
    session.says("self", calls["self"], META)
    session.says("below", calls["a"], META)
    found = session.links()
    assert found.pop("below") == (calls["a"], agents["a"], "meta")
    assert set(found.values()) == {(None, None, None)}
    assert below


def test_evidence_that_an_agent_spawned_itself_gives_way_to_other_evidence(
    rows: Rows, session: Session
) -> None:
    agent = session.agent("x")
    (file,) = rows.all("select id from files where subagent_id = ?", agent)
    own, _ = rows.call(file, "Task", {}, subagent_id=agent)
    other = session.call()
    session.says("x", own, META)
    session.says("x", other, NOTIFICATION)
    assert session.links()["x"] == (other, None, "notification")


def test_an_agent_is_found_by_its_prompt_where_one_call_has_it(session: Session) -> None:
    session.agent("x", "Look at the beds\n")
    session.agent("y", "Something else")
    call = session.call(prompt="Look at the beds")
    assert session.links() == {"x": (call, None, "prompt"), "y": (None, None, None)}


def test_the_prompt_of_two_calls_tells_nothing(session: Session) -> None:
    session.agent("x", "Look")
    session.call(prompt="Look"), session.call(prompt="Look")
    assert session.links()["x"] == (None, None, None)


def test_a_call_that_has_its_agent_is_no_candidate(session: Session) -> None:
    session.agent("x", "Look")
    session.agent("y", "Look")
    first, second = session.call(prompt="Look"), session.call(prompt="Look")
    session.says("x", first, RESULT)
    assert session.links() == {"x": (first, None, "result"), "y": (second, None, "prompt")}


def test_all_agents_with_the_prompt_of_one_call_are_linked_to_it(session: Session) -> None:
    session.agent("x", "Look")
    session.agent("y", "Look")
    call = session.call(prompt="Look")
    assert {found[0] for found in session.links().values()} == {call}


def test_a_teammate_gets_its_prompt_wrapped(session: Session) -> None:
    text = '<teammate-message teammate_id="lead">\nLook\n</teammate-message>'
    session.agent("x", text)
    call = session.call(prompt="Look")
    assert session.links()["x"] == (call, None, "prompt")


@pytest.mark.parametrize("kind", ["compact", "prompt_suggestion", "side_question", "warmup"])
def test_a_side_agent_is_not_found_by_its_prompt(session: Session, kind: str) -> None:
    session.agent("x", "Look", kind)
    session.call(prompt="Look")
    assert session.links()["x"] == (None, None, None)


@pytest.mark.parametrize(
    "lines", [[("run", "use", None)], [(None, "use", "task"), ("run", None, "task")]]
)
def test_an_agent_of_a_run_belongs_to_the_call_that_started_the_run(
    rows: Rows, session: Session, lines: list[tuple[str | None, str | None, str | None]]
) -> None:
    call = session.call("Workflow")
    session.agent("x", workflow="run")
    session.agent("y", workflow="another")
    for offset, (run, use, task) in enumerate(lines):
        rows.add(
            "workflow_links", run=run, task_key=task, file_id=session.file, byte_offset=offset,
            tool_use_id=use and rows.get("tool_calls", call, "tool_use_id"),
        )  # fmt: skip
    assert session.links() == {"x": (call, None, "workflow"), "y": (None, None, None)}


def test_the_link_goes_to_the_original_of_a_copied_call(rows: Rows, session: Session) -> None:
    original = session.call()
    fork = Session(rows, "fork")
    fork.agent("x")
    copy = fork.call()
    rows.set("tool_calls", copy, tool_use_id=rows.get("tool_calls", original, "tool_use_id"))
    message, of = (rows.get("tool_calls", call, "call_id") for call in (copy, original))
    rows.set("messages", message, copy_of=of)
    fork.says("x", copy, RESULT)
    assert fork.links()["x"] == (original, None, "result")


def test_a_call_of_another_session_is_no_evidence(rows: Rows, session: Session) -> None:
    session.agent("x", "Look")
    other = Session(rows, "two")
    call = other.call(prompt="Look")
    session.says("x", call, RESULT)
    assert session.links()["x"] == (None, None, None)


def test_an_agent_is_named_as_its_call_names_it_unless_its_sidecar_does(
    rows: Rows, session: Session
) -> None:
    agent = session.agent("x", agent_type="Plan")
    call = session.call(subagent_type="Explore", description="Beds")
    session.says("x", call, RESULT)
    session.links()
    assert rows.get("subagents", agent, "agent_type", "description") == ("Plan", "Beds")


def test_evidence_that_is_gone_leaves_no_link(rows: Rows, session: Session) -> None:
    session.agent("x")
    session.says("x", session.call(), RESULT)
    session.links()
    rows.connection.execute("delete from agent_links")
    assert session.links()["x"] == (None, None, None)


def test_deriving_again_changes_nothing(rows: Rows, session: Session) -> None:
    session.agent("x", "Look")
    session.agent("y")
    session.says("y", session.call(description="Beds"), META)
    session.call(prompt="Look")
    found = session.links()
    stored = rows.all("select * from subagents")
    assert session.links() == found
    assert rows.all("select * from subagents") == stored

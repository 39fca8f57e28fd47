"""An agent is known as long as a configuration or a conversation names it, and keeps its name."""

from __future__ import annotations

import pytest
from tests.support.rows import Rows

from assoc_ingest.derive.projects import apply_agents, mark_file_gone, refresh_agents, remove_file
from assoc_ingest.records import Agent


def configure(rows: Rows, file: int, *keys: str, now: str = "2026-01-21", **said: object) -> None:
    """Apply a configuration that lists these agents."""
    rest = {"type": None, "description": None, "path": None, "is_general": None, "extra": None}
    agents = [
        Agent(**{"name": key.upper(), "agent_key": key, "project_key": "w", **rest, **said})
        for key in keys
    ]
    apply_agents(rows.connection, file, rows.source, agents, now)


def conversation(rows: Rows, key: str, agent: str, **values: object) -> int:
    """Insert a conversation that lies in the directory of an agent. Returns its session."""
    session, _ = rows.session(key)
    file = rows.file(f"{key}.json", kind="chat_list", project_key="w", **values)
    rows.add("session_entries", session_key=key, session_id=session, agent_key=agent, file_id=file)
    return session


def derive(rows: Rows) -> list[tuple[str, str]]:
    """Derive, and return the keys and the names of the agents."""
    rows.touch_all()
    refresh_agents(rows.connection)
    return rows.all("select agent_key, name from agents order by agent_key")


@pytest.fixture
def config(rows: Rows) -> int:
    return rows.file("config.json", kind="config")


def test_an_agent_that_a_configuration_drops_is_gone_and_keeps_its_name(
    rows: Rows, config: int
) -> None:
    configure(rows, config, "a", "b")
    configure(rows, config, "b", now="2026-01-22")
    assert rows.all("select name, gone_at from agents") == [("A", "2026-01-22"), ("B", None)]
    configure(rows, config, "a", "b", now="2026-01-23", description="back")
    assert rows.all("select description, gone_at from agents") == [("back", None)] * 2


def test_since_when_an_agent_is_gone_does_not_change(rows: Rows, config: int) -> None:
    configure(rows, config, "a")
    configure(rows, config, now="2026-01-22")
    configure(rows, config, now="2026-01-23")
    mark_file_gone(rows.connection, config, "2026-01-24")
    assert rows.all("select gone_at from agents") == ["2026-01-22"]


def test_agents_are_gone_with_their_configuration(rows: Rows, config: int) -> None:
    configure(rows, config, "a")
    mark_file_gone(rows.connection, config, "2026-01-24")
    assert rows.all("select name, gone_at from agents") == [("A", "2026-01-24")]


def test_an_agent_that_only_its_conversations_name_goes_with_the_last_of_them(rows: Rows) -> None:
    conversation(rows, "one", "x"), conversation(rows, "two", "x")
    assert derive(rows) == [("x", "x")]
    rows.connection.execute("delete from session_entries where session_key = 'one'")
    assert derive(rows) == [("x", "x")]
    rows.connection.execute("delete from session_entries")
    assert derive(rows) == []


def test_what_a_configuration_stated_can_be_taken_back(rows: Rows, config: int) -> None:
    configure(rows, config, "a", "x", description="said")
    conversation(rows, "one", "x")
    remove_file(rows.connection, config)
    assert derive(rows) == [("x", "x")]
    assert rows.all("select description, gone_at from agents") == [(None, None)]


def test_a_configuration_names_the_agent_of_a_conversation_that_came_first(
    rows: Rows, config: int
) -> None:
    session = conversation(rows, "one", "x")
    derive(rows)
    configure(rows, config, "x")
    assert derive(rows) == [("x", "X")]
    assert rows.get("sessions", session, "agent_id") == rows.all("select id from agents")[0]


def test_of_several_places_of_a_conversation_the_one_that_is_there_counts(rows: Rows) -> None:
    session = conversation(rows, "one", "x", gone_at="2026-01-21")
    file = rows.file("other.json", kind="chat_list", project_key="w")
    rows.add("session_entries", session_key="one", session_id=session, agent_key="y", file_id=file)
    derive(rows)
    (agent,) = rows.all("select id from agents where agent_key = 'y'")
    assert rows.get("sessions", session, "agent_id") == agent


def test_an_agent_has_the_project_of_its_workspace_once_it_is_there(
    rows: Rows, config: int
) -> None:
    configure(rows, config, "a")
    rows.add("projects", key="w", source_id=rows.add("sources", kind="chorus", root="/other"))
    derive(rows)
    assert rows.all("select project_id from agents") == [None]
    project = rows.add("projects", key="w", source_id=rows.source)
    derive(rows)
    assert rows.all("select project_id from agents") == [project]


def test_only_touched_conversations_are_referred_to_their_agents(rows: Rows) -> None:
    session = conversation(rows, "one", "x")
    rows.touch(files=rows.all("select id from files"))
    refresh_agents(rows.connection)
    assert rows.get("sessions", session, "agent_id") is None

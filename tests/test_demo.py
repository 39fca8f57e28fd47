"""The demonstration home tells one story in the words of ten programs, and all of it is read.

README begins with it: `assoc-ingest sync tests/demo/*`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cases import CASES, DEMO, SHOWN

from assoc_ingest.sources import SOURCES
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import check, connect

HOMES = sorted(DEMO.iterdir())


@pytest.fixture(scope="module")
def story(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    database = tmp_path_factory.mktemp("story") / "story.db"
    database.write_bytes(template.read_bytes())
    report = sync(database, HOMES)
    assert report.unreadable == []
    check(database, *HOMES)
    connection = connect(database)
    yield connection
    connection.close()


def column(story: sqlite3.Connection, statement: str) -> list[object]:
    return [row[0] for row in story.execute(statement)]


def test_every_home_of_the_story_is_of_the_system_that_it_is_named_after(
    story: sqlite3.Connection,
) -> None:
    kinds = column(story, "select kind from sources order by kind")
    assert kinds == sorted(["associate", *(home.name for home in HOMES)])


def test_every_source_demonstrates_what_it_reads(story: sqlite3.Connection) -> None:
    """One that came later has a home of its own: the story, which all pages show, stays."""
    told = column(story, "select kind from sources")
    assert [name for name in SOURCES if name not in told and f"{name}/{SHOWN}" not in CASES] == []


def test_every_piece_of_it_can_be_read(story: sqlite3.Connection) -> None:
    assert column(story, "select reason from issues") == []


@pytest.mark.parametrize(
    "table",
    [
        *("projects", "sessions", "subagents", "messages", "tool_calls", "responses", "tasks"),
        *("task_dependencies", "task_changes", "todos", "teams", "team_members", "inbox_items"),
        *("plans", "plan_lines", "documents", "prompts", "hook_events", "links"),
        *("file_snapshots", "tool_result_files", "active_sessions", "agents", "line_extras"),
    ],
)
def test_it_has_something_for_every_table(story: sqlite3.Connection, table: str) -> None:
    assert column(story, f"select count(*) from {table}") != [0]


@pytest.mark.parametrize(
    ("table", "key", "reference"),
    [
        ("session_entries", "linked_session_key", "linked_session_id"),
        ("hook_events", "session_key", "session_id"),
        ("todos", "session_key", "session_id"),
        ("prompts", "session_key", "session_id"),
        ("documents", "session_key", "session_id"),
        ("documents", "project_key", "project_id"),
        ("links", "session_key", "session_id"),
        ("teams", "lead_session_key", "lead_session_id"),
        ("task_dependencies", "blocker_key", "blocker_id"),
        ("tool_result_files", "session_key", "session_id"),
        ("projects", "parent_id", "parent_id"),
        ("subagents", "agent_key", "spawned_by"),
    ],
)
def test_whatever_it_names_is_in_it(
    story: sqlite3.Connection, table: str, key: str, reference: str
) -> None:
    named = column(story, f"select {reference} from {table} where {key} is not null")
    assert named
    assert None not in named


def test_most_systems_speak_of_the_frost(story: sqlite3.Connection) -> None:
    found = column(
        story,
        "select distinct x.kind from messages m join files f on f.id = m.file_id"
        " join sources x on x.id = f.source_id where m.text like '%frost%'"
        " union select 'associate' from documents where text like '%frost%' order by 1",
    )
    assert found == ["associate", "chorus", "claude", "cortex", "gemini"]


def test_nothing_in_it_comes_from_a_real_machine() -> None:
    names = set()
    for path in (path for path in DEMO.rglob("*") if path.is_file()):
        text = path.read_text("utf-8")
        names.update(re.findall(r"(?:/home|/Users|C:\\+Users)[/\\]+(\w+)", text))
        assert not re.search(r"sk-[\w-]{8}|ghp_|AKIA", text), path
    assert names == {"ada"}

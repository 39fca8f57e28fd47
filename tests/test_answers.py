"""Every question has a known answer on the demonstration home.

`pytest --golden` rewrites tests/golden/answers.json; read the difference.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from assoc_ingest import sql
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

ANSWERS = Path(__file__).parent / "golden" / "answers.json"
DEMO = Path(__file__).parent / "demo"
PARAMETERS: dict[str, dict[str, object]] = {
    "subagent_tree": {"session": "5e1f"},
    "list_agents": {"all": 1},
    "list_tasks": {"all": 1},
    "list_projects": {"all": 1},
    "list_sessions": {"all": 1},
}
# What is asked for with ids, what prints paths of this machine, and what depends on the day.
_OTHERS = (
    "search_",
    "show_",
    "status_",
    "message_",
    "hit_",
    "session_key_",
    "sessions_by_",
    "projects_by_",
)
_DEPENDS_ON_THE_DAY = (
    "retention", "retention_by_session", "retention_totals", "list_files", "recent_sessions",
)  # fmt: skip
OF_GIT = ("git_changes",)
"""What is known only where git was asked."""
_LEFT_OUT = ("id", "root", "file", "cost_usd", "cost_microusd", "unpriced", "project_id")
NAMES = [
    name
    for name in sql.queries()
    if not name.startswith(_OTHERS) and name not in _DEPENDS_ON_THE_DAY
]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    place = tmp_path_factory.mktemp("answers")
    homes = shutil.copytree(DEMO, place / "demo")
    for path in homes.rglob("*"):
        os.utime(path, (1_772_500_000, 1_772_500_000))
    sync(place / "assoc.db", [home for home in sorted(homes.iterdir()) if home.is_dir()])
    with closing(open_reader(place / "assoc.db")) as connection:
        yield connection


def test_every_question_is_answered_as_before(
    connection: sqlite3.Connection, request: pytest.FixtureRequest
) -> None:
    answers = {name: _answer(connection, name) for name in NAMES}
    text = json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
    if request.config.getoption("--golden"):
        ANSWERS.write_text(text, "utf-8")
    assert json.loads(text) == json.loads(ANSWERS.read_text("utf-8"))


def test_most_questions_have_an_answer_that_says_something() -> None:
    answers = json.loads(ANSWERS.read_text("utf-8"))
    empty = {name for name, rows in answers.items() if not rows}
    assert empty <= {"unpriced_models", "forks", "issues_by_reason", "list_issues", *OF_GIT}, empty


def _answer(connection: sqlite3.Connection, name: str) -> list[dict[str, object]]:
    query = sql.query(name)
    given = {**dict.fromkeys(query.parameters), **PARAMETERS.get(name, {})}
    rows = connection.execute(query.sql, given).fetchall()
    found = [{key: row[key] for key in row.keys() if key not in _LEFT_OUT} for row in rows]  # noqa: SIM118
    # Costs follow the prices of the library that is installed, and so does an order by cost.
    return sorted(found, key=repr) if name.startswith("usage_by_") else found

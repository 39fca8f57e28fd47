"""Every query has a known answer on the demonstration homes.

`pytest --golden` rewrites tests/golden/answers.json, and the `answers.json` of each source that has
a demonstration of its own; read the difference.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.cases import CASES, DEMO, SHOWN, SOURCES, home_of, told_by_sources

from assoc_ingest import sql
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync

ANSWERS = Path(__file__).parent / "golden" / "answers.json"
PARAMETERS: dict[str, dict[str, object]] = {
    "reports/subagent_tree": {"session": "5e1f"},
    "lists/agents": {"all": 1},
    "lists/tasks": {"all": 1},
    "lists/projects": {"all": 1},
    "lists/sessions": {"all": 1},
}
# Of the pages, what is not asked for with ids.
_PAGES = ("dashboard_projects", "newest_session")
# What prints paths of this machine, and what depends on the day.
_VARIES = (
    "status_runs", "status_sources",
    "retention", "retention_by_session", "retention_totals", "list_files", "recent_sessions",
)  # fmt: skip
OF_GIT = ("git_changes", "git_diff")
"""What is known only where git was asked."""
_LEFT_OUT = ("id", "root", "file", "cost_usd", "cost_microusd", "unpriced", "project_id")
PATHS = {query.name: query.path for query in sql.named_queries().values()}
PATHS = {name: path for name, path in PATHS.items() if name not in _VARIES}
PATHS |= {name: f"pages/{name}" for name in _PAGES}
"""The queries by the names that their answers have."""


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    place = tmp_path_factory.mktemp("answers")
    homes = shutil.copytree(DEMO, place / "demo")
    for path in homes.rglob("*"):
        os.utime(path, (1_772_500_000, 1_772_500_000))
    sync(place / "assoc.db", [home for home in sorted(homes.iterdir()) if home.is_dir()])
    with closing(open_reader(place / "assoc.db")) as connection:
        yield connection


def test_every_query_is_answered_as_before(
    connection: sqlite3.Connection, request: pytest.FixtureRequest
) -> None:
    answers = {name: _answer(connection, PATHS[name]) for name in sorted(PATHS)}
    text = json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
    if request.config.getoption("--golden"):
        ANSWERS.write_text(text, "utf-8")
    assert json.loads(text) == json.loads(ANSWERS.read_text("utf-8"))


@pytest.mark.parametrize("case", [case for case in CASES if case.endswith(f"/{SHOWN}")])
def test_the_queries_are_answered_from_what_a_source_demonstrates(
    case: str, fresh: Callable[[], Path], place: Path, request: pytest.FixtureRequest
) -> None:
    database, stored = fresh(), SOURCES / case / "answers.json"
    home = home_of(case, place)
    for path in home.rglob("*"):
        os.utime(path, (1_772_500_000, 1_772_500_000))
    sync(database, [home])
    with closing(open_reader(database)) as connection:
        answers = {name: _answer(connection, PATHS[name]) for name in sorted(PATHS)}
    answers = {name: rows for name, rows in answers.items() if rows}
    needed = {"list_sessions", "usage_by_session"}
    if case.split("/")[0] in told_by_sources("states_no_tokens"):
        needed.remove("usage_by_session")
    assert needed <= answers.keys()
    text = json.dumps(answers, indent=1, ensure_ascii=False) + "\n"
    if request.config.getoption("--golden"):
        stored.write_text(text, "utf-8")
    assert json.loads(text) == json.loads(stored.read_text("utf-8"))


def test_most_queries_have_an_answer_that_says_something() -> None:
    answers = json.loads(ANSWERS.read_text("utf-8"))
    empty = {name for name, rows in answers.items() if not rows}
    assert empty <= {
        "unpriced_models",
        "forks",
        "issues_by_reason",
        "issues_by_version",
        "list_issues",
        "list_notes",
        *OF_GIT,
    }, empty


def _answer(connection: sqlite3.Connection, path: str) -> list[dict[str, object]]:
    query = sql.query(path)
    given = {**dict.fromkeys(query.parameters), **PARAMETERS.get(path, {})}
    rows = connection.execute(query.sql, given).fetchall()
    found = [{key: row[key] for key in row.keys() if key not in _LEFT_OUT} for row in rows]  # noqa: SIM118
    # Costs follow the prices of the library that is installed, and so does an order by cost.
    return sorted(found, key=repr) if query.stem.startswith("usage_by_") else found

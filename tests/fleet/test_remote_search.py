"""A search of the server finds what a local search finds, and says on which machine."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import Fleet
from tests.support.writing import SESSION, assistant, call, result, user, write

from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.search import search as local_search
from assoc_ingest.cli import cli
from assoc_ingest.errors import UsageError
from assoc_ingest.fleet.destination import DESTINATION
from assoc_ingest.fleet.search import search
from assoc_ingest.store.database import open_reader

_SAID = [
    user("The café deadlocks when the pool is empty", "u1"),
    assistant([call("t1", command="grep deadlock pool.py")], "a1", "u1"),
    user([result("t1", "pool.py: deadlocked twice")], "u2", "a1", 2),
    assistant("連接池在空的時候會死鎖。It is fixed: the pool waits", "a2", "u2", 3, id="msg_2"),
    user("The pool is fine now", "u3", "a2", 4),
]
QUERIES = (
    "pool", "deadlocks pool", '"pool is"', '"is pool"', "dead*", "pool -empty", "cafe", "Café",
    "fixed OR fine", "連接池", "死鎖", "鎖死", "empty pool fixed", "pool.py", "kind:prompt pool",
)  # fmt: skip


@pytest.fixture
def fleet(tmp_path: Path, database: Any, empty_database: str) -> Fleet:
    """A server to which one machine pushed a conversation."""
    made = Fleet(tmp_path, empty_database, database)
    write(tmp_path / "home", f"projects/-srv-shop/{SESSION}.jsonl", *_SAID)
    made.push("laptop", tmp_path / "home").close()
    return made


def _found(connection: Any, query: str, **given: Any) -> list[dict[str, Any]]:
    answer = search(connection, query, Filters(), limit=100, **given)
    return [hit.as_json() for hit in answer.hits]


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_messages_are_found(fleet: Fleet, tmp_path: Path, query: str) -> None:
    with closing(open_reader(tmp_path / "laptop.db")) as local, closing(fleet.central()) as central:
        here = local_search(local, query, limit=100, closest=False).hits
        there = _found(central, query)
        assert {hit.byte for hit in here if hit.what == "message"} == {hit["byte"] for hit in there}


def test_a_hit_has_what_a_local_hit_has_and_its_machine(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["search", "empty", "--json", *more, "--db", str(tmp_path / "laptop.db")]
        run = CliRunner().invoke(cli, arguments)
        assert run.exit_code == 0, run.output
        answers.append(json.loads(run.stdout)["items"][0])
    here, there = answers
    assert there.pop("origin") == "laptop"
    assert list(there) == list(here)
    assert {key: value for key, value in there.items() if key != "id"} == {
        key: value for key, value in here.items() if key != "id"
    }


def test_what_two_machines_have_is_one_hit(fleet: Fleet, tmp_path: Path) -> None:
    fleet.push("desktop", tmp_path / "home").close()
    with closing(fleet.central()) as central:
        assert [hit["origin"] for hit in _found(central, "deadlocks")] == ["laptop"]
        assert [hit["origin"] for hit in _found(central, "deadlocks", origin="desktop")] == [
            "desktop"
        ]
        assert _found(central, "deadlocks", origin="nobody") == []


def test_hits_are_printed_by_conversation(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    run = CliRunner().invoke(cli, ["search", "pool", "--remote", "--db", str(tmp_path / "none.db")])
    assert run.exit_code == 0, run.output
    assert "deadlocks" in run.stdout
    assert "(laptop)" in run.stdout


@pytest.mark.parametrize(
    "options", [["--remote", "--raw"], ["--origin", "x"], ["--remote", "--tool", "Bash"]]
)
def test_what_the_server_does_not_know_is_refused(
    fleet: Fleet, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    run = CliRunner().invoke(cli, ["search", "pool", *options])
    assert isinstance(run.exception, UsageError)

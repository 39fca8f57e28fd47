"""The server answers reports and lists as a local database does that has read all homes."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.machines import IDS, QUERIES, Fleet, demo, rows_of
from tests.support.writing import SESSION, assistant, call, result, user, write

from assoc_ingest import sql
from assoc_ingest.ask.refs import resolve
from assoc_ingest.ask.repositories import find_repository
from assoc_ingest.cli import cli
from assoc_ingest.errors import UsageError
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.questions.stats import GROUPS
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.upkeep.note import Change, write_note

pytestmark = pytest.mark.citus

GIVEN: dict[str, dict[str, object]] = {
    "reports/subagent_tree": {"session": "5e1f"},
    "reports/tool_use": {"session": "5e1f"},
    "lists/teams": {"cwd": "/nowhere"},
}


@pytest.fixture
def fleet(tmp_path: Path, database: Any, empty_database: str) -> Fleet:
    """A server that nobody pushed to."""
    return Fleet(tmp_path, empty_database, database)


def test_every_report_and_list_has_the_rows_of_the_machine(fleet: Fleet, tmp_path: Path) -> None:
    everything = {"all": 1, "limit": 1000, "days": 100_000}
    empty, other = set(QUERIES), {}
    machine = fleet.machine("laptop")
    machine.push(*demo(tmp_path / "homes"))
    write_note(machine.database, "5e1f0c9a", Change("A warning", "kept", "Frost", is_starred=True))
    machine.push_all()
    local = open_reader(machine.database)
    with closing(local), closing(fleet.central()) as central:
        for path, query in QUERIES.items():
            for more in ({}, everything, {"source": "claude", "since": "2026-03-03", "limit": 3}):
                given = {
                    name: value
                    for name, value in {**GIVEN.get(path, {}), **more}.items()
                    if name in query.parameters
                }
                here, there = rows_of(local, query, given), rows_of(central, query, given)
                if here != there:
                    other[path, str(given)] = (here, there)
                empty -= {path} if here else set()
    assert not other, other
    assert empty <= {"reports/unpriced_models", "reports/forks", "reports/issues_by_reason",
                     "reports/issues_by_version", "lists/issues",
                     "reports/tool_use"}, empty  # fmt: skip


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "EST5", "Europe/Berlin"])
def test_days_and_hours_are_those_of_who_asks(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    counts = {"input_tokens": 3, "output_tokens": 10}
    lines = [user("how", timestamp="2026-02-28T20:00:00.000Z")]
    lines += [
        assistant(f"so {at}", f"a{at}", "u1", id=f"msg_{at}", usage=counts, timestamp=at)
        for at in ("2026-02-28T20:00:00.000Z", "2026-03-01T03:00:00.000Z",
                   "2026-03-29T00:30:00.000Z", "2026-03-29T22:30:00.000Z")
    ]  # fmt: skip
    write(tmp_path / "home", f"projects/-srv-shop/{SESSION}.jsonl", *lines)
    answers = []
    local = fleet.push("laptop", tmp_path / "home")
    for at in ("UTC", zone):
        monkeypatch.setenv("TZ", at)
        time.tzset()
        with closing(fleet.central()) as central:
            for name in ("reports/activity_by_hour", "pages/usage"):
                query = sql.query(name)
                answers.append(rows_of(local, query, {}))
                assert rows_of(central, query, {}) == answers[-1], name
    local.close()
    assert answers[0] != answers[2], "the hours are others"
    assert answers[1] != answers[3], "the days are others"


_TOKENS = {"input_tokens": 3, "output_tokens": 10, "cache_read_input_tokens": 5}
_SAID = [
    user("how", "u1"),
    assistant([call("t1", command="make")], "a1", "u1", usage=_TOKENS),
    user([result("t1")], "u2", "a1", 2),
]
_MORE = assistant("so", "a2", "u2", 3, id="msg_2", usage=_TOKENS)
_SUMS = """
    select
        sum(message_count), sum(prompt_count), sum(tool_call_count), sum(input_tokens),
        sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens)
    from sessions
"""


@pytest.mark.parametrize("longer", ["one", "two"])
def test_what_two_machines_have_counts_once(fleet: Fleet, tmp_path: Path, longer: str) -> None:
    """As in one database that has read the homes of both; one of them went on alone."""
    for name in ("one", "two"):
        more = [_MORE] if name == longer else []
        write(tmp_path / name, f"projects/-srv-shop/{SESSION}.jsonl", *_SAID, *more)
        fleet.push(name, tmp_path / name).close()
    sync(tmp_path / "both.db", [tmp_path / "one", tmp_path / "two"])
    with closing(open_reader(tmp_path / "both.db")) as both, closing(fleet.central()) as central:
        for name in ("tool_use", "activity_by_hour"):
            query = sql.query(f"reports/{name}")
            assert rows_of(central, query, {}) == rows_of(both, query, {}), name
        assert central.execute(_SUMS).fetchone() == tuple(both.execute(_SUMS).fetchone())
        query = sql.query("lists/sessions")
        assert len(rows_of(central, query, {})) == 2, "each machine has its own"
        assert len(rows_of(both, query, {})) == 1


def test_clones_on_two_machines_are_one_repository_and_directories_are_not(
    fleet: Fleet, tmp_path: Path
) -> None:
    """Without a remote, /srv/notes of one machine may be anything on the other."""
    for number, name in enumerate(("one", "two")):
        clone = f"/home/{name}/shop"
        lines = [
            user("Push", "u1", cwd=clone),
            assistant([call("t1", command="git push origin main")], cwd=clone),
            user([result("t1", "To git@example.org:ada/shop\n")], "u2", "a1", 2, cwd=clone),
        ]
        write(tmp_path / name, f"projects/-home-{name}-shop/{SESSION[:-1]}{number}.jsonl", *lines)
        notes = user("Note", "n1", cwd="/srv/notes")
        write(tmp_path / name, f"projects/-srv-notes/{SESSION[:-2]}{number}f.jsonl", notes)
        fleet.push(name, tmp_path / name).close()
    query = sql.query("lists/repositories")
    with closing(fleet.central()) as central:
        rows = central.execute(query.sql, dict.fromkeys(query.parameters)).fetchall()
        assert sorted((row["repository"], row["session_count"]) for row in rows) == [
            ("ada/shop", 2), ("notes", 1), ("notes", 1)
        ]  # fmt: skip
        assert len(find_repository(central, "shop")) == 2


def test_a_branch_finds_the_conversations_in_which_anything_was_said_on_it(
    fleet: Fleet, tmp_path: Path
) -> None:
    """The branch of a session is the last one of several."""
    names = ["early", "between", "late"]
    machine = fleet.machine("laptop")
    for count in (2, 3):
        lines = [user(name, f"u{name}", gitBranch=name) for name in names[:count]]
        lines.insert(1, assistant("so", parent="uearly", usage=_TOKENS, gitBranch="early"))
        write(tmp_path / "home", f"projects/-srv-demo/{SESSION}.jsonl", *lines)
        machine.push(tmp_path / "home")
    with closing(open_reader(machine.database)) as here, closing(fleet.central()) as there:
        for asked in (here, there):
            for branch, count in [*((name, 1) for name in names), ("ear", 0)]:
                found = rows_of(asked, sql.query("lists/sessions"), {"branch": branch})
                assert len(found) == count, branch
            for cost, count in (("0.000001", 1), ("1.5", 0)):
                found = rows_of(asked, sql.query("lists/sessions"), {"min_cost": cost})
                assert len(found) == count, cost
        said = "select git_branch, written_bytes, output_price from response_costs"
        (answered,) = there.execute(said).fetchall()
        assert tuple(answered) == tuple(here.execute(said).fetchone())
        assert answered["git_branch"] == "early"


@pytest.mark.parametrize(
    "view", ["response_costs", "retention", "session_ends", "stated_by_model", "stated_sessions"]
)
def test_what_belongs_to_a_conversation_has_its_branch(
    fleet: Fleet, tmp_path: Path, view: str
) -> None:
    query = f"select session_key, git_branch, count(*) from {view} group by 1, 2 order by 1, 2"
    local = fleet.push("laptop", *demo(tmp_path / "homes"))
    with closing(local), closing(fleet.central()) as central:
        here, there = ([tuple(row) for row in asked.execute(query)] for asked in (local, central))
    assert sorted(map(repr, here)) == sorted(map(repr, there))
    assert any(branch for _, branch, _ in here)


def test_a_report_without_rows_names_the_parameters_that_left_none(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    asked = ["query", "usage_by_session", "-p", "since", "2099", "-p", "source", "claude"]
    said = []
    for more in ((), ("--remote",)):
        run = CliRunner().invoke(cli, [*asked, *more, "--db", str(tmp_path / "laptop.db")])
        assert run.exit_code == 0, run.output
        said.append(run.stderr)
    assert said[0] == said[1]
    assert "Without since 2099 (2099-01-01): " in said[1]


@pytest.mark.parametrize("longer", ["one", "two", "none"])
def test_what_was_pulled_is_not_missing_from_what_is_pushed_next(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longer: str
) -> None:
    """The own occurrence of a line stays the original, wherever the files lie."""
    monkeypatch.setenv(DESTINATION, fleet.destination)
    machines = {name: fleet.machine(name) for name in ("one", "two")}
    # Of the own file, the path sorts after the pulled one, and before it.
    for name, project in (("two", "-srv-market"), ("one", "-srv-shop")):
        more = [_MORE] if name == longer else []
        write(tmp_path / name, f"projects/{project}/{SESSION}.jsonl", *_SAID, *more)
        machines[name].push(tmp_path / name)
    before = _sums(fleet)
    for name in ("one", "two", "one"):
        run = CliRunner().invoke(cli, ["pull", "--db", str(machines[name].database)])
        assert run.exit_code == 0, run.output
        machines[name].push_all()
        assert _sums(fleet) == before


def _sums(fleet: Fleet) -> tuple[Any, ...]:
    """The sums of all sessions, and the least of their counts."""
    with closing(fleet.central()) as central:
        (least,) = central.execute(
            "select min(least(message_count, prompt_count, tool_call_count, input_tokens))"
            " from sessions"
        ).fetchone()
        return (*central.execute(_SUMS).fetchone(), least)


def test_a_report_is_asked_for_on_the_command_line(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["query", "usage_by_session", "-p", "project", "fernhill", "--json", *more]
        run = CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "laptop.db")])
        assert run.exit_code == 0, run.output
        answers.append(json.loads(run.stdout))
    here, there = answers
    assert here["items"] == there["items"] != []
    assert there["fresh"]["is_complete"]


@pytest.mark.parametrize("by", [*GROUPS, "tool"])
def test_usage_of_the_server_is_that_of_the_machine(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """With the estimates and, by day, the rows of each model."""
    monkeypatch.setenv(DESTINATION, fleet.destination)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["stats", "--by", by, "--json", *more, "--since", "2026-02-01"]
        arguments += ["--split", "model"] if by == "day" else []
        run = CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "laptop.db")])
        assert run.exit_code == 0, run.output
        answer = json.loads(run.stdout)
        answers.append((answer["totals"], answer["period"], _comparable(answer["items"])))
    assert answers[0] == answers[1]
    assert answers[0][2]


@pytest.mark.parametrize("by", ["day", "repository"])
def test_the_recap_of_the_server_is_that_of_the_machine(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """The server names lines by their byte; `show` opens the same ones here."""
    monkeypatch.setenv(DESTINATION, fleet.destination)
    database = tmp_path / "laptop.db"
    local = fleet.push("laptop", *demo(tmp_path / "homes"))
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["recap", "--since", "2026-01-01", "--by", by, "--json", "-n", "0", *more]
        run = CliRunner().invoke(cli, [*arguments, "--db", str(database)])
        assert run.exit_code == 0, run.output
        answer = json.loads(run.stdout)
        said = [item["outcome"] for item in answer["items"] if item["outcome"]]
        said += [commit for item in answer["items"] for commit in item["commits"]]
        lines = [resolve(local, one.pop("ref")) for one in said]
        answers.append((answer["items"], answer["open"], answer["cost_usd"], lines))
    local.close()
    assert answers[0] == answers[1]
    assert len(answers[0][3]) > 3


def test_the_command_prints_of_every_report_what_it_prints_locally(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command asks more than the query does: how many rows there are, and how fresh."""
    monkeypatch.setenv(DESTINATION, fleet.destination)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    different = {}
    for name in (query.name for query in QUERIES.values()):
        answers = []
        for more in ((), ("--remote",)):
            given = _ON_THE_LINE.get(name, ())
            arguments = ["query", name, "--json", *given, *more]
            run = CliRunner().invoke(cli, [*arguments, "--db", str(tmp_path / "laptop.db")])
            assert more or run.exit_code == 0, run.exception
            answer = json.loads(run.stdout) if run.exit_code == 0 else {"items": run.exception}
            answers.append((answer.get("total"), _comparable(answer["items"])))
        if answers[0] != answers[1]:
            different[name] = answers
    assert not different


@pytest.mark.parametrize("name", sorted(sql.queries("lists")))
def test_a_list_of_the_server_is_that_of_the_machine(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    machine = fleet.machine("laptop")
    begun = assistant("Begun", stop_reason=None, usage={"input_tokens": 3, "output_tokens": 8})
    write(tmp_path / "begun", f"projects/-srv-begun/{SESSION}.jsonl", user("Go"), begun)
    machine.push(*demo(tmp_path / "homes"), tmp_path / "begun")
    write_note(machine.database, "5e1f0c9a", Change("A warning", "kept", "Frost", is_starred=True))
    machine.push_all()
    answers = []
    for more in ((), ("--remote",)):
        arguments = ["list", name, "--json", "--all", "-n", "0", *more]
        run = CliRunner().invoke(cli, [*arguments, "--db", str(machine.database)])
        assert run.exit_code == 0 or name == "issues", run.exception  # 1: there are none
        answer = json.loads(run.stdout)
        if name == "notes":
            assert all((row["ref"] is None) == bool(more) for row in answer["items"])
            answer["items"] = [row | {"ref": None} for row in answer["items"]]
        answers.append((answer["total"], answer["hidden"], _comparable(answer["items"])))
    assert answers[0] == answers[1]


_ON_THE_LINE = {name: ("-p", "session", "5e1f") for name in ("subagent_tree", "tool_use")}


def _comparable(items: Any) -> Any:
    """Rows without ids and with rounded costs, in one order: equal ones come in any."""
    if not isinstance(items, list):
        return repr(items)
    return sorted(
        repr({
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in item.items()
            if name not in IDS
        })
        for item in items
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(sql.OF_ONE_MACHINE))
def test_what_is_about_one_machine_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DESTINATION, "host=/nowhere")
    run = CliRunner().invoke(cli, ["query", name, "--remote"])
    assert isinstance(run.exception, UsageError)
    assert "without --remote" in str(run.exception)


@pytest.mark.parametrize("path", ["reports/errors", "reports/error_resolutions"])
def test_calls_are_joined_with_their_messages_without_a_loop(fleet: Fleet, path: str) -> None:
    """PostgreSQL expects few messages of which it cannot know how many are no copies."""
    query = sql.query(path)
    with closing(fleet.central()) as central:
        rows = central.execute(f"explain {query.sql}", dict.fromkeys(query.parameters)).fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "Join" in plan
    assert "Nested Loop" not in plan


def test_a_number_that_is_too_large_is_as_large_as_can_be(fleet: Fleet) -> None:
    with closing(fleet.central()) as central:
        query = sql.query("reports/recent_sessions")
        for days in ("9" * 30, "1e400", "-1", "1.5"):
            assert rows_of(central, query, {"days": days}) == []
        query = sql.query("reports/errors")
        for limit in ("9" * 30, "1e400", "-1", "1.5"):
            assert rows_of(central, query, {"limit": limit}) == []

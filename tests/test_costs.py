"""A cost follows from tokens and prices, and nothing is guessed or overwritten."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from docs import price_table
from tests.support.shell import Shell

from assoc_ingest import sql
from assoc_ingest.ask.filters import Filters
from assoc_ingest.questions.question import Reader, named
from assoc_ingest.store.database import open_reader, writing
from assoc_ingest.sync import prices
from assoc_ingest.sync.prices import library_prices, refresh_prices
from assoc_ingest.sync.run import sync

SESSION = "0b7c2f4e-1111-4222-8333-444455556666"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "projects" / "-srv-demo" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "assoc.db"


def line(number: int, model: str, timestamp: str, usage: dict[str, object]) -> str:
    return json.dumps(
        {
            "type": "assistant",
            "uuid": f"u{number}",
            "sessionId": SESSION,
            "timestamp": timestamp,
            "requestId": f"req_{number}",
            "message": {
                "id": f"msg_{number}",
                "model": model,
                "content": [{"type": "text", "text": "done"}],
                "stop_reason": "end_turn",
                "usage": usage,
            },
        }
    )


def costs(database: Path, transcript: Path, *lines: str) -> list[int | None]:
    transcript.write_text("\n".join(lines) + "\n")
    sync(database, [transcript.parents[2]])
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select cost_microusd from response_costs order by timestamp")
        return [cost for (cost,) in rows]


DAY = "2026-01-20T10:00:00.000Z"


@pytest.mark.slow
def test_a_response_costs_what_its_tokens_cost(database: Path, transcript: Path) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 100,
        "cache_read_input_tokens": 10_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 20},
        "server_tool_use": {"web_search_requests": 2},
    }
    found = costs(database, transcript, line(1, "claude-haiku-4-5-20251001", DAY, usage))
    # 1 $ in, 5 $ out, 0.10 $ read, 1.25 $ and 2 $ written, 10 $ for a thousand searches
    assert found == [1000 + 500 + 1000 + 250 + 40 + 20_000]


def test_a_model_that_nobody_knows_has_no_cost(database: Path, transcript: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    assert costs(database, transcript, line(1, "invented-model-9", DAY, usage)) == [None]
    with sqlite3.connect(database) as connection:
        rows = connection.execute(sql.query("reports/unpriced_models").sql).fetchall()
        assert [row[:2] for row in rows] == [("invented-model-9", 1)]
        (day,) = connection.execute("select cost_usd, unpriced from usage_by_day").fetchall()
        assert day == (None, 1)


def test_a_large_request_has_its_own_price_until_the_day_it_was_dropped(
    database: Path, transcript: Path
) -> None:
    small, large = {"input_tokens": 100_000}, {"input_tokens": 200_001}
    found = costs(
        database,
        transcript,
        line(1, "claude-opus-4-6", "2026-03-12T23:59:59.000Z", small),
        line(2, "claude-opus-4-6", "2026-03-12T23:59:59.500Z", large),
        line(3, "claude-opus-4-6", "2026-03-13T00:00:00.000Z", large),
    )
    assert found == [500_000, 2_000_010, 1_000_005]


@pytest.mark.slow
def test_a_price_that_the_user_changed_stays(database: Path, transcript: Path) -> None:
    usage = {"input_tokens": 1000}
    costs(database, transcript, line(1, "claude-haiku-4-5", DAY, usage))
    with sqlite3.connect(database) as connection:
        connection.execute("update prices set input = 7000000 where model = 'claude-haiku-4-5'")
    with writing(database) as connection:
        refresh_prices(connection)
        assert connection.execute("select input, origin from prices").fetchall() == [
            (7_000_000, "user")
        ]
        assert connection.execute("select cost_microusd from response_costs").fetchone() == (7000,)


def test_a_price_that_the_user_added_counts(database: Path, transcript: Path) -> None:
    costs(database, transcript, line(1, "house-model", DAY, {"output_tokens": 10}))
    with sqlite3.connect(database) as connection:
        connection.execute(
            "insert into prices (model, input, output) values ('house-model', 0, 3000000)"
        )
    with writing(database) as connection:
        refresh_prices(connection)
        assert connection.execute("select cost_microusd from response_costs").fetchone() == (30,)


# -- prices that a person sets -------------------------------------------------------------------

KNOWN, HOUSE = "claude-haiku-4-5", "house-model"


@pytest.fixture
def priced(transcript: Path, shell: Shell) -> Shell:
    """A database with responses of a model that the library knows, and of one that it does not."""
    usage = {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 400}
    lines = [line(1, KNOWN, DAY, usage), line(2, HOUSE, DAY, usage)]
    transcript.write_text("\n".join(lines) + "\n")
    sync(shell.database, [transcript.parents[2]])
    return shell


def cost_of(shell: Shell, model: str) -> object:
    with closing(open_reader(shell.database)) as connection:
        query = "select cost_microusd from response_costs where model = ?"
        return connection.execute(query, (model,)).fetchone()[0]


def test_a_price_is_set_in_dollars_listed_and_removed(priced: Shell) -> None:
    assert [row["input"] for row in priced.items("price", "list")] == [1.0, None]
    assert cost_of(priced, HOUSE) is None
    assert priced("price", "set", HOUSE, "--input", "1.25", "--output", "10") == 0
    assert cost_of(priced, HOUSE) == 1250 + 1000 + 500  # what is cached costs as other input
    options = ["--input", "1.25", "--output", "10", "--cache-read", "0.125", "--cache-write", "2"]
    (row,) = priced.items("price", "set", HOUSE, *options)
    assert (row["input"], row["output"], row["cache_read"]) == (1.25, 10.0, 0.125)
    assert (row["cache_write"], row["origin"], row["valid_from"]) == (2.0, "user", None)
    assert cost_of(priced, HOUSE) == 1250 + 1000 + 50
    assert [row["origin"] == "user" for row in priced.items("price", "list")] == [False, True]
    assert priced("price", "remove", HOUSE) == 0
    assert cost_of(priced, HOUSE) is None
    assert priced("query", "unpriced_models") == 0
    assert HOUSE in priced.out


def test_the_list_price_counts_again_when_ones_own_is_removed(priced: Shell) -> None:
    before = cost_of(priced, KNOWN)
    assert priced("price", "set", KNOWN, "--input", "0", "--output", "0") == 0
    assert cost_of(priced, KNOWN) == 0
    with writing(priced.database) as connection:
        refresh_prices(connection)
    assert cost_of(priced, KNOWN) == 0, "a sync changes no price of the user"
    (row,) = priced.items("price", "remove", KNOWN)
    assert (row["input"], row["output"]) == (1.0, 5.0)
    assert cost_of(priced, KNOWN) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", HOUSE, "--input", "1"), "Missing option '--output'"),
        (("set", HOUSE, "--input", "nan", "--output", "1"), "give dollars per million tokens"),
        (("set", HOUSE, "--input", "-1", "--output", "1"), "from 0 to 100,000, not -1."),
        (("set", HOUSE, "--input", "cheap", "--output", "1"), "'cheap' is not a valid float."),
        (("set", " ", "--input", "1", "--output", "1"), "Give the name of a model."),
        (("remove", KNOWN), f"You have set no price for '{KNOWN}'."),
    ],
)
def test_what_cannot_be_a_price_is_refused_and_changes_nothing(
    words: tuple[str, ...], said: str, priced: Shell
) -> None:
    before = priced.items("price", "list")
    assert priced("price", *words) in (1, 2)
    assert said in priced.err
    assert priced.items("price", "list") == before


def test_a_price_of_a_model_that_never_answered_is_kept_with_a_note(priced: Shell) -> None:
    assert priced("price", "set", "house-modle", "--input", "1", "--output", "2") == 0
    assert "No response is by house-modle so far." in priced.err


def test_a_price_alone_makes_no_database(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "none.db"
    monkeypatch.setenv("ASSOC_INGEST_DB", str(database))
    assert shell("price", "set", HOUSE, "--input", "1", "--output", "2") == 4
    assert not database.exists()


def test_a_newer_library_replaces_what_an_older_one_said(database: Path, transcript: Path) -> None:
    costs(database, transcript, line(1, "claude-haiku-4-5", DAY, {"input_tokens": 1000}))
    with writing(database) as connection:
        connection.execute("update prices set origin = 'genai-prices 0.0', input = 1")
        refresh_prices(connection)
        ((price, origin),) = connection.execute("select input, origin from prices").fetchall()
    assert price == 1_000_000
    assert origin.startswith("genai-prices ")
    assert origin != "genai-prices 0.0"


def test_a_model_without_a_price_is_looked_up_once_for_each_version_of_the_library(
    database: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(prices, "library_prices", lambda model: asked.append(model) or [])
    costs(database, transcript, line(1, "house-model", DAY, {"output_tokens": 10}))
    with writing(database) as connection:
        refresh_prices(connection)
        assert asked == ["house-model"]
        monkeypatch.setattr(prices, "is_installed", lambda origin: False)
        monkeypatch.setattr(prices, "installed", lambda: "genai-prices 99.0")
        refresh_prices(connection)
        assert asked == ["house-model", "house-model"]
        monkeypatch.setattr(prices, "library_prices", one_price)
        monkeypatch.setattr(prices, "installed", lambda: "genai-prices 99.1")
        refresh_prices(connection)
        assert connection.execute("select cost_microusd from response_costs").fetchone() == (30,)
        assert connection.execute("select count(*) from unpriced").fetchone() == (0,)


def test_which_version_is_installed_is_not_read_again_for_each_line(
    database: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs(database, transcript, line(1, "claude-haiku-4-5", DAY, {"input_tokens": 1000}))
    assert prices.is_installed(prices.installed())
    assert not prices.is_installed("genai-prices 99.0")
    monkeypatch.setattr(prices, "installed", lambda: pytest.fail("it was read"))
    with writing(database) as connection:
        refresh_prices(connection)
        connection.execute("insert into unpriced (model, origin) values ('x', 'genai-prices 99.0')")
        monkeypatch.setattr(prices, "_of_table", lambda: None)
        with pytest.raises(pytest.fail.Exception):  # one of them was asked of another version
            refresh_prices(connection)


def test_where_nobody_may_look_the_known_version_is_taken_for_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "stat", refused)
    assert prices.is_installed("genai-prices 99.0")


def one_price(model: str) -> list[prices.Price]:
    """Return the price of a model as a newer library might know it."""
    return [prices.Price("", 0, 0, 3_000_000, None, None, None, None)]


@pytest.mark.skipif(
    prices._table()["origin"] != prices.installed(), reason="the table is of another version"
)
def test_the_table_has_what_the_library_says() -> None:
    assert price_table.FILE.read_text("utf-8") == price_table.table()


def test_a_model_of_the_table_is_priced_without_the_library(
    database: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "library_prices", lambda model: pytest.fail("it was imported"))
    monkeypatch.setattr(prices, "is_installed", lambda origin: origin == prices._table()["origin"])
    costs(database, transcript, line(1, "claude-haiku-4-5", DAY, {"input_tokens": 1000}))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("select input, origin from prices").fetchall() == [
            (1_000_000, prices._table()["origin"])
        ]


def test_a_library_of_another_version_than_the_table_is_asked(
    database: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "library_prices", one_price)
    monkeypatch.setattr(prices, "is_installed", lambda origin: False)
    monkeypatch.setattr(prices, "installed", lambda: "genai-prices 99.0")
    costs(database, transcript, line(1, "claude-haiku-4-5", DAY, {"output_tokens": 10}))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("select output, origin from prices").fetchall() == [
            (3_000_000, "genai-prices 99.0")
        ]


def test_the_library_knows_what_it_does_not_know() -> None:
    assert list(library_prices("no-such-model-at-all")) == []


def test_the_ways_of_counting_differ_by_what_they_repeat(database: Path, transcript: Path) -> None:
    first = line(1, "claude-haiku-4-5", DAY, {"input_tokens": 10, "output_tokens": 1})
    later = line(1, "claude-haiku-4-5", DAY, {"input_tokens": 10, "output_tokens": 5})
    lines = first + "\n" + later.replace('"u1"', '"u2"') + "\n"
    copy = transcript.with_name(f"{SESSION.replace('0b7c', '1c8d')}.jsonl")
    copy.write_text(lines)
    costs(database, transcript, lines.rstrip())
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            sql.query("reports/usage_reconciliation").sql, {"source": "claude"}
        ).fetchall()
        duplicates = connection.execute(
            sql.query("reports/usage_duplicates").sql, {"limit": None}
        ).fetchall()
    assert [row[1:5] for row in rows] == [
        ("every line", 4, 40, 12),
        ("once in each file", 2, 20, 10),
        ("once, without subagents", 1, 10, 5),
        ("once, without agents that have no file", 1, 10, 5),
        ("once", 1, 10, 5),
    ]
    assert [row[3:7] for row in duplicates] == [(2, 4, 5, 7)]


@pytest.mark.slow
def test_the_list_of_sessions_says_what_each_cost_however_many_there_are(
    database: Path, transcript: Path
) -> None:
    usage: dict[str, object] = {"input_tokens": 1_000_000, "output_tokens": 0}
    costs(database, transcript, line(1, "claude-haiku-4-5-20251001", DAY, usage))
    priced = transcript.read_text()
    for number in range(20):
        key = f"{number:08d}{SESSION[8:]}"
        text = priced.replace(SESSION, key).replace("req_1", key).replace('"u1"', f'"{key}"')
        text = text.replace("msg_1", f"msg_{key}")
        more = line(2, "no-such-model", DAY, usage).replace("msg_2", f"of-{key}") + "\n"
        transcript.with_name(f"{key}.jsonl").write_text(text + more * (number % 2))
    sync(database, [transcript.parents[2]])
    asked: list[int] = []
    with closing(open_reader(database)) as connection:
        for limit in (1, 100):
            statements: list[str] = []
            connection.set_trace_callback(statements.append)
            reader = Reader(connection, limit)
            listed = named("list").ask(reader, what="sessions", filters=Filters()).items
            connection.set_trace_callback(None)
            asked.append(sum(statement.startswith("--") for statement in statements))
    found = {(row["cost_usd"], row["unpriced"], row["resume"] is None) for row in listed}
    assert len(listed) == 21
    assert found == {(1.0, 0, False), (1.0, 1, False)}
    assert 0 < asked[0] == asked[1], "no query for each row"

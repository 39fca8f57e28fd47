"""A cost follows from tokens and prices, and nothing is guessed or overwritten."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assoc_ingest import sql
from assoc_ingest.ask.answer import Wanted
from assoc_ingest.ask.filters import Filters
from assoc_ingest.ask.output import Format
from assoc_ingest.ask.queries import write_list
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
        with pytest.raises(pytest.fail.Exception):  # one of them was asked of another version
            refresh_prices(connection)


def one_price(model: str) -> list[prices.Price]:
    """Return the price of a model as a newer library might know it."""
    return [prices.Price("", 0, 0, 3_000_000, None, None, None, None)]


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
    database: Path, transcript: Path, capsys: pytest.CaptureFixture[str]
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
        for limit in (1, 0):
            statements: list[str] = []
            connection.set_trace_callback(statements.append)
            write_list(connection, "sessions", Format("json", wanted=Wanted()), Filters(), limit)
            connection.set_trace_callback(None)
            asked.append(sum(statement.startswith("--") for statement in statements))
            listed = json.loads(capsys.readouterr().out)["items"]
    found = {(row["cost_usd"], row["unpriced"], row["resume"] is None) for row in listed}
    assert len(listed) == 21
    assert found == {(1.0, 0, False), (1.0, 1, False)}
    assert 0 < asked[0] == asked[1], "no query for each row"

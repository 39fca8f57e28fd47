"""`stats` adds up to its total, whatever is left out, and says where a number is a lower bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.shell import Shell
from tests.support.writing import assistant, user, write

FIRST, SECOND = ("aaaaaaaa-1111-4222-8333-444455556666", "bbbbbbbb-1111-4222-8333-444455556666")
TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def answer(number: int, session: str, model: str, day: str, **facts: object) -> dict[str, Any]:
    line = assistant(f"answer {number}", f"a{number}", sessionId=session,
                     timestamp=f"{day}T10:00:00.000Z", requestId=f"req_{number}")  # fmt: skip
    line["message"] |= {
        "id": f"msg_{number}", "model": model, "stop_reason": "end_turn",
        "usage": {"input_tokens": 1000 * number, "output_tokens": 100_000},
    } | facts  # fmt: skip
    return line


@pytest.fixture
def used(shell: Shell, tmp_path: Path) -> Shell:
    """Two projects and two models on three days of two months; nobody knows one model's price."""
    home = tmp_path / "home"
    write(
        home, f"projects/-srv-demo/{FIRST}.jsonl",
        user("begin", "u1", sessionId=FIRST, cwd="/srv/demo"),
        answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05"),
        answer(2, FIRST, "claude-sonnet-4-5", "2026-01-11"),
        answer(3, FIRST, "unheard-of", "2026-01-12"),
    )  # fmt: skip
    write(
        home, f"projects/-srv-other/{SECOND}.jsonl",
        user("begin", "u2", sessionId=SECOND, cwd="/srv/other"),
        answer(4, SECOND, "claude-sonnet-4-5", "2026-02-01"),
    )  # fmt: skip
    assert shell("sync", str(home)) == 0
    return shell


def stats(used: Shell, *arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    assert used("stats", *arguments, "--json") == 0, used.err
    found = json.loads(used.out)
    return found["items"], found["totals"]


OPTIONS = {
    (): 4,
    ("--project", "demo"): 3,
    ("--session", "bbbb"): 1,
    ("--model", "unheard-of"): 1,
    ("--since", "2026-01-06", "--until", "2026-01-12"): 2,
    ("--since", "2030-01-01"): 0,
}


@pytest.mark.parametrize("by", ["day", "week", "month", "model", "project", "session"])
@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_the_rows_add_up_to_the_total(used: Shell, by: str, options: tuple[str, ...]) -> None:
    rows, total = stats(used, "--by", by, *options)
    for name in (*TOKENS, "responses", "unpriced"):
        assert sum(row[name] for row in rows) == total[name], name
    assert sum(row["cost_usd"] or 0 for row in rows) == pytest.approx(total["cost_usd"] or 0)
    assert total["responses"] == OPTIONS[options]


def test_weeks_begin_on_monday_and_months_are_of_the_calendar(used: Shell) -> None:
    weeks, _ = stats(used, "--by", "week")
    assert [(row["week_of"], row["model"]) for row in weeks] == [
        ("2026-01-26", "claude-sonnet-4-5"),
        ("2026-01-12", "unheard-of"),
        ("2026-01-05", "claude-sonnet-4-5"),
    ]
    months, _ = stats(used, "--by", "month", "--model", "claude-sonnet-4-5")
    assert [(row["month"], row["responses"]) for row in months] == [("2026-02", 1), ("2026-01", 2)]


def test_the_table_ends_with_a_total_and_marks_lower_bounds(used: Shell) -> None:
    assert used("stats", "--by", "session") == 0
    header, _, first, second, rule, total = used.out.splitlines()
    assert "cost usd" in header
    assert set(rule) == {"-", " "}
    assert first.split()[1] == "≥3.01"
    assert second.split()[1] == "1.51"
    assert total.split()[:2] == ["total", "≥4.52"]
    ends = {line.index(amount) + len(amount) for line, amount in
            ((first, "3.01"), (second, "1.51"), (total, "4.52"))}  # fmt: skip
    assert len(ends) == 1, "costs are aligned on the point"
    assert "≥ is at least: 1 response without a known price." in used.err
    assert used("stats", "--project", "other") == 0
    assert "≥" not in used.out + used.err


def test_an_output_that_never_ended_is_a_lower_bound(shell: Shell, tmp_path: Path) -> None:
    line = answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05", stop_reason=None)
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", line)
    shell("sync", str(tmp_path / "home"))
    assert shell("stats") == 0
    assert "1 response never stated a final count" in shell.err


def test_calls_of_tools_have_a_total_too(used: Shell) -> None:
    rows, total = stats(used, "--by", "tool")
    assert rows == []
    assert total["calls"] == 0
    assert used("stats", "--by", "tool", "--model", "x") == 2
    assert "--model does not apply to --by tool." in used.err


def test_what_names_nothing_is_said(used: Shell) -> None:
    assert used("stats", "--since", "2030-01-01") == 0
    assert "Nothing was used" in used.err
    assert used("stats", "--session", "ffff") == 1
    assert used("stats", "--since", "soon") == 2

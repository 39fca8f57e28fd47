"""`stats` adds up to its total, whatever is left out, and says where a number is a lower bound."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.shell import Shell
from tests.support.web import Site
from tests.support.writing import SESSION, agent, assistant, call, result, user, write

from assoc_ingest import sql, terminal
from assoc_ingest.ask import times
from assoc_ingest.questions.stats import GROUPS

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
    weeks, _ = stats(used, "--by", "week", "--split", "model")
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
    assert first.split()[1] == "≥3.00"
    assert second.split()[1] == "1.51"
    assert total.split()[:2] == ["total", "≥4.52"]
    ends = {line.index(amount) + len(amount) for line, amount in
            ((first, "3.00"), (second, "1.51"), (total, "4.52"))}  # fmt: skip
    assert len(ends) == 1, "costs are aligned on the point"
    assert "≥ is at least: 1 response without a known price." in used.err
    assert used("stats", "--project", "other") == 0
    assert "≥" not in used.out + used.err


BEGUN: dict[str, Any] = {
    "stop_reason": None, "usage": {"input_tokens": 3, "output_tokens": 8},
}  # fmt: skip


def test_an_output_that_never_ended_is_a_lower_bound_wherever_it_is_shown(
    shell: Shell, tmp_path: Path
) -> None:
    line = answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05", **BEGUN)
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", line)
    shell("sync", str(tmp_path / "home"))
    assert shell("stats") == 0
    row, _, total = (line.split() for line in shell.out.splitlines()[2:])
    assert row[1:4] == total[1:4] == ["≥0.00", "3", "≥8"]
    assert "1 response never stated a final count" in shell.err
    assert shell("show", FIRST) == 0
    assert "≥8 out · cost ≥$0.00" in " ".join(shell.out.split())
    assert shell("list", "sessions") == 0
    assert "≥0.00" in shell.out
    for report in ("usage_by_session", "longest_sessions", "projects_overview"):
        assert shell("query", report, "--table") == 0
        assert "≥8" in shell.out, report
        assert [item["is_lower_bound"] for item in shell.items("query", report)] == [1]
    assert shell.items("list", "sessions")[0]["is_lower_bound"] == 1
    assert shell("show", FIRST, "--json") == 0
    assert json.loads(shell.out)["session"]["is_lower_bound"] is True
    rows, total = stats(shell)
    assert [rows[0]["is_lower_bound"], total["is_lower_bound"]] == [1, True]


@pytest.fixture
def measured(shell: Shell, tmp_path: Path) -> Callable[[int, list[object]], dict[str, Any]]:
    """Return what a session says that has a partial answer with these blocks, after complete ones.

    Each complete answer is of a hundred letters and fifty tokens.
    """

    def say(complete: int, content: list[object]) -> dict[str, Any]:
        done: dict[str, Any] = {
            "usage": {"input_tokens": 1, "output_tokens": 50},
            "content": [{"type": "text", "text": "x" * 100}],
        }
        lines = [
            answer(number, FIRST, "claude-sonnet-4-5", "2026-01-05", **done)
            for number in range(complete)
        ]
        begun = answer(99, SECOND, "claude-sonnet-4-5", "2026-01-05", **BEGUN, content=content)
        write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", *lines)
        write(tmp_path / "home", f"projects/-srv-demo/{SECOND}.jsonl", begun)
        assert shell("sync", str(tmp_path / "home")) == 0
        assert shell("show", SECOND, "--json") == 0
        session = json.loads(shell.out)["session"]
        assert session["output_tokens"] == 8, "an estimate never takes the place of what is stated"
        return dict(session)

    return say


Measured = Callable[[int, list[object]], dict[str, Any]]


def test_what_a_partial_answer_wrote_is_estimated_from_complete_ones(
    measured: Measured, shell: Shell
) -> None:
    session = measured(20, [{"type": "text", "text": "é" * 2000}])
    assert session["estimated_output_tokens"] == 2000, "two bytes for each letter"
    assert session["estimated_cost_usd"] == pytest.approx(session["cost_usd"] + 0.0299, abs=0.0002)
    assert shell("show", SECOND) == 0
    assert "≥8 out (~2.0 k) · cost ≥$0.00 (~$0.03)" in " ".join(shell.out.split())
    assert shell("stats") == 0
    assert "≥1.0 k out (~3.0 k), ≥$0.01 (~$0.05)." in shell.err
    for by in ("day", "week", "month", "session", "project", "model"):
        rows, total = stats(shell, "--by", by)
        assert total["estimated_output_tokens"] == 3000
        told = [row for row in rows if row["partial"]]
        assert len(told) == 1
        assert told[0]["estimated_output_tokens"] == told[0]["output_tokens"] - 8 + 2000
        extra = told[0]["estimated_cost_usd"] - told[0]["cost_usd"]
        assert extra == pytest.approx(0.0299, abs=0.0002)
        others = [row for row in rows if not row["partial"]]
        assert all(row["estimated_cost_usd"] is None for row in others), "they are known"
        assert shell("stats", "--by", by) == 0
        assert re.search(r"estimated cost usd", shell.out)
        assert "~0.0" in shell.out


def test_a_list_has_an_estimate_beside_each_lower_bound(measured: Measured, shell: Shell) -> None:
    session = measured(20, [{"type": "text", "text": "é" * 2000}])
    partial, complete = shell.items("list", "sessions")
    if partial["session_key"] != SECOND:
        partial, complete = complete, partial
    assert (partial["output_tokens"], partial["estimated_output_tokens"]) == (8, 2000)
    assert partial["estimated_cost_usd"] == session["estimated_cost_usd"]
    assert complete["estimated_output_tokens"] is None, "it is known"
    assert complete["estimated_cost_usd"] is None
    assert shell("list", "sessions", "--table") == 0
    (row,) = (line for line in shell.out.splitlines() if line.startswith("bbbbbbbb"))
    assert re.search(r"≥0\.00 +~0\.03 .* ≥8 +~2\.0 k ", row)
    for address in ("/-/assoc", f"/{shell.database.stem}/-/sessions"):
        page = Site(shell.database).get(address)
        estimates = re.findall(r"≥\$\S+ \((\S+)\)", page.words)
        # The first page begins with a recap, which has the sums.
        assert [one for one in estimates if one != "~$0.05"] == ["~$0.03"], address


@pytest.mark.parametrize("is_other_measured", [False, True])
def test_a_list_has_no_estimate_where_a_response_cannot_be_measured(
    measured: Measured, shell: Shell, tmp_path: Path, is_other_measured: bool
) -> None:
    hidden: list[object] = [{"type": "redacted_thinking", "data": "A" * 1000}]
    text: list[object] = [{"type": "text", "text": "x" * 1000}]
    measured(20, text if is_other_measured else hidden)
    if is_other_measured:
        begun = answer(98, SECOND, "claude-sonnet-4-5", "2026-01-06", **BEGUN, content=hidden)
        path = tmp_path / "home" / f"projects/-srv-demo/{SECOND}.jsonl"
        with path.open("a") as file:
            file.write(json.dumps(begun) + "\n")
        assert shell("sync", str(tmp_path / "home")) == 0
        _, total = stats(shell, "--session", SECOND)
        assert total["estimated_output_tokens"] == 500 + 8, "at least that, as a total says"
    rows = {row["session_key"]: row for row in shell.items("list", "sessions")}
    assert rows[SECOND]["is_lower_bound"] == 1
    assert rows[SECOND]["estimated_output_tokens"] is None
    assert rows[SECOND]["estimated_cost_usd"] is None


@pytest.mark.parametrize("is_in_two_homes", [False, True])
def test_the_tokens_of_a_subagent_have_an_estimate(
    shell: Shell, tmp_path: Path, is_in_two_homes: bool
) -> None:
    done: dict[str, Any] = {
        "usage": {"input_tokens": 1, "output_tokens": 50},
        "content": [{"type": "text", "text": "x" * 100}],
    }
    lines = [answer(n, FIRST, "claude-sonnet-4-5", "2026-01-05", **done) for n in range(20)]
    text = [{"type": "text", "text": "x" * 4000}]
    homes = [tmp_path / name for name in ("home", "other")[: 1 + is_in_two_homes]]
    for number, home in enumerate(homes):
        begun = answer(90 + number, FIRST, "claude-sonnet-4-5", "2026-01-05", **BEGUN, content=text)
        write(home, f"projects/-srv-demo/{FIRST}.jsonl", *lines)
        place = f"projects/-srv-demo/{FIRST}/subagents/agent-a1.jsonl"
        write(home, place, agent("a1", user("survey", "s1")), agent("a1", begun))
    assert shell("sync", *map(str, homes)) == 0
    rows = shell.items("list", "subagents", "--all")
    assert [row["is_lower_bound"] for row in rows] == [1] * len(homes)
    expected = None if is_in_two_homes else 3 + 2000
    assert [row["estimated_tokens"] for row in rows] == [expected] * len(homes)
    assert [row["tokens"] for row in rows] == [3 + 8] * len(homes)
    assert shell("list", "subagents", "--table", "--all") == 0
    is_shown = re.search(r"≥11 +~2.0 k", shell.out) is not None
    assert is_shown is not is_in_two_homes


def test_what_is_stated_counts_where_the_estimate_is_less(measured: Measured) -> None:
    session = measured(20, [{"type": "text", "text": "short"}])
    assert session["estimated_output_tokens"] == 8


def test_there_is_no_estimate_without_complete_answers(measured: Measured, shell: Shell) -> None:
    session = measured(19, [{"type": "text", "text": "x" * 1000}])
    assert session["estimated_output_tokens"] is None
    assert shell("show", SECOND) == 0
    assert "~" not in shell.out


def signed(text: str, **more: object) -> dict[str, object]:
    return {"type": "thinking", "thinking": text, **more}


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (signed("x" * 1000), 500),
        (signed("", signature="A" * (260 + 4000)), 1500),
        (signed("x" * 10, signature="A" * (260 + 4000)), 1500),
        (signed(""), None),
        ({"type": "redacted_thinking", "data": "A" * 1000}, None),
        ({"type": "tool_use", "id": "t1", "name": "Read", "input": {"a": "x" * 292}}, 200),
    ],
    ids=["thinking", "hidden", "summary", "unsigned", "redacted", "call"],
)
def test_thinking_counts_as_its_signature_has_it_and_calls_as_their_input(
    measured: Measured, block: dict[str, object], tokens: int | None
) -> None:
    assert measured(20, [block])["estimated_output_tokens"] == tokens


def test_lines_that_a_file_has_again_give_no_estimate(shell: Shell, tmp_path: Path) -> None:
    """A compaction appends lines again: nobody knows how often a response wrote them."""
    done: dict[str, Any] = {"usage": {"output_tokens": 50}, "content": "x" * 100}
    lines = [answer(n, FIRST, "claude-sonnet-4-5", "2026-01-05", **done) for n in range(20)]
    begun = answer(99, FIRST, "claude-sonnet-4-5", "2026-01-05", **BEGUN)
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", *lines, begun, begun)
    assert shell("sync", str(tmp_path / "home")) == 0
    _, total = stats(shell)
    assert (total["partial"], total["estimated_output_tokens"]) == (1, None)
    (row,), _ = stats(shell)
    assert (row["partial"], row["estimated_output_tokens"]) == (1, None)


def test_a_period_has_a_line_with_its_total(used: Shell) -> None:
    assert used("stats", "--by", "month") == 0
    assert len(used.out.splitlines()) == 6
    assert used("stats", "--by", "month", "--split", "model") == 0
    _, _, *rows, _, total = (line.split() for line in used.out.splitlines())
    assert [row[:4] for row in rows] == [
        ["2026-02", "1", "model", "1.51"],
        ["claude-sonnet-4-5", "1.51", "4,000", "100,000"],
        ["2026-01", "2", "models", "≥3.00"],
        ["claude-sonnet-4-5", "3.01", "3,000", "200,000"],
        ["unheard-of", "3,000", "100,000", "0"],
    ]
    assert total[:3] == ["total", "≥4.52", "10,000"]


@pytest.mark.parametrize(
    ("today", "said"),
    [
        ("2026-02-01T12:00", "This month so far (1 Feb): $1.51; 1 Jan: nothing."),
        ("2026-02-11T12:00", "This month so far (1–11 Feb): $1.51; 1–11 Jan: $3.01."),
        ("2026-02-12T12:00", "This month so far (1–12 Feb): $1.51; 1–12 Jan: ≥$3.00 "),
        ("2026-03-31T12:00", "This month so far (1–31 Mar): nothing; 1–28 Feb: $1.51."),
        ("2026-05-01T12:00", None),
    ],
)
def test_this_month_so_far_stands_beside_the_same_days_of_the_last_one(
    used: Shell, monkeypatch: pytest.MonkeyPatch, today: str, said: str | None
) -> None:
    present = datetime.fromisoformat(today).astimezone()
    monkeypatch.setattr(times, "present", lambda: present)
    for period in ((), ("--since", "2026-01-05"), ("2026-01",), ("--until", "2025-06")):
        assert used("stats", *period) == 0
        assert said in used.err if said else "This month" not in used.err, period
        month = used.json("stats", *period, "--json").get("month")  # type: ignore[union-attr]
        assert (month is None) == (said is None)
    if said:
        assert used("stats", "--project", "other") == 0
        assert "$3.01" not in used.err, "the filters apply to both months"


def test_the_period_that_is_counted_is_said(used: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "present", lambda: datetime(2026, 1, 14, 9).astimezone())
    for asked, period, responses in (
        ((), "2026-01-05 to 2026-02-01", 4),
        (("7d",), "2026-01-08 to 2026-01-14", 3),
        (("last", "week"), "2026-01-05 to 2026-01-11", 2),
        (("month",), "2026-01-01 to 2026-01-31", 3),
        (("--since", "monday"), "2026-01-12 to 2026-01-14", 2),
        (("--until", "2026-01-05"), "up to 2026-01-05", 1),
        (("2026-01-12",), "2026-01-12", 1),
    ):
        answer: Any = used.json("stats", *asked, "--json")
        assert (answer["period"], answer["totals"]["responses"]) == (period, responses), asked
    assert used("stats", "7d", "--since", "monday") == 2
    assert "Give a period, or --since and --until, not both." in used.err


def test_subagents_and_the_cache_have_their_shares(shell: Shell, tmp_path: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 100, "cache_read_input_tokens": 9000}
    lines = [answer(n, FIRST, "claude-sonnet-4-5", "2026-01-05", usage=usage) for n in (1, 2, 3)]
    home = tmp_path / "home"
    write(home, f"projects/-srv-demo/{FIRST}.jsonl", user("begin"), lines[0])
    place = f"projects/-srv-demo/{FIRST}/subagents/agent-a1.jsonl"
    write(home, place, agent("a1", user("survey", "s1")), *(agent("a1", one) for one in lines[1:]))
    assert shell("sync", str(home)) == 0
    (day,), total = stats(shell)
    assert total["subagent_cost_usd"] == pytest.approx(total["cost_usd"] * 2 / 3, abs=1e-6)
    assert (total["subagent_percent"], total["cache_percent"]) == (66.7, 90.0)
    assert (day["subagent_cost_usd"], day["cache_percent"]) == (total["subagent_cost_usd"], 90.0)
    rows, _ = stats(shell, "--by", "subagent")
    assert {row["subagent_type"] == "main conversation": row["responses"] for row in rows} == {
        True: 1, False: 2,
    }  # fmt: skip
    assert shell("stats") == 0
    assert "Subagents cost $0.01 of that (66.7 %)." in shell.err
    assert "90.0 % of all input was read from the cache." in shell.err


def test_every_group_counts_each_response_once(used: Shell) -> None:
    for by in GROUPS:
        for split in (None, *GROUPS):
            given = ("--split", split) if split else ()
            if split == by:
                assert used("stats", "--by", by, *given) == 2
                assert f"The rows are by {by} already" in used.err
                continue
            rows, total = stats(used, "--by", by, *given)
            assert sum(row["responses"] for row in rows) == total["responses"] == 4, (by, split)
            assert used("stats", "--by", by, *given) == 0
            assert used.out.splitlines()[-1].startswith("total"), (by, split)
    assert used("stats", "--by", "tool", "--split", "day") == 2
    assert "Calls of tools are not split" in used.err


def test_the_cost_of_a_branch_is_that_of_what_was_answered_on_it(
    shell: Shell, tmp_path: Path
) -> None:
    lines = [
        {**answer(n, FIRST, "claude-sonnet-4-5", "2026-01-05"), "gitBranch": branch}
        for n, branch in ((1, "main"), (2, "<b>|\x1b[31m"), (3, "main"))
    ]
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", user("begin"), *lines)
    assert shell("sync", str(tmp_path / "home")) == 0
    rows, total = stats(shell, "--by", "branch")
    assert {row["git_branch"]: row["responses"] for row in rows} == {
        "main": 2, "<b>|\x1b[31m": 1,
    }  # fmt: skip
    assert total["sessions"] == 1, "although it is in two rows"
    _, alone = stats(shell, "--branch", "main")
    assert (alone["responses"], alone["input_tokens"]) == (2, 4000)
    assert shell("stats", "--by", "branch") == 0
    assert "\x1b" not in shell.out
    assert shell("stats", "--branch", "nowhere") == 0
    assert "Without branch nowhere: 1 row." in shell.err


def test_the_rows_of_a_table_can_be_limited(used: Shell) -> None:
    assert used("stats", "--by", "month", "-n", "1") == 0
    assert "2026-02" in used.out
    assert "2026-01" not in used.out
    assert "total" in used.out
    assert "≥4.52" in used.out, "the total is that of all"
    assert "Only the first 1 of 2 months are shown; --limit 0 shows all." in used.err
    assert used("stats", "--by", "session", "-n", "1") == 0
    assert len(used.out.splitlines()) == 5
    assert "Only the first 1 of 2 sessions are shown" in used.err
    assert used("stats", "--by", "day", "-n", "2", "--csv") == 0
    assert len(used.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (terminal.money(0.004), "<$0.01"),
        (terminal.money(0.004, 1), "≥$0.00"),
        (terminal.money(4.4196, 0, 2), "≥$4.41"),
        (terminal.money(4.4196), "$4.42"),
        (terminal.money(0.29, 1), "≥$0.29"),
        (terminal.money(4.4196, is_estimate=True), "~$4.42"),
        (terminal.money(None, 1), "unknown"),
        (terminal.tokens(227, 3), "≥227"),
        (terminal.tokens(1990, 3), "≥1.9 k"),
        (terminal.tokens(1990), "2.0 k"),
        (terminal.tokens(999_960, 1), "≥0.9 M"),
        (terminal.tokens(1990, 3, is_exact=True), "≥1,990"),
        (terminal.tokens(1990, is_estimate=True), "~2.0 k"),
    ],
)
def test_a_lower_bound_is_never_rounded_up(shown: str, text: str) -> None:
    assert shown == text


def test_every_report_on_output_or_cost_says_that_it_is_a_lower_bound(
    shell: Shell, tmp_path: Path
) -> None:
    begun = answer(9, FIRST, "claude-sonnet-4-5", "2026-01-05", **BEGUN)
    edited = {**begun, "uuid": "again"}
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", user("begin"), begun, edited)
    assert shell("sync", str(tmp_path / "home")) == 0
    asked = set()
    for name, query in sql.named_queries().items():
        columns = {"output_tokens", "cost_usd"}
        if not any(re.search(rf"\b{column}\b", query.sql) for column in columns):
            continue
        command = "list" if query.folder == "lists" else "query"
        for row in shell.items(command, name.removeprefix("list_")):
            if any(row.get(column) for column in columns):
                asked.add(name)
                assert row["is_lower_bound"] == 1, (name, row)
    assert len(asked) >= 6, asked


def test_a_lower_bound_of_a_cent_is_a_cent(shell: Shell, tmp_path: Path) -> None:
    """A cost that is a little less is not rounded to it: neither here nor in the database."""
    usage = {"input_tokens": 3332, "output_tokens": 0}
    begun = answer(9, FIRST, "claude-sonnet-4-5", "2026-01-05", usage=usage, stop_reason=None)
    write(tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl", user("begin"), begun)
    assert shell("sync", str(tmp_path / "home")) == 0
    for by in ("day", "week", "month", "model", "project", "session"):
        (row,), total = stats(shell, "--by", by)
        assert row["cost_usd"] == total["cost_usd"] == 0.009996
        assert shell("stats", "--by", by) == 0
        assert "≥0.01" not in shell.out
        assert "≥0.00" in shell.out
    assert shell("show", FIRST) == 0
    assert "≥$0.00" in shell.out
    with (tmp_path / "home" / f"projects/-srv-demo/{FIRST}.jsonl").open("a") as file:
        file.write(json.dumps(cost_state(0.00996)) + "\n")
    assert shell("sync") == 0
    items = shell.items("query", "usage_reconciliation")
    costs = {row["counting"]: row["cost_usd"] for row in items}
    assert costs["stated by the agent"] == 0.00996
    assert costs["once, where the agent states it"] == 0.009996
    assert shell("query", "usage_reconciliation") == 0
    assert "0.01" not in shell.out


def test_what_a_backup_repeats_is_stated_once(shell: Shell, tmp_path: Path) -> None:
    done = answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05")
    for home in ("home", "backup"):
        write(tmp_path / home, f"projects/-srv-demo/{FIRST}.jsonl", done, cost_state(1.75))
    assert shell("sync", str(tmp_path / "home"), str(tmp_path / "backup")) == 0
    rows = {row["counting"]: row for row in shell.items("query", "usage_reconciliation")}
    expected = {"stated by the agent": 1.75, "once, where the agent states it": 1.503}
    for counting, cost in expected.items():
        assert (rows[counting]["counted"], rows[counting]["cost_usd"]) == (1, cost)


@pytest.mark.parametrize("zone", ["EST5", "Asia/Kolkata"])
def test_a_day_is_the_one_that_since_and_until_name(
    used: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, zone: str
) -> None:
    """In the evening it may be the next day in UTC, and in the morning the one before."""
    late = answer(5, SECOND, "claude-sonnet-4-5", "2026-03-01")
    for hour in (2, 21):
        at = f"2026-03-01T{hour:02}:00:00.000Z"
        line = {**late, "uuid": f"late{hour}", "requestId": f"late{hour}", "timestamp": at}
        line["message"] = {**line["message"], "id": f"msg_late{hour}"}
        write(tmp_path / "late", f"projects/-srv-late/{hour:02}{FIRST[2:]}.jsonl", line)
    assert used("sync", str(tmp_path / "late")) == 0
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    for by, column in (("day", "day"), ("month", "month")):
        rows, total = stats(used, "--by", by, "--split", "model", "-n", "0")
        assert len(rows) > 2
        for row in rows:
            period = row[column]
            asked = ("--since", period, "--until", period, "--model", row["model"])
            (alone,), only = stats(used, "--by", by, "--split", "model", *asked)
            assert alone == row
            assert only["responses"] == row["responses"]
        assert sum(row["responses"] for row in rows) == total["responses"] == 6
    rows, _ = stats(used, "--by", "week")
    weeks = {date.fromisoformat(row["week_of"]) for row in rows}
    assert {week.weekday() for week in weeks} == {0}
    assert date(2026, 3, 2) in weeks if zone == "Asia/Kolkata" else date(2026, 2, 23) in weeks


def test_calls_of_tools_say_that_they_cost_nothing_themselves(shell: Shell, tmp_path: Path) -> None:
    lines = [
        user("begin", "u1"),
        assistant([call("t1", command="make")], "a1", "u1"),
        user([result("t1", "four")], "u2", "a1", 2),
        assistant([call("t2", command="make")], "a2", "u2", 3),
        user([result("t2", "no", is_error=True)], "u3", "a2", 5),
    ]
    write(tmp_path / "home", f"projects/-srv-demo/{SESSION}.jsonl", *lines)
    assert shell("sync", str(tmp_path / "home")) == 0
    (row,), total = stats(shell, "--by", "tool")
    assert [row[name] for name in ("calls", "errors", "letters")] == [2, 1, 6]
    assert row["total_ms"] == total["total_ms"] == 3000
    assert "cost_usd" not in row
    assert shell("stats", "--by", "tool") == 0
    assert "Tools cost nothing themselves" in shell.err


def test_calls_of_tools_have_a_total_too(used: Shell) -> None:
    rows, total = stats(used, "--by", "tool")
    assert rows == []
    assert total["calls"] == 0
    assert used("stats", "--by", "tool", "--model", "x") == 2
    assert "--model does not apply to --by tool." in used.err


def test_what_names_nothing_is_said(used: Shell) -> None:
    assert used("stats", "--since", "2030-01-01") == 0
    assert "No usage recorded" in used.err
    assert used("stats", "--session", "ffff") == 1
    assert used("stats", "--since", "soon") == 2


def cost_state(total: float, **models: dict[str, object]) -> dict[str, object]:
    usage = {name.replace("_", "-"): known for name, known in models.items()}
    return {"type": "cost-state", "sessionId": FIRST, "totalCostUSD": total, "modelUsage": usage}


def test_what_the_agent_states_of_itself_stands_beside_what_is_counted(
    shell: Shell, tmp_path: Path
) -> None:
    """The last line counts; helper models are named nowhere else."""
    path = tmp_path / "home" / f"projects/-srv-demo/{FIRST}.jsonl"
    begun = answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05", **BEGUN)
    early = cost_state(0.3, claude_sonnet_4_5={"outputTokens": 20_000, "costUSD": 0.3})
    late = cost_state(
        0.75,
        claude_sonnet_4_5={"outputTokens": 50_000, "costUSD": 0.74},
        claude_haiku_4_5={"outputTokens": 100, "costUSD": 0.01},
    )
    for line in (begun, early, late):  # synced after each: incremental equals full
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        assert shell("sync", str(tmp_path / "home")) == 0
    for command in ("sync", "rebuild"):
        assert shell(command) == 0
        assert shell("verify") == 0
        assert shell("show", FIRST) == 0
        words = " ".join(shell.out.split())
        assert "≥8 out, 50.1 k as its agent states" in words
        assert "cost ≥$0.00 as counted, $0.75 as its agent states" in words
    assert shell("show", FIRST, "--json") == 0
    session = json.loads(shell.out)["session"]
    assert (session["stated_cost_usd"], session["stated_output_tokens"]) == (0.75, 50_100)
    assert [row["model"] for row in session["stated_by_model"]] == [
        "claude-sonnet-4-5", "claude-haiku-4-5",
    ]  # fmt: skip
    rows = {row["counting"]: row for row in shell.items("query", "usage_reconciliation")}
    names = ("counted", "output_tokens", "cost_usd", "is_lower_bound")
    stated, counted = rows["stated by the agent"], rows["once, where the agent states it"]
    assert [stated[name] for name in names] == [1, 50_100, 0.75, 0]
    assert [counted[name] for name in names] == [1, 8, 0.000129, 1]
    with path.open("a") as file:
        file.write(json.dumps(answer(2, FIRST, "claude-sonnet-4-5", "2026-01-06")) + "\n")
    assert shell("sync") == 0
    assert shell("show", FIRST) == 0
    assert "$0.75 as its agent states before it went on" in " ".join(shell.out.split())
    assert shell("forget", FIRST, "--yes") == 0
    assert shell.items("query", "usage_reconciliation") == []


def test_what_the_agent_states_is_not_repeated_where_it_is_about_the_same(
    shell: Shell, tmp_path: Path
) -> None:
    done = answer(1, FIRST, "claude-sonnet-4-5", "2026-01-05")
    write(
        tmp_path / "home", f"projects/-srv-demo/{FIRST}.jsonl",
        done, cost_state(1.6, claude_sonnet_4_5={"outputTokens": 101_000, "costUSD": 1.6}),
    )  # fmt: skip
    assert shell("sync", str(tmp_path / "home")) == 0
    assert shell("show", FIRST) == 0
    assert "cost $1.50" in shell.out
    assert "as its agent states" not in shell.out

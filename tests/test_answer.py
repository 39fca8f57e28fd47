"""A program gets one JSON object: bounded, continued exactly, and never of another question."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reading import index
from tests.support.shell import Shell
from tests.support.writing import at

from assoc_ingest.errors import ERROR_CODES, AssocIngestError, UsageError
from assoc_ingest.questions.fit import LEAST_JSON_CHARS, Answer, Cursors, Wanted, pieces

GOLDEN = Path(__file__).parent / "golden"

COUNT = 7


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A database of seven sessions, each a day newer than the one before."""
    with index(shell.database) as rows:
        projects = [rows.project("shop0"), rows.project("shop1")]
        for day in range(1, COUNT + 1):
            moment = f"2026-01-{day:02}T10:00:00.000Z"
            rows.session(f"{day:08}-1111-4222-8333-444455556666", projects[day % 2],
                         title=f"Day {day}",
                         started_at=moment, ended_at=moment, message_count=1,
                         git_branch=f"b{day % 2}")  # fmt: skip
    return shell


def answer(shell: Shell, *arguments: str) -> dict[str, Any]:
    assert shell(*arguments, "--json") == 0, shell.err
    found: dict[str, Any] = json.loads(shell.out)
    return found


@pytest.mark.parametrize(
    "command", [("list", "sessions"), ("query", "list_sessions"), ("query",)], ids=" ".join
)
def test_every_answer_has_the_same_frame(filled: Shell, command: tuple[str, ...]) -> None:
    found = answer(filled, *command)
    beside = ["hidden"] if command[0] == "list" else []
    assert list(found) == ["schema", *beside, "items", "total", "next", "relaxed", "fresh"]
    assert found["schema"] == 1
    assert found["total"] == len(found["items"]) > 0
    assert found["next"] is None
    assert filled.err == ""


@pytest.mark.parametrize("size", range(1, COUNT + 2))
def test_cursors_lead_through_all_items_once(filled: Shell, size: int) -> None:
    for command in (("list", "sessions"), ("query", "list_sessions")):
        whole = answer(filled, *command)["items"]
        titles, cursor = [], None
        while True:
            more = () if cursor is None else ("--cursor", cursor)
            page = answer(filled, *command, "-n", str(size), *more)
            assert len(page["items"]) <= size
            assert page["total"] == COUNT
            titles += page["items"]
            if (cursor := page["next"]) is None:
                break
            assert page["items"], "a page that continues has something"
        assert titles == whole


def test_a_cursor_of_another_question_or_database_is_refused(
    filled: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = answer(filled, "list", "sessions", "-n", "2")["next"]
    refused = "--cursor belongs to another question or database"
    for command in (("list", "files"), ("list", "sessions", "--all"), ("query", "errors"),
                    ("list", "sessions", "--branch", "b1")):  # fmt: skip
        assert filled(*command, "--json", "--cursor", cursor) == 2
        assert refused in filled.out
    for wrong in ("x", "", "é", "MQ", "LTEuYWJj", "9" * 100):
        assert filled("list", "sessions", "--json", f"--cursor={wrong}") == (2 if wrong else 0)
    copy = tmp_path / "copy.db"
    with sqlite3.connect(filled.database) as connection:
        connection.execute("vacuum into ?", (str(copy),))
    assert filled("list", "sessions", "--json", "--cursor", cursor, "--db", str(copy)) == 2
    assert refused in filled.out


def test_only_the_fields_that_are_wanted_are_given(filled: Shell) -> None:
    found = answer(filled, "list", "sessions", "--fields", "title, project")
    assert found["items"][0] == {"title": "Day 7", "project": "shop1"}
    assert filled("list", "sessions", "--json", "--fields", "titel") == 2
    error = json.loads(filled.out)["error"]  # and nothing before it
    assert "no field 'titel'" in error["message"]
    assert "session_key" in error["hint"]


def test_a_query_that_limits_itself_says_what_it_leaves_out(shell: Shell) -> None:
    with index(shell.database) as rows:
        _, file = rows.session("k1", rows.project("shop"))
        for second in range(53):
            rows.call(file, "Bash", {}, "said", status="error", started_at=at(second))
    for options, shown, total in (
        ((), 50, 53), (("-n", "0"), 53, 53), (("-n", "3"), 3, 53), (("-n", "60"), 53, 53),
        (("-p", "limit", "5"), 5, 5), (("-n", "2", "-p", "limit", "5"), 2, 5),
    ):  # fmt: skip
        assert shell("query", "errors", "--csv", *options) == 0
        assert len(shell.out.splitlines()) == 1 + shown
        told = f"Only the first {shown} of {total} rows are shown; --limit 0 shows all.\n"
        assert shell.err == told * (shown < total)
    first = answer(shell, "query", "errors", "-n", "40")
    rest = answer(shell, "query", "errors", "-n", "40", "--cursor", first["next"])
    assert [len(one["items"]) for one in (first, rest)] == [40, 13]
    assert (first["total"], rest["total"], rest["next"]) == (53, 53, None)


def test_a_query_takes_the_times_that_options_take(shell: Shell) -> None:
    with index(shell.database) as rows:
        _, file = rows.session("k1", rows.project("shop"))
        rows.call(file, "Bash", {}, "said", status="ok", started_at=at(1))
    for time, found in (("2026-01-20T10", 1), ("2026-01", 1), ("", 1), ("1m", 0), ("2027", 0)):
        assert len(answer(shell, "query", "tool_use", "-p", "since", time)["items"]) == found
    for name in ("since", "until"):
        assert shell("query", "tool_use", "-p", name, "soon") == 2
        assert shell.err.startswith("Error: Invalid time 'soon'. Use 30m,")


def test_what_bounds_json_needs_json(filled: Shell) -> None:
    for option in (("--fields", "title"), ("--max-chars", "2000"), ("--cursor", "x")):
        assert filled("list", "sessions", *option) == 2
        assert "belong to --json" in filled.err


# -- budgets --------------------------------------------------------------------------------------

values = st.none() | st.integers() | st.text(max_size=3000) | st.lists(st.text(max_size=50))
rows = st.lists(
    st.dictionaries(st.sampled_from(["title", "text", "file", "call", "n"]), values), max_size=6
)


def fitted(items: list[dict[str, Any]], most: int, cursor: str | None = None) -> str:
    """Return an answer in JSON, at most so many characters, from a cursor on."""
    cursors = Cursors("test")
    (start,) = cursors.numbers(cursor) or (0,)
    answer = Answer(
        items[start:], cursor=lambda number, _: cursors.made(start + number), is_continued=False
    )
    return "".join(pieces(answer, Wanted(max_chars=most), total=len(items)))


def is_cut(shown: Any, value: Any) -> bool:
    """Is this the beginning of a text, or of a list of texts?"""
    if isinstance(value, list):
        return all(map(is_cut, shown, value))
    return bool(shown == value or (shown.endswith("…") and value.startswith(shown[:-1])))


@pytest.mark.slow
@given(rows, st.integers(LEAST_JSON_CHARS, 5_000))
def test_an_answer_keeps_to_its_budget_and_loses_no_item(
    items: list[dict[str, Any]], most: int
) -> None:
    seen, cursor = [], None
    while True:
        text = fitted(items, most, cursor)
        assert len(text) <= most
        found = json.loads(text)
        seen += found["items"]
        if (cursor := found["next"]) is None:
            break
        assert found["items"]
    assert len(seen) == len(items)
    for shown, item in zip(seen, items, strict=True):
        cut = set(shown.pop("cut", ()))
        assert shown.keys() == item.keys()
        for name, value in item.items():
            if name not in cut:
                assert shown[name] == value
            else:
                assert is_cut(shown[name], value)


@pytest.mark.parametrize("most", [LEAST_JSON_CHARS, 2 * LEAST_JSON_CHARS])
def test_many_small_items_keep_to_the_budget(most: int) -> None:
    items = [{"n": number} for number in range(1000)]
    text = fitted(items, most)
    assert most - 40 < len(text) <= most


def test_an_item_that_cannot_be_cut_to_the_budget_says_so() -> None:
    item = {f"number_{n}": n for n in range(1000)}
    with pytest.raises(UsageError, match="Choose fields with --fields"):
        fitted([item], LEAST_JSON_CHARS)


# -- errors ---------------------------------------------------------------------------------------

ERRORS = {
    ("list", "sesions"): ("usage", 2, "No list named 'sesions'.", "Did you mean sessions?"),
    ("show", "ffff"): ("not_found", 1, "No session matches 'ffff'.",
                       "To see them: assoc-ingest list sessions"),
    ("list", "sessions", "-n", "x"): ("usage", 2, "Invalid value for '-n' / '--limit':", None),
    ("list", "files", "--csv"): ("usage", 2, "Choose one of --json", None),
}  # fmt: skip


@pytest.mark.parametrize("command", ERRORS, ids=" ".join)
def test_an_error_is_an_object_too(filled: Shell, command: tuple[str, ...]) -> None:
    code, status, message, hint = ERRORS[command]
    assert filled(*command, "--json") == status
    assert filled.err == ""
    found = json.loads(filled.out)
    assert list(found) == ["schema", "error"]
    assert found["error"]["code"] == code
    assert found["error"]["message"].startswith(message)
    if hint:
        assert found["error"]["hint"] == hint


def test_a_database_that_is_missing_is_an_object_too(shell: Shell) -> None:
    assert shell("list", "sessions", "--json") == 4
    assert json.loads(shell.out)["error"]["code"] == "database"
    assert shell("list", "sessions") == 4
    assert not shell.out


# -- what a list leaves out -----------------------------------------------------------------------

FILTERS = {
    ("--since", "2026-01-06"): "76",
    ("--until", "2026-01-02"): "21",
    ("--since", "2026-01-03", "--until", "2026-01-03"): "3",
    ("--branch", "b0"): "642",
    ("--project", "shop0", "--since", "2026-01-03"): "64",
    ("--source", "chorus"): "",
}


@pytest.mark.parametrize("options", FILTERS, ids=" ".join)
def test_a_list_takes_times_a_source_and_a_branch(filled: Shell, options: tuple[str, ...]) -> None:
    titles = [item["title"] for item in filled.items("list", "sessions", *options)]
    assert titles == [f"Day {day}" for day in FILTERS[options]]


def test_a_list_without_such_a_column_says_which_have_one(filled: Shell) -> None:
    assert filled("list", "todos", "--branch", "b") == 2
    assert "--branch does not apply to todos, but to: open, sessions." in filled.err
    assert filled("list", "sessions", "--source", "cloude") == 2
    assert "Unknown source 'cloude'" in filled.err


# -- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["search", "show", "list_sessions", "list_open", "query_tool_use"])
def test_the_contract_names_the_fields_that_are_given(shell: Shell, name: str) -> None:
    contract = shell.json("schema", "--json")
    assert isinstance(contract, dict)
    command, _, what = name.partition("_")
    if name == "list_open":
        with index(shell.database) as rows:
            rows.session("1", None, message_count=1)
            _, file = rows.session("2", None, message_count=1)
            rows.message(file, "interrupt", "stop")
        items, frame = shell.items("list", "open"), answer(shell, "list", "open")
    else:
        frame = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
        items = frame["items"]
    fields = contract[command]
    if command == "list":
        fields = fields[what]
    elif command == "query":
        fields = fields[what]["columns"]
    assert items
    for item in items:
        assert item.keys() == set(fields) - ({"is_marked"} if command == "show" else set())
    assert frame.keys() == contract["answer"].keys() | contract["beside"].get(command, {}).keys()


def test_the_contract_is_readable(shell: Shell) -> None:
    assert shell("schema") == 0
    assert "Fields of search:" in shell.out
    assert max(map(len, shell.out.split("\n"))) <= 100


def test_every_error_has_a_code_that_the_contract_explains() -> None:
    def codes(kind: type[AssocIngestError]) -> set[str]:
        return {kind.code}.union(*map(codes, kind.__subclasses__()))

    assert codes(AssocIngestError) | {"internal"} == ERROR_CODES.keys()

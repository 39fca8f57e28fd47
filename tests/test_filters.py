"""A filter leaves the same wherever it is asked for, and says so if it leaves nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.reading import index
from tests.support.rows import AT, Rows
from tests.support.served import data, get, served
from tests.support.shell import Shell

from assoc_ingest.ask import query, times
from assoc_ingest.ask.filters import FILTERS, Filters
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.questions import QUESTIONS
from assoc_ingest.questions.question import named

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

ROOT = Path(__file__).parents[1]
TODAY = datetime(2026, 1, 20, 10, tzinfo=UTC)
"""A Tuesday."""

DOLLAR = 1_000_000


def _fill(rows: Rows) -> None:
    """A conversation on each of the days from 5 to 20 January, and one over a midnight."""
    rows.add("prices", model="walrus-1", input=1_000_000, output=0)
    rows.add("prices", model="seal-2", input=1_000_000, output=0)
    places = {name: rows.project(name) for name in ("shop", "garden")}
    codex = rows.add("sources", kind="codex", root="/home/ada/.codex")
    spans = [(f"{day:02}", f"{day:02}T12:00", f"{day:02}T12:01") for day in range(5, 21)]
    for key, start, end in (*spans, ("night", "08T23:50", "09T00:10")):
        number = int(key) if key.isdigit() else 0
        model, branch = ("seal-2", "main") if number % 2 else ("walrus-1", f"b{number}")
        owner = {"source_id": codex} if number == 20 else {}
        times = {"started_at": f"2026-01-{start}:00.000Z", "ended_at": f"2026-01-{end}:00.000Z"}
        session, file = rows.session(
            f"{key:0>8}-session", places["garden" if number > 15 else "shop"], title=f"On {key}",
            message_count=2, models=json.dumps([model]), git_branch=branch, **times, **owner,
        )  # fmt: skip
        for at, kind in ((times["started_at"], "prompt"), (times["ended_at"], "text")):
            rows.message(file, kind, "tusk", timestamp=at, model=model)
            rows.add(
                "responses", model=model, timestamp=at, input_tokens=number * DOLLAR // 2,
                session_id=session, response_key=f"{key} {kind}", file_id=file, byte_length=1,
            )  # fmt: skip
        if number == 7:
            rows.call(file, "Bash", {}, "broken", status="error")
            rows.message(file, "error", "API Error")


@pytest.fixture
def filled(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(times, "present", lambda: TODAY)
    with index(shell.database) as rows:
        _fill(rows)
    return shell


def listed(shell: Shell, given: dict[str, str]) -> set[str]:
    return {one["session_key"] for one in shell.items("list", "sessions", "-n0", *options(given))}


def searched(shell: Shell, given: dict[str, str]) -> set[str]:
    shell("search", "tusk", "--json", "-n500", *options(given))
    return {one["session_key"] for one in json.loads(shell.out)["items"]}


def in_query(shell: Shell, given: dict[str, str]) -> set[str]:
    words = [f'{name}:"{value}"' for name, value in given.items()]
    shell("search", "--json", "-n500", " ".join(["tusk", *words]))
    return {one["session_key"] for one in json.loads(shell.out)["items"]}


def summed(shell: Shell, given: dict[str, str]) -> set[str]:
    items = shell.items("stats", "--by", "session", *options(given))
    return {one["session_key"] for one in items}


def queried(shell: Shell, given: dict[str, str]) -> set[str]:
    parts = [part for name, value in given.items() for part in ("-p", name, value)]
    return {one["session_key"] for one in shell.items("query", "usage_by_session", *parts)}


@cache
def site_of(database: Path) -> Any:
    """Starting a server takes longer than a page."""
    return served(database)


def on_the_list(shell: Shell, given: dict[str, str]) -> set[str]:
    return keys(get(site_of(shell.database), f"/assoc/-/sessions?{urlencode(given)}").text)


def on_the_search(shell: Shell, given: dict[str, str]) -> set[str]:
    asked = urlencode({"q": "tusk", **given})
    return keys(get(site_of(shell.database), f"/-/assoc/search?{asked}").text)


def on_the_report(shell: Shell, given: dict[str, str]) -> set[str]:
    path = f"/assoc/ask-usage-by-session.json?{urlencode(given)}"
    return {row["session_key"] for row in data(site_of(shell.database), path)}


def told_to_an_agent(shell: Shell, given: dict[str, str]) -> set[str]:
    items = asked_by_an_agent(shell, "search", query="tusk", limit=50, **given)["items"]
    return {item["title"] for item in items}


def recent_for_an_agent(shell: Shell, given: dict[str, str]) -> set[str]:
    items = asked_by_an_agent(shell, "recent", limit=50, max_chars=100_000, **given)["items"]
    return {item["title"] for item in items if item["kind"] == "conversation"}


def asked_by_an_agent(shell: Shell, tool: str, **arguments: Any) -> dict[str, Any]:
    with_index = Index(Settings(shell.database))
    try:
        answer: Any = Tools(with_index).call(tool, arguments)["structuredContent"]
    finally:
        with_index.close()
    assert "error" not in answer, answer
    return dict(answer)


def keys(page: str) -> set[str]:
    return set(re.findall(r"/-/session/(\w+-session)", page))


def options(given: dict[str, str]) -> list[str]:
    flags = ((f"--{name.replace('_', '-')}", value) for name, value in given.items())
    return [part for flag in flags for part in (flag if flag[1] != "1" else flag[:1])]


Surface = Callable[[Shell, dict[str, str]], set[str]]
SURFACES: dict[Surface, set[str]] = {
    listed: {"project", "source", "branch", "model", "since", "until", "errors", "min_cost",
             "status"},
    on_the_list: {"project", "source", "branch", "model", "since", "until", "errors", "min_cost",
                  "status", "month", "day"},
    searched: {"project", "source", "branch", "model", "since", "until", "session", "kind"},
    in_query: {"project", "source", "branch", "since", "until", "session", "kind"},
    on_the_search: {"project", "source", "branch", "model", "since", "until", "session", "month"},
    told_to_an_agent: {"project", "source", "branch", "model", "since", "until", "session"},
    recent_for_an_agent: {"project", "since", "until"},
    summed: {"project", "source", "model", "since", "until", "session"},
    queried: {"project", "source", "model", "since", "until", "session"},
    on_the_report: {"project", "source", "model", "since", "until"},
}  # fmt: skip
"""What can be asked where; a filter that a surface does not have is not asked there."""

PAGES = (on_the_list, on_the_search, on_the_report)

CASES: list[tuple[dict[str, str], str]] = [
    ({}, "05 06 07 08 night 09 10 11 12 13 14 15 16 17 18 19 20"),
    ({"since": "today"}, "20"),
    ({"since": "1d"}, "20"),
    ({"since": "24h"}, "19 20"),
    ({"since": "3d"}, "18 19 20"),
    ({"since": "7d"}, "14 15 16 17 18 19 20"),
    ({"since": "last 7 days"}, "14 15 16 17 18 19 20"),
    ({"since": "yesterday", "until": "yesterday"}, "19"),
    ({"since": "last week", "until": "last week"}, "12 13 14 15 16 17 18"),
    ({"since": "this week"}, "19 20"),
    ({"since": "monday"}, "19 20"),
    ({"since": "sunday", "until": "sunday"}, "18"),
    ({"until": "2 weeks ago"}, "05 06"),
    ({"until": "2w"}, "05 06"),
    ({"since": "last month", "until": "last month"}, ""),
    ({"since": "2026-01", "until": "2026-01-06"}, "05 06"),
    ({"until": "2026-01-08"}, "05 06 07 08 night"),
    ({"since": "2026-01-09", "until": "2026-01-09"}, "night 09"),
    ({"until": "2026-01-06T12:00"}, "05"),
    ({"since": "2026-01-20T12:00:00Z"}, "20"),
    ({"since": "2026-01-20T12:02"}, ""),
    ({"month": "2026-01", "since": "2026-01-20"}, "20"),
    ({"day": "yesterday"}, "19"),
    ({"project": "garden"}, "16 17 18 19 20"),
    ({"project": "/srv/garden", "until": "2026-01-17"}, "16 17"),
    ({"source": "codex"}, "20"),
    ({"model": "seal-2", "since": "2026-01-16"}, "17 19"),
    ({"branch": "b14"}, "14"),
    ({"session": "00000012-session"}, "12"),
    ({"kind": "error", "since": "2026-01-01"}, ""),
    ({"min_cost": "19"}, "19 20"),
    ({"errors": "1"}, "07"),
    ({"status": "error"}, "07"),
    ({"status": "finished", "until": "2026-01-07"}, "05 06"),
]


@pytest.mark.parametrize(
    "surface",
    [
        pytest.param(s, marks=pytest.mark.slow if s in PAGES else (), id=s.__name__)
        for s in SURFACES
    ],
)
def test_a_filter_leaves_the_same_everywhere(filled: Shell, surface: Surface) -> None:
    named = {"told_to_an_agent": "On {}", "recent_for_an_agent": "On {}"}
    form = named.get(surface.__name__, "{:0>8}-session")
    asked = [(given, left) for given, left in CASES if given.keys() <= SURFACES[surface]]
    assert len(asked) >= 20
    for given, left in asked:
        assert surface(filled, given) == {form.format(key) for key in left.split()}, given


@pytest.mark.parametrize("name", ["since", "until"])
def test_an_unknown_word_for_a_time_is_one_sentence_with_examples(filled: Shell, name: str) -> None:
    sentence = (
        "Invalid time 'soon'. Use 30m, 12h, 7d, today, yesterday, monday, 'last week', "
        "'3 weeks ago' or a date such as 2026-01-31."
    )
    for command in (
        ("list", "sessions"), ("search", "tusk"), ("stats",), ("secrets",),
    ):  # fmt: skip
        assert filled(*command, f"--{name}", "soon") == 2
        assert filled.err == f"Error: {sentence}\n"
    assert filled("query", "tool_use", "-p", name, "soon") == 2
    assert sentence in filled.err
    assert filled("search", f"tusk {name}:soon") == 2
    assert sentence in filled.err
    site = served(filled.database)
    for path in ("/assoc/-/sessions?", "/-/assoc/search?q=tusk&", "/assoc/ask-usage-by-session?"):
        page = get(site, f"{path}{name}=soon")
        assert page.status_code == 400
        assert "Invalid time" in page.text


def test_what_is_described_is_what_can_be_given() -> None:
    """What shows more than it leaves out is no filter."""
    shows_more = {"all", "gone", "with_worktrees"}
    assert FILTERS.keys() == {field.name for field in fields(Filters)} - shows_more
    asked = [one for name in QUESTIONS for one in named(name).parameters() if one.filters]
    assert {one.name for one in asked} == {name for name, one in FILTERS.items() if one.about}
    assert [one.name for one in asked if not one.field.label] == []
    documented = re.findall(
        r"^\| `(\w+)`", (ROOT / "docs/search.md").read_text("utf-8"), re.MULTILINE
    )
    assert {one.name for one in asked} <= set(documented)


# -- nothing found ---------------------------------------------------------------------------------


def test_a_list_without_rows_names_the_filters_that_left_none(filled: Shell) -> None:
    asked = ("list", "sessions", "--project", "garden", "--since", "yesterday", "--until",
             "yesterday", "--source", "codex")  # fmt: skip
    assert filled(*asked) == 0
    assert filled.err.splitlines() == [
        "Nothing to list.",
        "Without source codex: 1 row.",
        "Without until yesterday (2026-01-19): 1 row.",
    ]
    assert filled(*asked, "--json") == 0
    assert json.loads(filled.out)["nothing"] == {
        "filters": [
            {"filter": "source", "told": "source codex", "without": 1},
            {"filter": "until", "told": "until yesterday (2026-01-19)", "without": 1},
        ],
        "without_filters": 17,
        "is_close": False,
        "words": [],
    }
    assert filled("list", "sessions", "--source", "codex", "--branch", "main") == 0
    assert "Without branch main: 1 row." in filled.err
    assert filled("list", "todos", "--status", "pending") == 0
    assert filled.err == "Nothing to list.\n", "there would be none without it, either"
    assert "nothing" not in filled.json("list", "sessions", "--json")  # type: ignore[operator]


def test_filters_of_which_several_leave_nothing_are_counted_without_all_of_them(
    filled: Shell,
) -> None:
    assert filled("list", "sessions", "--min-cost", "99", "--source", "pi") == 0
    assert filled.err.splitlines() == ["Nothing to list.", "Without all filters: 17 rows."]


def test_a_search_without_hits_names_filters_and_words_that_are_nowhere(filled: Shell) -> None:
    assert filled("search", "tusk", "--source", "codex", "--until", "yesterday") == 1
    assert filled.err.splitlines()[:2] == [
        "Without source codex: 16 conversations.",
        "Without until yesterday (2026-01-19): 1 conversation.",
    ]
    assert filled("search", "tusk project:shop", "--since", "today", "--json") == 1
    assert json.loads(filled.out)["nothing"] == {
        "filters": [
            {"filter": "project", "told": "project shop", "without": 1},
            {"filter": "since", "told": "since today (2026-01-20)", "without": 12},
        ],
        "without_filters": 17,
        "is_close": False,
        "words": [],
    }
    assert filled("search", "quuxle xyzzyx", "--source", "codex") == 1
    assert filled.err.splitlines()[0] == "Found nowhere: quuxle, xyzzyx."
    assert filled("search", "quuxle", "tusk", "--source", "pi") == 1
    assert filled.err.splitlines()[:2] == [
        "Without source pi: 17 conversations with some of the words.", "Found nowhere: quuxle.",
    ]  # fmt: skip


def test_sums_without_rows_name_the_filters_that_left_none(filled: Shell) -> None:
    asked = ("stats", "--by", "session", "--source", "codex", "--until", "yesterday")
    assert filled(*asked) == 0
    assert filled.err.splitlines() == [
        "No usage recorded.",
        "Without source codex: 16 rows.",
        "Without until yesterday (2026-01-19): 1 row.",
        "This month so far (1–20 Jan): $20.00; 1–20 Dec: nothing.",
    ]
    assert filled(*asked, "--json") == 0
    assert json.loads(filled.out)["nothing"]["filters"] == [
        {"filter": "source", "told": "source codex", "without": 16},
        {"filter": "until", "told": "until yesterday (2026-01-19)", "without": 1},
    ]
    assert filled("stats", "--by", "tool", "--since", "today") == 0
    assert filled.err.splitlines()[1:] == ["Without since today (2026-01-20): 1 row."]
    assert filled("stats", "--source", "pi", "--csv") == 0
    assert "Without source pi: 16 rows." in filled.err, "one for each day"
    assert "nothing" not in filled.json("stats", "--json")  # type: ignore[operator]


def test_a_report_without_rows_names_the_parameters_that_left_none(filled: Shell) -> None:
    asked = ("query", "usage_by_session", "-p", "source", "codex", "-p", "until", "yesterday")
    assert filled(*asked) == 0
    assert filled.err.splitlines()[1:] == [
        "Without source codex: 16 rows.",
        "Without until yesterday (2026-01-19): 1 row.",
    ]
    assert filled(*asked, "--json") == 0
    assert json.loads(filled.out)["nothing"]["without_filters"] == 17
    assert filled("query", "usage_by_session", "-p", "source", "pi", "--json") == 0
    assert json.loads(filled.out)["nothing"]["filters"] != []
    assert "nothing" not in filled.json("query", "usage_by_session", "--json")  # type: ignore[operator]


def test_an_expression_without_hits_names_the_filters_that_left_none(filled: Shell) -> None:
    assert filled("search", "--raw", "tusk", "--source", "codex", "--until", "yesterday") == 1
    assert filled.err.splitlines()[:2] == [
        "Without source codex: 16 conversations.",
        "Without until yesterday (2026-01-19): 1 conversation.",
    ]
    assert filled("search", "--raw", "--tools", "broken", "--source", "codex") == 1
    assert filled.err.splitlines()[0] == "Without source codex: 1 conversation."
    assert filled("search", "--raw", "tus*", "--source", "pi", "--json") == 1
    assert json.loads(filled.out)["nothing"]["without_filters"] == 17
    assert filled("search", "--raw", "quuxle", "--json") == 1
    assert json.loads(filled.out)["nothing"]["filters"] == []


def test_recent_work_without_items_names_the_filters_that_left_none(filled: Shell) -> None:
    # Twelve conversations, one of which is still open.
    answer = asked_by_an_agent(filled, "recent", project="shop", since="yesterday")
    assert answer["nothing"]["filters"] == [
        {"filter": "project", "told": "project shop", "without": 2},
        {"filter": "since", "told": "since yesterday (2026-01-19)", "without": 13},
    ]
    answer = asked_by_an_agent(filled, "recent", cwd="/srv/shop/src", since="yesterday")
    assert [one["told"] for one in answer["nothing"]["filters"]] == [
        "since yesterday (2026-01-19)", "cwd /srv/shop/src",
    ]  # fmt: skip
    assert "nothing" not in asked_by_an_agent(filled, "recent", project="garden")


@pytest.mark.parametrize(
    "time", ["last week", "last-week", "Last  Week", "this month", "last 7 days", "3 weeks ago"]
)
def test_times_of_several_words_need_no_quotes_in_a_query(filled: Shell, time: str) -> None:
    terms = query.parse(f"tusk since:{time} until:{time} ago")
    assert [" ".join(value.split()) for _, value in terms.fields] == [" ".join(time.split())] * 2
    assert [clause.name for clause in terms.clauses] == ["tusk", "ago"]
    assert searched_for(filled, f"tusk since:{time}") == searched(filled, {"since": time})
    words = query.parse(f"-- since:{time}")
    assert words.fields == ()
    assert len(words.clauses) == len(time.split())


def searched_for(shell: Shell, words: str) -> set[str]:
    shell("search", "--json", "-n500", words)
    return {one["session_key"] for one in json.loads(shell.out)["items"]}


def test_the_form_of_a_report_takes_the_projects_that_an_option_takes(shell: Shell) -> None:
    with index(shell.database) as rows:
        shop = rows.project("shop")
        places = shop, rows.project("shop-topic", parent_id=shop, is_worktree=1)
        for place, key in zip(places, ("main-session", "tree-session"), strict=True):
            session, file = rows.session(key, place, message_count=1)
            rows.add("responses", response_key=key, file_id=file, byte_length=1, timestamp=AT,
                     session_id=session)  # fmt: skip
    for project in ("shop", "SHOP", "/srv/shop", "shop-topic"):
        given = {"project": project}
        assert on_the_report(shell, given) == summed(shell, given), project
    assert on_the_report(shell, {"project": "shop"}) == {"main-session", "tree-session"}


def test_an_agent_and_a_page_are_told_the_same(filled: Shell) -> None:
    answer = asked_by_an_agent(filled, "search", query="tusk quuxle", source="pi", until="2026")
    assert answer["nothing"] == {
        "filters": [{"filter": "source", "told": "source pi", "without": 17}],
        "without_filters": 17,
        "is_close": True,
        "words": ["quuxle"],
    }
    site = served(filled.database)
    words = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", get(
        site, "/-/assoc/search?q=tusk+quuxle&source=pi&project=1"
    ).text))  # fmt: skip
    assert "Without source pi : 12 conversations with some of the words" in words
    assert "Found nowhere: quuxle" in words
    words = re.sub("<[^>]*>", " ", get(site, "/assoc/-/sessions?source=codex&project=shop").text)
    assert "No conversations with these filters. Without project shop: 1 conversation." in words
    assert "Without source codex: 12 conversations." in words

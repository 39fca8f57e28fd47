"""The first page and the list of conversations show what is there, and lead to what they count."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.reading import index, reader
from tests.support.rows import Rows
from tests.support.web import Page, Site

from assoc_ingest import sql, terminal
from assoc_ingest.ask import times
from assoc_ingest.web import conversations, serve

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

LIST = "/db/-/sessions"
TODAY = datetime(2026, 2, 6, 12, tzinfo=UTC)
DOLLAR = 1_000_000
"""Tokens of a response that costs a dollar."""


def _at(day: str) -> dict[str, str]:
    return {"started_at": f"{day}T10:00:00.000Z", "ended_at": f"{day}T11:00:00.000Z"}


def _response(rows: Rows, session: int, file: int, tokens: int, model: str = "walrus-1") -> None:
    rows.add(
        "responses", model=model, timestamp="2026-01-20T10:00:00.000Z", session_id=session,
        input_tokens=tokens, response_key=f"r{session}", file_id=file, byte_length=1,
    )  # fmt: skip


def _fill(rows: Rows) -> None:
    """Four conversations, each unlike the others in whatever can be asked for."""
    rows.add("prices", model="walrus-1", input=1_000_000, output=0)
    shop, garden = rows.project("shop"), rows.project("garden")
    other = rows.add("sources", kind="bot", root="/srv/bot")
    session, file = rows.session(
        "k1", shop, title="# Fix\n the **till**", git_branch="main", models='["walrus-1"]',
        message_count=3, **_at("2026-01-20"),
    )  # fmt: skip
    rows.message(file, "prompt", "fix it")
    rows.message(file, "text", "fixed")
    _response(rows, session, file, 7 * DOLLAR)
    session, file = rows.session(
        "k2", garden, title="Sow", git_branch="spring", models='["walrus-1", "seal-2"]',
        message_count=2, **_at("2026-02-03"),
    )  # fmt: skip
    rows.message(file, "prompt", "sow")
    rows.call(file, "Bash", {"command": "sow"}, "no seeds", status="error")
    _response(rows, session, file, 2 * DOLLAR)
    session, file = rows.session(
        "k3", garden, title="Water", models='["seal-2"]', message_count=9,
        source_id=other, **_at("2026-02-05"),
    )  # fmt: skip
    rows.message(file, "prompt", "water")
    rows.message(file, "error", "API Error")
    _response(rows, session, file, DOLLAR, "seal-2")
    _, file = rows.session("k4", None, title="Rest", message_count=1, **_at("2026-02-05"))
    rows.message(file, "text", "resting")
    rows.session("empty", shop, title="Nothing was said", **_at("2026-02-06"))


Fill = Callable[[Rows], None]


@pytest.fixture
def made(tmp_path: Path) -> Callable[[Fill], Site]:
    def filled(fill: Fill) -> Site:
        with index(tmp_path / "db.db") as rows:
            fill(rows)
        return Site(tmp_path / "db.db")

    return filled


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("front") / "db.db"
    with index(path) as rows:
        _fill(rows)
    return path


@pytest.fixture(scope="module")
def site(place: Path) -> Site:
    return Site(place)


def listed(page: Page) -> list[str]:
    """The keys of the conversations on a page, in its order."""
    assert page.status == 200, page.words
    return [link.rsplit("/", 1)[1].partition("?")[0] for link in page.links("/-/session/")]


# -- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", "k4 k3 k2 k1"),
        ("project=1", "k1"),
        ("project=2", "k3 k2"),
        ("project=garden", "k3 k2"),
        ("status=error", "k3"),
        ("since=2026-02-03&until=2026-02-03", "k2"),
        ("branch=spring", "k2"),
        ("model=seal-2", "k3 k2"),
        ("source=bot", "k3"),
        ("month=2026-01", "k1"),
        ("month=2026-02", "k4 k3 k2"),
        ("day=2026-02-03", "k2"),
        ("since=2026-02-05T11:00:00.000Z", "k4 k3"),
        ("errors=1", "k3 k2"),
        ("min_cost=2", "k2 k1"),
        ("min_cost=2.5", "k1"),
        ("sort=cost", "k1 k2 k4 k3"),
        ("sort=messages", "k3 k1 k2 k4"),
        ("project=2&model=walrus-1&month=&branch=", "k2"),
        ("project=2&model=walrus-1&errors=1&sort=messages&min_cost=3", ""),
    ],
)
def test_the_list_has_what_it_was_asked_for_in_its_order(site: Site, query: str, keys: str) -> None:
    page = site.get(f"{LIST}?{query}")
    assert listed(page) == keys.split()
    many = len(keys.split())
    assert (f"{many} conversation" if many else "No conversations with these") in page.words


def test_a_row_is_a_line_of_plain_text_with_at_most_eight_columns(site: Site) -> None:
    text = site.get(LIST).text
    assert ">Fix the **till**</a>" in text.replace("# ", "")
    (row,) = (row for row in text.split("<tr>") if "/-/session/k1" in row)
    words = " ".join(re.sub("<[^>]*>", " ", row).split())
    assert "shop main 2026-01-20 11:00 3 messages $7.00 walrus-1 claude" in words
    assert text.count('<th scope="col"') <= 8
    assert {len(re.findall("<td", row)) for row in text.split("<tr>")[2:]} == {7}


def test_a_filter_is_shown_in_the_form_and_can_be_removed(site: Site) -> None:
    query = "project=2&model=seal-2&month=2026-02&since=2026-02-01&errors=1&sort=cost"
    page = site.get(f"{LIST}?{query}")
    for text in (
        '<option value="2" selected>garden</option>', '<option value="seal-2" selected>',
        'name="month" value="2026-02"', 'value="1" checked', '<option value="cost" selected>',
        'type="hidden" name="since" value="2026-02-01"',
    ):  # fmt: skip
        assert text in page.text
    chips = page.words.replace(" , remove this filter", "")
    assert (
        "Project garden × Model seal-2 × With errors × From 2026-02-01 × Month 2026-02 ×" in chips
    )
    fewer = [link for link in page.links(f"{LIST}?") if "repository=" not in link]
    assert f"{LIST}?{query.replace('&model=seal-2', '')}" in fewer
    assert LIST in page.links(), "one link removes all"
    assert len(fewer) == 5


def test_a_value_that_is_not_offered_is_still_chosen_in_the_form(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "_VALUES", 1)
    page = site.get(f"{LIST}?project=1&model=walrus-9&source=claude")
    for text in ('value="1" selected>shop<', 'value="walrus-9" selected>walrus-9<',
                 'value="claude" selected>claude<'):  # fmt: skip
        assert text in page.text


def test_pages_keep_the_filters_and_have_an_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversations, "PAGE", 1)
    first = site.get(f"{LIST}?project=2&sort=cost")
    assert (listed(first), "2 conversations, page 1" in first.words) == (["k2"], True)
    (following,) = first.links("page=")
    assert following == f"{LIST}?project=2&sort=cost&page=2"
    second = site.get(following)
    assert listed(second) == ["k3"]
    assert second.links("page=") == [f"{LIST}?project=2&sort=cost&page=1"]
    beyond = site.get(f"{LIST}?project=2&page=3")
    assert (beyond.status, beyond.links("project=2")) == (404, [f"{LIST}?project=2"])


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("month=2026-13", 400, "Invalid time '2026-13'"),
        ("month=0000-01", 400, "Invalid time '0000-01'"),
        ("day=7d", 400, "'7d' is neither a day nor a month"),
        ("day=2026-02-31", 400, "Invalid time '2026-02-31'"),
        ("since=soon", 400, "Invalid time 'soon'"),
        ("min_cost=nan", 400, "'nan' is not an amount"),
        ("min_cost=-1", 400, "'-1' is not an amount"),
        ("sort=title", 400, "Unknown order 'title'"),
        ("project=shpo", 404, "No project is named 'shpo'. Did you mean 'shop'?"),
        ("project=77", 404, "No project is named '77'."),
        ("status=none", 200, "Without status none: 4 conversations."),
        ("page=x", 400, "'x' is not a page number"),
        (f"page={'9' * 5_000}", 400, "'99999"),
        (f"project={'9' * 900}", 404, "No project is named '999"),
        ("page=2", 404, "There is no page 2 of this list."),
        (f"model={'m' * 2_000}", 400, "The value of model is too long."),
    ],
)
def test_what_means_nothing_is_told(site: Site, query: str, status: int, text: str) -> None:
    page = site.get(f"{LIST}?{query}")
    assert page.status == status
    assert text in page.words


@pytest.mark.slow
def test_the_numbers_of_other_pages_lead_to_as_many_conversations(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "present", lambda: TODAY)
    for address in ("/-/assoc",):
        page = site.get(address)
        counted = re.findall(
            rf'<a href="({LIST}[^"]*)"[^>]*>([\d,]+)( conversations?)?</a>', page.text
        )
        assert counted, address
        for link, number, _ in counted:
            assert len(listed(site.get(link.replace("&amp;", "&")))) == int(number), link
    assert len(listed(site.get(*site.get("/db/-/project/2").links(f"{LIST}?")))) == 2


def test_a_state_is_what_the_list_of_open_things_says(
    made: Callable[[Fill], Site], tmp_path: Path
) -> None:
    kinds = ("prompt", "queued_prompt", "text", "tool_use", "tool_result", "error", "interrupt")

    def fill(rows: Rows) -> None:
        for kind in kinds:
            _, file = rows.session(f"last-{kind}", title=kind, message_count=2)
            rows.message(file, "text", "before")
            rows.message(file, kind, "last")
            rows.message(file, "hook", "behind the turn")
            rows.message(file, "text", "of an agent", subagent_id=rows.add(
                "subagents", agent_key=kind, source_id=rows.source))  # fmt: skip

    site = made(fill)
    words = site.get(LIST).words
    shown = {
        kind: state
        for kind in kinds
        for state in ("ended with an error", "interrupted", "unfinished")
        if f" {kind} {state} " in words
    }
    assert len(shown) == len(kinds) - 1
    with closing(reader(tmp_path / "db.db")) as connection:
        said = {row["text"]: row["status"] for row in sql.ask(connection, "lists/open", limit=99)}
    assert shown == said
    assert " unfinished " in site.get("/db/-/recent").words
    assert " unfinished " not in site.get(f"{LIST}?status=finished").words


# -- the first page ------------------------------------------------------------------------------


def test_the_first_page_has_the_newest_conversations_projects_and_days(site: Site) -> None:
    page = site.get("/")
    assert listed(page) == ["k4", "k3", "k2", "k1"]
    assert "autofocus" in page.text
    assert "Sow 2026-02-03 11:00 garden · spring · claude · 2 messages · $2.00" in page.words
    assert "Water 2026-02-05 11:00 garden · bot · 9 messages · cost unknown ended" in page.words
    assert "garden 2 conversations , 2026-02-05" in page.words
    assert "2026-01-05 to 2026-02-06" in page.words, "up to the newest, not up to today"
    assert [link.rsplit("=", 1)[1] for link in page.links("day=")] == [
        "2026-01-20", "2026-02-03", "2026-02-05",
    ]  # fmt: skip
    assert "5 , 2 conversations" in page.words
    assert "All conversations (4)" in page.words


def test_short_conversations_are_folded_behind_the_others(made: Callable[[Fill], Site]) -> None:
    """One prompt at most, and no tool: often a script that tried the agent."""

    def fill(rows: Rows) -> None:
        for key, prompts, calls in (("a", 1, 0), ("b", 2, 0), ("c", 0, 1), ("d", 0, 0)):
            rows.session(key, title=key, message_count=2, prompt_count=prompts,
                         tool_call_count=calls)  # fmt: skip

    page = made(fill).get("/")
    others, _, folded = page.text.partition("<details")
    assert "2 short conversations: one prompt at most, and no tool" in page.words
    assert {key for key in "abcd" if f"/-/session/{key}" in others} == {"b", "c"}
    assert {key for key in "abcd" if f"/-/session/{key}" in folded} == {"a", "d"}
    assert "All conversations (4)" in page.words


def test_the_first_page_leaves_out_projects_that_are_not_on_this_disk(
    made: Callable[[Fill], Site],
) -> None:
    """As the list of projects does."""

    def fill(rows: Rows) -> None:
        for name, there in (("here", 1), ("gone", 0), ("elsewhere", 0), ("unknown", None)):
            path = f"/srv/{name}"
            rows.session(name, rows.project(name, path=path, on_disk=there), message_count=1)

    site = made(fill)
    projects = site.get("/").words.partition(" Projects ")[2]
    assert "here 1 conversation" in projects
    assert "unknown 1 conversation" in projects
    assert "gone 1" not in projects
    assert "2 projects have no directory on this disk. All projects" in projects


def test_the_last_7_days_are_those_of_today_and_say_their_dates(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(times, "present", lambda: TODAY)
    page = site.get("/")
    assert "The last 7 days (31 Jan – 6 Feb) 3 conversations" in page.words
    assert f"{LIST}?since=2026-01-31&until=2026-02-06" in page.links()
    recap = next(link for link in page.links() if "/-/recap?since=2026-01-31" in link)
    assert "3 conversations" in site.get(recap).words
    used = site.get("/db/-/stats")
    assert '<b aria-current="true">Last 30 days</b>' in used.text
    assert "2026-01-08 to 2026-02-06" in used.words
    assert "2026-01-31 to 2026-02-06" in site.get("/db/-/stats?when=7d").words
    later = TODAY + timedelta(days=100)
    monkeypatch.setattr(times, "present", lambda: later)
    page = site.get("/")
    assert "The last 7 days (11–17 May) 0 conversations" in page.words
    assert "The 7 days up to the latest activity (31 Jan – 6 Feb) 3 conversations" in page.words
    used = site.get("/db/-/stats")
    assert '<b aria-current="true">All</b>' in used.text, "nothing in 30 days"


@pytest.mark.slow
def test_a_day_leads_to_the_conversations_that_it_counts(made: Callable[[Fill], Site]) -> None:
    """One that goes on over midnight, in local time, is one of both days."""

    def fill(rows: Rows) -> None:
        for key, start, end in (("a", "09T23:00", "10T01:00"), ("b", "10T00:00", "10T00:00"),
                                ("c", "09T22:00", "09T23:59")):  # fmt: skip
            rows.session(
                key, message_count=1, started_at=f"2026-03-{start}:00.000Z",
                ended_at=f"2026-03-{end}:00.000Z",
            )  # fmt: skip

    filled = made(fill)
    days = filled.get("/").links("day=")
    assert [(day, listed(filled.get(day))) for day in days] == [
        (f"{LIST}?day=2026-03-09", ["a", "c"]),
        (f"{LIST}?day=2026-03-10", ["a", "b"]),
    ]
    assert "9 , 2 conversations 10 , 2 conversations" in filled.get("/").words


@pytest.mark.parametrize("year", ["2000-01-01", "2100-12-31"])
def test_the_first_and_the_last_time_that_are_stored_are_no_error(
    made: Callable[[Fill], Site], year: str
) -> None:
    page = made(lambda rows: rows.session("k1", message_count=1, **_at(year)) and None).get("/")
    assert listed(page) == ["k1"]


@pytest.mark.slow
def test_an_empty_database_says_how_to_fill_it(made: Callable[[Fill], Site]) -> None:
    filled = made(lambda rows: None)
    for address in ("/", LIST):
        assert (
            "no conversations yet. To fill it, run assoc-ingest sync" in filled.get(address).words
        )


def test_the_first_page_says_what_was_read_and_what_could_not_be(
    made: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session("k1", message_count=1)
        rows.file("gone.jsonl", gone_at="2026-01-21T10:00:00.000Z")
        rows.add("sync_runs", started_at="2026-01-21T09:00:00.000Z",
                 finished_at="2026-01-21T09:01:00.000Z")  # fmt: skip
        for number, quarantined in enumerate((1, 1, 0)):
            rows.add("issues", reason="bad", quarantined=quarantined, file_id=file,
                     byte_offset=number, byte_length=1)  # fmt: skip

    page = made(fill).get("/")
    assert (
        "Last sync: 2026-01-21 09:01. 2 files read, 1 of them no longer on disk."
        " 2 records could not be read . 1 record stored incompletely ."
    ) in page.words
    assert page.links("issues") == ["/db/issues?quarantined=1", "/db/issues?quarantined=0"]


# -- where it is ---------------------------------------------------------------------------------

OURS = '<h2 id="newest">Newest</h2>'


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table sessions (session_key text)")
    return path


@pytest.mark.slow
def test_the_first_page_of_datasette_stays_where_other_databases_are(
    site: Site, place: Path, foreign: Path, tmp_path: Path
) -> None:
    assert OURS in site.get("/").text
    mixed = Site(place, foreign)
    assert OURS not in mixed.get("/").text
    assert "/other" in mixed.get("/").links()
    assert OURS in mixed.get("/-/assoc").text
    second = tmp_path / "second.db"
    second.write_bytes(place.read_bytes())
    assert OURS not in Site(place, second).get("/").text
    with serve.switched_on():  # as under serve
        assert OURS in mixed.get("/").text


@pytest.mark.slow
def test_the_first_page_of_datasette_is_always_reachable(site: Site, place: Path) -> None:
    page = site.get("/-/")
    assert (page.status, OURS in page.text, "/db" in page.links()) == (200, False, True)
    assert site.get("/.json").status == 200
    assert "/db" in site.get("/db/-/reports").links()


def test_another_program_sees_nothing_of_it(foreign: Path) -> None:
    alone = Site(foreign)
    with serve.switched_on():
        assert OURS not in alone.get("/").text
    assert "/other" in alone.get("/").links()
    assert alone.get("/-/assoc").status == 404
    assert alone.get("/other/-/sessions").status == 404


@pytest.mark.slow
def test_who_may_not_see_the_tables_gets_the_first_page_of_datasette(place: Path) -> None:
    hidden = {"tables": {"responses": {"allow": False}}}
    half = Site(place, databases={"db": hidden})
    assert (half.get("/").status, OURS in half.get("/").text) == (200, False)
    assert half.get("/-/assoc").status == 404
    assert half.get(LIST).status == 403


@pytest.mark.parametrize(
    ("project", "branch", "said"),
    [
        ("garden · spring", "spring", None),
        ("garden", "spring", "spring"),
        ("garden · spring", "ring", "ring"),
        (None, "spring", "spring"),
        ("garden", None, None),
    ],
)
def test_a_branch_that_names_the_worktree_is_not_said_twice(
    project: str | None, branch: str | None, said: str | None
) -> None:
    assert terminal.branch_besides(project, branch) == said

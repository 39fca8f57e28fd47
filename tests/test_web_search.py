"""The page of a search ranks as the command line does, and every count is what it leads to."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from tests.support.reading import index, reader
from tests.support.searching import search
from tests.support.served import made
from tests.support.web import Page

from assoc_ingest.sync.run import sync
from assoc_ingest.web import search_page

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

DEMO = Path(__file__).parent / "demo"
SEARCH = "/-/assoc/search"


_tally = re.compile(r'data-total="(\d+)" data-hits="(\d+)"')
_counted = re.compile(r'<a href="([^"]*)"[^>]* data-count="(\d+)"')
_more = re.compile(r'<a href="([^"]*)" data-more="(\d+)"')
_removing = re.compile(r'<a class="ai-chosen" href="([^"]*)"')
_card = re.compile(r'<h2 class="ai-hit"><a href="([^"]*)">([^<]*)</a> <span[^>]*>([^<]*)</span>')
_next = re.compile(r'<a rel="next" href="([^"]*)"')


class Found:
    """What a program can read from the page; addresses with how many they say they lead to."""

    def __init__(self, page: Page) -> None:
        (self.total, self.hits), *_ = _pairs(_tally, page.text, int, int)
        self.chips = _pairs(_counted, page.text, unescape, int)
        self.more = _pairs(_more, page.text, unescape, int)
        self.removing = [unescape(address) for address in _removing.findall(page.text)]
        cards = _card.findall(page.text)
        self.cards = [unescape(address) for address, _, _ in cards]
        self.titles = [unescape(title) for _, title, _ in cards]
        self.times = [time for _, _, time in cards]
        self.next = next(map(unescape, _next.findall(page.text)), None)


def _pairs(
    pattern: re.Pattern[str], text: str, one: Callable[[str], Any], other: Callable[[str], Any]
) -> list[tuple[Any, Any]]:
    return [(one(first), other(second)) for first, second in pattern.findall(text)]


class Pages:
    """One server, which is asked for many pages."""

    def __init__(self, database: Path) -> None:
        # Made at once: 1.0 closes after each test what was made in it.
        self._server = made(database)
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._server.invoke_startup())

    def get(self, address: str) -> Page:
        answer = self._loop.run_until_complete(self._server.client.get(address))
        return Page(answer.status_code, answer.text, dict(answer.headers))

    def found(self, address: str) -> Found:
        page = self.get(address)
        assert page.status == 200, page.words
        return Found(page)

    def every(self, address: str | None) -> Iterator[Found]:
        """Yield this page and all that follow."""
        while address:
            yield (page := self.found(address))
            address = page.next

    def close(self) -> None:
        self._loop.close()


def at(query: str, **more: str) -> str:
    return f"{SEARCH}?{urlencode({'q': query, **more})}"


@pytest.fixture(scope="module")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    sync(path, sorted(DEMO.iterdir()))
    return path


@pytest.fixture(scope="module")
def demo(demo_path: Path) -> Iterator[Pages]:
    with closing(Pages(demo_path)) as found:
        yield found


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Many conversations with one word, in two projects of one name, on branches, over months."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.db"
    with index(path) as rows:
        places = [rows.project("shop", path=f"/srv/{name}/shop", key=name) for name in "ab"]
        places.append(rows.project("shop · x", path="/srv/a/shop/x", key="c"))
        for number in range(30):
            key = f"{number:08}-aaaa"
            _, file = rows.session(key, places[number % 3], title=f"Talk {number}")
            when = {"timestamp": f"2026-{1 + number % 4:02}-01T00:{number % 60:02}:00.000Z"}
            model = f"model-{number % 10}"
            rows.add("contexts", name="git_branch", value=f"branch-{number % 10}", file_id=file)
            rows.message(file, "prompt", "walrus 漢字 and tusk", role="user", **when)
            rows.message(file, "text", "a walrus", role="assistant", model=model, **when)
            rows.message(file, "thinking", "walrus?", role="assistant", model=model, **when)
            for _ in range(number % 5):
                rows.message(file, "tool_result", "walrus.walrus_id", role="user", **when)
            if number % 7 == 0:
                rows.message(file, "tool_use", '{"x": "echo\\nwalrus_pup"}', **when)
            rows.add("plans", title="walrus", text="# walrus", name=str(number), file_id=file)
            kind = "message" if number % 2 else "tool_result"  # as a kind of messages is called
            place = {"file_id": file, "byte_offset": number, "byte_length": 1}
            rows.add("inbox_items", text="walrus mail", kind=kind, channel="inbox", **place)
    with closing(Pages(path)) as found:
        yield found


# -- a count is what it leads to -----------------------------------------------------------------

ON_DEMO = ("the", "kale frost", "how do we warn about frost", "seedlngs asparagus",
           "planting_calendar", "kind:document frost")  # fmt: skip
ON_CROWD = ("walrus", "漢字 walrus", "漢", "漢字 OR tusk", "walrus_pup", "project:shop walrus",
            "the walrus says unheard things")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("home", "query"), [("demo", one) for one in ON_DEMO] + [("crowd", one) for one in ON_CROWD]
)
def test_every_count_is_what_it_leads_to(
    home: str, query: str, request: pytest.FixtureRequest
) -> None:
    """Every chip of a page is followed, and every chip behind the first and behind "n more"."""
    site: Pages = request.getfixturevalue(home)
    page = site.found(at(query))
    assert page.total > 1
    assert page.chips
    for address, count in page.chips:
        narrowed = site.found(address)
        assert narrowed.total == count, address
        assert narrowed.removing, address
    behind = [address for address, _ in page.chips[:1]]
    for address, count in page.more[:1]:
        inside = site.found(address)
        assert inside.total == inside.hits > count
        behind.append(address)
    for address in behind:
        for deeper, count in site.found(address).chips:
            assert site.found(deeper).total == count, deeper


@pytest.mark.slow
def test_a_value_of_a_facet_counts_what_the_filter_finds(crowd: Pages) -> None:
    """Narrowing looks at what was found, a filter of the address asks the indexes."""
    names = set()
    for address, count in crowd.found(at("walrus")).chips:
        asked = dict(parse_qsl(urlsplit(address).query))
        names.add(name := asked.pop("narrow"))
        assert crowd.found(at("walrus", **{name: asked[name]})).total == count, asked
    assert names == {"kind", "project", "model", "role", "branch", "month"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be changed here")
def test_a_month_is_one_of_the_local_calendar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index(tmp_path / "one.db") as rows:
        _, file = rows.session("0b7c2f4e-1111", rows.project("shop"))
        for moment in ("01-31T12:00", "02-01T04:59", "02-01T05:00", "02-28T23:00"):
            rows.message(file, "text", "walrus", timestamp=f"2026-{moment}:00.000Z")
        row = {"text": "walrus", "timestamp": "2026-02-01T04:59:00.000Z"}
        rows.add("prompts", file_id=file, byte_offset=0, byte_length=1, **row)
    monkeypatch.setenv("TZ", "EST5")
    time.tzset()
    try:
        with closing(Pages(tmp_path / "one.db")) as site:
            january = at("walrus", month="2026-01", narrow="month")
            assert site.found(january).hits == 3
            assert january in dict(site.found(at("walrus")).chips)
            for month, hits in (("2026-01", 3), ("2026-02", 2)):
                assert site.found(at("walrus", month=month)).hits == hits
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.slow
@pytest.mark.parametrize("query", ["walrus", "the walrus says unheard things"])
@pytest.mark.parametrize("sort", ["", "newest"])
def test_no_page_loses_or_repeats_a_card(crowd: Pages, query: str, sort: str) -> None:
    kept = "month=2026-02"
    for address in (at(query, sort=sort), f"{at(query, sort=sort)}&{kept}"):
        pages = list(crowd.every(address))
        cards = [card for page in pages for card in page.cards]
        assert len(cards) == len(set(cards)) == pages[0].total
        assert {page.total for page in pages} == {pages[0].total}
        if address.endswith(kept):
            assert all(kept in page.next for page in pages[:-1]), "in all links"
    assert len(list(crowd.every(at(query)))) > 1


@pytest.mark.slow
def test_a_filter_that_is_set_is_taken_back_with_one_click(demo: Pages) -> None:
    every = demo.found(at("frost")).total
    page = demo.get(at("frost", kind="document", source="associate"))
    assert "Kind document ×" in page.words
    assert "Source associate ×" in page.words
    found = demo.found(at("frost", kind="document", source="associate"))
    assert len(found.removing) == 2
    for address in found.removing:
        (last,) = demo.found(address).removing
        assert found.total <= demo.found(address).total <= demo.found(last).total == every


def test_what_is_too_much_to_count_has_no_numbers(
    crowd: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_page, "_MOST", 50)
    page = crowd.get(at("walrus"))
    assert "More than" in page.words
    assert "Too many messages match to count them all" in page.words
    assert 'data-facet="kind"' in page.text, "it can be narrowed"
    assert "data-count" not in page.text
    narrowed = crowd.get(at("walrus", kind="plan"))
    assert "30 conversations, 30 hits" in narrowed.words


# -- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["frost", "how do we warn about frost", "planting_calendar", "seedlngs", '"bed one"']
)
def test_cards_are_in_the_order_of_the_command_line(
    demo: Pages, demo_path: Path, query: str
) -> None:
    with closing(reader(demo_path)) as connection:
        groups = search(connection, query).groups
    titles = [(group.title or group.best.file or "").rpartition("/")[2] for group in groups]
    page = demo.get(at(query))
    assert Found(page).titles[:10] == titles
    for group, card in zip(groups, page.text.split('class="ai-card"')[1:], strict=False):
        relaxed = {True: "relaxed", False: "exact"}[group.best.why == "relaxed"]
        assert card.startswith(f' data-why="{relaxed}"')


@pytest.mark.slow
def test_the_newest_come_first_where_that_is_asked_for(crowd: Pages) -> None:
    pages = list(crowd.every(at("walrus", sort="newest")))
    times = [time for page in pages for time in page.times]
    assert times == sorted(times, reverse=True)
    assert {"2026-01", "2026-02", "2026-03", "2026-04"} <= {time[:7] for time in times}
    assert times != [time for page in crowd.every(at("walrus")) for time in page.times]


def test_what_was_said_stands_above_thinking_and_thinking_above_tools(crowd: Pages) -> None:
    page = crowd.get(at("walrus", model="model-1"))
    kinds = re.findall(r'class="ai-place ai-is-(\w+)"', page.text)
    assert set(kinds[::2]) == {"said"}
    assert set(kinds[1::2]) == {"thinking"}


def test_a_hit_leads_to_its_very_message(demo: Pages) -> None:
    page = demo.get(at("sow"))
    links = page.links("?at=")
    assert links
    for address in links:
        path, _, anchor = address.partition("#")
        assert anchor in demo.get(path).anchors()


# -- what is said --------------------------------------------------------------------------------


@pytest.mark.slow
def test_close_matches_are_told_apart_from_those_with_all_words(demo: Pages) -> None:
    page = demo.get(at("kale frost"))
    exact, close = page.text.split("Closest matches, with a word missing:")
    assert set(re.findall(r'data-why="(\w+)"', exact)) == {"exact"}
    assert set(re.findall(r'data-why="(\w+)"', close)) == {"relaxed"}
    assert (
        close.count("close match") == close.count('class="ai-card"') > 0 == exact.count("close m")
    )
    page = demo.get(at("kale frost", closest="0"))
    assert 'data-why="relaxed"' not in page.text
    assert at("kale frost") in page.links(), "from where the others are one click away"


@pytest.mark.slow
def test_a_search_without_hits_says_what_helps(crowd: Pages, demo: Pages) -> None:
    page = crowd.get(at("walrus tusk", model="model-1", kind="tool_result"))
    assert "Nothing found for “walrus tusk” with these filters." in page.words
    assert "Search without the filters : 30 conversations" in page.words
    assert "With fewer words: walrus , tusk" in page.words
    assert at("walrus tusk") in page.links()
    page = crowd.get(at("zebra"))
    assert "Nothing found for “zebra”." in page.words
    assert "Everything that was read is searched: 30 files" in page.words
    page = demo.get(at("-frost"))
    assert "The query has no words to search for" in page.words


@pytest.mark.slow
def test_an_expression_is_asked_as_it_is(demo: Pages) -> None:
    page = demo.found(at("frost NOT warning", raw="1"))
    assert 0 < page.hits < demo.found(at("frost", raw="1")).hits
    for address, count in page.chips:
        assert demo.found(address).total == count
    wrong = demo.get(at("frost AND (", raw="1"))
    assert wrong.status == 400
    assert "The query is not a valid FTS5 expression (" in wrong.words
    assert "--raw" not in wrong.words
    assert at("frost AND (") in wrong.links()


def test_weak_matches_are_said_to_be_weak_and_a_time_to_be_a_filter(demo: Pages) -> None:
    page = demo.get(at("how did we tune the kafka consumers of the orders table"))
    assert "Weak matches: no conversation contains most of the words." in page.words
    assert "Weak matches" not in demo.get(at("frost warning")).words
    page = demo.get(at("the calendar on branch frost-warning"))
    assert "'on branch frost-warning' is taken for branch:\"frost-warning\"." in page.words


def test_a_word_that_was_corrected_is_a_link(demo: Pages) -> None:
    page = demo.get(at("seedlngs kind:document"))
    assert "Showing results for seedlings instead of seedlngs." in page.words
    assert at("seedlings kind:document") in page.links()

"""The page of a search ranks as the command line does, and every count is what it leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.reading import index
from tests.support.web import Page

from assoc_ingest.sync.run import sync

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

DEMO = Path(__file__).parent / "demo"
SEARCH = "/-/assoc/search"


@dataclass
class Found(HTMLParser):
    """What a program can read from the page."""

    total: int = -1
    hits: int = -1
    chips: list[tuple[str, int]] = field(default_factory=list)
    """Addresses, each with how many it says."""
    more: list[tuple[str, int]] = field(default_factory=list)
    """The same of the links to all hits in a conversation."""
    removing: list[str] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)
    """What each card leads to."""
    close: int = 0
    next: str | None = None
    _is_in_title: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "data-total" in given:
            self.total, self.hits = int(given["data-total"]), int(given["data-hits"])
        if "data-count" in given:
            self.chips.append((given["href"], int(given["data-count"])))
        if "data-more" in given:
            self.more.append((given["href"], int(given["data-more"])))
        if given.get("class") == "ai-chosen":
            self.removing.append(given["href"])
        if given.get("rel") == "next":
            self.next = given["href"]
        if given.get("class") == "ai-card":
            self.close += given["data-why"] == "relaxed"
        if tag == "a" and self._is_in_title:
            self.cards.append(given["href"])
        self._is_in_title = given.get("class") == "ai-hit"


class Pages:
    """One server, which is asked for many pages."""

    def __init__(self, database: Path) -> None:
        self._database = str(database)
        self._loop = asyncio.new_event_loop()
        self._server: Any = None

    def get(self, address: str) -> Page:
        return self._loop.run_until_complete(self._get(address))

    def found(self, address: str) -> Found:
        page = self.get(address)
        assert page.status == 200, page.words
        read = Found()
        read.feed(page.text)
        return read

    def every(self, address: str | None) -> Iterator[Found]:
        """Yield this page and all that follow."""
        while address:
            yield (page := self.found(address))
            address = page.next

    async def _get(self, address: str) -> Page:
        from datasette.app import Datasette

        if self._server is None:
            self._server = Datasette([self._database])
            await self._server.invoke_startup()
        answer = await self._server.client.get(address)
        return Page(answer.status_code, answer.text, dict(answer.headers))

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

ON_DEMO = (
    "the", "how do we warn about frost", "seedlngs asparagus", "planting_calendar",
    "beans OR squash", "kind:document frost",
)  # fmt: skip
ON_CROWD = (
    "walrus", "漢字 walrus", "漢", "漢字 OR tusk", "walrus_pup", "the walrus says unheard things",
    "project:shop walrus",
)  # fmt: skip


@pytest.mark.parametrize(
    ("home", "query"), [("demo", one) for one in ON_DEMO] + [("crowd", one) for one in ON_CROWD]
)
def test_every_count_is_what_it_leads_to(
    home: str, query: str, request: pytest.FixtureRequest
) -> None:
    """Each chip of a page, and each chip of the first pages behind them; also what is more."""
    site = request.getfixturevalue(home)
    page = site.found(at(query))
    assert page.total > 0
    for address, count in page.chips:
        narrowed = site.found(address)
        assert narrowed.total == count, address
        assert narrowed.removing, address
    inner = [address for address, _ in page.chips[:1]]
    for address, count in page.more[:1]:
        inside = site.found(address)
        assert inside.total == inside.hits > count
        inner.append(address)
    for address in inner:
        for deeper, count in site.found(address).chips:
            assert site.found(deeper).total == count, deeper

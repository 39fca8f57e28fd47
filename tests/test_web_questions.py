"""What people want to know is at most three clicks from the first page.

Needs Playwright for Python and Chromium, as `test_web_browser` does; skipped without them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.test_web_browser import CHROMIUM, DEMO, QUIET, _address

from assoc_ingest.sync.run import sync

api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("default"),  # Playwright's own
]

DAYS = 24 * 60 * 60
MOST = 3
"""Clicks to an answer; a search that is sent counts as one."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Datasette over the demo, with a home whose files the agent deletes within days."""
    place = tmp_path_factory.mktemp("served")
    homes = place / "homes"
    shutil.copytree(DEMO, homes)
    old = time.time() - 27 * DAYS
    for path in homes.rglob("*"):
        os.utime(path, (old, old))
    sync(place / "demo.db", sorted(homes.iterdir()))
    command = [sys.executable, "-m", "datasette", "serve", "demo.db", "--port", "0"]
    with (place / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=place, stderr=log, stdout=log)
    try:
        yield _address(place / "log", process)
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    arguments = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


class Visit:
    """A visitor who begins at the first page and counts the clicks."""

    def __init__(self, browser: Any, server: str) -> None:
        self.page = browser.new_page(viewport={"width": 1200, "height": 900})
        self.page.goto(f"{server}/")
        self.clicks = 0

    def open(self, text: str, part: str = "body") -> None:
        """Click the first link with this text in a part of the page."""
        self._goes(self.page.locator(part).get_by_role("link", name=text).first.click)

    def search(self, words: str) -> None:
        """Type into the field that has the focus, and send it."""
        self.page.locator("input[type=search]:focus").wait_for()
        self.page.keyboard.type(words)
        self._goes(lambda: self.page.keyboard.press("Enter"))

    def open_first(self, address: str) -> None:
        """Click the first link of the page's content to such an address."""
        self._goes(self.page.locator(f"main a[href*='{address}']").first.click)

    def reads(self, part: str) -> str:
        """Return the text of the first such part; it is seen without a further click."""
        assert self.clicks <= MOST
        found = self.page.locator(part).first
        found.scroll_into_view_if_needed()
        assert found.is_visible()
        return str(found.inner_text())

    def _goes(self, act: Any) -> None:
        with self.page.expect_navigation():
            act()
        self.clicks += 1


@pytest.fixture
def visit(browser: Any, server: str) -> Iterator[Visit]:
    begun = Visit(browser, server)
    yield begun
    begun.page.close()


def test_what_did_i_do_last_week(visit: Visit) -> None:
    visit.open("The 7 days up to the latest activity")
    assert "Spring plan for the four beds" in visit.reads("tbody")
    assert "From 2026-0" in visit.reads(".ai-chips")


def test_which_conversation_cost_most_this_month(visit: Visit) -> None:
    visit.open("the highest cost first")
    costs = [
        float(text.lstrip("≥ $<"))
        for text in visit.page.locator("tbody td:nth-child(5)").all_inner_texts()
        if "$" in text
    ]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert visit.reads("tbody tr td a")


def test_where_did_we_fix_something(visit: Visit) -> None:
    visit.search("seedlings die at once")
    visit.open_first("/-/session/5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301")
    assert "seedlings die at once" in visit.reads(".ai-typed")


def test_what_did_i_ask_here(visit: Visit) -> None:
    visit.open("Frost warning in the planting calendar")
    assert "seedlings die at once" in visit.reads(".ai-typed")


def test_which_subagent_did_this(visit: Visit) -> None:
    visit.search("calendar is calendar.py crops and their days")
    visit.open_first("a4c1e07b92d83f516")
    assert "Survey the calendar" in visit.reads("main")


def test_which_file_changes_most(visit: Visit) -> None:
    visit.open("Reports", "header")
    visit.open("Most edited files")
    edits = [int(text) for text in visit.page.locator("tbody td.col-edits").all_inner_texts()]
    assert len(edits) > 1
    assert edits == sorted(edits, reverse=True)
    assert "." in visit.reads("tbody td.col-file")


def test_what_will_be_deleted_soon(visit: Visit) -> None:
    visit.open("Reports", "header")
    visit.open("What is indexed")
    assert re.search(r"Due within 7 days: \d+ file", visit.reads("h2:has-text('delete soon') ~ p"))


def test_what_did_it_cost_and_where_did_that_go(visit: Visit) -> None:
    visit.open("Usage", "header")
    assert re.search(r"Cost\s+≥?\$\d+\.\d\d", visit.reads(".ai-tiles"))
    assert "claude-sonnet-5" in visit.reads("main .ai-columns")
    visit.open("repository", "main")
    assert "fernhill" in visit.reads(".ai-usage tbody")

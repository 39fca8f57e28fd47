"""The pages of a server in a browser: from the front page over a search into a conversation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.machines import Fleet, demo

from assoc_ingest.fleet.connect import DESTINATION

api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("default"),  # Playwright's own
]


def test_a_reader_goes_from_the_front_page_over_a_search_into_a_conversation(
    tmp_path: Path, database: Any, empty_database: str
) -> None:
    fleet = Fleet(tmp_path, empty_database, database)
    fleet.push("laptop", *demo(tmp_path / "homes")).close()
    command = [sys.executable, "-m", "assoc_ingest", "serve", "--remote", "--port", "0"]
    environment = {**os.environ, DESTINATION: empty_database, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as served:
        try:
            _walk(_address(served))
        finally:
            served.terminate()


def _address(served: subprocess.Popen[str]) -> str:
    """The address that the server names when it is ready."""
    assert served.stdout is not None
    for line in served.stdout:
        if found := re.search(r"running on (http://127\.0\.0\.1:\d+)", line):
            return found[1]
    raise AssertionError("the server ended")


def _walk(address: str) -> None:
    with api.sync_playwright() as playwright:
        options = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page()
        bad: list[str] = []
        page.on("pageerror", lambda error: bad.append(str(error)))
        page.on("console", lambda one: bad.append(one.text) if one.type == "error" else None)
        page.on(
            "request",
            lambda one: None if one.url.startswith(address) else bad.append(one.url),
        )
        page.goto(address)
        page.fill("#query", "frost warning")
        page.press("#query", "Enter")
        page.wait_for_url("**/-/assoc/search?q=frost+warning")
        page.click(".ai-card a")
        page.wait_for_url("**/-/session/**")
        assert "laptop" in page.inner_text("#facts")
        page.fill("#seek", "forecast")
        page.locator("#found", has_text="match").wait_for()
        page.locator("mark").first.wait_for(state="attached")
        assert not bad, bad
        browser.close()

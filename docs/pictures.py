"""Prints the pictures of README and docs/: python -m docs.pictures [FOLDER], or make pictures.

They are of a real server on the demonstration homes, on the day after the last thing that happened
in them. Needs what the tests in a browser need: Playwright (`.[browser]`) and Chromium.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from docs.examples import at_home

FOLDER = Path(__file__).parent / "images"
WIDTH = 1200

_SERVER = """
import sys
from datetime import UTC, datetime

from assoc_ingest.__main__ import program
from assoc_ingest.ask import times

times.present = lambda: datetime(2026, 3, 5, 12, tzinfo=UTC)
sys.exit(program())
"""
_PATIENCE = 60  # seconds


class Picture(NamedTuple):
    """The address of a page, and how much of it is shown."""

    path: str
    height: int
    is_dark: bool = False


_FROST = "/assoc/-/session/5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
PICTURES = {
    "conversation": Picture(_FROST, 740),
    "conversation-dark": Picture(_FROST, 740, is_dark=True),
    "front": Picture("/", 740),
    "search": Picture("/-/assoc/search?q=frost", 740),
    "usage": Picture("/assoc/-/stats", 740),
    "table": Picture("/assoc/messages", 740),
}


def take(folder: Path) -> None:
    """Write each picture into the folder."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is not installed.")
    options = ["--disable-gpu", *["--no-sandbox"] * (os.geteuid() == 0)]
    with _served() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        for name, (path, height, is_dark) in PICTURES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": height},
                color_scheme="dark" if is_dark else "light",
            )
            page.goto(server + path)
            page.evaluate("document.activeElement.blur()")
            page.screenshot(path=folder / f"{name}.png")
            page.close()
        browser.close()


@contextmanager
def _served() -> Iterator[str]:
    """Yield the address of a server on the demonstration homes."""
    with at_home() as (home, environment), socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER, "serve", "--port", str(port)],
            cwd=home, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield _address(port, server)
        finally:
            server.terminate()
            server.wait()


def _address(port: int, server: subprocess.Popen[bytes]) -> str:
    """Return the address as soon as it answers."""
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address).close()
            return address
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The server did not start.")


if __name__ == "__main__":
    take(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)

"""Images come from the archive, one at a time, and nothing but an image comes that way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.support.images import image, png
from tests.support.web import Page, Site
from tests.support.writing import (
    SESSION,
    TRANSCRIPT,
    assistant,
    call,
    result,
    user,
    write,
)

from assoc_ingest.sync.run import sync
from assoc_ingest.web import html
from assoc_ingest.web import image as image_page

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

HERE = f"/one/-/session/{SESSION}"
GIF = b"GIF89a" + bytes(40)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    write(
        tmp_path / "home", TRANSCRIPT,
        user([image(png()), {"type": "text", "text": "See here"}], "u1"),
        assistant([call("t1", "Read", file_path="a.gif")], "a1"),
        user([result("t1", [image(GIF, "image/gif")])], "u2"),
        user([image(b"<svg onload='alert(1)'/>", "image/svg+xml")], "u3"),
        user([image(b"<script>alert(1)</script>", "image/png")], "u4"),
        user([image(b"RIFF0000AVI " + bytes(20), "image/webp")], "u5"),
    )  # fmt: skip
    sync(tmp_path / "one.db", [tmp_path / "home"])
    return tmp_path / "one.db"


def addresses(site: Site) -> list[str]:
    return site.get(HERE).links("/image?")


@pytest.mark.slow
def test_the_page_asks_for_each_image_that_a_browser_can_show(database: Path) -> None:
    site = Site(database)
    page = site.get(HERE)
    found = addresses(site)
    assert len(found) == 4  # not the drawing, which is a document
    assert page.text.count('loading="lazy"') == 4
    assert f'alt="[image image/png {len(png())} bytes]"' in page.text
    assert "[image image/svg+xml 24 bytes]" in page.words
    assert page.harmful() == []


@pytest.mark.slow
def test_an_image_comes_as_what_it_is_and_nothing_else(database: Path) -> None:
    site = Site(database)
    first, second, *_ = map(site.get, addresses(site))
    assert (first.status, second.status) == (200, 200)
    assert (first.headers["content-type"], second.headers["content-type"]) == (
        "image/png", "image/gif",
    )  # fmt: skip
    for page in (first, second):
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert page.headers["cache-control"] == "no-store"


@pytest.mark.slow
def test_what_only_says_that_it_is_an_image_is_not_given(database: Path) -> None:
    site = Site(database)
    for address in addresses(site)[2:]:
        page = site.get(address)
        assert page.status == 404
        assert page.headers["content-type"].startswith("text/html")
        assert "Browsers cannot show this image" in page.words
        assert page.harmful() == []


@pytest.mark.slow
def test_an_image_that_is_too_large_is_text(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(database)
    (address, *_) = addresses(site)
    for module in (image_page, html):
        monkeypatch.setattr(module, "LARGEST", 10)
    assert addresses(site) == []
    assert f"[image image/png {len(png())} bytes]" in site.get(HERE).words
    assert "too large" in told(site, address)
    monkeypatch.setattr(image_page, "_LONGEST_LINE", 10)
    assert "too long" in told(site, address)


def test_an_image_that_the_archive_has_lost_is_text(database: Path) -> None:
    site = Site(database)
    (address, *_) = addresses(site)
    with sqlite3.connect(database) as connection:
        connection.execute("delete from archive")
    connection.close()
    assert "The archive does not have this image." in told(site, address)


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("?at=evil", 400), ("?at=1&n=x", 400), ("?at=1&n=9", 404), ("?at=2", 404),
     ("?at=1.7", 404), ("?at=99", 404), ("?at=B7", 404)],
)  # fmt: skip
def test_what_has_no_image_is_told_on_a_page(database: Path, query: str, status: int) -> None:
    page = Site(database).get(f"{HERE}/image{query}")
    assert page.status == status
    assert page.harmful() == []


def told(site: Site, address: str) -> str:
    page: Page = site.get(address)
    assert page.status == 404
    return page.words

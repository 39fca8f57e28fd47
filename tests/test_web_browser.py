"""What only a browser shows: nothing is loaded from elsewhere, nothing runs, pages fit a telephone.

Needs Playwright for Python with axe-core (`.[browser]`) and Chromium; skipped without them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docs.pictures import PICTURES
from tests.support.cases import DEMO
from tests.support.images import image, png
from tests.support.writing import PROJECT, SESSION, TRANSCRIPT, assistant, call, result, user, write

from assoc_ingest import __main__ as program
from assoc_ingest.sync.run import sync
from assoc_ingest.web.pages import for_people

api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("default"),  # Playwright's own
]

ROOT = Path(__file__).parents[1]
QUIET = [
    "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
FROST = "/demo/-/session/5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
LONG = f"/long/-/session/{SESSION}"
PAGES = (
    FROST, f"{FROST}?_agent=a4c1e07b92d83f516", f"/evil/-/session/{SESSION}",
    f"{FROST}?said=1", f"{FROST}?find=frost&at=1", f"/evil/-/session/{SESSION}?find=evil",
    f"{FROST}/timeline", f"/evil/-/session/{SESSION}/timeline",
    "/-/assoc/search?db=demo&q=the", "/-/assoc/search?db=evil&q=evil",
    "/demo/-/stats?when=all", "/evil/-/stats?when=all&by=repository&split=model",
    "/evil/-/stats?when=all&by=tool", "/demo/-/status",
    "/demo/-/project/2", "/demo/-/team/1", "/demo/-/session/nix",
    "/-/assoc?db=demo", "/-/assoc?db=evil", "/demo/-/sessions", "/evil/-/sessions?errors=1",
    "/demo/-/blame?what=/srv/fernhill/calendar.py", "/demo/-/fix",
    "/demo/-/how?command=pytest",
)  # fmt: skip
DATASETTES = (
    "/-/", "/demo", "/demo/sessions", "/evil/messages", "/evil/messages/1", "/demo/ask-errors",
    "/demo?sql=select+1", "/demo/nothing", "/demo/-/reports",
)  # fmt: skip
"""Pages of Datasette's own, and what leads to them."""

WIDE = "x" * 400
EVIL = (
    "evil <script>alert(1)</script><img src=http://evil.example/x.png onerror=alert(2)>"
    f"<svg onload=alert(3)> [a](javascript:alert(4)) ![b](http://evil.example/b.png) {WIDE}\n\n"
    f"|a|b|\n|-|-|\n|{WIDE}|{WIDE}|\n\n```\n{WIDE}\n```\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Datasette on a port that the system chose."""
    place = tmp_path_factory.mktemp("served")
    home = place / "home"
    _write_evil(home)
    sync(place / "demo.db", sorted(DEMO.iterdir()))
    sync(place / "evil.db", [home])
    yield from _served(place, "demo.db", "evil.db")


def _served(place: Path, *databases: str) -> Iterator[str]:
    command = [
        sys.executable, "-m", "datasette", "serve", *databases, "--host", "127.0.0.1", "--port", "0"
    ]  # fmt: skip
    with (place / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=place, stderr=log, stdout=log)
    try:
        yield _address(place / "log", process)
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a conversation of several pages."""
    place = tmp_path_factory.mktemp("long")
    said = [
        line
        for number in range(150)
        for line in (
            user(f"question {number}", f"u{number}", None, number),
            assistant(f"reply to question {number}. " + "More of it.\n\n" * 9, f"a{number}", None,
                      number, id=f"m{number}"),
        )
    ]  # fmt: skip
    write(
        place / "home", TRANSCRIPT, *said,
        user([image(png())], "i1", None, 900), user([image(b"hello")], "i2", None, 901),
    )  # fmt: skip
    sync(place / "long.db", [place / "home"])
    yield from _served(place, "long.db")


def _write_evil(home: Path) -> None:
    write(
        home, TRANSCRIPT, user(EVIL, gitBranch=WIDE),
        assistant([{"type": "text", "text": EVIL}, call("t1", "Bash", command=EVIL),
                   call("t2", "Edit", file_path=WIDE, old_string=WIDE, new_string=EVIL)],
                  model=WIDE, usage={"input_tokens": 5, "output_tokens": 7}),
        user([result("t1", EVIL, is_error=True)], "u2"),
        {"type": "custom-title", "customTitle": EVIL, "sessionId": SESSION},
    )  # fmt: skip
    write(home, f"{PROJECT}/{WIDE[:200]}.jsonl", user("evil", "u9"))


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().split("\n"):
            if "running on http://" in line:
                address = "http://" + line.split("http://")[1].split()[0]
                urllib.request.urlopen(address, timeout=10).close()
                return address
        time.sleep(0.05)
    raise AssertionError(log.read_text())


_FRAGMENT_GOES_FIRST = re.compile(
    r"Autofocus processing was blocked because a document's URL has a fragment"
    r" '#(f\d+-)?[LB][\d.]+'\."
)
"""What Chromium says, late or never, of a page that a link to a line opened: `autofocus` is there
for addresses without a fragment, where no script runs."""


class Watched:
    """A browser that remembers what it should not have seen."""

    def __init__(self, browser: Any, server: str, **options: Any) -> None:
        self.server = server
        self.wrong: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self._note("console", message.text))
        self.page.on("pageerror", lambda error: self._note("error", str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def open(self, path: str) -> Any:
        """Return the page at an address of the server."""
        self.page.goto(self.server + path)
        return self.page

    def _note(self, what: str, text: str) -> None:
        if "status of 404" in text:  # the page that tells it
            return
        if not _FRAGMENT_GOES_FIRST.fullmatch(text):
            self.wrong.append(f"{what}: {text}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self.server):
            self.wrong.append(f"request: {request.url}")


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser, of which nothing stays open after a test."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    arguments = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A directory with an exported conversation and one full of hostile text, as an address."""
    place = tmp_path_factory.mktemp("exported")
    home = place / "home"
    _write_evil(home)
    sync(place / "assoc.db", [*sorted(DEMO.iterdir()), home])
    for key, name in ((FROST.split("/")[-1], "frost.html"), (SESSION, "evil.html")):
        arguments = ["export", key, "-o", str(place / name), "-d", str(place / "assoc.db")]
        assert program.main(arguments) == 0
    return place.as_uri()


@pytest.mark.parametrize("path", [*PAGES, *DATASETTES])
def test_a_page_loads_nothing_from_elsewhere_fits_a_telephone_and_can_be_read_by_all(
    browser: Any, server: str, path: str
) -> None:
    """On a wide screen and in the light, then on a telephone in the dark; all is unfolded."""
    watched = Watched(browser, server, viewport={"width": 1200, "height": 800})
    page = watched.open(path)
    if path in PAGES:
        _demand_that_it_works_for_those_who_hear_it(page)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert watched.wrong == []
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "1280px"
    assert _found_by_axe(page, path) == []
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground, text = json.loads(page.evaluate(_COLOURS))
        assert _contrast(ground, text) > 7
        assert (sum(ground) < 384) == (scheme == "dark")
    assert _found_by_axe(page, path) == []


def _demand_that_it_works_for_those_who_hear_it(page: Any) -> None:
    assert page.locator("main").count() == 1
    assert page.locator("h1").count() == 1
    assert page.locator("html[lang]").count() == 1
    assert page.evaluate(_UNNAMED) == []
    first = "document.querySelector('a[href], button, input, summary').className"
    assert page.evaluate(first) == "ai-skip"
    page.keyboard.press("Tab")
    if "at=" not in page.url:  # there the keyboard goes on from the place that was asked for
        assert page.evaluate("document.activeElement.className") in ("ai-skip", "")


def _found_by_axe(page: Any, path: str) -> list[str]:
    """Return what breaks the rules of WCAG 2.2 AA that a machine can judge."""
    if "sql" in path:  # Datasette's own field for SQL has no label, in any frame
        return []
    # Datasette 1.0 has an element with a property `matches`, which axe takes for the method.
    page.evaluate("document.querySelector('navigation-search')?.remove()")
    return _serious(axe.Axe().run(page).response)


@pytest.mark.parametrize("path", ["/demo/sessions", "/evil/messages", "/demo/ask-errors"])
def test_the_first_row_of_a_table_is_seen_at_once(browser: Any, server: str, path: str) -> None:
    for width in (400, 1200):
        page = Watched(browser, server, viewport={"width": width, "height": 900}).open(path)
        assert page.locator("tbody tr").first.bounding_box()["y"] < 850
        widths = page.evaluate(
            "[...document.querySelectorAll('td > div')].map(one => one.clientWidth)"
        )
        assert max(widths) <= 384


def test_no_word_and_no_number_in_a_table_is_broken(browser: Any, server: str) -> None:
    """A path is broken at a slash, another name at a hyphen, and what is longer is no word."""
    page = Watched(browser, server).open("/demo")
    names = page.evaluate("[...document.querySelectorAll('td a, dt a')].map(one => one.pathname)")
    tables = [name for name in names if name.startswith("/demo/")]
    tables = [f"{name}?_nofacet=1&_nosuggest=1" for name in tables]  # to count takes longest
    reports = [f"/demo/{name}" for name in for_people()]
    own = [path for path in PAGES if "evil" not in path]
    assert len(tables) > 40
    broken, cells = [], 0
    for path in dict.fromkeys([*tables, *reports, *own]):
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(server + path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for width in (1280, 800, 400):
            page.set_viewport_size({"width": width, "height": 800})
            found = page.evaluate(_BROKEN)
            cells += found["cells"]
            broken += [(path, width, *one) for one in found["broken"]]
    assert broken == []
    assert cells > 10_000


def test_titles_of_a_table_are_wide_and_its_numbers_are_at_the_right(
    browser: Any, server: str
) -> None:
    for path in ("/demo/sessions", "/demo/ask-longest-sessions", "/demo/ask-list-sessions"):
        page = Watched(browser, server, viewport={"width": 1280, "height": 800}).open(path)
        widths, aligned = page.evaluate(
            """() => [
                [...document.querySelectorAll("td.col-title .ai-cell")].map((one) =>
                    one.clientWidth / (0.5 * parseFloat(getComputedStyle(one).fontSize))),
                [...document.querySelectorAll("[class*=_count]")].map((one) =>
                    getComputedStyle(one).textAlign + getComputedStyle(one).fontVariantNumeric),
            ]"""
        )
        assert min(widths) >= 30
        assert set(aligned) == {"righttabular-nums"}


def test_a_number_beside_a_filter_is_on_one_line_on_a_telephone(browser: Any, server: str) -> None:
    path = "/-/assoc/search?q=the"
    page = Watched(browser, server, viewport={"width": 400, "height": 900}).open(path)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    lines = page.evaluate(
        """[...document.querySelectorAll('.ai-facets .ai-count')].map(one => {
            one.textContent = '123,456 of 1,234,567'
            const range = document.createRange()
            range.selectNodeContents(one)
            return new Set([...range.getClientRects()].map(box => box.top)).size
        })"""
    )
    assert lines
    assert set(lines) == {1}


@pytest.mark.parametrize(("medium", "width"), [("screen", 1200), ("screen", 400), ("print", 700)])
def test_a_bar_is_as_high_as_its_share_of_the_axis(
    browser: Any, server: str, medium: str, width: int
) -> None:
    options = {"viewport": {"width": width, "height": 800}}
    page = Watched(browser, server, **options).open("/demo/-/stats?when=all")
    page.emulate_media(media=medium)
    height = page.locator(".ai-plot svg").bounding_box()["height"]
    top = float(page.locator(".ai-marks span").first.inner_text().removeprefix("$"))
    bars = [
        (one.bounding_box(), one.locator("title").text_content())
        for one in page.locator(".ai-plot rect").all()
    ]
    assert len(bars) > 3
    for box, said in bars:
        cost = re.search(r"\$(\d+\.\d\d)$", said)
        assert box["width"] >= 2
        if cost and "<" not in said:
            assert box["height"] == pytest.approx(
                height * float(cost[1]) / top, abs=2 + 0.006 * height / top
            )


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("by", ["day", "month", "repository", "session"])
def test_the_texts_of_the_chart_stand_apart_and_no_date_is_broken(
    browser: Any, server: str, width: int, by: str
) -> None:
    options = {"viewport": {"width": width, "height": 800}}
    page = Watched(browser, server, **options).open(f"/demo/-/stats?when=all&by={by}")
    boxes = [one.bounding_box() for one in page.locator(".ai-axis span").all() if one.is_visible()]
    assert len(boxes) > 1
    for before, after in pairwise(boxes):
        assert before["x"] + before["width"] < after["x"]
    assert boxes[-1]["x"] + boxes[-1]["width"] <= width
    if by in ("day", "month"):
        heights = [
            one.bounding_box()["height"]
            for one in page.locator(".ai-usage.ai-dated tbody th a").all()
        ]
        assert max(heights) < 30, "one line"


def test_a_row_of_usage_narrows_the_page_and_a_chip_widens_it_again(
    browser: Any, server: str
) -> None:
    page = Watched(browser, server).open("/demo/-/stats?when=all&by=model")
    whole = page.locator(".ai-usage tfoot td").first.inner_text()
    row = page.locator(".ai-usage tbody tr").first
    cost = row.locator("td").first.inner_text()
    with page.expect_navigation():
        row.locator("a").click()
    assert page.locator(".ai-usage tfoot td").first.inner_text() == cost != whole
    with page.expect_navigation():
        page.locator(".ai-chips a").click()
    assert page.locator(".ai-usage tfoot td").first.inner_text() == whole


def test_the_pictures_of_the_documents_are_taken_all_of_one_size(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "docs.pictures", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    taken = {path.stem: path.read_bytes() for path in tmp_path.iterdir()}
    assert taken.keys() == PICTURES.keys()
    sizes = {struct.unpack(">II", content[16:24]) for content in taken.values()}
    assert len(sizes) == 1
    assert max(map(len, taken.values())) < 300_000


def test_what_was_done_last_week_is_told_without_a_click(browser: Any, server: str) -> None:
    page = Watched(browser, server, viewport={"width": 1280, "height": 800}).open(
        "/-/assoc?db=demo"
    )
    recap = page.locator("section", has=page.locator("#recap"))
    for text in ("4 conversations in 2 repositories", "The plan stands: kale in bed one"):
        assert recap.get_by_text(text).bounding_box()["y"] < 800


def test_what_is_folded_on_a_table_stays_as_it_was(browser: Any, server: str) -> None:
    page = Watched(browser, server).open("/demo/sessions")
    page.locator("summary", has_text="Filter and sort").click()
    page.locator("h1").click()
    assert page.locator("#sort_by").is_visible()


def test_a_call_unfolds_and_stays_so(browser: Any, server: str) -> None:
    page = Watched(browser, server).open(FROST)
    bash = page.locator("details.ai-call", has_text="python -m pytest").first
    assert not bash.locator(".ai-result").is_visible()
    bash.locator("summary").press("Enter")  # with the keyboard
    assert bash.locator(".ai-result").is_visible()
    page.locator("h1").click()
    assert bash.locator(".ai-result").is_visible()


def test_a_hit_leads_to_its_message_on_the_screen(browser: Any, server: str) -> None:
    page = Watched(browser, server).open("/-/assoc/search?db=demo&q=sow&kind=tool_result")
    with page.expect_navigation():
        page.locator(".ai-hit a").first.click()
    assert page.locator(".ai-target").first.is_visible()
    assert "sow = 'May'" in page.locator(".ai-target .ai-result").first.inner_text()


def test_a_click_on_a_facet_narrows_and_another_takes_it_back(browser: Any, server: str) -> None:
    page = Watched(browser, server).open("/-/assoc/search?db=demo&q=frost")
    every = page.locator(".ai-hit").count()
    with page.expect_navigation():
        page.locator(".ai-facets a", has_text="queued prompt").click()
    assert "kind=queued_prompt" in page.url
    assert 0 < page.locator(".ai-hit").count() < every
    with page.expect_navigation():
        page.locator(".ai-chosen").click()
    assert page.locator(".ai-hit").count() == every


@pytest.mark.parametrize(
    "query", ["frost", "seedlngs+wrning+calndar", "frost&kind=document&month=2026-03"]
)
def test_the_first_hit_is_at_most_five_stops_of_the_keyboard_away(
    browser: Any, server: str, query: str
) -> None:
    page = Watched(browser, server).open(f"/-/assoc/search?db=demo&q={query}")
    page.locator("input[type=search]:focus").wait_for()
    stops = []
    for _ in range(5):
        page.keyboard.press("Tab")
        stops.append(page.evaluate("document.activeElement.matches('.ai-hit a')"))
    assert True in stops


def test_facets_stand_at_the_side_where_there_is_room_and_are_folded_elsewhere(
    browser: Any, server: str
) -> None:
    page = Watched(browser, server, viewport={"width": 900, "height": 800}).open(
        "/-/assoc/search?db=demo&q=frost"
    )
    chip, hit = page.locator(".ai-facets a").first, page.locator(".ai-hit a").first
    assert chip.bounding_box()["x"] > hit.bounding_box()["x"] + 300
    page.set_viewport_size({"width": 899, "height": 800})
    assert not chip.is_visible()
    page.locator(".ai-narrow > summary").press("Enter")
    assert chip.is_visible()
    assert chip.bounding_box()["y"] < hit.bounding_box()["y"]


@pytest.mark.parametrize("name", ["frost", "evil"])
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 400)])
def test_an_exported_conversation_needs_nothing_else_and_can_be_read(
    browser: Any, exported: str, name: str, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    watched = Watched(browser, exported, **options)
    page = watched.open(f"/{name}.html")
    assert page.evaluate("document.styleSheets.length") == 1
    page.locator("#fold").click()
    assert page.locator("main details:not([open])").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ground, text = json.loads(page.evaluate(_COLOURS))
    assert _contrast(ground, text) > 7
    assert (sum(ground) < 384) == (scheme == "dark")
    assert watched.wrong == []


def test_an_address_with_a_line_opens_what_it_is_folded_in(browser: Any, exported: str) -> None:
    page = Watched(browser, exported).open("/frost.html#a4c1e07b92d83f516-L3")
    assert page.locator(":target").is_visible()
    assert "crops" in page.locator(":target").inner_text()


def test_an_exported_conversation_is_read_without_scripts(browser: Any, exported: str) -> None:
    page = Watched(browser, exported, java_script_enabled=False).open("/frost.html")
    assert not page.locator("#fold").is_visible()
    call = page.locator("details.ai-call", has_text="python -m pytest").first
    call.locator("summary").click()
    assert call.locator(".ai-result").is_visible()


def test_axe_finds_nothing_serious_in_an_export(browser: Any, exported: str) -> None:
    page = Watched(browser, exported).open("/frost.html")
    page.locator("#fold").click()
    assert _serious(axe.Axe().run(page).response) == []


# -- the page of a conversation, with and without its scripts -------------------------------------


def test_keys_go_from_message_to_message_and_from_prompt_to_prompt(browser: Any, long: str) -> None:
    watched = Watched(browser, long, viewport={"width": 1200, "height": 600})
    page = watched.open(LONG)
    for key, text in (
        ("n", "question 0"), ("n", "question 1"), ("j", "reply to question 1."),
        ("j", "question 2"), ("k", "reply to question 1."), ("p", "question 1"),
        ("p", "question 0"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert text in _held(page), key
        assert page.locator(":focus").is_visible()
    page.locator("#seek").fill("jknpgG?")  # keys are letters where one types
    assert not page.locator("#keys").is_visible()
    page = Watched(browser, long, viewport={"width": 1200, "height": 600}).open(f"{LONG}#L199")
    for key, text in (("n", "question 100"), ("k", "reply to question 99."), ("k", "question 99")):
        page.keyboard.press(key)  # question 100 is on the next page
        page.wait_for_function(
            "text => document.activeElement.closest('article')?.innerText.includes(text)", arg=text
        )
    page.keyboard.press("G")
    page.get_by_text("question 149", exact=True).first.wait_for()
    page.wait_for_function("() => scrollY > innerHeight")  # images at the end come later
    page.keyboard.press("g")
    page.get_by_text("question 0", exact=True).first.wait_for()
    page.wait_for_function("() => scrollY === 0")
    assert watched.wrong == []


def test_a_list_says_what_the_keys_do_and_they_can_be_switched_off(browser: Any, long: str) -> None:
    watched = Watched(browser, long)
    page = watched.open(LONG)
    page.keyboard.press("?")
    assert "next and previous message" in page.locator("#keys").inner_text()
    assert _serious(axe.Axe().run(page).response) == []
    page.get_by_label("Use these keys").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.locator("#help").click()
    page.get_by_label("Use these keys").check()
    page.locator("#keys-close").click()
    page.keyboard.press("n")
    assert "question 0" in _held(page)
    assert watched.wrong == []


def test_what_is_typed_is_found_at_once_on_all_pages(browser: Any, long: str) -> None:
    watched = Watched(browser, long, viewport={"width": 1200, "height": 600})
    page = watched.open(LONG)
    page.evaluate("window.isTheSame = true")
    page.keyboard.press("/")
    page.keyboard.type('"reply to question 120"')  # which is on the second page
    found = page.locator("#found")
    found.get_by_text("1 of 1 match").wait_for()
    mark = page.locator(".ai-target mark").first
    box = mark.bounding_box()
    assert "reply" in mark.inner_text()
    assert 0 < box["y"] < 600
    page.locator("#seek").fill("repl")  # a word that is not yet whole
    found.get_by_text("of 150 matches").wait_for()
    number = int(found.inner_text().split()[0])
    for key, step in (("Enter", 1), ("Enter", 2), ("Shift+Enter", 1)):
        page.locator("#seek").press(key)
        found.get_by_text(f"{number + step} of 150 matches").wait_for()
    page.locator("#seek").press("Escape")
    page.wait_for_function("() => !document.getElementById('found').textContent")
    assert "find=" not in page.url
    page.go_back()
    found.get_by_text("of 150 matches").wait_for()
    assert page.locator("#seek").input_value() == "repl*"
    assert page.evaluate("window.isTheSame")  # the page was never loaded again
    assert watched.wrong == []


def test_without_scripts_the_page_has_links_for_all_of_it(browser: Any, long: str) -> None:
    page = Watched(browser, long, java_script_enabled=False).open(LONG)
    assert not page.locator("#copy").is_visible()
    page.locator(".ai-typed .ai-next").first.click()
    assert page.url.endswith("#L3")
    page.locator("#seek").fill("reply")
    with page.expect_navigation():
        page.get_by_role("button", name="Find", exact=True).click()
    page.locator("#find-next").click()
    assert "2 of 150" in page.locator(".ai-seek").inner_text()
    assert page.locator(".ai-map").get_by_text("question 4", exact=True).is_visible()


def test_the_map_is_beside_the_page_and_folded_on_a_telephone(browser: Any, long: str) -> None:
    page = Watched(browser, long, viewport={"width": 1200, "height": 800}).open(LONG)
    line = page.locator(".ai-map").get_by_text("question 4", exact=True)
    assert line.is_visible()
    assert line.bounding_box()["x"] > 800
    page.set_viewport_size({"width": 400, "height": 800})
    page.reload()
    assert not line.is_visible()
    page.locator("#map > summary").click()
    assert line.is_visible()
    line.click()
    assert page.url.endswith("#L9")


def test_a_conversation_begins_at_the_top_of_its_page(browser: Any, server: str) -> None:
    page = Watched(browser, server, viewport={"width": 1280, "height": 800}).open(FROST)
    assert page.evaluate(_FIRST_LINE) < 200
    assert page.locator("#facts").bounding_box()["height"] < 30  # one line
    assert not page.get_by_text("How was this counted?").is_visible()
    page.get_by_text("Details", exact=True).click()
    assert page.get_by_text("How was this counted?").is_visible()


def test_other_conversations_are_beside_it_and_folded_where_there_is_no_room(
    browser: Any, server: str
) -> None:
    path = f"{FROST}?project=fernhill"
    for scripts in (True, False):
        page = Watched(browser, server, java_script_enabled=scripts,
                       viewport={"width": 1100, "height": 800}).open(path)  # fmt: skip
        beside = page.locator(".ai-beside")
        here = beside.locator("[aria-current=page]")
        assert "Frost warning" in here.inner_text()
        assert here.bounding_box()["x"] < page.locator(".ai-body").bounding_box()["x"]
        assert beside.evaluate("list => list.scrollWidth <= list.clientWidth")
        page.set_viewport_size({"width": 400, "height": 800})
        assert not here.is_visible()
        beside.locator("summary").click()
        assert here.is_visible()
    with page.expect_navigation():
        beside.locator("li:not(.ai-here) a").first.click()
    assert page.url.endswith("?project=fernhill")
    texts = page.locator(".ai-beside li .ai-facts > :first-child").all_text_contents()
    assert set(texts) == {"fernhill"}


def test_the_command_that_resumes_can_be_copied(browser: Any, server: str) -> None:
    watched = Watched(browser, server)
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.open(FROST)
    page.locator("#copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#resume").text_content()
    assert watched.wrong == []


def test_an_image_is_shown_and_one_that_is_not_there_is_text(browser: Any, long: str) -> None:
    page = Watched(browser, long).open(f"{LONG}?_end=1")
    loaded = "one => one.complete && one.naturalWidth"
    first, second = page.locator(".ai-picture img").all()
    for one in (first, second):
        one.scroll_into_view_if_needed()
        one.evaluate("one => one.complete || new Promise(done => one.onload = one.onerror = done)")
    assert first.evaluate(loaded) == 8
    assert second.evaluate(loaded) == 0
    assert second.get_attribute("alt") == "[image image/png 5 bytes]"


def test_new_messages_come_into_the_open_page_and_nothing_moves(
    browser: Any, tmp_path: Path
) -> None:
    """More than a page of them, and the result of a call that was waiting for it."""
    home = tmp_path / "home"
    lines = [user(f"question {number}", f"u{number}", None, number) for number in range(190)]
    lines.append(assistant([call("t1", "Bash", command="make")], "a1", None, 200))
    write(home, TRANSCRIPT, *lines)
    sync(tmp_path / "long.db", [home])
    served = _served(tmp_path, "long.db")
    watched = Watched(browser, next(served), viewport={"width": 1200, "height": 600})
    page = watched.page
    page.clock.install()
    watched.open(LONG)
    page.locator("details.ai-call summary").click()
    page.locator("#L100").scroll_into_view_if_needed()
    before = page.locator("#L100").bounding_box()
    with page.expect_response("**/news?*"):
        page.clock.run_for(5_000)
    assert not page.locator("#news").is_visible()
    lines.append(user([result("t1", "it is made")], "u300", None, 300))
    lines += [user(f"later {number}", f"v{number}", None, 400 + number) for number in range(20)]
    write(home, TRANSCRIPT, *lines)
    sync(tmp_path / "long.db", [home])
    page.clock.run_for(7_000)
    page.locator("#news a").wait_for()
    assert page.locator("#news").inner_text() == "20 new entries, show"
    assert page.locator("#L100").bounding_box() == before
    assert page.locator("#entries > .ai-typed").count() == 210
    assert page.locator("details.ai-call[open] .ai-result").inner_text().endswith("it is made")
    page.locator("#news a").click()
    assert not page.locator("#news").is_visible()
    assert 0 < page.get_by_text("later 0", exact=True).last.bounding_box()["y"] < 600
    assert watched.wrong == []
    served.close()


def _held(page: Any) -> str:
    """Return the text of the message that the keyboard is at."""
    return str(page.evaluate("document.activeElement.closest('#entries > *')?.innerText"))


_BROKEN = r"""() => {
    const words = [
        /(?<![^\s(])(?:\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|[≥~$]*\d[\d.,]*)(?![^\s),;])/,
        /(?<![^\s/<-])[^\s/<-]{1,24}(?=[\s/<-]|$)/,
    ]
    const pieces = RegExp(words.map((one) => one.source).join("|"), "g")
    const broken = [], cells = document.querySelectorAll("td, th, dd")
    for (const cell of cells) {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT)
        while (texts.nextNode()) {
            const { data, parentElement } = texts.currentNode
            const isOther = parentElement.closest(".ai-unseen, svg, pre, code, .ai-prose")
            if (isOther || !parentElement.checkVisibility()) continue
            for (const piece of data.matchAll(pieces)) {
                const range = document.createRange()
                range.setStart(texts.currentNode, piece.index)
                range.setEnd(texts.currentNode, piece.index + piece[0].length)
                const boxes = [...range.getClientRects()].filter((box) => box.width)
                const lines = new Set(boxes.map((box) => Math.round(box.top)))
                if (lines.size > 1) broken.push([cell.dataset.column, piece[0]])
            }
        }
    }
    return { broken, cells: cells.length }
}"""
_COLOURS = """() => JSON.stringify(["backgroundColor", "color"].map(name =>
    getComputedStyle(document.body)[name].match(/\\d+/g).slice(0, 3).map(Number)))"""
_FIRST_LINE = """() => {
    const texts = document.createTreeWalker(document.querySelector("article .ai-prose"), 4)
    while (!texts.nextNode().textContent.trim());
    const range = document.createRange()
    range.selectNodeContents(texts.currentNode)
    return range.getBoundingClientRect().top
}"""
_UNNAMED = """() => [...document.querySelectorAll("a[href], button, input, select")]
    .filter(one => one.type != "hidden" && !one.textContent.trim() && !one.labels?.length)
    .map(one => one.outerHTML)"""


def _serious(found: Any) -> list[tuple[str, ...]]:
    """Return what axe found that keeps someone from reading."""
    assert len(found["passes"]) > 10
    return [
        (rule["id"], rule["impact"], node["html"][:200], node["failureSummary"][:300])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def _contrast(first: list[int], second: list[int]) -> float:
    """Return the ratio of luminances as WCAG defines it."""

    def luminance(colour: list[int]) -> float:
        parts = [part / 255 for part in colour]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)

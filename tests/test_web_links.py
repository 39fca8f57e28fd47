"""Addresses of messages last: they name a file and a line, and open the same text on every database
that has read the file.
"""

from __future__ import annotations

import html
import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.web import Page, Site
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    Object,
    agent,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
)

from assoc_ingest.files import archive
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.web.paging import PAGE

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

HERE = f"/one/-/session/{SESSION}"
FORK = f"/one/-/session/{OTHER}"
AGENT = "a4c1e07b"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"[:36]


def said(count: int, word: str = "question", since: int = 0, **more: Any) -> list[Object]:
    return [
        line
        for number in range(count)
        for line in (
            user(f"{word} {number}", f"u{word}{number}", None, since + number, **more),
            assistant(f"reply to {word} {number}", f"a{word}{number}", None, since + number,
                      id=f"m{word}{number}", **more),
        )
    ]  # fmt: skip


def marked(page: Page) -> str:
    """Return the id of what is marked, which is one thing."""
    (tag,) = re.findall(r"<[^>]* ai-target\"[^>]*>", page.text)
    assert "autofocus" in tag  # so that a browser scrolls to it
    return html.unescape(re.findall(r' id="([^"]*)"', tag)[0])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("links") / "home"
    thought = [{"type": "thinking", "thinking": "ponder"}, {"type": "text", "text": "two blocks"}]
    write(
        home, TRANSCRIPT,
        *said(PAGE),
        assistant(thought, "a1", None, 500, id="two"),
        assistant([call("toolu_1", "Task", prompt="look")], "a2", "a1", 501, id="spawn"),
        *said(5, "meanwhile", 502),
        user([result("toolu_1", f"found\nagentId: {AGENT}")], "u2", "a2", 520,
             toolUseResult={"agentId": AGENT}),
        b"\x7b broken",
        user(f"the last, with {TOKEN}", "u3", "u2", 521),
    )  # fmt: skip
    lines = agent(AGENT, user("look", "v1")), agent(AGENT, assistant("looked", "w1", id="w"))
    write(home, f"{PROJECT}/{SESSION}/subagents/agent-{AGENT}.jsonl", *lines)
    copied = [{**line, "sessionId": OTHER} for line in said(3)]
    write(home, f"{PROJECT}/{OTHER}.jsonl", *copied, *said(2, "novelty", 900, sessionId=OTHER))
    return home


@pytest.fixture(scope="module")
def database(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "one.db"
    sync(path, [home])
    return path


@pytest.fixture(scope="module")
def site(database: Path) -> Site:
    return Site(database)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("address", "anchor", "text"),
    [
        (f"{HERE}?at=1", "L1", "question 0"),
        (f"{HERE}?at={PAGE}", f"L{PAGE}", f"reply to question {PAGE // 2 - 1}"),
        (f"{HERE}?at={2 * PAGE + 1}.1", f"L{2 * PAGE + 1}.1", "two blocks"),
        (f"{HERE}?at={2 * PAGE + 1}", f"L{2 * PAGE + 1}", "two blocks"),
        (f"{HERE}?at={2 * PAGE + 13}", f"L{2 * PAGE + 2}", "found"),  # a result is in its call
        (f"/one/-/session/{AGENT}?at=2", f"{AGENT}-L2", "looked"),
        (f"{HERE[:-20]}?at=1", "L1", "question 0"),
    ],
)
def test_an_address_with_a_line_opens_its_page_and_marks_the_message(
    site: Site, address: str, anchor: str, text: str
) -> None:
    page = site.get(address)
    assert page.status == 200
    assert marked(page) == anchor
    assert text in page.words


@pytest.mark.slow
def test_every_message_links_to_itself_and_no_link_has_the_id_of_a_row(site: Site) -> None:
    found = []
    for address in (HERE, f"{HERE}?_end=1", f"{HERE}?_agent={AGENT}", "/-/assoc/search?q=reply"):
        links = site.get(address).links("/-/session/")
        assert not [link for link in links if re.search(r"_at=|_after=|#m\d", link)]
        found += [link for link in links if "?at=" in link and "#" in link]
    assert len(found) > PAGE
    for link in found[::40]:
        page, anchor = site.get(link.partition("#")[0]), link.partition("#")[2]
        assert anchor == marked(page)


@pytest.mark.slow
def test_a_line_of_the_second_file_has_its_number(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home, TRANSCRIPT, *said(3))
    write(home, f"projects/-srv-other/{SESSION}.jsonl", *said(2, "second", 60))
    sync(tmp_path / "one.db", [home])
    site = Site(tmp_path / "one.db")
    page = site.get(f"{HERE}?at=2:3")
    assert marked(page) == "f2-L3"
    assert f"{HERE}?at=2:3#f2-L3" in page.links()
    assert "second 1" in text_at(site, f"{HERE}?at=2:3#f2-L3")


@pytest.mark.slow
def test_objects_in_one_line_and_lines_that_the_archive_has_lost_have_addresses(
    tmp_path: Path,
) -> None:
    home, database = tmp_path / "home", tmp_path / "one.db"
    both = dumps(user("one of two")) + dumps(user("two of two", "u2"))
    write(home, TRANSCRIPT, user("before", "u0"), both)
    sync(database, [home])
    site = Site(database)
    links = site.get(HERE).links("?at=")
    assert [link.partition("#")[2].partition(".")[0] for link in links] == ["L1", "L2", "L2"]
    assert "two of two" in text_at(site, links[2])
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("delete from archive")
    connection.close()
    lost = site.get(HERE).links("?at=B")
    assert "two of two" in text_at(site, lost[-1])
    assert site.get(f"{HERE}?at=2").status == 404


@pytest.mark.slow
def test_an_address_opens_the_same_text_after_a_rebuild_and_on_another_machine(
    site: Site, database: Path, home: Path, tmp_path: Path
) -> None:
    links = [*site.get(f"{HERE}?_end=1").links("#L")[::25], *site.get(FORK).links("#L")[::4]]
    links = [link for link in links if "?at=" in link]
    before = [text_at(site, link) for link in links]
    assert len(set(before)) > 8
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(home, elsewhere)
    other = elsewhere.parent / "another-home"
    write(other, f"{PROJECT}/{THIRD}.jsonl", *said(9, "unrelated", sessionId=THIRD))
    sync(tmp_path / "one.db", [other])  # so that all rows have other ids
    sync(tmp_path / "one.db", [other, elsewhere])
    there = Site(tmp_path / "one.db")
    assert [text_at(there, link) for link in links] == before


def text_at(site: Site, link: str) -> str:
    address, _, anchor = link.partition("#")
    page = site.get(address)
    assert page.status == 200
    behind = page.text.split(f' id="{html.escape(anchor)}"')
    assert len(behind) == 2, anchor
    words = re.sub(r"<[^>]*>", " ", behind[1].partition(">")[2].partition("</article>")[0])
    return " ".join(words.split())[:200].partition(" row ")[2][:60]


@pytest.mark.slow
def test_an_address_with_the_id_of_a_row_leads_to_the_one_with_its_line(
    site: Site, database: Path
) -> None:
    connection = open_reader(database)
    (row,) = connection.execute("select id from messages where text = 'question 150'").fetchone()
    moved = site.get(f"{HERE}?_at={row}")
    assert moved.status == 302
    assert moved.headers["location"] == f"{HERE}?at=301#L301"
    assert site.get(f"{HERE}?_after={row}").headers["location"] == f"{HERE}?after=301"
    elsewhere = site.get(f"{FORK}?_at={row}")  # of another conversation, or of none any more
    assert elsewhere.status == 200
    assert f"This conversation has no message {row}" in elsewhere.words
    assert "novelty 1" in elsewhere.words


@pytest.mark.slow
def test_a_fork_folds_what_it_copied_and_says_where_it_becomes_new(site: Site) -> None:
    page = site.get(FORK)
    assert page.text.count('<div class="ai-copies">') == 1
    copies, own = page.text.split("New messages start here")
    assert "6 messages copied from another conversation" in copies
    assert re.search(rf'Copied from <a href="{re.escape(HERE)}\?at=1#L1">', copies)
    assert f'<a href="{FORK}?at=7#L7">First new message</a>' in copies
    assert f'<a href="{HERE}?at=2#L2">original</a>' in copies
    assert "reply to question 2" in copies
    assert "novelty 0" in own
    assert ">copy</span>" not in own
    assert "ai-copies" not in site.get(HERE).text


@pytest.mark.slow
def test_a_fork_of_more_than_a_page_links_to_where_it_becomes_new(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(home, TRANSCRIPT, *said(PAGE))
    copied = [{**line, "sessionId": OTHER} for line in said(PAGE)]
    write(
        home, f"{PROJECT}/{OTHER}.jsonl", *copied, user("novelty", "x", None, 900, sessionId=OTHER)
    )
    sync(tmp_path / "one.db", [home])
    site = Site(tmp_path / "one.db")
    link, *_ = re.findall(r'<a href="([^"]*)">First new message', site.get(FORK).text)
    page = site.get(link.partition("#")[0])
    assert marked(page) == f"L{2 * PAGE + 1}"
    assert "New messages start here" in page.words


def test_what_a_fork_of_a_fork_copied_is_folded_by_where_it_was_first_said(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = said(2), said(2, "second", 600)
    for key, lines in (
        (SESSION, first), (OTHER, [*first, *second]), (THIRD, [*first, *second, user("x", "x9")]),
    ):  # fmt: skip
        copied = [{**line, "sessionId": key} for line in lines]
        write(home, f"{PROJECT}/{key}.jsonl", *copied)
    sync(tmp_path / "one.db", [home])
    page = Site(tmp_path / "one.db").get(f"/one/-/session/{THIRD}")
    found = re.findall(r'Copied from <a href="([^"]*)"', page.text)
    assert found == [f"{HERE}?at=1#L1", f"{FORK}?at=5#L5"]


@pytest.mark.slow
def test_a_conversation_that_is_in_two_homes_is_no_copy_of_itself(tmp_path: Path) -> None:
    write(tmp_path / "aaa", TRANSCRIPT, *said(2), user("left behind", "u9", None, 1))
    write(tmp_path / "home", TRANSCRIPT, *said(5))
    sync(tmp_path / "one.db", [tmp_path / "aaa", tmp_path / "home"])
    page = Site(tmp_path / "one.db").get(HERE)
    assert "question 4" in page.words
    assert ">copy</span>" in page.text
    assert "ai-copies" not in page.text


@pytest.mark.parametrize(
    ("address", "text", "link"),
    [
        (f"/one/-/session/{SESSION[:12]}x", "The nearest keys:", HERE),
        (f"{HERE}?at=9999", "Line 9,999 is beyond the end", f"{HERE}?at={2 * PAGE + 15}"),
    ],
)
def test_what_is_not_there_leads_to_what_is_nearest(
    site: Site, address: str, text: str, link: str
) -> None:
    page = site.get(address)
    assert page.status == 404
    assert text in page.words
    assert link in page.links()
    assert 'role="search"' in page.text


@pytest.mark.slow
def test_a_page_reads_each_part_of_the_archive_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is about 1 MB, and the numbers of 200 lines could be counted from its start each."""
    write(tmp_path / "home", TRANSCRIPT, *said(PAGE // 2, "long " * 6_000))
    sync(tmp_path / "one.db", [tmp_path / "home"])
    read: list[int] = []
    pieces_of = archive._pieces

    def counted(frame: archive.Frame, file: int) -> Iterator[bytes]:
        read.append(frame.start)
        return pieces_of(frame, file)

    monkeypatch.setattr(archive, "_pieces", counted)
    assert len(Site(tmp_path / "one.db").get(HERE).links("?at=")) == PAGE
    assert len(read) == len(set(read)) > 3


def test_a_line_without_a_message_opens_the_nearest_and_says_so(site: Site) -> None:
    page = site.get(f"{HERE}?at={2 * PAGE + 14}")
    assert page.status == 200
    assert "holds no message; the nearest that does is" in page.words


@pytest.mark.parametrize("written", ["garden%20plan", "garden+plan", "~67arden+plan"])
def test_a_project_is_found_however_its_space_is_written(tmp_path: Path, written: str) -> None:
    write(tmp_path / "home", TRANSCRIPT, user("dig", cwd="/srv/garden plan"))
    sync(tmp_path / "one.db", [tmp_path / "home"])
    page = Site(tmp_path / "one.db").get(f"/one/-/project/{written}")
    assert page.status == 200
    assert "garden plan" in page.words


@pytest.mark.slow
@pytest.mark.parametrize(("form", "begin"), [("html", "<!DOCTYPE html>"), ("md", "# question 0")])
def test_a_conversation_can_be_downloaded_with_its_credentials_masked(
    site: Site, form: str, begin: str
) -> None:
    page = site.get(HERE)
    assert f'action="{HERE}/export"' in page.text
    assert re.search(r'<input type="checkbox" name="redact" value="0">', page.text)
    file = site.get(f"{HERE}/export?format={form}")
    assert file.status == 200
    assert file.headers["content-disposition"] == f'attachment; filename="{SESSION}.{form}"'
    assert file.headers["content-security-policy"].startswith("default-src 'none'")
    assert file.text.startswith(begin)
    assert f"reply to question {PAGE - 1}" in file.text
    assert TOKEN[4:] not in file.text
    assert TOKEN[4:] in site.get(f"{HERE}/export?format={form}&redact=0").text


def test_what_cannot_be_exported_is_told_on_a_page(site: Site) -> None:
    assert site.get(f"{HERE}/export?format=pdf").status == 400
    assert site.get("/one/-/session/nix/export").status == 404


def test_the_command_that_resumes_is_one_text_with_its_directory(site: Site) -> None:
    shown = re.findall(r'<code class="ai-copy"[^>]*>(.*?)</code>', site.get(HERE).text)
    assert shown == [f"cd /srv/demo &amp;&amp; claude --resume {SESSION}"]

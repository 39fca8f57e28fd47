"""`serve --remote` shows what `serve` shows of a database that has read all homes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.hostile import spoil
from tests.support.images import image, png
from tests.support.machines import Fleet, demo
from tests.support.postgres import own_server
from tests.support.web import Page, Site
from tests.support.writing import SESSION, TRANSCRIPT, assistant, call, result, user, write

from assoc_ingest.cli import cli
from assoc_ingest.errors import FleetError, UsageError
from assoc_ingest.fleet import devices, server
from assoc_ingest.fleet.connect import DESTINATION
from assoc_ingest.fleet.pages import Pool
from assoc_ingest.fleet.search import Central
from assoc_ingest.store.database import writing
from assoc_ingest.sync.run import sync
from assoc_ingest.web import serve

pytestmark = [
    pytest.mark.citus,
    pytest.mark.filterwarnings("default"),  # Datasette's own
]

FROST = "/fleet/-/session/5e1f0c9a"
SAME = (
    "/-/assoc", "/-/assoc?recap=today", "/fleet/-/sessions", "/fleet/-/sessions?sort=cost",
    "/fleet/-/sessions?sort=messages&source=claude", "/fleet/-/sessions?month=2026-03",
    "/fleet/-/sessions?errors=1", "/fleet/-/sessions?min_cost=0.01&branch=main",
    FROST, f"{FROST}/timeline", f"{FROST}?at=4", f"{FROST}?said=1", f"{FROST}?find=frost",
    f"{FROST}?_agent=a4c1e07b92d83f516", "/fleet/-/session/nope",
    "/fleet/-/stats?when=all", "/fleet/-/stats?when=all&by=repository&split=model",
    "/fleet/-/stats?when=all&by=session", "/fleet/-/stats?when=all&by=tool",
    "/fleet/-/recap?when=2026-03", "/fleet/-/recap?since=2026-01-01&until=2026-12-31&by=repository",
)  # fmt: skip
"""Pages that both have."""

_MACHINE = re.compile(r" ?\((?:laptop|desktop)\)")
_OF_TABLES = re.compile(
    r"\b(?:row|Row , messages as a table , as JSON|All projects|Reports"
    r"|See also activity by weekday and hour .)"
)
_LAST = re.compile(r"\bLast (?:push|sync): [0-9-]+ [0-9:]+")
"""To the minute, in which both fall as a rule."""


@pytest.fixture
def fleet(tmp_path: Path, database: Any, empty_database: str) -> Fleet:
    return Fleet(tmp_path, empty_database, database)


@pytest.fixture
def remote(fleet: Fleet) -> Iterator[Site]:
    """The pages of the server."""
    yield from served(fleet, fleet.destination)


def served(fleet: Fleet, destination: str) -> Iterator[Site]:
    """Yield the pages as this login sees them."""
    empty = fleet.place / "served" / "fleet.db"
    empty.parent.mkdir(exist_ok=True)
    with writing(empty):
        pass
    with serve.reading_from(Pool(destination)):
        yield Site(empty)


def test_pages_have_the_texts_of_a_database_that_has_read_all_homes(
    fleet: Fleet, remote: Site, tmp_path: Path
) -> None:
    homes, other_home = demo(tmp_path / "homes"), tmp_path / "other"
    lines = (
        user("Water the greenhouse", "u1", cwd="/srv/greenhouse"),
        assistant([call("t1", command="make water")], cwd="/srv/greenhouse"),
        user([result("t1", "no frost")], "u2", "a1", 2),
    )
    write(other_home, f"projects/-srv-greenhouse/{SESSION}.jsonl", *lines)
    (tmp_path / "local").mkdir()
    sync(tmp_path / "local" / "fleet.db", [*homes, other_home])
    fleet.push("laptop", *homes).close()
    fleet.push("desktop", other_home).close()
    there = {address: remote.get(address) for address in SAME}
    other = {}
    serve._remote.clear()
    for address in SAME:
        here = Site(tmp_path / "local" / "fleet.db").get(address)
        if (said(here), here.status) != (said(there[address]), there[address].status):
            other[address] = said(here), said(there[address])
        assert not there[address].harmful(), address
    assert not other, other


def test_every_link_leads_to_a_page_that_is_there(
    fleet: Fleet, remote: Site, tmp_path: Path
) -> None:
    """Hostile text is in all columns, and acts nowhere.

    Of addresses that differ in their parameters alone, some are looked at.
    """
    homes = demo(tmp_path / "homes")
    for home in homes:
        spoil(home)
    fleet.push("laptop", *homes).close()
    seen: Counter[str] = Counter()
    waiting, known = ["/", "/-/assoc/search?q=frost", "/fleet/-/recap?when=2026"], set()
    kinds = set()
    while waiting:
        address = waiting.pop()
        page = remote.get(address)
        assert page.status in (200, 300, 302), (address, page.words[:300])
        assert not page.harmful(), address
        kinds.add(_kind(address))
        for link in page.links():
            link = link.partition("#")[0]
            if link.startswith("/") and link not in known and seen[_kind(link)] < 3:
                known.add(link)
                seen[_kind(link)] += 1
                waiting.append(link)
    assert kinds >= {
        "/", "/-/assoc", "/-/assoc/search", "/fleet/-/recap", "/fleet/-/sessions",
        "/fleet/-/session/*", "/fleet/-/session/*/timeline", "/fleet/-/project/*",
        "/fleet/-/stats",
    }, kinds  # fmt: skip


def _kind(address: str) -> str:
    """The path of an address without what it names."""
    return re.sub(r"/(session|project|team)/[^/?]+", r"/\1/*", address.partition("?")[0])


@pytest.mark.parametrize(
    "address", ["/fleet", "/fleet/messages", "/fleet/messages/1", "/fleet.json?sql=select+1",
                "/-/", "/-/databases", "/fleet/-/reports", "/fleet/-/status", "/fleet/-/blame",
                "/fleet/ask-errors", "/_internal", "/fleet/-/query?sql=select+1"],
)  # fmt: skip
def test_a_page_that_is_not_there_says_what_to_run(remote: Site, address: str) -> None:
    page = remote.get(address)
    assert page.status == 404
    assert "not there with --remote" in page.words
    assert "assoc-ingest query NAME --remote" in page.words


def test_images_exports_and_news_are_those_of_the_machine(
    fleet: Fleet, remote: Site, tmp_path: Path
) -> None:
    lines = [
        user([{"type": "text", "text": "Look"}, image(png())], "u1"),
        assistant("A square", "a1", "u1"),
        user("And now?", "u2", "a1", 2),
    ]
    write(tmp_path / "home", TRANSCRIPT, *lines)
    fleet.push("laptop", tmp_path / "home").close()
    page = remote.get(f"/fleet/-/session/{SESSION}")
    shown = re.findall(r'<img[^>]* src="([^"]+)"', page.text)
    assert len(shown) == 1, page.text
    loaded = remote.get(unescape(shown[0]))
    assert (loaded.status, loaded.headers["content-type"]) == (200, "image/png")
    exported = remote.get(f"/fleet/-/session/{SESSION}/export?format=md")
    assert "A square" in exported.text
    news = remote.get(f"/fleet/-/session/{SESSION}/news?after=2")
    assert json.loads(news.text)["lines"] == 1


def test_a_recap_asks_the_server_as_often_for_many_conversations_as_for_few(
    fleet: Fleet, remote: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question takes as long as the way to the server and back."""
    asked: list[str] = []
    execute = Central.execute

    def counted(self: Central, query: str, parameters: Any = None) -> Any:
        asked.append(query)
        return execute(self, query, parameters)

    monkeypatch.setattr(Central, "execute", counted)
    counts, pages = [], []
    for name in ("one", "two"):
        for number in range(5):
            key = f"{name}{number}0000-garden"
            said = {"sessionId": key, "cwd": "/srv/shop"}
            write(
                tmp_path / name, f"projects/-srv-shop/{key}.jsonl",
                user("Plant the beans", f"u{key}", **said),
                user("And the kale", f"v{key}", f"u{key}", 2, **said),
                assistant(f"Planted by {key}", f"a{key}", f"v{key}", 3, **said),
            )  # fmt: skip
        fleet.push(name, tmp_path / name).close()
        asked.clear()
        pages.append(remote.get("/fleet/-/recap?when=2026"))
        counts.append(len(asked))
    assert ["Planted by two3" in page.words for page in pages] == [False, True]
    assert counts[0] == counts[1], asked
    (outcome,) = {link for link in pages[1].links("at=B") if "two3" in link}
    assert "Planted by two3" in remote.get(outcome).words


def test_a_conversation_of_two_machines_opens_that_of_the_one_that_was_found(
    fleet: Fleet, remote: Site, tmp_path: Path
) -> None:
    said = [user("Water the beans", "u1"), assistant("Done", "a1", "u1")]
    for name, more in (("one", []), ("two", [user("And the kale", "u2", "a1", 2)])):
        write(tmp_path / name, TRANSCRIPT, *said, *more)
        fleet.push(name, tmp_path / name).close()
    page = remote.get(f"/fleet/-/session/{SESSION}")
    assert "Done" in page.words
    assert str(tmp_path / "one") in page.words
    assert str(tmp_path / "two") in page.words
    other = remote.get(f"/fleet/-/session/{SESSION}?at=3&origin=two")
    assert (other.status, other.headers["location"]) == (302, f"/fleet/-/session/{SESSION}?at=2:3")
    assert "And the kale" in remote.get(other.headers["location"]).words


def test_a_login_sees_what_its_team_pushed_and_is_told_why_it_sees_nothing(
    fleet: Fleet, database: Any, tmp_path: Path
) -> None:
    from psycopg.conninfo import make_conninfo

    write(tmp_path / "home", TRANSCRIPT, user("Water the secret beans"))
    fleet.push("laptop", tmp_path / "home").close()
    database.execute("update assoc.origins set team = 'beans'")
    logins = {"pages_beans": "beans", "pages_kale": "kale", "pages_device": None}
    try:
        for name, team in logins.items():
            devices.add_login(
                database, name, pushes=team is None, reads=team is not None, team=team
            )
        addresses = (
            "/", "/fleet/-/sessions", f"/fleet/-/session/{SESSION}", "/-/assoc/search?q=beans",
            f"/fleet/-/session/{SESSION}/export", "/fleet/-/stats?when=all",
        )  # fmt: skip
        pages = {
            name: [site.get(address) for address in addresses]
            for name in logins
            for site in served(fleet, make_conninfo(fleet.destination, user=name))
        }
    finally:
        for name in logins:
            database.execute(f"drop owned by {name}; drop role {name}")
    assert [page.status for page in pages["pages_beans"]] == [200] * 6, pages["pages_beans"]
    assert "secret" in pages["pages_beans"][0].words
    assert [page.status for page in pages["pages_kale"]] == [200, 200, 404, 200, 404, 200]
    assert not any("secret" in page.text for page in pages["pages_kale"])
    assert all("This login sees no" in page.words for page in pages["pages_kale"][:2])
    assert {page.status for page in pages["pages_device"]} == {503}
    assert all("may not read on the server" in page.words for page in pages["pages_device"])


def test_a_server_that_is_gone_is_one_sentence_and_comes_back(tmp_path: Path) -> None:
    import psycopg

    with own_server() as postgres:
        with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
            server.migrate(connection)
            fleet = Fleet(tmp_path, postgres.conninfo, connection)
            write(tmp_path / "home", TRANSCRIPT, user("Water the beans"))
            fleet.push("laptop", tmp_path / "home").close()
        for site in served(fleet, postgres.conninfo):
            assert site.get("/").status == 200
            postgres.stop(crash=True)
            for page in (site.get("/"), site.get(f"/fleet/-/session/{SESSION}")):
                assert page.status == 503
                assert "cannot be reached" in page.words
                assert "Traceback" not in page.text
            postgres.start()
            assert site.get("/").status == 200
            assert "Water the beans" in site.get(f"/fleet/-/session/{SESSION}").words


def test_what_nobody_waits_for_ends_on_the_server(fleet: Fleet) -> None:
    pool = Pool(fleet.destination)
    reading = pool.start(lambda connection: connection.execute("select pg_sleep(30)"), 60)
    running, started = pool.threads.submit(reading.run), time.monotonic()
    while reading._running is None and time.monotonic() < started + 10:
        time.sleep(0.01)
    time.sleep(0.2)
    reading.give_up()
    with pytest.raises(FleetError):
        running.result(10)
    assert time.monotonic() - started < 15
    pool.close()


def test_a_query_that_takes_too_long_is_one_sentence(fleet: Fleet) -> None:
    pool = Pool(fleet.destination)
    reading = pool.start(lambda connection: connection.execute("select pg_sleep(30)"), 0.1)
    with pytest.raises(FleetError, match="took too long"):
        reading.run()
    pool.close()


_HUGE = """
import sys
from assoc_ingest.fleet.connect import bounded
from assoc_ingest.fleet.pages import Pool
from assoc_ingest.fleet.search import Central

pool = Pool(sys.argv[1])
with bounded():
    for query in ("select repeat('x', 300000000)", "select 'small'"):
        reading = pool.start(lambda connection: connection.execute(query).fetchone()[0], 60)
        try:
            print(pool.threads.submit(reading.run).result())
        except Exception as error:
            print(type(error).__name__, error)
pool.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_an_answer_that_takes_too_much_memory_is_one_sentence_and_no_end(fleet: Fleet) -> None:
    command = [sys.executable, "-c", _HUGE, fleet.destination]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    first, second = run.stdout.splitlines()
    assert first.startswith("FleetError The answer of the server takes more than")
    assert second == "small"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--watch"], "--watch keeps a local database up to date; leave it out with --remote."),
        (["other.db"], "With --remote, no other databases are served. Leave them out."),
        (["--host", "0.0.0.0"], "serve listens on this machine only."),
    ],
)
def test_wrong_usage_is_one_sentence(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.setenv(DESTINATION, fleet.destination)
    ran = CliRunner().invoke(cli, ["serve", "--remote", "--port", "0", *arguments])
    assert isinstance(ran.exception, UsageError)
    assert sentence in str(ran.exception)
    assert serve.remote() is None


def test_without_a_server_or_with_a_password_in_its_address_nothing_is_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(DESTINATION, raising=False)
    ran = CliRunner().invoke(cli, ["serve", "--remote", "--db", str(tmp_path / "a.db")])
    assert "No server is known" in str(ran.exception)
    monkeypatch.setenv(DESTINATION, "postgresql://me:hidden@localhost/fleet")
    ran = CliRunner().invoke(cli, ["serve", "--remote", "--db", str(tmp_path / "a.db")])
    assert "A password does not belong" in str(ran.exception)
    assert "hidden" not in f"{ran.exception}{ran.output}"


def said(page: Page) -> str:
    """The words of a page, without those that tell a machine, and the names of links to tables."""
    text = _OF_TABLES.sub("", _MACHINE.sub("", page.words))
    text = _LAST.sub("Last sync", text).replace("the disk of their machine", "this disk")
    return " ".join(text.replace(" .", ".").split())

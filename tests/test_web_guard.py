"""Only pages of this machine's own read the index: what else asks through a browser is refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Semaphore
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.support.served import get, is_line_1, served
from tests.support.writing import TRANSCRIPT, user, write

from assoc_ingest.store.sql_process import SqlProcess
from assoc_ingest.sync.run import sync
from assoc_ingest.web import serve

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

HERE = "127.0.0.1:8001"


@pytest.fixture(scope="module")
def database(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("guarded")
    path = place / "assoc.db"
    path.write_bytes(template.read_bytes())
    write(place / "home", TRANSCRIPT, user("rename the marmalade button"))
    sync(path, [place / "home"])
    return path


@pytest.fixture
def datasette(database: Path) -> Iterator[Any]:
    with serve.switched_on():
        yield served(database)


def asked(app: serve.App, *headers: tuple[str, str], path: str = "/", **more: object) -> int:
    """Return the status of the answer to a request, byte by byte as it is given here."""
    sent: list[serve.Message] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        **more,
    }

    async def receive() -> serve.Message:
        return {"type": "http.request", "body": b""}

    async def send(message: serve.Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return int(sent[0].get("status", 0))


async def welcoming(scope: serve.Scope, receive: serve.Receive, send: serve.Send) -> None:
    """An application that answers everything, so that only the guard can have refused."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


GUARDED = serve.guarded(welcoming, ["index.example"])


# -- by what name --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8001", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8001"),
        *("index.example", "Index.Example:443"),
    ],
)
def test_a_name_of_this_machine_is_answered(host: str) -> None:
    assert asked(GUARDED, ("host", host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.com",
            "evil.com:8001",
            "127.0.0.1.evil.com",
            "localhost.evil.com",
            "",
            " ",
            ":8001",
        ),
        *("127.0.0.1:", "127.0.0.1:x", "127.0.0.1:1:1", "127.0.0.1@evil.com", "127.0.0.1,evil.com"),
        *("localhost.", "::1", "[::1", "[::1]x", "0.0.0.0", "2130706433", "127.0.0.1:١", "x\ny"),
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    assert asked(GUARDED, ("host", host)) == 421


def test_no_name_and_two_names_are_refused() -> None:
    assert asked(GUARDED) == 421
    assert asked(GUARDED, ("host", HERE), ("host", "evil.com")) == 421
    assert asked(GUARDED, ("host", HERE), ("Host", HERE)) == 421


def test_what_is_no_page_is_refused() -> None:
    async def fails(scope: serve.Scope, receive: serve.Receive, send: serve.Send) -> None:
        raise AssertionError("was asked")

    assert asked(serve.guarded(fails), ("host", HERE), type="websocket") == 0


# -- by what path --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["//evil.com/", "/\\evil.com/", "/%5Cevil.com/", "/%2Fevil.com", "/%2f/evil.com", "//"]
)
def test_a_path_that_a_redirect_would_lead_elsewhere_is_refused(path: str) -> None:
    assert asked(GUARDED, ("host", HERE), path=path) == 400


def test_two_slashes_further_on_are_a_path_like_any_other() -> None:
    assert asked(GUARDED, ("host", HERE), path="/assoc/files?_search=a//b") == 200


# -- from where ----------------------------------------------------------------------------------

OPENED = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]
FRAMED = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")]
IMAGE = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")]


@pytest.mark.parametrize(
    ("site", "how", "path", "status"),
    [
        ("cross-site", IMAGE, "/assoc?sql=select+hex(zeroblob(4e8))", 403),
        ("cross-site", IMAGE, "/", 403),
        ("cross-site", FRAMED, "/", 403),
        ("cross-site", [], "/", 403),
        ("cross-site", OPENED, "/assoc/sessions", 403),
        ("cross-site", OPENED, "/", 200),
        ("same-site", IMAGE, "/assoc/sessions.json", 403),  # another port of this machine
        ("same-site", OPENED, "/assoc/sessions", 200),
        ("same-origin", IMAGE, "/assoc/sessions.json", 200),
        ("none", OPENED, "/assoc/sessions", 200),
    ],
)
def test_another_site_may_lead_to_the_first_page_and_no_further(
    site: str, how: list[tuple[str, str]], path: str, status: int
) -> None:
    headers = [("host", HERE), ("sec-fetch-site", site), *how]
    assert asked(GUARDED, *headers, path=path) == status


def test_another_site_may_not_send_a_form() -> None:
    headers = [("host", HERE), ("sec-fetch-site", "cross-site"), *OPENED]
    assert asked(GUARDED, *headers, method="POST") == 403


@pytest.mark.parametrize("name", ["origin", "referer"])
@pytest.mark.parametrize(
    ("page", "status"),
    [
        *((page, 403) for page in (
            "http://evil.com", "https://evil.com/x", "null", "", "http://127.0.0.1",
            "http://127.0.0.1:9", "http://localhost:8001", "http://127.0.0.1:8001.evil.com",
            "http://127.0.0.1:8001@evil.com", "http://127.0.0.1:x/", "http://[", "ftp://127.0.0.1:8001",
            "file:///home/x.html",
        )),
        *((page, 200) for page in (
            "http://127.0.0.1:8001", "http://127.0.0.1:8001/assoc?sql=select+1",
            "https://index.example", "https://INDEX.example:8443/x",
        )),
    ],
)  # fmt: skip
def test_a_browser_that_says_only_which_page_it_shows_is_judged_by_that(
    name: str, page: str, status: int
) -> None:
    for path in ("/", "/assoc/sessions"):
        assert asked(GUARDED, ("host", HERE), (name, page), path=path) == status


def test_the_usual_port_may_be_left_out() -> None:
    assert asked(GUARDED, ("host", "localhost:80"), ("origin", "http://localhost")) == 200
    assert asked(GUARDED, ("host", "[::1]:8001"), ("referer", "http://[::1]:8001/x")) == 200


@pytest.mark.parametrize("method", ["POST", "TRACE", "PUT", "DELETE", "PATCH", "OPTIONS", "ODD"])
def test_what_does_more_than_read_is_refused(method: str) -> None:
    assert asked(GUARDED, ("host", HERE), method=method) == 405


# -- in front of Datasette -----------------------------------------------------------------------


@pytest.mark.slow
def test_datasette_is_behind_it(datasette: Any) -> None:
    assert get(datasette, "/assoc", host="evil.com").status_code == 421
    assert get(datasette, "/assoc", host=HERE).status_code == 200
    assert get(datasette, "/assoc/messages?_search=marmalade", host=HERE).status_code == 200


@pytest.mark.slow
def test_static_files_and_errors_are_behind_it_too(datasette: Any) -> None:
    for path in ("/-/static/app.css", "/no-such-database", "/assoc.json", "/-/plugins.json"):
        assert get(datasette, path, host="evil.com").status_code == 421, path
        answer = get(datasette, path, host=HERE)
        assert answer.headers["x-content-type-options"] == "nosniff", path


def test_every_answer_tells_the_browser_to_load_nothing_from_elsewhere(datasette: Any) -> None:
    for host, status in ((HERE, 200), ("evil.com", 421)):
        answer = get(datasette, "/assoc/sessions", host=host)
        assert answer.status_code == status
        policy = answer.headers["content-security-policy"]
        parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert parts["default-src"] == "'self'"
        assert parts["img-src"] == "'self' data:"
        assert parts["frame-ancestors"] == parts["base-uri"] == "'none'"
        assert parts["form-action"] == "'self'"
        assert "http" not in policy
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer")
    assert len(get(datasette, "/", host=HERE).headers.get_list("content-security-policy")) == 1


def test_a_page_that_has_a_stricter_policy_keeps_it() -> None:
    async def strict(scope: serve.Scope, receive: serve.Receive, send: serve.Send) -> None:
        headers = [(b"Content-Security-Policy", b"default-src 'none'")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    sent: list[serve.Message] = []

    async def send(message: serve.Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(serve.guarded(strict)(scope, None, send))  # type: ignore[arg-type]
    policies = [v for k, v in sent[0]["headers"] if k.lower() == b"content-security-policy"]
    assert policies == [b"default-src 'none'"]


@pytest.mark.slow
def test_a_form_of_a_page_of_ours_still_arrives(datasette: Any) -> None:
    answer = get(
        datasette, "/assoc/messages?_search=marmalade", host=HERE,
        sec_fetch_site="same-origin", sec_fetch_mode="navigate", sec_fetch_dest="document",
    )  # fmt: skip
    assert answer.status_code == 200
    assert "marmalade" in answer.text


@pytest.mark.slow
def test_more_names_can_be_allowed(database: Path) -> None:
    with serve.switched_on():
        datasette = served(database, plugins={"assoc_ingest": {"allowed_hosts": ["index.example"]}})
        assert get(datasette, "/assoc", host="index.example").status_code == 200
        assert get(datasette, "/assoc", host="evil.com").status_code == 421


@pytest.mark.slow
def test_a_datasette_that_serve_did_not_start_is_not_guarded(database: Path) -> None:
    assert not serve.is_switched_on()
    assert get(served(database), "/assoc", host="evil.com").status_code == 200


# -- SQL of a visitor ----------------------------------------------------------------------------

LONG = "(select printf('%.*c', 9999999, 'a') as x)"
ONE_STEP = f"select instr(x, substr(x, 1, 4999999) || 'b') from {LONG}"
CONDITION = f"text = (select {ONE_STEP.removeprefix('select ')})"
QUERY = "/assoc/-/query" if is_line_1() else "/assoc"


@pytest.fixture
def hurried(database: Path) -> Iterator[Any]:
    with serve.switched_on():
        yield served(database, settings={"sql_time_limit_ms": 300})


def refused(datasette: Any, path: str, **arguments: str) -> Any:
    answer = get(datasette, f"{path}?{urlencode(arguments)}", host=HERE)
    assert answer.status_code == 400
    return answer


@pytest.mark.parametrize("ending", ["", ".json"])
def test_a_statement_that_is_one_step_of_sqlite_is_stopped(ending: str, hurried: Any) -> None:
    assert "took too long" in refused(hurried, QUERY + ending, sql=ONE_STEP).text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_where", "_where_in_a_view"])
def test_a_condition_that_is_one_step_of_sqlite_is_stopped(name: str, hurried: Any) -> None:
    table = "conversation" if name == "_where_in_a_view" else "messages"
    answer = refused(hurried, f"/assoc/{table}.json", _where=CONDITION, _nocount="1")
    assert "too long" in answer.text or "was stopped" in answer.text


TOO_MUCH = {
    "select " + ", ".join(["printf('%.*c', 1999999, 'x')"] * 120): "memory",
    "select hex(zeroblob(4e8))": "too big",
    "select " + ", ".join(["1"] * 600): "columns",
    "with recursive r (n) as (select 1 union all select n + 1 from r)"
    " select n, printf('%.*c', 999999, 'x') from r": "bytes",
    "with recursive r (n) as (select 1 union all select n + 1 from r)"
    f" select {', '.join(['n'] * 400)} from r": "values",
}


@pytest.mark.slow
@pytest.mark.parametrize("sql", TOO_MUCH)
def test_a_statement_that_takes_too_much_is_one_sentence(sql: str, database: Path) -> None:
    with serve.switched_on():
        datasette = served(database, settings={"sql_time_limit_ms": 60_000})
        assert TOO_MUCH[sql] in refused(datasette, f"{QUERY}.json", sql=sql).json()["error"]
        answer = get(datasette, f"{QUERY}.json?sql=select+1+as+n&_shape=array", host=HERE)
    assert answer.json() == [{"n": 1}]


def test_what_a_process_of_its_own_answers_is_what_datasette_answers(
    database: Path, datasette: Any
) -> None:
    values = "1 a, 2 a, null, x'00ff' b, 'é' || char(0), 1.5, -9223372036854775808, 9e999"
    sql = f"select {values}, cast(x'ff' as text)"
    plain = served(database)
    for path in (
        f"{QUERY}.json?{urlencode({'sql': sql})}",
        f"{QUERY}.json?{urlencode({'sql': 'select :a as x', 'a': 'é'})}",
        "/assoc/messages.json?_search=marmalade+%22button&_facet=role&_sort=id&_size=1",
        "/assoc/messages.json?_where=id+>+0&text__contains=marmalade",
        "/assoc/ask-usage-by-session.json?days=3",
        f"{QUERY}.json?sql=select+nothing",
    ):
        answers = [get(each, path, host=HERE) for each in (plain, datasette)]
        texts = [re.sub(r'"query_ms": [0-9.]+', "", answer.text) for answer in answers]
        assert texts[0] == texts[1]


@pytest.mark.slow
def test_statements_that_find_no_process_are_told_so_and_pages_do_not_wait(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All processes are busy until the pages have been answered."""
    monkeypatch.setattr(serve, "_WAITING", 3)
    over, begun = Event(), Semaphore(0)
    run = SqlProcess.run

    def wait(self: SqlProcess, *arguments: Any, **named: Any) -> Any:
        begun.release()
        assert over.wait(60)
        return run(self, *arguments, **named)

    monkeypatch.setattr(SqlProcess, "run", wait)

    async def all_at_once(datasette: Any) -> list[int]:
        async def answer(path: str) -> int:
            found = await datasette.client.get(path, headers={"host": HERE})
            return int(found.status_code)

        statement = f"{QUERY}.json?sql=select+1"
        asked = [asyncio.create_task(answer(statement)) for _ in range(9)]
        refused, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        pages = [await answer(path) for path in ("/", "/assoc", "/assoc/sessions")]
        assert not over.is_set()
        assert {task.result() for task in refused} == {503}
        over.set()
        return pages + sorted([await task for task in asked])

    with serve.switched_on():
        statuses = asyncio.run(all_at_once(served(database)))
    assert statuses == [200] * 3 + [200] * 5 + [503] * 4

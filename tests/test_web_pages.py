"""The pages of the Datasette plugin show what is stored, tell errors, and let nothing act."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.support.cases import DEMO
from tests.support.reading import index
from tests.support.web import Page, Site
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    agent,
    assistant,
    call,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest import terminal
from assoc_ingest.ask.filters import Filters
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.stats import stats
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.web import html
from assoc_ingest.web.paging import PAGE

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

WEB = Path(html.__file__).parent
FROST = "/demo/-/session/5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
BEDS = "/demo/-/session/a7d3b6e2-91c4-4f05-8e2b-1c6f49d07b52"
EVIL = (
    "evil <script>alert(1)</script> <img src=x onerror=alert(2)> <svg onload=alert(3)>"
    " [a](javascript:alert(4)) ![b](http://evil.example/c.png) [d](/-/logout) &lt;i&gt;"
    " \"><b onmouseover='alert(5)'> </pre></details></main> \x02 \x03 \x1b]0;x\x07 \u202e"
    " {{ 7 * 7 }} <style>*{display:none}</style> <a href=data:text/html,x>e</a> evil"
)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("databases")


@pytest.fixture(scope="module")
def demo(databases: Path) -> Site:
    sync(databases / "demo.db", sorted(DEMO.iterdir()))
    return Site(databases / "demo.db")


@pytest.fixture(scope="module")
def hostile(databases: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    home = tmp_path_factory.mktemp("hostile") / "home"
    write(
        home, TRANSCRIPT,
        user(EVIL, cwd=f"/srv/{EVIL}", gitBranch=EVIL),
        assistant(
            [{"type": "text", "text": EVIL}, {"type": "thinking", "thinking": EVIL},
             call("toolu_1", "Bash", command=EVIL, description=EVIL),
             call("toolu_2", "Task", prompt=f"{EVIL}\n{EVIL}", subagent_type=EVIL),
             call("toolu_3", EVIL, file_path=EVIL, nested={EVIL: [EVIL]}),
             call("toolu_4", "Edit", file_path=EVIL, old_string=EVIL, new_string=EVIL * 2),
             call("toolu_5", "TodoWrite", todos=[{"content": EVIL, "status": EVIL}, EVIL, 7])],
            model=EVIL, usage={"input_tokens": 5, "output_tokens": 7},
        ),
        user([result("toolu_1", EVIL, is_error=True)], "u2"),
        user([result("toolu_2", f"{EVIL}\nagentId: a1")], "u3", toolUseResult={"agentId": "a1"}),
        {"type": "custom-title", "customTitle": EVIL, "sessionId": SESSION},
        {"type": "system", "subtype": EVIL, "content": EVIL, "uuid": "s1", "sessionId": SESSION},
    )  # fmt: skip
    for key in ("a1", "a2"):
        lines = agent(key, user(EVIL, f"v{key}")), agent(key, assistant(EVIL, f"w{key}", id=key))
        write(home, f"{PROJECT}/{SESSION}/subagents/agent-{key}.jsonl", *lines)
    write(home, f"tasks/{SESSION}/1.json", {"id": "1", "subject": EVIL, "description": EVIL,
                                            "status": EVIL, "owner": EVIL})  # fmt: skip
    write(home, "teams/crew/config.json", {"name": EVIL, "description": EVIL, "leadSessionId":
          SESSION, "members": [{"name": EVIL, "prompt": EVIL, "cwd": EVIL}]})  # fmt: skip
    inner = '{"type": "idle_notification", "x": "<script>alert(6)</script>"}'
    write(home, "teams/crew/inboxes/bob.json", [
        {"from": EVIL, "text": EVIL, "read": False}, {"from": EVIL, "text": inner, "read": False},
    ])  # fmt: skip
    write(home, "history.jsonl", {"display": EVIL, "project": EVIL, "sessionId": OTHER,
                                  "timestamp": 1768900000000})  # fmt: skip
    write_bytes(home, "plans/evil.md", f"# {EVIL}\n\n{EVIL}\n".encode())
    sync(databases / "hostile.db", [home])
    return Site(databases / "hostile.db")


@pytest.fixture(scope="module")
def long(databases: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A session of two and a half pages, and one with nearly the same key."""
    home = tmp_path_factory.mktemp("long") / "home"
    lines = []
    for number in range(PAGE + PAGE // 4):
        lines.append(user(f"question {number}", f"u{number}", second=number))
        answer = assistant(f"answer {number}", f"a{number}", None, number, id=f"m{number}")
        lines.append(answer)
    write(home, TRANSCRIPT, *lines)
    near = SESSION[:-1] + "7"
    write(home, f"{PROJECT}/{near}.jsonl", user("another", "x1", sessionId=near))
    sync(databases / "long.db", [home])
    return Site(databases / "long.db")


# -- the conversation ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_conversation_begins_with_what_is_known_of_it(demo: Site) -> None:
    page = demo.get(FROST)
    assert page.status == 200
    for text in ("Frost warning in the planting calendar", "frost-warning", "claude-sonnet-5",
                 "2026-03-02 08:14", "2 prompts · 17 messages · 8 tool calls · 1 subagent", "$0.06",
                 "claude --resume 5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"):  # fmt: skip
        assert text in page.words
    assert page.links(".json?session_id=")
    assert "Each model response is counted once" in page.text


def test_calls_are_folded_with_their_results_inside(demo: Site) -> None:
    text = demo.get(FROST).text
    (bash,) = re.findall(r'<details class="ai-call ai-failed.*?</details>', text, re.DOTALL)
    summary, inside = bash.split("</summary>")
    assert "python -m pytest -q" in summary
    assert "error" in summary
    assert " open" not in summary
    assert "$ python -m pytest -q" in inside
    assert '<div class="ai-result">' in inside


def test_an_edit_is_a_difference_and_a_list_shows_what_is_done(demo: Site) -> None:
    page = demo.get(FROST)
    assert '<ins class="ai-new">+ def warnings(crop, forecast):' in page.text
    assert '<span class="ai-same">  def days(crop):' in page.text
    assert "◐</span> Read the forecast" in page.text


@pytest.mark.slow
def test_a_conversation_lists_what_became_of_its_tasks_todos_and_plans(tmp_path: Path) -> None:
    answers = {
        "TaskCreate": ({"subject": "Dig"}, "Task #1 created successfully: Dig"),
        "TodoWrite": ({"todos": [{"content": "Rake", "status": "in_progress"}]}, "done"),
        "ExitPlanMode": ({"plan": "# Ferns"}, "User has approved your plan."),
    }
    lines = [
        line
        for name, (arguments, text) in answers.items()
        for line in (
            assistant([call(f"toolu_{name}", name, **arguments)], f"a{name}", None, id=name),
            user([result(f"toolu_{name}", text)], f"r{name}"),
        )
    ]
    write(tmp_path / "home", TRANSCRIPT, *lines)
    sync(tmp_path / "one.db", [tmp_path / "home"])
    page = Site(tmp_path / "one.db").get(f"/one/-/session/{SESSION}")
    for text in ("1 plan, 1 task, 1 todo", "Task: Dig pending", "Todo: Rake in progress",
                 "Plan: Ferns accepted"):  # fmt: skip
        assert text in page.words
    for table in ("tasks", "todos", "plans"):
        assert page.links(f"/one/{table}/1")


@pytest.mark.slow
def test_a_subagent_stands_behind_the_call_that_spawned_it(demo: Site) -> None:
    page = demo.get(FROST)
    before, nested = page.text.split('<details class="ai-agent">')
    assert before.rstrip().endswith("</details>")
    assert "Survey the calendar" in before.rpartition("<details")[2]
    assert "calendar.py:3: crops" in nested
    own = demo.get(page.links("_agent=")[0])
    assert own.status == 200
    assert "calendar.py:3: crops" in own.words
    assert "You, queued" not in own.words
    (back,) = [link for link in own.links("?at=") if link.startswith(f"{FROST}?")]
    assert back.partition("#")[2] in demo.get(back.partition("#")[0]).anchors()


@pytest.mark.slow
def test_copies_images_boundaries_and_errors_are_told_apart(tmp_path: Path) -> None:
    home, fork = tmp_path / "home", OTHER
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                           "data": "aGVsbG8="}}  # fmt: skip
    write(
        home, TRANSCRIPT, user("look at this", "u1"), user([picture], "u2", "u1"),
        {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
         "uuid": "s1", "parentUuid": None, "sessionId": SESSION, "isSidechain": False,
         "timestamp": "2026-01-20T10:01:00.000Z"},
        user("This session is being continued", "u3", "s1", 61, isCompactSummary=True),
    )  # fmt: skip
    copied = [{**user("look at this", "u1"), "sessionId": fork},
              user("something new", "u9", "u1", 90, sessionId=fork)]  # fmt: skip
    write(home, f"{PROJECT}/{fork}.jsonl", *copied)
    sync(tmp_path / "one.db", [home])
    site = Site(tmp_path / "one.db")
    page = site.get(f"/one/-/session/{SESSION}")
    assert page.text.count('class="ai-picture"') == 1
    assert "aGVsbG8=" not in page.text
    assert "ai-compacted" in page.text
    assert "Summary of the conversation so far" in page.words
    assert ">copy</span>" not in page.text
    assert site.get(f"/one/-/session/{fork}").text.count(">copy</span>") == 1


def test_a_message_that_is_an_update_says_of_what(demo: Site) -> None:
    assert "task 1: completed" in demo.get(BEDS).words


@pytest.mark.slow
def test_every_message_is_on_one_of_the_pages(long: Site) -> None:
    address, pages = f"/long/-/session/{SESSION}", []
    while address:
        pages.append(long.get(address))
        address = next(iter(re.findall(r'rel="next" href="([^"]+)"', pages[-1].text)), "")
    assert len(pages) == 3
    bodies = [
        page.text.partition('<div class="ai-body">')[2].partition('<nav class="ai-beside"')[0]
        for page in pages
    ]
    questions = re.findall(r"question \d+", " ".join(bodies))
    assert questions == [f"question {number}" for number in range(PAGE + PAGE // 4)]
    earlier = re.findall(r'rel="prev" href="([^"]+)"', pages[2].text)[0]
    assert long.get(earlier).anchors() == pages[1].anchors()
    assert f"answer {PAGE + PAGE // 4 - 1}" in long.get(f"/long/-/session/{SESSION}?_end=1").words


@pytest.mark.slow
def test_a_hit_opens_on_its_message_with_some_before_it(long: Site) -> None:
    (hit,) = {*long.get("/-/assoc/search?q=%22answer+210%22").links("?at=")}
    address, _, anchor = hit.partition("#")
    page = long.get(address)
    lines = [one for one in page.anchors() if one.startswith("L")]
    assert lines.index(anchor) in range(3, 12)
    assert "question 209" in page.words
    assert "ai-target" in page.text


@pytest.mark.slow
def test_a_hit_in_a_result_or_a_subagent_opens_where_it_stands(demo: Site) -> None:
    hits = demo.get("/-/assoc/search?q=sow&kind=tool_result").links("?at=")
    assert hits
    for hit in hits:
        address, _, anchor = hit.partition("#")
        page = demo.get(address)
        assert anchor in page.anchors()
        assert re.search(r'<details class="ai-call[^>]* ai-target"[^>]* open', page.text)


# -- what can be asked wrongly -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/demo/-/session/nix", 404, "No conversation matches 'nix'."),
        (f"{FROST}?_after=99999999", 200, "This conversation has no message 99999999"),
        (f"{FROST}?at=x", 400, "'x' is not the place of a message"),
        (f"{FROST}?at=0", 400, "Lines are counted from 1"),
        (f"{FROST}?at=B7", 404, "No message begins at byte 7"),
        (f"{FROST}?after=9:1", 404, "has 1 file with messages, not 9"),
        (f"{FROST}?_at=99999999999999999999", 400, "is not a message id"),
        (f"{FROST}?_after=x", 400, "is not a message id"),
        (f"{FROST}?_agent=nobody", 404, "has no subagent 'nobody'"),
        ("/nix/-/session/5e1f0c9a", 404, "no assoc-ingest database named 'nix'"),
        ("/demo/-/project/999", 404, "No project matches '999'."),
        ("/demo/-/project/2?page=77", 404, "There is no page 77"),
        ("/demo/-/project/2?page=-1", 400, "is not a page number"),
        ("/demo/-/team/nix", 404, "No team matches 'nix'."),
        ("/-/assoc/search?q=a&kind=nix", 400, "Unknown kind 'nix'"),
        ("/-/assoc/search?q=a&project=nix", 404, "No project is named 'nix'."),
        ("/-/assoc/search?q=a&month=2026-13", 400, "Invalid time '2026-13'. Use"),
        ("/-/assoc/search?q=a&since=soon", 400, "Invalid time 'soon'. Use 30m, 12h, 7d, today,"),
        ("/-/assoc/search?q=a&role=nix", 400, "Unknown role 'nix'. Choose one of: user,"),
        ("/-/assoc/search?q=a&source=nix", 400, "Unknown source 'nix'. Choose one of:"),
        ("/-/assoc/search?q=a&session=nix", 404, "No session matches 'nix'"),
        ("/-/assoc/search?q=a&sort=nix", 400, "Unknown order 'nix'. Choose one of: newest."),
        ("/-/assoc/search?q=a&narrow=nix", 400, "Unknown filter 'nix'. Choose one of: kind,"),
        ("/-/assoc/search?q=a&page=x", 400, "'x' is not a page number."),
        ("/-/assoc/search?q=frost&page=99", 404, "There is no page 99 of this search."),
        ("/-/assoc/search?q=%22+AND+(&raw=1", 400, "The query is not a valid FTS5 expression ("),
        (f"/-/assoc/search?q=a&branch={'b' * 2_000}", 400, "The value of branch is too long."),
        ("/-/assoc/search?q=a&db=nix", 404, "no assoc-ingest database named 'nix'"),
        ("/demo/-/stats?when=x", 400, "Invalid time 'x'."),
        ("/demo/-/stats?by=day&split=day", 400, "The rows are by day already"),
        ("/demo/-/stats?by=colour", 400, "by is one of day, week, month,"),
    ],
)
def test_what_is_not_there_is_told_on_a_page(
    demo: Site, address: str, status: int, text: str
) -> None:
    page = demo.get(address)
    assert page.status == status
    assert text in page.words
    assert "Traceback" not in page.text


def test_a_name_of_two_directories_lists_both(tmp_path: Path) -> None:
    with index(tmp_path / "two.db") as rows:
        ids = [rows.project("shop", f"/srv/{place}/shop") for place in "ab"]
    page = Site(tmp_path / "two.db").get("/two/-/project/shop")
    assert page.status == 300
    assert "projects are named 'shop'" in page.words
    assert [f"/two/-/project/{id_}" in page.links() for id_ in ids] == [True, True]


def test_an_ambiguous_prefix_lists_what_it_can_mean(long: Site) -> None:
    page = long.get(f"/long/-/session/{SESSION[:20]}")
    assert page.status == 300
    assert f"/long/-/session/{SESSION}" in page.links()
    assert len(page.links("/-/session/")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("query", ['"', "AND (", "NEAR(a b", "text:frost", "*", "-- ;", "a" * 3000])
def test_no_query_is_an_error(demo: Site, query: str) -> None:
    assert demo.get(f"/-/assoc/search?q={quote(query)}").status == 200


def test_a_database_that_is_not_ours_is_left_alone(demo: Site, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("create table sessions (session_key text)")
    connection.close()
    site = Site(other)
    assert site.get("/other/-/session/x").status == 404
    assert site.get("/-/assoc/usage").status == 404
    assert site.get("/-/assoc/search?q=a").status == 404


@pytest.mark.slow
def test_who_may_not_see_the_tables_does_not_see_the_pages(demo: Site, databases: Path) -> None:
    closed = Site(databases / "demo.db", databases={"demo": {"allow": False}})
    part = {"tables": {"messages": {"allow": False}}}
    half = Site(databases / "demo.db", databases={"demo": part})
    for site in (closed, half):
        assert site.get(FROST).status == 403
        assert site.get("/-/assoc/search?q=frost").status == 404
    assert half.get("/demo/-/team/1").status == 200


# -- search --------------------------------------------------------------------------------------


def test_a_search_shows_hits_of_all_stores_with_their_matches_marked(demo: Site) -> None:
    page = demo.get("/-/assoc/search?q=frost")
    assert "Kale can stand <mark>frost</mark>, do not warn" in page.text
    assert {"inbox", "plan", "document", "you", "agent"} <= set(page.words.split())


@pytest.mark.slow
def test_a_search_shows_the_closest_where_nothing_has_all_words(demo: Site) -> None:
    page = demo.get("/-/assoc/search?q=seedlngs+asparagus")
    assert "Showing results for seedlings instead of seedlngs." in page.words
    assert "/-/assoc/search?q=seedlings+asparagus" in page.links(), "it can be asked for instead"
    assert "Not found: asparagus." in page.words
    assert "<mark>Seedlings</mark> died last April" in page.text
    assert re.search(r'href="[^"]*[?&;]kind=document', page.text), "which can be narrowed"
    narrowed = demo.get("/-/assoc/search?q=seedlngs+asparagus&kind=document&narrow=kind")
    assert "Kind document" in narrowed.words
    page = demo.get("/-/assoc/search?q=frost+-warning+kind:prompt")
    assert "<mark>frost</mark>" in page.text
    assert "Excluded: messages with warning." in page.words
    assert "warning" not in page.text.partition('<ol class="ai-cards"')[2].lower()


@pytest.mark.slow
def test_a_month_ends_where_the_next_begins(tmp_path: Path) -> None:
    times = ("2026-01-31T23:59:59.999Z", "2026-02-01T00:00:00.000Z", "2026-12-31T12:00:00.000Z")
    lines = [user("pool", f"u{at}", timestamp=at) for at in times]
    write(tmp_path / "home", TRANSCRIPT, *lines)
    sync(tmp_path / "one.db", [tmp_path / "home"])
    site = Site(tmp_path / "one.db")
    for month in ("2026-01", "2026-02", "2026-12"):
        page = site.get(f"/-/assoc/search?q=pool&month={month}")
        assert "1 conversation, 1 hit" in page.words
        assert page.text.count('class="ai-hit"') == 1


@pytest.mark.slow
def test_more_hits_of_a_conversation_are_one_click_away(long: Site) -> None:
    page = long.get("/-/assoc/search?q=answer")
    assert page.text.count('class="ai-hit"') == 1
    (more,) = page.links("session=")
    inside = long.get(more)
    assert f"{PAGE + PAGE // 4} hits in question 0" in inside.words
    assert inside.text.count('class="ai-hit"') == 20


# -- usage, project, team ------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_of_usage_says_what_the_command_says(demo: Site, databases: Path) -> None:
    page = demo.get("/demo/-/stats?when=all&by=month&split=model")
    with closing(open_reader(databases / "demo.db")) as connection:
        answer = stats.ask(Reader(connection, 100), by="month", split="model", filters=Filters())
    assert len(answer.items) > 3
    for row in answer.items:
        cost = terminal.money(row["cost_usd"], row["partial"], row["unpriced"])
        assert re.search(rf"{row['model']} {re.escape(cost)} .*{row['sessions']}", page.words)
    total = terminal.money(answer.totals["cost_usd"], answer.totals["partial"])
    assert f"Total {total} " in page.words
    assert f"Cost {total}" in page.words
    assert page.links("model=claude-")
    assert (
        demo.get("/-/assoc/dashboard?days=7&db=demo")
        .headers["location"]
        .endswith("/demo/-/stats?when=7d")
    )
    tools = demo.get("/demo/-/stats?when=all&by=tool").words
    assert "Tools cost nothing themselves" in tools


@pytest.mark.slow
def test_a_project_shows_its_sessions_tasks_and_plans(demo: Site) -> None:
    (address,) = demo.get(FROST).links("/-/project/")
    page = demo.get(address)
    assert page.status == 200
    assert FROST in page.links()
    for text in ("Draw the map of the beds", "Plan:", "Pull request:", "Team bed-team"):
        assert text in page.words


@pytest.mark.slow
def test_a_repository_shows_what_it_used_with_its_worktrees(tmp_path: Path) -> None:
    places = ("/srv/cli", "/srv/cli/.worktrees/3")
    for number, (path, branch) in enumerate(zip(places, ("main", "feature-x"), strict=True)):
        key = f"{number}{SESSION[1:]}"
        own = {"cwd": path, "gitBranch": branch, "sessionId": key}
        used = {"input_tokens": 1_000_000, "output_tokens": 0}
        write(
            tmp_path / "home", f"projects/{re.sub('[^a-z0-9]', '-', path)}/{key}.jsonl",
            user("turnip", f"u{number}", **own),
            assistant("yes", f"a{number}", f"u{number}", id=f"msg_{number}",
                      model="claude-sonnet-4-5", usage=used, **own),
        )  # fmt: skip
    sync(tmp_path / "one.db", [tmp_path / "home"])
    site = Site(tmp_path / "one.db")
    by_project = site.get("/one/-/stats?when=all&by=project").words
    assert "cli $6.00" in by_project
    assert "cli · feature-x $6.00" in by_project
    used = site.get("/one/-/stats?when=all&by=repository").words
    assert "cli $12.00" in used
    assert "Cost $12.00" in used, "each once"
    address = next(
        address
        for address in site.get("/").links("/-/project/")
        or ["/one/-/project/1", "/one/-/project/2"]
        if "Worktree of" not in site.get(address).words
    )
    page = site.get(address)
    assert "Directory /srv/cli not on this disk" in page.words
    assert "Conversations 1 2 with worktrees" in page.words
    assert "Cost $6.00 $12.00 with worktrees" in page.words
    assert (
        "Worktree cli · feature-x /srv/cli/.worktrees/3 (not on this disk) · 1 conversation · $6.00"
        in page.words
    )
    found = site.get("/-/assoc/search?q=turnip&branch=feature-x")
    assert found.text.count('class="ai-hit"') == 1
    assert "Branch feature-x ×" in found.words
    assert 'type="hidden" name="branch" value="feature-x"' in found.text, "asked again with it"


@pytest.mark.slow
def test_a_team_shows_each_inbox_as_a_thread(demo: Site) -> None:
    page = demo.get(demo.get(BEDS).links("/-/team/")[0])
    assert page.status == 200
    willow = page.text.split('aria-label="Inbox of ')[2]
    assert willow.startswith("willow")
    assert "Please keep the beans out of bed one" in willow
    assert willow.index("Please keep") < willow.index("Which bed needs the most water?")
    assert "{&#34;" not in page.text  # programs write JSON; people read fields


@pytest.mark.slow
def test_an_empty_database_has_pages_too(fresh: Callable[[], Path]) -> None:
    database = fresh()
    site = Site(database)
    assert "No usage is recorded." in site.get(f"/{database.stem}/-/stats").words
    found = site.get("/-/assoc/search?q=frost").words
    assert "Nothing found for “frost”. This database contains no conversations yet." in found


# -- what never stands on a page -----------------------------------------------------------------


def evil_pages(site: Site) -> Iterator[tuple[str, Page]]:
    evil = quote(EVIL, safe="")
    session = f"/hostile/-/session/{SESSION}"
    for address in (
        session, f"{session}?_end=1", f"{session}?said=1", f"{session}?find=evil&at=2",
        f"{session}?find={evil}", f"{session}?find=script+alert&_agent=a1",
        f"{session}?said={evil}", f"{session}/image?at={evil}&n=1",
        f"{session}/image?at=2&n={evil}", f"{session}/timeline",
        f"{session}/timeline?page={evil}", f"{session}/news?after={evil}",
        f"{session}/news?after=2",
        f"{session}?_agent=a1", f"{session}?_agent={evil}",
        f"{session}?_after={evil}", f"{session}?at=2", f"{session}?at={evil}",
        "/hostile/-/session/a1?at=1", f"{session}/export?format={evil}", f"{session}?_at=999",
        f"/hostile/-/session/{evil}", "/-/assoc/search?q=evil",
        "/-/assoc/search?q=script+alert", f"/-/assoc/search?q={evil}",
        f"/-/assoc/search?q=evil&model={evil}", f"/-/assoc/search?q=evil&kind={evil}",
        f"/-/assoc/search?q=evil&db={evil}", "/hostile/-/stats?when=all",
        f"/hostile/-/stats?when={evil}", f"/hostile/-/stats?model={evil}&branch={evil}",
        *(f"/hostile/-/stats?when=all&by={by}&split=model"
          for by in ("repository", "project", "agent", "branch", "session", "subagent")),
        "/hostile/-/stats?when=all&by=tool", "/hostile/-/status",
        "/hostile/-/project/1", "/hostile/-/team/1",
        f"/hostile/-/team/{evil}", f"/hostile/-/project/{evil}", "/", "/hostile/-/sessions",
        f"/hostile/-/sessions?branch={evil}&model={evil}&source={evil}",
        *(f"/hostile/-/sessions?{name}={evil}"
          for name in ("project", "month", "day", "since", "min_cost", "sort", "page", "errors")),
    ):  # fmt: skip
        yield address, site.get(address)


@pytest.mark.slow
def test_stored_text_and_addresses_stay_text(hostile: Site) -> None:
    shown = 0
    for address, page in evil_pages(hostile):
        assert page.status < 500, address
        assert page.harmful() == [], address
        words = re.sub(r"\b\d\d:\d\d\b", "", page.words)  # a file may be written at 18:49
        assert "49" not in re.findall(r"\{\{ .*? \}\}|\b49\b", words), address
        assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src")
        shown += page.words.count("<script>alert(1)</script>")
    assert shown > 50  # as text


def test_the_text_of_a_page_is_all_there(hostile: Site) -> None:
    words = hostile.get(f"/hostile/-/session/{SESSION}").words
    assert words.count("evil") > 20
    assert "[a](javascript:alert(4))" in words  # a link that is none stands as it was written
    assert words.endswith("</main> ") or "resume" in words


def test_links_of_markdown_lead_to_other_sites_only() -> None:
    text = "[a](https://example.org/x) [b](/-/logout) [c](javascript:x) ![d](https://e.org/f.png)"
    found = str(html.markdown(text))
    assert re.findall(r'href="([^"]*)"', found) == ["https://example.org/x", "https://e.org/f.png"]
    assert "<img" not in found
    assert 'rel="noopener noreferrer nofollow"' in found


def test_markdown_is_read_as_markdown() -> None:
    found = str(html.markdown("**b** `c`\n\n- one\n- two\n\n|h|\n|-|\n|d|\n\n```py\nx < y\n```"))
    for piece in ("<strong>b</strong>", "<code>c</code>", "<li>one</li>", "<td>d</td>", "x &lt; y"):
        assert piece in found


def test_headings_of_a_text_stand_below_those_of_its_page() -> None:
    found = str(html.markdown("\n\n".join(f"{'#' * level} h{level}" for level in range(1, 7))))
    headings = re.findall(r"<h(\d)>h(\d)</h(\d)>", found)
    assert headings == [(str(min(n + 2, 6)), str(n), str(min(n + 2, 6))) for n in range(1, 7)]


def test_a_very_long_text_is_not_parsed_and_a_very_long_difference_not_compared() -> None:
    assert "<strong>" not in html.markdown("**b** " * 20_000)
    shown = html.difference("a\n" * 5000, "b\n" * 5000)
    assert "9,600 more lines" in shown
    assert shown.count("<del") == 400


def test_only_one_place_says_of_a_text_that_it_is_html() -> None:
    spoken_for = []
    for path in WEB.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_call = isinstance(node, ast.Call) and ast.unparse(node.func) == "Markup"
            if is_call and not all(isinstance(given, ast.Constant) for given in node.args):  # type: ignore[attr-defined]
                spoken_for.append((path.name, ast.unparse(node)))
    assert sorted(spoken_for) == [
        ("entries.py", "Markup(text)"),  # the style and the script of our own
        ("html.py", "Markup(''.join(pieces))"),
        ("html.py", "Markup(clean)"),
    ]


DATASETTES_OWN = re.compile(
    r'<script src="\{\{ static\("[\w.-]+"\) \}\}" defer>'
    r'|<script \{% if url.module %\}type="module" \{% endif %\}src="\{\{ url.url \}\}"'
    r"|<script>window\.\w+ = \{\{ [^{}]*(?:\{[^{}]*\})?[^{}]*\|tojson \}\};</script>"
    r"|<script\{% if body_script.module %\}[^\n]*"
)
"""What Datasette's own pages load and run wherever this plugin is absent, too."""


def test_templates_and_styles_load_and_run_nothing() -> None:
    templates = list(WEB.glob("templates/*.html"))
    assert len(templates) >= 6
    for path in templates:
        text = path.read_text("utf-8")
        if path.name == "_assoc_scripts.html":  # the only one that may: files of ours
            assert re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "*", text).split("\n") == [
                '*<script src="*" nonce="*" defer></script>', "*", ""
            ]  # fmt: skip
            continue
        if path.name == "_assoc_pictures.html":  # images from our own route
            text = text.replace(' src="{{ one.address }}"', "")
        if path.name == "_assoc_export.html":  # a file by itself, whose policy names both by hash
            for own in ("<style>{{ style }}<", "<script>{{ script }}<", ' src="data:'):
                assert text.count(own) == 1
                text = text.replace(own, "")
        if path.name in ("assoc_frame.html", "assoc_datasette_table.html"):
            text = DATASETTES_OWN.sub("", text)
        forbidden = (
            r"\|\s*safe\b|autoescape|<script|<style|\son\w+=|\sstyle=|\ssrc=|<iframe|@import"
        )
        assert not re.search(forbidden, text), path.name
    for path in WEB.glob("static/*"):
        text = path.read_text("utf-8").replace('@import url("../../static/app.css")', "")
        assert not re.search(r"url\(|@import|<script", text), path.name

"""Nothing that a page does is unbounded: what is too much is shown shorter, and the page says so.

Work is bounded, not timed: a child that uses more of a processor than any page may is ended.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from tests.support.child import is_done_with
from tests.support.hostile import TEXTS
from tests.support.reading import index
from tests.support.rows import AT, Rows
from tests.support.web import Page, Site

from assoc_ingest.web import conversations, html, pages, project
from assoc_ingest.web.html import Budget
from assoc_ingest.web.map import MAP_LINES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # Datasette's own
    pytest.mark.skipif(sys.platform == "win32", reason="needs fork and its limits"),
]

SECONDS = 30  # of a processor; the worst page needs a tenth
LONG = 250_000  # letters, about as many as a text of the index can have
KEY = "0b7c2f4e-1111-4222-8333-444455556666"
TURNS = ("a\nb\n" * 370, "b\na\na\n" * 246)
"""Two texts of which each line is like half of the other's, and no long stretch is."""

Fill = Callable[[Rows], None]


@pytest.fixture
def site(tmp_path: Path) -> Callable[[Fill], Site]:
    def filled(fill: Fill) -> Site:
        with index(tmp_path / "db.db") as rows:
            fill(rows)
        # What is bounded is the time of a processor: one that others use, too, is not slower work.
        return Site(tmp_path / "db.db", query_ms=60_000)

    return filled


def bounded(site: Site, address: str, holds: Callable[[Page, str], None]) -> None:
    """Get a page with a limit on what it may cost, and look at it."""

    def look() -> None:
        page = site.get(address)
        assert page.status == 200, page.words
        assert len(page.text) < 8_000_000
        holds(page, page.words)

    assert is_done_with(SECONDS, look), "the page takes too much of a processor"


# -- a conversation ------------------------------------------------------------------------------


def test_texts_that_are_too_long_end_and_the_page_has_an_end_too(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for number in range(40):
            kind = ("prompt", "text", "thinking", "compact_summary", "tool_result")[number % 5]
            rows.message(file, kind, f"begin{number} " + "word " * (LONG // 5))

    def holds(page: Page, words: str) -> None:
        assert words.count("word") < 0.3 * html.LETTERS
        assert "begin0 word" in words
        assert "more characters: open the row to see them" in words
        assert "Shown as plain text" in words

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_markdown_is_laid_out_as_far_as_the_page_can_bear(site: Callable[[Fill], Site]) -> None:
    worst = ("references", "table", "rows", "brackets", "links", "lists", "strong")

    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "text", "**first**")
        for number in range(180):
            text = TEXTS[worst[number % len(worst)]](html.LONGEST // (1 + number % 9))
            rows.message(file, "text", text)

    def holds(page: Page, words: str) -> None:
        assert "<strong>first</strong>" in page.text
        assert "Shown as plain text" in words

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_changes_are_compared_as_far_as_the_page_can_bear(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.call(file, "Edit", {"file_path": "f", "old_string": "one", "new_string": "two"}, "ok")
        edit = {"old_string": TURNS[0], "new_string": TURNS[1]}
        for _ in range(40):
            rows.call(file, "MultiEdit", {"edits": [edit] * 20}, "ok")

    def holds(page: Page, words: str) -> None:
        assert "- one" in words
        assert "+ two" in words
        assert "Too long or too repetitive to compare" in words

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_a_call_with_very_many_parts_shows_the_first(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for _ in range(12):
            edits = [{"old_string": "a", "new_string": "b"}] * 8_000
            rows.call(file, "MultiEdit", {"edits": edits}, "ok")
            todos = [{"content": "weed", "status": "pending"}] * 8_000
            rows.call(file, "TodoWrite", {"todos": todos}, "ok")
            rows.call(file, "Other", {f"k{number}": 1 for number in range(20_000)}, "ok")

    def holds(page: Page, words: str) -> None:
        assert page.text.count("weed") <= 12 * 60
        assert "… and 7,950 more changes: open the row" in words
        assert "… and 7,950 more items: open the row" in words
        assert "… and 19,950 more values: open the row" in words

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_subagents_have_an_end_however_many_deep_or_long_they_are(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        session, file = rows.session(KEY)

        def agent(key: str, call: int | None, blocks: int = 1) -> tuple[int, int]:
            id_ = rows.add(
                "subagents", agent_key=key, agent_type=f"t{key}", session_id=session,
                spawned_by=call, message_count=1, source_id=rows.source,
            )  # fmt: skip
            lying = rows.file(f"agents/{key}", kind="agent", session_id=session, subagent_id=id_)
            for _ in range(blocks):
                rows.message(lying, "text", f"said by {key}", subagent_id=id_)
            return id_, lying

        call, _ = rows.call(file, "Task", {"prompt": "long"}, "ok")
        agent("long", call, 3_000)
        call, _ = rows.call(file, "Task", {"prompt": "deep"}, "ok")
        for level in range(300):
            id_, lying = agent(f"deep{level}", call)
            call, _ = rows.call(lying, "Task", {"prompt": "deeper"}, "ok", subagent_id=id_)
        call, _ = rows.call(file, "Task", {"prompt": "many"}, "ok")
        for number in range(1_000):
            agent(f"many{number}", call if number % 2 else None)

    def holds(page: Page, words: str) -> None:
        assert page.text.count("said by long") == 0, "it has a page of its own"
        assert "said by deep2" in words
        assert "said by deep9" not in words
        assert page.text.count('class="ai-agent') <= 400
        assert "more subagents not shown here" in words
        assert re.search(r"… and [\d,]+ more subagents(?! not shown)", words)

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_names_and_lists_of_a_conversation_have_an_end(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        long = "long name " * 30_000
        home = rows.project(long)
        models = json.dumps([f"model-{number}" for number in range(5_000)])
        session, file = rows.session(
            KEY, home, title=long, git_branch=long, models=models, cwd=long
        )
        rows.message(file, "text", "said")
        for number in range(2_000):
            rows.file(f"tool-results/{number}", kind="tool_result", session_id=session)
        for number in range(60):
            rows.add(
                "links", kind="plan", url=f"https://x.example/{number}/{long}", title=long,
                session_id=session, file_id=file, byte_offset=number, byte_length=1,
            )  # fmt: skip

    def holds(page: Page, words: str) -> None:
        assert len(page.text) < 400_000
        assert "model-9 and 4,990 more" in words
        assert "… and more files" in words
        assert "said" in words

    bounded(site(fill), f"/db/-/session/{KEY}", holds)


def test_a_prefix_of_very_many_conversations_lists_the_first(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        for number in range(500):
            rows.session(f"0b7c2f4e-{number}", title="title " * 1_000)

    page = site(fill).get("/db/-/session/0b7c2f4e")
    assert page.status == 300
    assert "500 conversations begin with '0b7c2f4e'. The first 100:" in page.words
    assert len(page.links("/-/session/")) == 100
    assert len(page.text) < 300_000


# -- the other pages -----------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["day", "model", "repository", "session", "tool"])
def test_the_page_of_usage_shows_as_much_as_it_can_bear(
    site: Callable[[Fill], Site], by: str
) -> None:
    def fill(rows: Rows) -> None:
        for number in range(1_000):
            day, model = f"20{10 + number % 15}-01-{1 + number % 20:02}", f"model-{number:04}"
            project = rows.project(f"project-{number:04}")
            session, file = rows.session(f"session-{number}", project, title="t" * LONG)
            rows.add(
                "responses", model=model, timestamp=f"{day}T10:00:00.000Z",
                input_tokens=1, output_tokens=1, session_id=session,
                response_key=str(number), file_id=file, byte_offset=number, byte_length=1,
            )  # fmt: skip
            rows.call(file, f"tool-{number:04}", {"a": "b"}, started_at=AT)

    def holds(page: Page, words: str) -> None:
        assert page.text.count("<tr>") < 130
        assert page.text.count("<rect") < 2_500
        assert ("Next →" in words) == (by != "day"), "there are 60 days"

    bounded(site(fill), f"/db/-/stats?by={by}&when=all", holds)


def test_a_project_shows_the_first_of_its_tasks_texts_links_and_worktrees(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        home = rows.project("shop")
        session, file = rows.session(KEY, home)
        for number in range(200):
            key = str(number)
            rows.project(f"tree-{number}", parent_id=home)
            rows.add(
                "tasks", subject="s" * LONG, description=TEXTS["table"](9_000), status="pending",
                task_key=key, list_key="x", session_id=session, source_id=rows.source,
                file_id=file,
            )  # fmt: skip
            text = TEXTS["references"](LONG if number % 2 else 50_000)
            rows.add(
                "documents", kind="note", title=f"note {number}" * 9_000, text=text, path=key,
                project_id=home, file_id=file, ordinal=number,
            )  # fmt: skip
            rows.add(
                "links", kind="frame", url=f"https://x.example/{number}", session_id=session,
                file_id=file, byte_offset=number, byte_length=1,
            )  # fmt: skip

    def holds(page: Page, words: str) -> None:
        assert words.count(f"Only the first {project.MOST} are shown") == 3
        assert "… and 100 more worktrees and teams" in words
        assert "Shown as plain text" in words

    bounded(site(fill), "/db/-/project/1", holds)


def test_a_team_shows_the_newest_of_its_messages_and_the_first_of_its_members(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        nested = '{"type":"x","a":' + "[" * 900 + "]" * 900 + "}"
        home = rows.add("teams", name="team", key="team", source_id=rows.source, file_id=file)
        for number in range(300):
            rows.add(
                "team_members", name=f"member-{number}", prompt=TEXTS["table"](9_000),
                team_id=home, file_id=file,
            )  # fmt: skip
            rows.add(
                "inbox_items", text=nested if number % 2 else TEXTS["rows"](LONG),
                sender="s" * LONG, recipient=f"member-{number}",
                kind="x" if number % 2 else "message",
                channel="inbox", team_id=home, timestamp=AT, text_hash=str(number),
                file_id=file, byte_offset=number, byte_length=1, ordinal=0,
            )  # fmt: skip
            rows.add(
                "tasks", subject="task", description=TEXTS["table"](9_000), status="pending",
                task_key=str(number), list_key="t", team_id=home, source_id=rows.source,
                file_id=file,
            )  # fmt: skip

    def holds(page: Page, words: str) -> None:
        assert "… and 200 more members" in words
        assert f"Only the newest {project.MOST_SHOWN} messages are shown" in words
        assert f"Only the first {project.MOST_SHOWN} tasks are shown" in words

    bounded(site(fill), "/db/-/team/1", holds)


def test_a_search_shows_the_beginning_of_names_and_the_first_values_of_each_facet(
    site: Callable[[Fill], Site],
) -> None:
    long = "long name " * 30_000

    def fill(rows: Rows) -> None:
        for number in range(40):
            named = rows.project(f"{number} {long}" if number % 2 else f"project {number}")
            session, file = rows.session(f"{KEY}-{number}", named, title=f"walrus {long}")
            agent = rows.add(
                "subagents", agent_key=str(number), agent_type=long, session_id=session,
                source_id=rows.source,
            )  # fmt: skip
            rows.message(
                file, "text", "walrus " + "a" * LONG, model=f"model-{number}", subagent_id=agent
            )
            task = {"status": "pending", "task_key": str(number), "list_key": "x"}
            rows.add(
                "tasks", subject="walrus " * 30_000, source_id=rows.source, file_id=file, **task
            )

    filled = site(fill)

    def holds(page: Page, words: str) -> None:
        assert len(page.text) < 1_000_000
        assert "walrus" in words
        assert "project 2" in words
        assert "… and 32 more" in words, "of the models, which are all offered by name"

    bounded(filled, "/-/assoc/search?q=walrus", holds)


def test_the_first_page_and_the_list_show_the_beginning_of_what_is_long_or_many(
    site: Callable[[Fill], Site],
) -> None:
    long = "long name\n" * 3_000

    def fill(rows: Rows) -> None:
        rows.add("sources", kind="s" * LONG, root="/")
        homes = [rows.project(f"{number} {long}") for number in range(200)]
        models = json.dumps([f"model-{number} {'m' * 2_000}" for number in range(50)])
        for number in range(2_000):
            rows.session(
                f"{KEY}-{number}", homes[number % 200], title=long, git_branch=long,
                message_count=1, models=models if number % 20 == 0 else '["walrus"]',
                started_at="2020-01-01T00:00:00.000Z",
            )  # fmt: skip
        _, file = rows.session("long", homes[0], title="long one", message_count=1)
        for _ in range(3_000):
            rows.message(file, "hook", "behind the turn")

    filled = site(fill)

    def holds(page: Page, words: str) -> None:
        assert page.text.count("/-/session/") == conversations.NEWEST
        assert "All projects" in words
        assert len(page.text) < 200_000

    def lists(page: Page, words: str) -> None:
        assert page.text.count("/-/session/") == conversations.PAGE
        assert page.text.count("<option") < 120
        assert "2,001 conversations, page 1" in words
        assert "and 48 more" in words
        assert len(page.text) < 500_000

    bounded(filled, "/", holds)
    bounded(filled, "/db/-/sessions", lists)
    bounded(filled, "/db/-/sessions?sort=cost&since=2019-01-01&model=walrus&page=38",
            lambda page, words: None)  # fmt: skip


def test_a_search_for_very_many_words_says_which_it_asked_for(site: Callable[[Fill], Site]) -> None:
    words = "+".join(f"w{number}" for number in range(700))

    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY, rows.project("shop"))
        rows.message(file, "text", words.replace("+", " "))

    def holds(page: Page, text: str) -> None:
        assert "The query has 700 words; only the first 100 were used." in text
        assert page.text.count('class="ai-hit"') == 1
        assert len(page.text) < 200_000

    def cut(page: Page, text: str) -> None:
        assert "Only the first 4,000 characters of the query were used." in text
        assert page.text.count('class="ai-hit"') == 1
        assert len(page.text) < 200_000

    filled = site(fill)
    bounded(filled, f"/-/assoc/search?q={words}", holds)
    bounded(filled, f"/-/assoc/search?q={words}{'+w1' * 20_000}", cut)


# -- what is beside a conversation ---------------------------------------------------------------


def test_a_map_and_a_timeline_have_an_end_whatever_is_on_them(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        session, file = rows.session(KEY)
        for number in range(1_500):
            rows.message(file, "prompt", f"prompt {number} " + "\n" * 5_000)
            rows.call(file, f"tool {number} " + "n" * 5_000, {"path": "p" * 5_000}, "no",
                      status="error", started_at=AT)  # fmt: skip
            rows.call(file, "Edit", {"file_path": f"{number}" + "f" * 5_000}, "ok", started_at=AT)
        for number in range(3_000):
            rows.add(
                "subagents", agent_key=f"a{number}", description="d" * 5_000, session_id=session,
                source_id=rows.source, started_at=AT, ended_at=AT,
            )  # fmt: skip

    filled = site(fill)

    def shows_a_map(page: Page, words: str) -> None:
        named = page.text.partition('class="ai-map"')[2].partition("</nav>")[0]
        assert named.count("<li") == 4 * MAP_LINES
        assert len(named) < 200_000

    def shows_lanes(page: Page, words: str) -> None:
        assert page.text.count("<rect") < 2_000
        assert len(page.text) < 300_000

    bounded(filled, f"/db/-/session/{KEY}", shows_a_map)
    bounded(filled, f"/db/-/session/{KEY}/timeline", shows_lanes)


def test_marks_have_an_end_however_much_is_found(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for _ in range(40):
            rows.message(file, "prompt", "word &lt; " * (LONG // 10))
            rows.message(file, "text", "| word " * 3_000)

    def holds(page: Page, words: str) -> None:
        assert "80 matches" in words
        assert 1_000 < page.text.count("<mark>") < 100_000

    many = "+OR+".join(f"word{number}" for number in range(40))
    filled = site(fill)
    bounded(filled, f"/db/-/session/{KEY}?find=word", holds)
    bounded(filled, f"/db/-/session/{KEY}?find=word+OR+{many}", holds)


# -- pieces --------------------------------------------------------------------------------------


def test_comparing_is_counted_before_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    find = SequenceMatcher.find_longest_match

    def counting(self: object, alo: int, ahi: int, blo: int, bhi: int) -> object:
        nonlocal counted
        old, new = self.a, self.b  # type: ignore[attr-defined]
        counted += sum(map(new.count, old[alo:ahi]))
        return find(self, alo, ahi, blo, bhi)  # type: ignore[arg-type]

    monkeypatch.setattr(SequenceMatcher, "find_longest_match", counting)
    page = Budget()
    shown = [str(html.difference(*TURNS, page)) for _ in range(20)]
    assert 0 < counted <= html.COMPARISONS
    assert all("Too long or too repetitive" in one for one in shown)
    assert "Too long" not in html.difference("a\nb", "a\nc", Budget())


def test_what_fits_is_shown_whole_and_nothing_is_said() -> None:
    page = Budget()
    shown = html.markdown("| a | b |\n|---|---|\n| c | d |\n", page)
    shown += html.plain("plain", page) + html.shortened("short", page)
    assert "<table tabindex" in shown
    assert "ai-more" not in shown


@pytest.mark.parametrize("name", TEXTS)
def test_markdown_of_every_kind_is_as_large_as_its_text_or_plain(name: str) -> None:
    text = TEXTS[name](9_000)
    shown = html.markdown(text)
    assert len(shown) < 20 * len(text) + 1_000


def test_a_page_that_is_too_large_all_the_same_is_none(
    site: Callable[[Fill], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_LARGEST", 1_000)
    page = site(lambda rows: None).get("/-/assoc")
    assert page.status == 503
    assert "Open the rows in Tables" in page.words

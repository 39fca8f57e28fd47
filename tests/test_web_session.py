"""The page of a conversation says what is in all of it: a map beside each page, and what was said
alone, however long it is.
"""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from markupsafe import Markup
from tests.support.reading import index
from tests.support.rows import Rows
from tests.support.web import Page, Site
from tests.support.writing import OTHER, SESSION, TRANSCRIPT, assistant, at, user, write

from assoc_ingest import terminal
from assoc_ingest.ask import query as query_parser
from assoc_ingest.ask.excerpt import Marker
from assoc_ingest.sync.run import sync
from assoc_ingest.web import html as marks
from assoc_ingest.web import map as conversation_map
from assoc_ingest.web.paging import PAGE, Begin, Paging

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

KEY = "0b7c2f4e-1111-4222-8333-444455556666"
HERE = f"/db/-/session/{KEY}"
Fill = Callable[[Rows], object]


@pytest.fixture
def site(tmp_path: Path) -> Callable[[Fill], Site]:
    def filled(fill: Fill) -> Site:
        with index(tmp_path / "db.db") as rows:
            fill(rows)
        return Site(tmp_path / "db.db")

    return filled


def garden(rows: Rows) -> None:
    """A conversation with something for each part of a map."""
    session, file = rows.session(KEY, cwd="/srv/garden")
    rows.message(file, "prompt", "Dig the first bed")
    rows.call(file, "Edit", {"file_path": "/srv/garden/beds.py"}, "done")
    rows.call(file, "Edit", {"file_path": "/srv/garden/beds.py"}, "done")
    rows.call(file, "Bash", {"command": "dig --deep"}, "no spade", status="error")
    rows.message(file, "text", "The bed is dug.")
    spawned, _ = rows.call(file, "Task", {"description": "weigh"}, "weighed")
    agent = rows.add(
        "subagents", agent_key="a1", description="weigh the soil", session_id=session,
        source_id=rows.source, spawned_by=spawned, message_count=1,
    )  # fmt: skip
    rows.message(file, "agent_prompt", "weigh it", subagent_id=agent)
    rows.message(file, "compact_summary", "A summary")
    rows.message(file, "thinking", "Which seeds?")
    rows.message(file, "prompt", "Sow the beans")
    rows.message(file, "queued_prompt", "And the kale")
    rows.message(file, "text", "They are sown.")


def parts(page: Page) -> dict[str, list[str]]:
    """Return the lines of the map, by the name of their part."""
    text = page.text.partition('<nav class="ai-map"')[2].partition("</nav>")[0]
    found = re.split(r"<summary>([\w ]+) <span", text)[1:]
    names, texts = found[::2], found[1::2]
    return {
        name: [re.sub(r"<[^>]*>", "", line).strip() for line in re.findall(r"<li.*?</li>", text)]
        for name, text in zip(names, texts, strict=True)
    }


# -- the map -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_map_has_prompts_changed_files_errors_subagents_and_compactions(
    site: Callable[[Fill], Site],
) -> None:
    page = site(garden).get(HERE)
    shown = {
        name: [" ".join(line.split()) for line in lines] for name, lines in parts(page).items()
    }
    assert shown.keys() == {"Prompts", "Files changed", "Errors", "Subagents", "Compactions"}
    assert [line.rsplit(" ", 1)[0] for line in shown["Prompts"]] == [
        "Dig the first bed", "Sow the beans", "And the kale"
    ]  # fmt: skip
    assert shown["Files changed"] == ["beds.py 2 changes"]
    assert shown["Errors"] == ["Bash dig --deep"]
    assert shown["Subagents"] == ["weigh the soil 1 message"]
    assert len(shown["Compactions"]) == 1


@pytest.mark.slow
def test_the_page_names_the_commits_that_were_made_here(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY, cwd="/srv/garden")
        log = {"command": "git log --oneline"}
        rows.call(file, "Bash", log, "7654321 Prune the <roses>")
        command = {"command": "git commit -m 'Water the <beans>'"}
        rows.call(file, "Bash", command, "[main 1a2b3c4] Water the <beans>")
        rows.call(file, "Bash", command, "[main 1a2b3c4] Water the <beans>")

    page = site(fill).get(HERE)
    assert "1 commit made here" in page.text
    assert '<a href="/db/-/blame?what=1a2b3c4">1a2b3c4</a> Water the &lt;beans&gt;' in page.text
    assert "what=7654321" not in page.text


@pytest.mark.slow
def test_the_page_names_the_files_that_have_changed_since(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        project = rows.project("garden")
        for number, key in enumerate((KEY, OTHER)):
            _, file = rows.session(key, project, cwd="/srv/garden", ended_at=at(50))
            path = {"file_path": "/srv/garden/<beds>.py"}
            rows.call(file, "Edit", path, "done", started_at=at(number))

    page = site(fill)
    text = page.get(HERE).text
    assert "The 1 file edited here has changed since: by 1 other conversation" in text
    link = '<a href="/db/-/blame?what=/srv/garden/%3Cbeds%3E.py">/srv/garden/&lt;beds&gt;.py</a>'
    assert link in text
    assert "changed since" not in page.get(f"/db/-/session/{OTHER}").text


def test_what_was_taken_back_has_a_badge(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "prompt", "mistaken", is_superseded=1)
        rows.message(file, "prompt", "meant")

    text = site(fill).get(HERE).text
    assert text.count(">taken back</span>") == 1


@pytest.mark.slow
def test_a_line_of_the_map_leads_to_its_place_on_this_page_or_another(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for number in range(PAGE):
            rows.message(file, "prompt", f"question {number}")
            rows.message(file, "text", f"answer {number}")

    filled = site(fill)
    page = filled.get(HERE)
    inside, beyond = (
        re.findall(rf'<a href="([^"]*)">question {number}</a>', page.text) for number in (3, 99)
    )
    assert [link[1:] in page.anchors() for link in inside] == [True]
    beyond = re.findall(r'<li><a href="([^"]*)">question \d+</a>', page.text)
    assert beyond == []  # the first hundred are all on this page
    last = filled.get(f"{HERE}?_end=1")
    (link,) = re.findall(r'<li><a href="([^"]*)">question 99</a>', last.text)
    there = filled.get(link)
    (marked,) = re.findall(r'<article[^>]* ai-target".*?</article>', there.text, re.DOTALL)
    assert "question 99" in marked


@pytest.mark.slow
def test_the_map_of_a_very_long_conversation_is_short_and_says_what_is_left_out(
    site: Callable[[Fill], Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for number in range(500):
            rows.message(file, "prompt", f"question {number}")
            rows.call(file, "Bash", {"command": f"cut {number}"}, "no", status="error")

    filled = site(fill)
    for address, before, behind in ((HERE, 0, 400), (f"{HERE}?_end=1", 400, 0)):
        page = filled.get(address)
        shown = parts(page)
        assert len(shown["Prompts"]) == len(shown["Errors"]) == conversation_map.MAP_LINES
        assert ("400 earlier" in page.words) == bool(before)
        assert ("400 later" in page.words) == bool(behind)
    monkeypatch.setattr(conversation_map, "MOST_READ", 300)
    page = filled.get(HERE)
    assert "too long for a complete map" in page.words


@pytest.mark.slow
def test_each_prompt_leads_to_the_one_before_and_the_one_behind(
    site: Callable[[Fill], Site],
) -> None:
    page = site(garden).get(HERE)
    first, second, last = re.findall(r'<article class="ai-typed.*?</article>', page.text, re.DOTALL)
    ids = [re.findall(r' id="([^"]*)"', one)[0] for one in (first, second, last)]
    assert f'<a class="ai-next" href="#{ids[1]}"' in first
    assert "ai-previous" not in first
    assert f'<a class="ai-previous" href="#{ids[0]}"' in second
    assert f'<a class="ai-next" href="#{ids[2]}"' in second
    assert "ai-next" not in last


def test_the_page_before_a_file_is_the_end_of_the_file_before(tmp_path: Path) -> None:
    with index(tmp_path / "db.db") as rows:
        session, *files = rows.session(KEY)
        files += [rows.file(f"{number}.jsonl", session_id=session) for number in (2, 3)]
        for file in files:
            rows.message(file, "prompt", "first")
            rows.message(file, "prompt", "last")
        last = rows.all(f"select max(byte_offset) from messages where file_id = {files[0]}")
        rows.connection.row_factory = sqlite3.Row
        paging = Paging(rows.connection, files, None)
        assert paging.before(Begin(2, None)) == (files[0], last[0], 0)
        assert paging.before(Begin(1, None)) is None


@pytest.mark.slow
def test_a_subagent_has_a_map_of_its_own(site: Callable[[Fill], Site]) -> None:
    page = site(garden).get(f"{HERE}?_agent=a1")
    assert parts(page).keys() == {"Prompts"}
    assert parts(page)["Prompts"][0].startswith("weigh it")


# -- only what was said --------------------------------------------------------------------------


@pytest.mark.slow
def test_only_what_was_said_leaves_prompts_and_answers(site: Callable[[Fill], Site]) -> None:
    filled = site(garden)
    (link,) = re.findall(r'<a href="([^"]*)">Hide tool calls</a>', filled.get(HERE).text)
    page = filled.get(link.replace("&amp;", "&"))
    body = page.text.partition('<div class="ai-body">')[2]
    assert re.findall(r'class="ai-(typed|text|call|aside|noise|agent)\b', body) == [
        "typed", "text", "typed", "typed", "text"
    ]  # fmt: skip
    assert "The bed is dug." in body
    assert "Which seeds?" not in body


@pytest.mark.slow
def test_what_was_said_is_paged_as_everything_is(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for number in range(PAGE):
            rows.message(file, "prompt", f"question {number}.")
            rows.message(file, "thinking", f"thought {number}.")
            rows.message(file, "text", f"answer {number}.")

    filled = site(fill)
    first = filled.get(f"{HERE}?said=1")
    assert "answer 99." in first.words
    assert "question 100." not in first.text.partition("ai-body")[2]
    (later,) = {link for link in first.links("said=1") if "after=" in link}
    second = filled.get(later)
    assert "question 100." in second.words
    assert f"answer {PAGE - 1}." in second.words
    assert "thought" not in second.words
    assert [link for link in second.links("said=1") if link.startswith(f"{HERE}?said=1")]
    assert filled.get(f"{HERE}?said=1&_end=1").text.count('<article class="ai-typed') == PAGE // 2


@pytest.mark.slow
def test_an_address_of_a_message_opens_it_among_what_was_said(site: Callable[[Fill], Site]) -> None:
    filled = site(garden)
    links = [link.partition("#")[0] for link in filled.get(f"{HERE}?said=1").links("?at=B")]
    page = filled.get(f"{links[-1]}&said=1")
    (marked,) = re.findall(r'<article[^>]* ai-target".*?</article>', page.text, re.DOTALL)
    assert "They are sown." in marked


@pytest.mark.slow
def test_an_address_of_a_call_says_that_it_is_not_among_what_was_said(
    site: Callable[[Fill], Site],
) -> None:
    filled = site(garden)
    (link, *_) = re.findall(r'<a href="[^"]*at=(B\d+)">Bash dig', filled.get(HERE).text)
    page = filled.get(f"{HERE}?at={link}&said=1")
    assert "neither a prompt nor an answer" in page.words
    assert "ai-target" not in page.text


# -- find ----------------------------------------------------------------------------------------


def follow(site: Site, address: str) -> Page:
    """Return the page that an address leads to."""
    page = site.get(address)
    assert page.status == 302, page.words
    return site.get(page.headers["location"])


def beans(rows: Rows) -> None:
    """A conversation of several pages with a few words that are rare in it."""
    session, file = rows.session(KEY)
    for number in range(PAGE):
        rare = " beans, <b>beans" if number % 50 == 7 else ""
        rows.message(file, "prompt", f"question {number}{rare}")
        rows.message(file, "text", f"answer {number}")
    rows.call(file, "Bash", {"command": "sow beans\nnpm test"}, "beans & more are sown")
    agent = rows.add(
        "subagents", agent_key="a1", session_id=session, source_id=rows.source, message_count=1
    )
    own = rows.file("a1.jsonl", session_id=session, subagent_id=agent, agent_key="a1")
    rows.message(own, "text", "weighed beans", subagent_id=agent)
    _, other = rows.session("1c7c2f4e-1111-4222-8333-444455556666")
    rows.message(other, "text", "beans of another conversation")


@pytest.mark.slow
def test_find_goes_from_match_to_match_over_all_pages_and_into_subagents(
    site: Callable[[Fill], Site],
) -> None:
    filled = site(beans)
    page = follow(filled, f"{HERE}?find=beans&go=1")
    seen = []
    for number in range(1, 8):
        assert f"{number} of 7 matches" in page.words
        (marked,) = re.findall(r' ai-target"(.*?)</(?:article|details)>', page.text, re.DOTALL)
        assert "<mark>beans</mark>" in marked
        seen.append(re.sub(r"<[^>]*>", "", marked.partition("ai-prose")[2]))
        links = dict(re.findall(r'<a id="(find-\w+)" href="([^"]*)"', page.text))
        assert ("find-before" in links) == (number > 1)
        assert ("find-next" in links) == (number < 7)
        if number < 7:
            page = filled.get(links["find-next"].replace("&amp;", "&"))
    assert "question 7 beans, &lt;b&gt;beans" in seen[0]
    assert "question 157" in seen[3]
    assert "weighed beans" in page.text.replace("<mark>", "").replace("</mark>", "")
    assert "Subagent" in page.words


@pytest.mark.slow
def test_find_begins_behind_where_the_page_begins(site: Callable[[Fill], Site]) -> None:
    filled = site(beans)
    page = filled.get(f"{HERE}?_end=1")
    (behind,) = re.findall(r'name="after" value="([^"]*)"', page.text)
    assert "3 of 7 matches" in follow(filled, f"{HERE}?find=beans&go=1&after={behind}").words


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "total"),
    [
        ("beans question", 4), ('"beans b beans"', 4), ("bean*", 7), ("beans kind:prompt", 4),
        ("beans -question", 3), ("beans OR answer", PAGE + 7), ("beans tool:bash", 2),
        ("npm", 1),
    ],
)  # fmt: skip
def test_find_reads_a_query_as_search_does(
    site: Callable[[Fill], Site], query: str, total: int
) -> None:
    page = site(beans).get(f"{HERE}?find={quote(query)}")
    assert f" {terminal.many(total, 'match', 'matches')} " in page.words.partition(" Find ")[2]


@pytest.mark.slow
def test_letters_of_chinese_are_found_however_few(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "prompt", "请种植豆子")
        rows.message(file, "text", "beans")

    filled = site(fill)
    for query in ("豆子", "种植豆", "植豆子"):
        page = follow(filled, f"{HERE}?find={quote(query)}&go=1")
        assert "1 of 1 match" in page.words
        assert f"<mark>{query}</mark>" in page.text


@pytest.mark.slow
def test_what_is_not_there_is_said_and_looked_for_elsewhere(site: Callable[[Fill], Site]) -> None:
    filled = site(beans)
    page = filled.get(f"{HERE}?find=spade&go=1")
    assert page.status == 200
    assert "No message contains all words." in page.words
    assert page.links("/-/assoc/search?db=db&q=spade")
    assert filled.get(f"{HERE}?find=kind:nix+beans").status == 400
    assert "no words to search for" in filled.get(f"{HERE}?find=kind:text").words
    assert "Only the first 300 characters" in filled.get(f"{HERE}?find={'w' * 400}").words


@pytest.mark.slow
def test_what_was_said_is_found_alone_where_it_is_shown_alone(
    site: Callable[[Fill], Site],
) -> None:
    page = site(beans).get(f"{HERE}?find=beans&said=1")
    assert "5 matches" in page.words
    assert all("said=1" in link for link in page.links("find=beans") if "at=" in link)


def test_marks_stand_in_text_and_never_in_a_tag() -> None:
    look = Marker(query_parser.parse("sow br title")).spans
    made = Markup('<p title="sow > br">sow<br>br &lt;sow&gt; sow&amp;</p>')
    assert marks.marked_html(made, look) == (
        '<p title="sow > br"><mark>sow</mark><br><mark>br</mark> '
        "&lt;<mark>sow</mark>&gt; <mark>sow</mark>&amp;</p>"
    )
    assert marks.marked_html("<sow>", look) == "&lt;<mark>sow</mark>&gt;"


# -- the header ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_has_the_same_numbers_in_the_same_words_as_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from assoc_ingest import __main__ as program

    demo = Path(__file__).parent / "demo"
    sync(tmp_path / "db.db", sorted(demo.iterdir()))
    site, seen = Site(tmp_path / "db.db"), set()
    for link in {
        link.partition("?")[0] for link in site.get("/db/-/sessions").links("/-/session/")
    }:
        page = site.get(link)
        program.main(["show", link.rsplit("/", 1)[1], "-d", str(tmp_path / "db.db")])
        text = " ".join(capsys.readouterr().out.split())
        for name in ("Size", "Tokens", "Cost"):
            for value in re.findall(rf"<div><dt>{name}</dt><dd>(.*?)</dd>", page.text):
                seen.add(name)
                words = {"Tokens": "tokens ", "Cost": "cost "}.get(name, "") + html.unescape(value)
                assert words in text or value.startswith("unknown: "), (link, value)
    assert seen == {"Size", "Tokens", "Cost"}


def test_how_it_was_counted_can_be_read_without_a_mouse(site: Callable[[Fill], Site]) -> None:
    page = site(garden).get(HERE)
    (counted,) = re.findall(
        r"<details[^>]*><summary>How was this counted.*?</details>", page.text, re.DOTALL
    )
    assert "including those of subagents" in counted
    assert "dd title=" not in page.text


# -- turns and calls -----------------------------------------------------------------------------


def taken(page: Page) -> dict[str, str]:
    """Return what each prompt of a page says of its turn, by the text of the prompt."""
    found = re.findall(r'<article class="ai-typed.*?</article>', page.text, re.DOTALL)
    texts = [re.findall(r'"ai-prose"><pre[^>]*>(.*?)</pre>', one)[0] for one in found]
    facts = [re.findall(r'ai-turn"[^>]*>(.*?)</span></span>', one) for one in found]
    return {
        text: " · ".join(re.findall(r"<span>([^<]*)", fact[0])) if fact else ""
        for text, fact in zip(texts, facts, strict=True)
    }


def test_a_turn_has_its_tokens_and_cost_with_those_of_its_subagents(
    site: Callable[[Fill], Site],
) -> None:
    """A subagent works until the next turn; what cannot be counted whole is marked."""

    def fill(rows: Rows) -> None:
        session, file = rows.session(KEY)
        place = 0

        def answer(model: str = "seal", **more: object) -> None:
            nonlocal place
            place = rows.message(file, "text", "Done.")
            offset = rows.get("messages", place, "byte_offset")
            rows.add(
                "responses", **{
                    "model": model, "timestamp": "2026-01-20T10:00:00.000Z",
                    "input_tokens": 0, "output_tokens": 1000,
                    "session_id": session, "file_id": file, "byte_offset": offset,
                    "byte_length": 1, "response_key": f"r{place}", **more,
                }
            )  # fmt: skip

        rows.add("prices", model="seal", input=1_000_000, output=10_000_000)
        rows.message(file, "prompt", "Dig")
        call, _ = rows.call(file, "Task", {"description": "weigh"}, "weighed")
        agents = [None]
        for name in ("outer", "inner"):
            agents.append(
                rows.add("subagents", agent_key=name, session_id=session, source_id=rows.source,
                         spawned_by=call if name == "outer" else None, parent_id=agents[-1])
            )  # fmt: skip
        answer()
        rows.message(file, "queued_prompt", "Deeper")
        answer()
        rows.message(file, "prompt", "Sow")
        answer(subagent_id=agents[1])
        answer(subagent_id=agents[2])
        answer(partial=1)
        rows.message(file, "prompt", "Rest")
        answer("unknown")
        rows.message(file, "prompt", "Go")

    page = site(fill).get(HERE)
    facts = taken(page)
    assert facts["Dig"] == "4.0 k out · $0.04"
    assert facts["Deeper"] == ""
    assert facts["Sow"] == "≥1.0 k out · ≥$0.01"
    assert facts["Rest"] == "1.0 k out · cost unknown"
    assert facts["Go"] == ""
    assert "≥$0.05" in page.words  # the sum, in the header


def test_calls_that_were_made_before_any_result_stand_together(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "prompt", "Dig")
        made = [
            (name, rows.message(file, "tool_use", "{}")) for name in ("first", "second", "third")
        ]
        for name, call in made:
            result = rows.message(file, "tool_result", name)
            rows.add(
                "tool_calls", name=name, status="ok", call_id=call, result_id=result,
                file_id=file, tool_use_id=name,
            )  # fmt: skip
        rows.call(file, "alone", {}, "done")
        rows.call(file, "after", {}, "done")

    page = site(fill).get(HERE)
    assert re.findall(r'aria-label="(\d calls at once)"', page.text) == ["3 calls at once"]
    group = page.text.partition('class="ai-group"')[2].partition("\n</div>\n")[0]
    assert re.findall(r"<summary><b>(\w+)</b>", group)[:3] == ["first", "second", "third"]
    assert page.text.count("<div") == page.text.count("</div>")


def test_calls_that_were_made_at_once_can_be_all_of_a_conversation(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for name in ("first", "second"):
            call = rows.message(file, "tool_use", "{}")
            rows.add(
                "tool_calls", name=name, status="no_result", call_id=call, file_id=file,
                tool_use_id=name,
            )  # fmt: skip

    page = site(fill).get(HERE)
    assert page.status == 200
    assert re.findall(r'aria-label="(\d calls at once)"', page.text) == ["2 calls at once"]
    assert page.text.count("<div") == page.text.count("</div>")


# -- new lines -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_open_page_is_told_how_many_lines_came_since(tmp_path: Path) -> None:
    lines = [user("dig"), assistant("dug", "a1")]
    write(tmp_path / "home", TRANSCRIPT, *lines)
    sync(tmp_path / "db.db", [tmp_path / "home"])
    site = Site(tmp_path / "db.db")
    here = f"/db/-/session/{SESSION}"

    def told() -> dict[str, Any]:
        answer = site.get(address)
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        return json.loads(answer.text)  # type: ignore[no-any-return]

    (address,) = re.findall(r'data-news="([^"]*)"', site.get(here).text)
    assert told() == {"lines": 0, "is_more": False, "address": ""}
    lines += [user("sow", "u2", "a1", 9), assistant("sown", "a2", "u2", 10)]
    write(tmp_path / "home", TRANSCRIPT, *lines)
    sync(tmp_path / "db.db", [tmp_path / "home"])
    news = told()
    assert news["lines"] == 2
    page = site.get(news["address"])
    (marked,) = re.findall(r'<article[^>]* ai-target".*?</article>', page.text, re.DOTALL)
    assert "sow" in marked
    assert site.get(f"{here}/news?after=99").status == 404
    assert site.get(f"{here}/news").status == 400


@pytest.mark.slow
def test_only_the_last_page_waits_for_new_lines(site: Callable[[Fill], Site]) -> None:
    filled = site(beans)
    assert "data-news" not in filled.get(HERE).text
    assert "data-news" in filled.get(f"{HERE}?_end=1").text
    assert "data-news" in filled.get(f"{HERE}?_agent=a1").text


# -- what a person typed ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("Sow\nthe beans", '<pre class="ai-plain">Sow\nthe beans</pre>'),
        ("Use `hoe`\nnow <b>", "<p>Use <code>hoe</code><br>\nnow &lt;b&gt;</p>"),
        ("- dig\n- sow", "<ul>\n<li>dig</li>\n<li>sow</li>\n</ul>"),
        ("```\n  dig()\n```", "<pre><code>  dig()\n</code></pre>"),
        ("Why?\n  - at dig", '<pre class="ai-plain">Why?\n  - at dig</pre>'),
        ("def `dig`:\n    return", '<pre class="ai-plain">def `dig`:\n    return</pre>'),
    ],
)
def test_a_prompt_is_markdown_where_it_is_written_so_and_keeps_its_lines(
    prompt: str, shown: str
) -> None:
    """What is indented may be a pasted log, and is shown as it was typed."""
    assert marks.typed(prompt, marks.Budget()).strip() == shown

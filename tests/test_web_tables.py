"""Every table, view and question is a page of Datasette that says what it is; text stays text.

They run on the line of Datasette that is installed; `.ci/run` runs them on both.
"""

from __future__ import annotations

import asyncio
import html
import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import yaml
from datasette.app import Datasette
from tests.support.served import bare, data, get, is_line_1, links, served
from tests.support.writing import PROJECT, SESSION, TRANSCRIPT, assistant, call, result, user, write
from tests.test_demo import HOMES

from assoc_ingest import sql
from assoc_ingest.sync.run import sync
from assoc_ingest.web import frame
from assoc_ingest.web.pages import for_people, may_view
from assoc_ingest.web.urls import Paths

pytestmark = pytest.mark.filterwarnings("default")  # Datasette's own

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"'><svg/onload=alert(3)>"
    "</textarea></title><a href=javascript:alert(4)>x</a> {{ 7*7 }} &lt;b&gt;"
)
FROST = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
ADDRESS = "https://example.com/pull/1?a=%3Cscript%3E&b=2"
SCRIPT = "javascript:alert(5)"


def tables() -> dict[str, dict[str, Any]]:
    """Return what metadata.yml says of each table and view."""
    known = yaml.safe_load(sql.data("metadata.yml").read_text("utf-8"))
    entries: dict[str, dict[str, Any]] = known["databases"]["assoc"]["tables"]
    return entries


@pytest.fixture(scope="module")
def demo(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "story.db"  # not the name that metadata.yml has
    path.write_bytes(template.read_bytes())
    sync(path, HOMES)
    return path


@pytest.fixture(scope="module")
def site(demo: Path) -> Any:
    return served(demo)


@cache
def page_of(site: Any, path: str) -> str:
    """Get a page that several tests look at: Datasette takes long to make one."""
    answer = get(site, path)
    assert answer.status_code == 200, path
    return str(answer.text)


@pytest.fixture(scope="module")
def hostile(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which every text that may be is hostile."""
    place = tmp_path_factory.mktemp("hostile")
    home = place / "home"
    write(
        home,
        TRANSCRIPT,
        user(EVIL, cwd=f"/srv/{EVIL}", gitBranch=EVIL),
        assistant(
            [{"type": "text", "text": EVIL}, {"type": "thinking", "thinking": EVIL},
             call("toolu_1", "Bash", command=EVIL, description=EVIL),
             call("toolu_3", EVIL, file_path=EVIL)],
            model=EVIL, usage={"input_tokens": 5, "output_tokens": 7},
        ),
        user([result("toolu_1", EVIL, is_error=True)], "u2"),
        {"type": "custom-title", "customTitle": EVIL, "sessionId": SESSION},
        {"type": "pr-link", "sessionId": SESSION, "prNumber": 1, "prUrl": ADDRESS,
         "prRepository": EVIL, "timestamp": "2026-01-20T10:00:05.000Z"},
        {"type": "pr-link", "sessionId": SESSION, "prNumber": 2, "prUrl": SCRIPT,
         "prRepository": EVIL, "timestamp": "2026-01-20T10:00:06.000Z"},
        {"type": EVIL}, f"garbage {EVIL}".encode(),
    )  # fmt: skip
    write(home, f"{PROJECT}/{EVIL.replace('/', '_')[:40]}.jsonl", user("x", "u5", sessionId=EVIL))
    write(home, f"tasks/{SESSION}/1.json", {"id": "1", "subject": EVIL, "description": EVIL,
                                            "status": "pending", "owner": EVIL})  # fmt: skip
    write(home, "teams/crew/config.json", {"name": EVIL, "members": [{"name": EVIL}]})
    write(home, "teams/crew/inboxes/bob.json", [{"from": EVIL, "text": EVIL, "read": False}])
    write(home, f"todos/{SESSION}-agent-{SESSION}.json", [{"content": EVIL, "status": "pending"}])
    path = place / "assoc.db"
    path.write_bytes(template.read_bytes())
    sync(path, [home])
    return path


# -- tables and views ----------------------------------------------------------------------------


@pytest.mark.slow
def test_every_table_and_view_says_what_it_is(site: Any) -> None:
    seen = 0
    for name, entry in tables().items():
        page = page_of(site, f"/story/{name}")
        if "title" in entry:
            assert entry["title"] in page, name
            seen += 1
    assert seen > 40


@pytest.mark.parametrize("table", ["inbox_items", "hook_events", "tool_calls", "messages"])
def test_a_table_shows_what_it_can_be_narrowed_by(table: str, site: Any) -> None:
    page = page_of(site, f"/story/{table}")
    for column in tables()[table]["facets"]:
        value = data(site, f"/story/{table}.json?{column}__notblank=1&_size=1")[0][column]
        value = value["value"] if isinstance(value, dict) else value  # with the label of its row
        assert any(link.endswith(f"/story/{table}?{column}={value}") for link in links(page)), (
            column
        )


def test_a_view_is_shown_though_a_question_is_called_like_it(site: Any) -> None:
    both = set(sql.named_queries()) & set(tables())
    assert {"usage_by_session", "coverage"} <= both
    for name in both:
        assert f"table-{name}" in page_of(site, f"/story/{name}"), name  # a class of the page


@pytest.mark.parametrize("table", ["messages", "conversation", "inbox_items", "tasks"])
def test_the_search_box_of_a_table_finds(table: str, site: Any) -> None:
    assert 'name="_search"' in page_of(site, f"/story/{table}")
    rows = data(site, f"/story/{table}.json?_size=max")
    text = " ".join(str(row.get("text") or row.get("subject") or "") for row in rows[:1])
    word = max(re.findall("[A-Za-z]+", text), key=len)
    found = data(site, f"/story/{table}.json?_search={word}&_size=max")
    assert 0 < len(found) < len(rows)
    assert data(site, f"/story/{table}.json?_search=zzzz") == []


@pytest.mark.parametrize("words", ['"', "a AND", "NEAR(", "*", "text:x", "-", "'"])
def test_a_search_for_what_looks_like_syntax_is_a_page(words: str, site: Any) -> None:
    answer = get(site, f"/story/messages?{urlencode({'_search': words})}")
    assert answer.status_code in (200, 400)
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("page", ["_next=999999", "_next=-1", "_next=x", "_next=%00", "_next="])
def test_a_page_past_the_end_is_a_page(page: str, site: Any) -> None:
    answer = get(site, f"/story/messages?{page}")
    assert answer.status_code in (200, 400)
    assert "Traceback" not in answer.text


def test_what_is_not_there_says_so(site: Any) -> None:
    for path in ("/story/no_such_table", "/story/sessions/999999", "/no_such_database"):
        answer = get(site, path)
        assert answer.status_code == 404, path
        assert "Traceback" not in answer.text


# -- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(for_people()))
def test_every_query_can_be_run_with_an_empty_form(name: str, site: Any) -> None:
    query = for_people()[name]
    answer = get(site, f"/story/{name}?" + "&".join(f"{p}=" for p in query.parameters))
    assert answer.status_code == 200, answer.text
    assert query.title in answer.text
    assert "message-error" not in answer.text
    for parameter in query.parameters:
        assert f'name="{parameter}"' in answer.text
    data(site, f"/story/{name}.json?" + "&".join(f"{p}=" for p in query.parameters))


def test_queries_answer_what_the_command_answers(demo: Path, site: Any) -> None:
    connection = sqlite3.connect(demo)
    query = sql.query("reports/longest_sessions")
    expected = connection.execute(query.sql, {"limit": "2"}).fetchall()
    connection.close()
    rows = data(site, "/story/ask-longest-sessions.json?limit=2")
    assert [tuple(row.values()) for row in rows] == expected
    assert len(rows) == 2


@pytest.mark.parametrize("named", ["fernhill", "/srv/fernhill", "id"])
def test_a_form_takes_a_project_by_its_name_its_path_or_its_id(
    named: str, demo: Path, site: Any
) -> None:
    """A command has found the ids before it asks; a form has nobody to do that."""
    if named == "id":
        with closing(sqlite3.connect(demo)) as connection:
            (number,) = connection.execute(
                "select id from projects where name = 'fernhill'"
            ).fetchone()
            named = str(number)
    found = data(site, f"/story/ask-list-subagents.json?project={quote(named)}")
    assert found
    assert data(site, "/story/ask-list-subagents.json?project=fern") == []


@pytest.mark.slow
def test_the_index_of_tables_leads_to_the_reports_and_lists_other_queries(demo: Path) -> None:
    own = {"title": "My own", "sql": "select 1"}
    page = get(served(demo, queries={"mine": own}), "/story").text
    assert "/story/-/reports" in links(page)
    if is_line_1():  # the first few, and a link to the rest
        assert f"View {len(for_people()) + 1} queries" in page
    else:
        assert "/story/mine" in links(page)
        assert not [name for name in for_people() if f"/story/{name}" in links(page)]


def test_only_reports_and_lists_are_offered() -> None:
    assert {query.folder for query in for_people().values()} == {"reports", "lists"}
    shown = {query.name for query in for_people().values()}
    assert {"usage_by_session", "list_tasks", "status_runs", "subagent_tree", "errors"} <= shown
    left_out = {"ask-show-session", "ask-session", "ask-search-messages", "ask-messages"}
    left_out |= {"ask-message-text", "ask-sessions-by-prefix", "ask-session-key-neighbours"}
    assert not set(for_people()) & left_out


def test_the_page_of_reports_lists_each_with_what_it_says(site: Any) -> None:
    page = get(site, "/story/-/reports").text
    for name, query in for_people().items():
        assert page.count(f'"/story/{name}"') == 1, name
        assert html.escape(query.title) in page
    for heading in (*sql.GROUPS.values(), "Lists"):
        assert page.count(f">{heading}</h2>") == 1


@pytest.mark.parametrize("name", sorted(for_people()))
def test_the_form_of_a_report_says_what_it_asks(name: str, site: Any) -> None:
    query = for_people()[name]
    page = page_of(site, f"/story/{name}")
    assert f"<h1>{html.escape(query.title, quote=False)}</h1>" in page
    assert "Custom SQL query" not in page
    for parameter in query.parameters:
        (label,) = re.findall(rf'<label[^>]*>([^<]*)<input [^>]*name="{parameter}"', page) or [""]
        box = re.findall(
            rf'<input type="checkbox" name="{parameter}"[^>]*> (\w[^<]+)</label>', page
        )
        assert len(label) > 3 or box, parameter
        placeholder = re.search(rf'name="{parameter}" [^>]*placeholder="([^"]+)"', page)
        assert placeholder or box, parameter
        assert placeholder is None or placeholder[1] not in ("-1", str(2**63 - 1))


@pytest.mark.parametrize("name", [*for_people()])
def test_a_report_shows_at_most_eight_columns_first(name: str, site: Any) -> None:
    page = page_of(site, f"/story/{name}")
    assert page.count('scope="col"') <= 8
    if "show all</a>" in page:
        assert get(site, f"/story/{name}?_all=1").text.count('scope="col"') > 8


def test_the_columns_of_reports_that_are_shown_first_exist(demo: Path) -> None:
    queries = for_people()
    with closing(sqlite3.connect(demo)) as connection:
        for name, columns in frame.FIRST_OF_REPORTS.items():
            query = queries[f"ask-{name}"]
            cursor = connection.execute(query.sql, dict.fromkeys(query.parameters, ""))
            assert {*columns} <= {column[0] for column in cursor.description}, name
            assert len(columns) <= frame.MOST


def test_a_form_shows_a_day_as_it_was_given(site: Any) -> None:
    """Also the last day, whose end is what is stored; what it shows asks for the same again."""
    for since, until in (("2026-02-20", "2026-03-01"), ("2026-02-20 10:30", "2026-03-01 00:30")):
        given = urlencode({"since": since, "until": until})
        page = get(site, f"/story/ask-usage-by-session?{given}").text
        assert f'name="since" value="{since}"' in page
        assert f'name="until" value="{until}"' in page


def test_a_form_says_what_is_taken_where_a_field_is_empty(site: Any) -> None:
    assert 'placeholder="50"' in get(site, "/story/ask-errors").text
    assert 'placeholder="7"' in get(site, "/story/ask-recent-sessions").text
    page = get(site, "/story/ask-usage-by-session").text
    assert "<option>fernhill</option>" in page
    assert re.search(r'placeholder="all; such as claude-[^"]+"', page)


def test_a_report_adds_up_what_can_be_added_up(site: Any) -> None:
    page = get(site, "/story/ask-usage-by-session").text
    rows = data(site, "/story/ask-usage-by-session.json")
    assert len(rows) > 1
    total = sum(row["responses"] for row in rows)
    assert re.search(rf'data-total="responses={total}(\.0)?"', page)
    assert 'data-total="model' not in page
    assert "data-total" not in get(site, "/story/ask-usage-reconciliation").text


def test_a_form_keeps_what_was_asked(site: Any) -> None:
    page = get(site, "/story/ask-list-tasks?project=fernhill&all=1&limit=2").text
    assert re.search(r'name="project" value="fernhill"', page)
    assert re.search(r'name="all" value="1" checked', page)
    assert re.search(r'name="limit" value="2"', page)


# -- one application -----------------------------------------------------------------------------

DATASETTES = (
    "/-/", "/story", "/story/sessions", "/story/conversation", "/story/sessions/1",
    "/story/ask-usage-by-session", "/story?sql=select+1", "/story/no_such_table",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETTES)
def test_the_pages_of_datasette_have_the_navigation_of_all_others(path: str, site: Any) -> None:
    own = navigation(page_of(site, "/story/-/stats"))
    assert [text for text, _ in own] == ["Conversations", "Search", "Usage", "Reports"]
    assert "/story" in links(page_of(site, "/story/-/reports")), "to the tables"
    page = get(site, path)
    if page.status_code == 302:  # 1.0 has queries at an address of their own
        page = get(site, page.headers["location"])
    assert navigation(page.text) == own
    assert 'role="search"' in page.text
    assert "assoc.css" in page.text
    for _, address in own:
        page_of(site, address)


def navigation(page: str) -> list[tuple[str, str]]:
    """Return the places in the header of a page, and where they are."""
    (part,) = re.findall(r'<nav aria-label="Pages">(.*?)</nav>', page, re.DOTALL)
    found = re.findall(r'<a href="([^"]+)"[^>]*>([^<]+)</a>', part)
    return [(text, address) for address, text in found]


@pytest.mark.slow
def test_every_page_says_in_which_part_it_is(site: Any) -> None:
    expected = {
        "/": "Conversations", "/story/-/sessions": "Conversations", "/-/assoc/search": "Search",
        f"/story/-/session/{FROST}": "Conversations", "/story/-/project/fernhill": "Conversations",
        "/story/-/reports": "Reports", "/story/ask-errors": "Reports", "/story": "Reports",
        "/story/messages": "Reports", "/story/messages/1": "Reports",
        "/story/-/stats": "Usage", "/story/-/status": "Reports",
    }  # fmt: skip
    for path, part in expected.items():
        page = get(site, path).text
        assert re.findall(r'<a [^>]*aria-current="true">([^<]+)</a>', page)[:1] == [part], path


@pytest.mark.slow
def test_several_databases_of_ours_keep_to_theirs(demo: Path, hostile: Path) -> None:
    page = get(served(demo, hostile), "/assoc/sessions").text
    addresses = dict(navigation(page))
    assert addresses["Usage"] == "/assoc/-/stats"
    assert addresses["Reports"] == "/assoc/-/reports"
    assert '<input type="hidden" name="db" value="assoc">' in page


def test_what_is_not_there_offers_a_search_and_what_is_called_nearly_so(site: Any) -> None:
    answer = get(site, "/story/mesages")
    assert answer.status_code == 404
    assert "/story/messages" in links(answer.text)
    assert re.search(r'name="q" value="mesages"', answer.text)
    assert get(site, "/story/-/nothing").status_code == 404
    assert get(site, "/story/mesages.json").headers["content-type"].startswith("application/json")


def shown(page: str) -> list[str]:
    """Return the names of the columns that a page of a table shows."""
    return re.findall(r'<th [^>]*data-column="([^"]+)"', page)


@pytest.mark.slow
@pytest.mark.parametrize("table", sorted(tables()))
def test_a_table_shows_at_most_eight_columns_first(table: str, site: Any) -> None:
    rows = data(site, f"/story/{table}.json?_size=1")
    if not rows:
        return
    page = page_of(site, f"/story/{table}")
    first, every = shown(page), shown(get(site, f"/story/{table}?_all=1").text)
    assert 0 < len(first) <= 8
    assert set(first) <= set(every)
    assert set(every) - {"Link"} == set(rows[0]) - ({"id"} if "Link" in every else set())
    assert ("_all=1" in page) == (len(first) < len(every))
    assert len(re.findall(r'<td [^>]*data-column="', page)) % len(first) == 0


def test_what_is_sorted_or_filtered_by_is_among_the_columns(site: Any) -> None:
    assert "cwd" not in shown(get(site, "/story/sessions").text)
    for asked in ("_sort=cwd", "_sort_desc=cwd", "cwd__contains=s"):
        assert shown(get(site, f"/story/sessions?{asked}").text)[-1] == "cwd"
    page = get(site, "/story/messages?_sort=byte_offset&_size=2").text
    (following,) = re.findall(r'<a rel="next" href="([^"]+)"', page)
    following = html.unescape(following).removeprefix("http://localhost")
    assert "byte_offset" in shown(get(site, following).text)


def test_the_columns_that_are_shown_first_exist(demo: Path) -> None:
    with closing(sqlite3.connect(demo)) as connection:
        for table, names in frame.FIRST.items():
            known = {row[1] for row in connection.execute(f"pragma table_info({table})")}
            assert set(names) <= known, table
            assert len(set(names)) == len(names) <= frame.MOST


@pytest.mark.slow
def test_the_notes_on_columns_are_folded_below_the_rows(site: Any) -> None:
    page = get(site, "/story/messages").text
    (folded,) = re.findall(r"<details[^>]*><summary>Columns</summary>", page)
    assert page.index("</table>") < page.index(folded)
    assert " open" not in folded


@pytest.mark.parametrize("table", ["messages", "tool_calls", "responses", "statements"])
def test_a_row_leads_to_its_message(table: str, demo: Path, site: Any) -> None:
    with closing(sqlite3.connect(demo)) as connection:
        (number,) = connection.execute(
            f"select r.id from {table} r join files f on f.id = r.file_id"
            " where f.session_key = ? order by r.id",
            [FROST],
        ).fetchone()
    page = get(site, f"/story/{table}/{number}").text
    found = re.findall(r'<a href="([^"]+)">Open the message in its conversation</a>', page)
    assert [address.split("?")[0] for address in found] == [f"/story/-/session/{FROST}"]
    answer = get(site, html.unescape(found[0]))
    assert answer.status_code == 200
    assert "ai-target" in answer.text


@pytest.mark.parametrize(
    ("table", "where", "target"),
    [
        ("sessions", "session_key = '{key}'", "/story/-/session/{key}"),
        ("tasks", "team_id is not null", "/story/-/team/"),
        ("projects", "name = 'fernhill'", "/story/-/project/"),
        ("teams", "true", "/story/-/team/"),
        ("inbox_items", "team_id is not null", "/story/-/team/"),
        ("subagents", "session_id is not null", "/story/-/session/"),
    ],
)
def test_a_row_leads_to_what_it_belongs_to(
    table: str, where: str, target: str, demo: Path, site: Any
) -> None:
    with closing(sqlite3.connect(demo)) as connection:
        (number,) = connection.execute(
            f"select id from {table} where {where.format(key=FROST)}"
        ).fetchone()
    page = get(site, f"/story/{table}/{number}").text
    (part,) = re.findall(r'<ul class="ai-actions">(.*?)</ul>', page, re.DOTALL)
    ways = links(part)
    assert any(way.startswith(target.format(key=FROST)) for way in ways)
    assert {get(site, html.unescape(way)).status_code for way in ways} == {200}


def test_a_row_leads_nobody_to_what_they_may_not_see(demo: Path) -> None:
    page = get(served(demo, denied="messages"), "/story/tool_calls/1")
    assert page.status_code == 200
    assert "Open the message" not in page.text


# -- cells ---------------------------------------------------------------------------------------


def test_a_title_leads_to_its_conversation(site: Any) -> None:
    key = data(site, "/story/sessions.json?_size=1")[0]["session_key"]
    target = f"/story/-/session/{key}"
    assert target in links(get(site, "/story/sessions").text)
    assert target in links(get(site, f"/story/sessions?session_key={key}").text)
    assert any(
        "/-/session/" in link
        for link in links(get(site, "/story/ask-recent-sessions?days=99999").text)
    )


def test_the_title_of_a_link_is_not_that_of_its_conversation(site: Any) -> None:
    found = [row for row in data(site, "/story/ask-list-links.json?limit=") if row["title"]]
    page = get(site, "/story/ask-list-links?limit=").text
    assert found
    for row in found:
        assert f"{row['title']}</a>" not in page
        assert f'/story/-/session/{row["session_key"]}">{row["session"]}</a>' in page


def test_a_time_is_readable_and_still_exact(site: Any) -> None:
    stored = data(site, "/story/sessions.json?_size=1")[0]["started_at"]
    page = get(site, "/story/sessions?_all=1").text
    shown = f'<time datetime="{stored}" title="{stored}">{stored[:10]} {stored[11:16]}</time>'
    assert shown in page


@pytest.mark.slow
def test_menus_lead_to_search_and_usage(site: Any) -> None:
    for path in ("/", "/story", "/story/sessions"):
        assert {"/-/assoc/search", "/story/-/stats"} <= links(get(site, path).text), path


# -- permissions ---------------------------------------------------------------------------------


def sees(site: Any, *tables: str) -> bool:
    return asyncio.run(may_view(site, None, "story", tables))


@pytest.mark.skipif(not is_line_1(), reason="of Datasette 1.0 only")
def test_conversations_can_be_jumped_to_by_their_titles(demo: Path, site: Any) -> None:
    found = get(site, "/-/jump?q=frost+planting").json()["matches"]
    (one,) = [item for item in found if item["type"] == "conversation"]
    assert one["url"] == f"/story/-/session/{FROST}"
    assert "Frost warning in the planting calendar" in str(one)
    assert get(site, one["url"]).status_code == 200
    assert get(site, "/-/jump?q=").status_code == 200
    for denied in ("sessions", ""):
        hidden = served(demo, denied=denied)
        assert "conversation" not in get(hidden, "/-/jump?q=frost").text


@pytest.mark.skipif(not is_line_1(), reason="of Datasette 1.0 only")
def test_the_row_of_a_session_leads_to_its_conversation(site: Any) -> None:
    (session,) = data(site, f"/story/sessions.json?session_key={FROST}&_size=1")
    assert f"/story/-/session/{FROST}" in links(get(site, f"/story/sessions/{session['id']}").text)


def test_who_may_not_see_a_table_may_not_see_a_page_made_of_it(demo: Path) -> None:
    site = served(demo, denied="messages")
    assert sees(site)
    assert sees(site, "sessions", "usage_by_day")
    assert not sees(site, "sessions", "messages")


@pytest.mark.skipif(is_line_1(), reason="of 0.65")
def test_who_may_see_a_table_is_looked_up_once(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Datasette merges all metadata for that, and asks for each table of a page several times."""
    asked: list[tuple[str, str]] = []
    ask = Datasette._table_permission_allows

    def counted(datasette: Datasette, database: str, table: str) -> list[Any]:
        asked.append((database, table))
        return ask(datasette, database, table)  # type: ignore[no-any-return]

    monkeypatch.setattr(Datasette, "_table_permission_allows", counted)
    assert get(served(demo, denied="messages"), "/story").status_code == 200
    assert ("story", "messages") in asked
    assert len(asked) == len(set(asked))


def test_who_may_not_see_the_database_is_not_led_to_it(demo: Path, site: Any) -> None:
    denied = served(demo, denied="")
    assert sees(site, "messages")
    assert not sees(denied)
    assert not sees(denied, "messages")
    assert "/-/assoc/search" not in get(denied, "/").text
    assert get(denied, "/story/ask-usage-by-session").status_code == 403


# -- hostile text --------------------------------------------------------------------------------


@pytest.mark.slow
def test_hostile_text_is_text_on_every_page(hostile: Path) -> None:
    site = served(hostile)
    pages = [f"/assoc/{name}?_size=max" for name in tables()]
    pages += [f"/assoc/{name}" for name in for_people()]
    pages += [f"/assoc/{name}/1" for name in ("sessions", "messages", "tool_calls", "links")]
    pages += ["/", "/-/", "/assoc", "/assoc/-/reports", "/assoc/messages?_all=1"]
    pages += [f"/assoc/ask-list-tasks?project={quote(EVIL)}"]
    shown = 0
    for path in pages:
        answer = get(site, path)
        assert answer.status_code == 200, path
        for harmful in ("<script>alert", "<img src=x", "<svg/onload", "<a href=javascript"):
            assert harmful not in answer.text, path
        assert not any(link.startswith("javascript") for link in links(answer.text)), path
        shown += "&lt;script&gt;alert" in answer.text
    assert shown > 15


def test_a_hostile_address_is_text_on_the_page_that_finds_nothing(hostile: Path) -> None:
    answer = get(served(hostile), f"/assoc/{quote(EVIL, safe='')}")
    if answer.status_code == 302:  # 0.65 leads to the address as it writes it
        answer = get(served(hostile), answer.headers["location"])
    assert answer.status_code == 404
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;alert" in answer.text


@pytest.mark.slow
def test_only_web_addresses_become_links(hostile: Path) -> None:
    page = get(served(hostile), "/assoc/links").text
    assert SCRIPT in page
    assert ADDRESS.replace("&", "&amp;") in page
    assert 'rel="noopener noreferrer nofollow"' in page


def test_a_key_that_looks_like_a_path_stays_one_step(hostile: Path) -> None:
    address = Paths(served(hostile), "assoc").session("../../x?y#z%2f")
    assert address == "/assoc/-/session/~2E~2E~2F~2E~2E~2Fx~3Fy~23z~252f"


# -- other databases -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_database_that_is_not_ours_stays_as_it_is(demo: Path, tmp_path: Path) -> None:
    path = tmp_path / "assoc.db"  # a name proves nothing
    connection = sqlite3.connect(path)
    connection.execute("create table sessions (title text, session_key text, at text)")
    row = ("mine", "k1", "2026-01-20T10:00:00.000Z")
    connection.execute("insert into sessions values (?, ?, ?)", row)
    connection.commit()
    connection.close()
    alone = bare(path)
    addresses = ("/", "/assoc", "/assoc/sessions", "/assoc/sessions/1", "/assoc?sql=select+1")
    for address in addresses:
        page = get(alone, address)
        if page.status_code == 302:
            page = get(alone, page.headers["location"])
        assert page.status_code == 200
        assert "assoc.css" not in page.text
        assert "app.css" in page.text
        assert "/-/assoc/search" not in page.text
        assert "/-/session/" not in page.text
        assert "<time" not in page.text
    assert get(alone, "/assoc/ask-usage-by-session").status_code == 404

    assert "assoc.css" not in get(alone, "/assoc/nothing").text
    assert get(alone, "/assoc/-/reports").status_code == 404

    beside = served(demo, path)
    assert "assoc.css" not in get(beside, "/assoc/sessions").text
    assert "assoc.css" not in get(beside, "/assoc/nothing").text
    assert "/-/session/" not in get(beside, "/assoc/sessions").text
    assert "/-/session/" in get(beside, "/story/sessions").text
    assert get(beside, "/story/ask-usage-by-session").status_code == 200
    assert get(beside, "/assoc/ask-usage-by-session").status_code == 404

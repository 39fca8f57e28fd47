"""The timeline of a conversation has its turns, tools and subagents side by side, each a link to
its place, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.support.reading import index
from tests.support.rows import Rows
from tests.support.web import Page, Site
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    Object,
    agent,
    assistant,
    call,
    result,
    user,
    write,
)

from assoc_ingest.sync.run import sync
from assoc_ingest.web import timeline
from assoc_ingest.web.timeline import Axis, Span

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


def at(minute: float) -> str:
    """The time so many minutes after ten, as it is stored."""
    time = datetime(2026, 1, 20, 10) + timedelta(minutes=minute)
    return f"{time.isoformat(timespec='milliseconds')}Z"


def garden(rows: Rows) -> None:
    session, file = rows.session(KEY)
    rows.message(file, "prompt", "Dig the first bed", timestamp=at(0))
    rows.call(file, "Bash", {"command": "dig"}, "dug", started_at=at(1), ended_at=at(3))
    rows.call(file, "Bash", {"command": "rake"}, "no", status="error", started_at=at(4),
              ended_at=at(5))  # fmt: skip
    rows.message(file, "text", "Done.", timestamp=at(6))
    rows.message(file, "prompt", "Sow <b>beans</b>", timestamp=at(300))
    call, _ = rows.call(file, "Task", {"description": "sow"}, "sown", started_at=at(301))
    rows.add(
        "subagents", agent_key="a1", description="sow beans", session_id=session,
        source_id=rows.source, spawned_by=call, started_at=at(301), ended_at=at(309),
    )  # fmt: skip
    rows.message(file, "text", "Sown.", timestamp=at(310))


@pytest.mark.slow
def test_turns_tools_and_subagents_are_lanes_and_each_bar_is_a_link(
    site: Callable[[Fill], Site],
) -> None:
    filled = site(garden)
    page = filled.get(f"{HERE}/timeline")
    found = re.findall(r'<div class="ai-lane ai-lane-(\w+)">(.*?)</svg>', page.text, re.DOTALL)
    assert [kind for kind, _ in found] == ["turn", "tool", "tool", "agent"]
    bars = [re.findall(r'<a href="([^"]*)" tabindex="-1"><rect', lane) for _, lane in found]
    assert [len(lane) for lane in bars] == [2, 2, 1, 1]
    assert found[1][1].count("failed</title>") == 1
    for address in (link for lane in bars for link in lane):
        assert filled.get(address).status == 200, address
    (marked,) = re.findall(r' ai-target"(.*?)</article>', filled.get(bars[0][1]).text, re.DOTALL)
    assert "Sow &lt;b&gt;beans" in marked
    assert page.harmful() == []


def test_a_table_has_the_same_turns(site: Callable[[Fill], Site]) -> None:
    page = site(garden).get(f"{HERE}/timeline")
    rows = re.findall(r"<tr><td.*?</tr>", page.text, re.DOTALL)
    words = [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]
    assert words[0].endswith("Dig the first bed 6 min 2 calls 1 error")
    assert "Sow &lt;b&gt;beans&lt;/b&gt; Subagent sow beans 10 min 1 call" in words[1]
    assert "16 min of activity; pauses are left out." in page.words


@pytest.mark.slow
def test_a_long_conversation_has_a_timeline_of_several_pages(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        for number in range(timeline.TURNS + 5):
            rows.message(file, "prompt", f"question {number}.", timestamp=at(number))
            for second in range(40):
                rows.call(file, "Bash", {"command": "dig"}, "dug",
                          started_at=at(number + second / 60))  # fmt: skip

    filled = site(fill)
    first, second = filled.get(f"{HERE}/timeline"), filled.get(f"{HERE}/timeline?page=2")
    assert first.text.count("<tr><td") == timeline.TURNS
    assert second.text.count("<tr><td") == 5
    assert "question 50." in second.words
    assert first.links("timeline?page=2")
    assert second.links("timeline?page=1")
    assert "2,000 calls" in first.words
    assert "200 calls" in second.words
    assert first.text.count("<rect") < 500
    assert filled.get(f"{HERE}/timeline?page=3").status == 404
    assert filled.get(f"{HERE}/timeline?page=x").status == 400


def test_a_conversation_without_prompts_or_times_has_a_timeline_too(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "text", "alone")
        _, other = rows.session("1c7c2f4e-1111-4222-8333-444455556666")
        rows.message(other, "prompt", "timeless", timestamp=None)

    filled = site(fill)
    assert "there are no turns" in filled.get(f"{HERE}/timeline").words
    page = filled.get("/db/-/session/1c7c/timeline")
    assert "timeless" in page.words
    assert "<svg" not in page.text


def turns(page: Page) -> list[str]:
    rows = re.findall(r"<tr><td.*?</tr>", page.text, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()).partition(" ")[2] for row in rows]


def test_the_timeline_counts_calls_as_the_header_of_the_conversation_does(
    home: Path, fresh: Callable[[], Path]
) -> None:
    """A second transcript repeats the first, a fork begins with it, a subagent has its own."""

    def used(key: str, second: int) -> list[Object]:
        asked = assistant([call(key)], f"a{key}", None, second, id=f"msg_{key}")
        return [asked, user([result(key)], f"r{key}", f"a{key}", second + 1)]

    begun = [*used("t0", 0), user("dig", "u1", None, 2), *used("t1", 3), *used("t2", 5)]
    more = [user("sow", "u2", None, 10), *used("t3", 11)]
    fork = [{**line, "sessionId": OTHER} for line in [*begun, *used("t4", 20), *more]]
    write(home, TRANSCRIPT, *begun, *more)
    write(home, TRANSCRIPT.replace("-srv-demo", "-srv-other"), *begun, *more)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *fork, user("rake", "u3", None, 30), *used("t5", 31))
    agents = f"{PROJECT}/{SESSION}/subagents/agent-a1.jsonl"
    write(home, agents, agent("a1", user("weigh", "s1", None, 4)),
          *(agent("a1", line) for line in used("t6", 5)))  # fmt: skip
    database = fresh().rename(home.parent / "db.db")
    sync(database, [home])
    site = Site(database)
    for key, count, said, rows in (
        (SESSION, 5, "5 tool calls, 1 of them by subagents and not in the table",
         ["Before the first prompt", "dig", "sow"]),
        (OTHER, 2, "2 tool calls", ["Before the first prompt", "rake"]),
    ):  # fmt: skip
        assert f"{count} tool calls" in site.get(f"/db/-/session/{key}").words
        page = site.get(f"/db/-/session/{key}/timeline")
        assert said in page.words
        assert len(turns(page)) == len(rows)
        assert sum(int(n) for row in turns(page) for n in re.findall(r"(\d+) calls?\b", row)) == (
            count - (key == SESSION)
        )


def test_waiting_for_a_person_is_not_work(site: Callable[[Fill], Site]) -> None:
    def fill(rows: Rows) -> None:
        _, file = rows.session(KEY)
        rows.message(file, "prompt", "Dig", timestamp=at(0))
        rows.call(file, "Bash", {"command": "dig"}, "no", status="declined",
                  started_at=at(1), ended_at=at(31))  # fmt: skip
        rows.call(file, "AskUserQuestion", {"q": "where"}, "there",
                  started_at=at(32), ended_at=at(62))  # fmt: skip
        rows.message(file, "text", "Done.", timestamp=at(63))
        rows.message(file, "meta", "the person is back", timestamp=at(500))
        rows.message(file, "prompt", "Sow", timestamp=at(501))
        rows.message(file, "text", "Sown.", timestamp=at(502))

    filled = site(fill)
    page = filled.get(f"{HERE}/timeline")
    assert [row.partition(" ")[2] for row in turns(page)] == ["Dig 3 min 2 calls", "Sow 1 min"]
    assert page.words.count("4 min of activity") == 1
    said = re.findall(r'ai-turn"[^>]*><span>([^<]*)', filled.get(HERE).text)
    assert said == ["3 min", "1 min"]  # so does the prompt on the page of the conversation


def test_a_subagent_that_waits_for_a_person_is_not_in_the_turns(
    site: Callable[[Fill], Site],
) -> None:
    def fill(rows: Rows) -> None:
        session, file = rows.session(KEY)
        rows.message(file, "prompt", "Dig", timestamp=at(0))
        rows.message(file, "text", "Dug.", timestamp=at(60))
        agent = rows.add("subagents", agent_key="a1", session_id=session, session_key=KEY,
                         source_id=rows.source, message_count=2)  # fmt: skip
        own = rows.file("agent-a1.jsonl", kind="subagent", session_id=session, subagent_id=agent)
        rows.call(own, "Bash", {"command": "dig"}, "no", status="declined", subagent_id=agent,
                  session_id=session, started_at=at(1), ended_at=at(31))  # fmt: skip

    assert site(fill).get(HERE).status == 200


def test_a_pause_takes_no_more_room_than_a_gap() -> None:
    spans = [Span(0, 10, "a", ""), Span(1_000_000, 1_000_010, "b", "")]
    first, second = timeline.lane(Axis(spans), spans)
    assert first.width == pytest.approx(second.width, rel=0.01)
    assert second.x - first.width < 10
    assert second.x + second.width == pytest.approx(timeline.WIDTH)


@pytest.mark.slow
def test_bars_that_cannot_be_told_apart_are_one_and_what_failed_is_seen() -> None:
    spans = [Span(n, n + 1, "x", "", is_bad=n == 5_000) for n in range(10_000)]
    bars = timeline.lane(Axis(spans), spans)
    assert [bar.others for bar in bars] == [9_998, 0]
    assert [bar.is_bad for bar in bars] == [False, True]
    assert bars[1].width >= 2


def test_subagents_that_run_at_once_are_in_rows_and_those_without_room_are_counted() -> None:
    spans = [Span(n % 10, 20, "x", "") for n in range(12)] + [Span(30, 40, "y", "")]
    rows, left = timeline.packed(spans, 8)
    assert [len(row) for row in rows] == [2, *[1] * 7]
    assert left == 4

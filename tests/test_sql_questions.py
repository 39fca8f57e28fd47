"""The questions that docs/schema.md begins with are answered rightly by the SQL below them.

Each is asked of the demonstration homes, and of a home with what makes a plain count wrong: a fork,
calls that were declined, a response on several lines, a change of the branch, a subagent. What
they should say was counted by hand in the files.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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
    result,
    user,
    write,
)

from assoc_ingest.ask.filters import Filters
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.stats import stats
from assoc_ingest.sync.run import sync

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "schema.md").read_text("utf-8")
QUESTIONS = dict(re.findall(r"^### ([^\n]+\?)\n\n```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
DEMO_TIME = 1_772_700_000  # 5 March 2026: the time of every file
FROST = "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"
BEDS = "a7d3b6e2-91c4-4f05-8e2b-1c6f49d07b52"
NEWS = "c04e8f17-6a2d-4b93-b1f8-95d3e27a6c03"

Answers = dict[str, list[tuple[Any, ...]]]


def ask(connection: sqlite3.Connection, question: str, now: str, **others: str) -> list[Any]:
    """Return the rows, asked at a time; `others` stand in place of names in the page."""
    statement = QUESTIONS[question]
    for shown, other in {"'now'": f"'{now}'", **others}.items():
        statement = statement.replace(shown, other)
    return connection.execute(statement).fetchall()


@pytest.fixture(scope="module")
def demo(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    place = tmp_path_factory.mktemp("demo")
    database = place / "demo.db"
    database.write_bytes(template.read_bytes())
    homes = []
    for home in sorted((ROOT / "tests" / "demo").iterdir()):
        homes.append(place / home.name)
        _copy(home, homes[-1])
    sync(database, homes)
    connection = sqlite3.connect(database)
    yield connection
    connection.close()


def _copy(home: Path, to: Path) -> None:
    for path in home.rglob("*"):
        if path.is_file():
            copy = to / path.relative_to(home)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
            os.utime(copy, (DEMO_TIME, DEMO_TIME))


def test_the_page_begins_with_fifteen_questions() -> None:
    assert len(QUESTIONS) == 15
    assert PAGE.index("## Fifteen questions") < PAGE.index("\n## ") + 2
    assert set(DEMO) == set(TRAPS) == set(QUESTIONS)


# -- the demonstration homes ---------------------------------------------------------------------

PYTEST = "python -m pytest -q"
FROST_TITLE = "Frost warning in the planting calendar"
SEEDLINGS_TITLE = "How long do tomato seedlings need indoors?"
NEWS_TITLE = "Write two sentences on the frost warning for the newsletter."
WARN = (
    "The planting calendar should warn us when a night below zero is forecast. "
    "Bean seedlings die at once."
)
FIND = "Find out where the planting calendar gets its days and crops from."
LOOK = "I will look at how the calendar is built first."
FOUND = (
    "The calendar is calendar.py; crops and their days are in crops.toml. "
    "Nothing reads a forecast yet."
)
KALE = "Kale can stand frost, do not warn about kale."
TENDER = (
    "A crop does not know yet whether it is tender. I add that to crops.toml: beans, tomatoes and "
    "squash are tender, kale is not."
)
WARNS = (
    "The calendar now warns about nights below zero, for tender crops only: beans, tomatoes and "
    "squash. Kale stays quiet. All 12 tests pass."
)

DEMO: Answers = {
    # CCInsights has the same prompt; the pasted one is in the global history only.
    "What did I ask yesterday?": [
        ("2026-03-02 08:14:03", "fernhill", FROST_TITLE, WARN),
        ("2026-03-02 08:15:31", "fernhill", FROST_TITLE, KALE),
    ],
    "What was said in a conversation, in order?": [
        ("2026-03-02T08:14:03.118Z", "prompt"),
        *[("2026-03-02T08:14:09.402Z", kind) for kind in ("thinking", "text", "tool_use")],
        ("2026-03-02T08:15:31.250Z", "tool_result"),
        ("2026-03-02T08:15:31.310Z", "queued_prompt"),
        ("2026-03-02T08:15:37.090Z", "tool_use"),
        ("2026-03-02T08:15:37.140Z", "tool_result"),
        ("2026-03-02T08:15:44.310Z", "tool_use"),
        ("2026-03-02T08:15:44.730Z", "tool_result"),
        ("2026-03-02T08:15:51.080Z", "tool_use"),
        ("2026-03-02T08:15:54.660Z", "tool_result"),
        ("2026-03-02T08:16:02.000Z", "text"),
        ("2026-03-02T08:16:02.000Z", "tool_use"),
        ("2026-03-02T08:16:02.420Z", "tool_result"),
        ("2026-03-02T08:16:09.000Z", "tool_use"),
        ("2026-03-02T08:16:12.910Z", "tool_result"),
        ("2026-03-02T08:16:20.330Z", "text"),
    ],
    "Where was something said?": [
        ("2026-02-23T09:00:01.000Z", SEEDLINGS_TITLE),
        ("2026-02-23T09:00:04.000Z", SEEDLINGS_TITLE),
        ("2026-03-02T08:14:03.118Z", FROST_TITLE),
        ("2026-03-04T17:30:16.000Z", NEWS_TITLE),
    ],
    "What was said on a branch?": [
        (None, "user", WARN), (None, "assistant", LOOK), ("Explore", "user", FIND),
        ("Explore", "assistant", FOUND), (None, "user", KALE), (None, "assistant", TENDER),
        (None, "assistant", WARNS),
    ],
    "Which conversations worked on a file?": [
        (NEWS_TITLE, "fernhill", "2026-03-04T17:30:09.000Z", 1, 0, NEWS),
        (FROST_TITLE, "fernhill", "2026-03-02T08:15:44.310Z", 1, 1, FROST),
    ],
    "Which tool calls failed most often?": [("Bash", PYTEST, 1, "2026-03-02T08:15:51.080Z")],
    "Which calls did I decline?": [],
    "Which tool calls were slow?": [
        (3.91, "Bash", PYTEST, None, FROST),
        (3.58, "Bash", PYTEST, None, FROST),
        (3.0, "bash", "make gate-test", None, "c0b11070-52e9-4a3f-8c61-0e94f7b2a8f2"),
        (1.0, "grep", "morning: no", None, "019c7f37-0000-7000-8000-0000000000f1"),
        (1.0, "bash", "grep -c dry herbs/june.log", None, "ses_3f02fe4e5ffeFernhill00001"),
    ],
    "What did the agent delete?": [],
    # 16 responses of claude-sonnet-5 and 3 of the subagent; Chorus repeats two of them.
    "What did each project cost in a month?": [("fernhill", 19, 1695, 0)],
    "Which subagents cost most?": [
        ("Explore", "Survey the calendar", 3, FROST_TITLE, FROST),
    ],
    "Who spawned a subagent?": [
        ("Explore", "Survey the calendar", "2026-03-02T08:14:09.402Z", "Agent",
         "main conversation", FROST_TITLE, "meta"),
    ],
    "Which conversations are forks?": [],
    "What is still open?": [
        ("task", "in_progress", "Plan the watering", "bed-team"),
        ("task", "pending", "Draw the map of the beds", "bed-team"),
        ("todo", "in_progress", "Warn below zero degrees", FROST_TITLE),
    ],
    "What will the agent delete soon?": [
        ("2026-04-04T08:40:00.000Z", "fernhill", title, path)
        for title, path in (
            (FROST_TITLE, f"projects/-srv-fernhill/{FROST}.jsonl"),
            ("Spring plan for the four beds", f"projects/-srv-fernhill/{BEDS}.jsonl"),
            (NEWS_TITLE, f"projects/-srv-fernhill/{NEWS}.jsonl"),
            (SEEDLINGS_TITLE, "tmp/fernhill/chats/session-2026-02-23T09-00-9e312140.jsonl"),
        )
    ],
}  # fmt: skip

COLUMNS = {
    # Of answers that are long, the columns that are compared here.
    "What was said in a conversation, in order?": (0, 2),
    "Where was something said?": (0, 2),
    "What was said on a branch?": (2, 3, 4),
    "What did each project cost in a month?": (0, 2, 3, 4),
    "Which subagents cost most?": (0, 1, 3, 4, 5),
}


def compared(question: str, rows: list[Any]) -> list[tuple[Any, ...]]:
    columns = COLUMNS.get(question)
    chosen = [tuple(row[column] for column in columns) if columns else row for row in rows]
    # By rank: which is best is not what this is about.
    return sorted(chosen) if question == "Where was something said?" else chosen


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_says_what_the_demonstration_homes_hold(demo: sqlite3.Connection, question: str) -> None:
    now = "2026-03-03 12:00:00" if "yesterday" in question else "2026-03-30 12:00:00"
    assert compared(question, ask(demo, question, now)) == DEMO[question]


def usage(connection: sqlite3.Connection, by: str, filters: Filters) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = stats.ask(Reader(connection, 100), by=by, filters=filters).items
    return items


def test_costs_are_those_of_the_queries_of_the_program(demo: sqlite3.Connection) -> None:
    demo.row_factory = sqlite3.Row
    try:
        projects = usage(demo, "project", Filters(since="2026-03-01"))
        types = usage(demo, "subagent", Filters())
    finally:
        demo.row_factory = None
    by_project = ask(demo, "What did each project cost in a month?", "")
    assert [row[1] for row in by_project] == [row["cost_usd"] for row in projects]
    assert by_project[0][1] > 0
    by_subagent = ask(demo, "Which subagents cost most?", "")
    expected = {row["subagent_type"]: row["cost_usd"] for row in types}
    assert {row[0]: row[2] for row in by_subagent} == {"Explore": expected["Explore"]}


# -- what makes a plain count wrong --------------------------------------------------------------

NO = "The user doesn't want to proceed with this tool use. The tool use was rejected"
USAGE = {"input_tokens": 100, "output_tokens": 40}


def bash(number: int, second: int, command: str, answer: str, **more: Any) -> list[Object]:
    """Return the lines of a call and its result, a response of its own with 40 tokens."""
    tool, call_uuid, answer_uuid = f"toolu_{number}", f"a{number}", f"r{number}"
    is_error = more.pop("is_error", False)
    extra = more.pop("extra", {})
    asked = assistant(
        [call(tool, command=command)], call_uuid, second=second, id=f"msg_{number}", usage=USAGE,
        **more,
    )  # fmt: skip
    block = result(tool, answer, is_error=is_error)
    return [asked, user([block], answer_uuid, call_uuid, second + number, **extra, **more)]


def _home(home: Path) -> None:
    shared = [
        user("Tidy up", "u1", gitBranch="main"),
        *bash(1, 1, "rm -rf build", "done", gitBranch="main"),
        *bash(2, 4, "make", "Exit code 2", is_error=True, gitBranch="main"),
    ]
    write(
        home, TRANSCRIPT, *shared,
        *bash(3, 10, "rm -rf /srv/data", NO, is_error=True, gitBranch="main",
              extra={"toolUseResult": "User rejected tool use"}),
        user("Go on over there", "u5", "r3", 60, gitBranch="topic"),
        assistant("Over here now.", "a5", "u5", 61, id="msg_5", usage={"output_tokens": 1},
                  gitBranch="topic"),
        assistant([call("toolu_5", "Agent", prompt="Look around", description="Look",
                        subagent_type="Explore")],
                  "a6", "a5", 61, id="msg_5", usage=USAGE, gitBranch="topic"),
        user([result("toolu_5", "nothing")], "r5", "a6", 90, gitBranch="topic",
             toolUseResult={"agentId": "abc", "agentType": "Explore"}),
        *bash(7, 95, "make", "Exit code 2", is_error=True, gitBranch="topic"),
        *bash(8, 110, "echo confirm storm", "ok", gitBranch="topic"),
    )  # fmt: skip
    write(
        home, f"{PROJECT}/{SESSION}/subagents/agent-abc.jsonl",
        agent("abc", user("Look around", "s1", None, 62, gitBranch="topic")),
        *[agent("abc", line) for line in
          bash(9, 63, "cd /tmp\nrm -f x", "ok", gitBranch="topic", model="claude-haiku-4-5")],
    )  # fmt: skip
    late = {"sessionId": OTHER, "timestamp": "2026-01-21T03:00:00.000Z", "gitBranch": "main"}
    write(
        home, f"{PROJECT}/{OTHER}.jsonl",
        *[{**line, "sessionId": OTHER} for line in shared],
        user("Another way", "u20", "r2", **late),
    )  # fmt: skip
    early = {"sessionId": THIRD, "timestamp": "2026-01-20T04:00:00.000Z"}
    write(home, f"{PROJECT}/{THIRD}.jsonl", user("The day before", "u30", **early))
    write(
        home, f"tasks/{SESSION}/1.json",
        {"id": "1", "subject": "Sweep", "description": "", "status": "deleted"},
    )  # fmt: skip
    for path in home.rglob("*.jsonl"):
        os.utime(path, (DEMO_TIME, DEMO_TIME))


TRAPS: Answers = {
    "What did I ask yesterday?": [
        # The last is of the 21st in UTC, and the day before began at four there.
        ("2026-01-20 05:00:00", "demo", "Tidy up"),
        ("2026-01-20 05:01:00", "demo", "Go on over there"),
        ("2026-01-20 22:00:00", "demo", "Another way"),
    ],
    "What was said in a conversation, in order?": [
        (kind,) for kind in (
            "prompt", *["tool_use", "tool_result"] * 3, "prompt", "text",
            *["tool_use", "tool_result"] * 3,
        )
    ],
    "Where was something said?": [("2026-01-20T10:00:00.000Z",)],
    "What was said on a branch?": [
        (None, "user", "Go on over there"), (None, "assistant", "Over here now."),
        ("Explore", "user", "Look around"),
    ],
    "Which conversations worked on a file?": [],
    "Which tool calls failed most often?": [("Bash", "make", 2, "2026-01-20T10:01:35.000Z")],
    "Which calls did I decline?": [
        ("2026-01-20T10:00:10.000Z", "Bash", "rm -rf /srv/data", "demo", "Tidy up", SESSION),
    ],
    "Which tool calls were slow?": [
        (9.0, "Bash", "cd /tmp rm -f x", "Explore", SESSION),
        (8.0, "Bash", "echo confirm storm", None, SESSION),
        (7.0, "Bash", "make", None, SESSION),
        (2.0, "Bash", "make", None, SESSION),
        (1.0, "Bash", "rm -rf build", None, SESSION),
    ],
    "What did the agent delete?": [
        ("2026-01-20T10:01:03.000Z", "ok", "demo", SESSION, "cd /tmp\nrm -f x"),
        ("2026-01-20T10:00:01.000Z", "ok", "demo", SESSION, "rm -rf build"),
    ],
    # Seven responses of 40 tokens: copies are none, nor is the second line of the fifth.
    "What did each project cost in a month?": [("demo", 7, 280, 0)],
    "Which subagents cost most?": [("Explore", "Look", 1, SESSION)],
    "Who spawned a subagent?": [
        ("Explore", "Look", "2026-01-20T10:01:01.000Z", "Agent", "main conversation"),
    ],
    "Which conversations are forks?": [(SESSION, OTHER)],
    "What is still open?": [],
    "What will the agent delete soon?": [
        (f"{PROJECT}/{key}.jsonl",) for key in sorted((SESSION, OTHER, THIRD))
    ],
}  # fmt: skip

TRAP_COLUMNS = {
    "What did I ask yesterday?": (0, 1, 3),
    "What was said in a conversation, in order?": (2,),
    "Where was something said?": (0,),
    "What was said on a branch?": (2, 3, 4),
    "What did each project cost in a month?": (0, 2, 3, 4),
    "Which subagents cost most?": (0, 1, 3, 5),
    "Who spawned a subagent?": (0, 1, 2, 3, 4),
    "Which conversations are forks?": (4, 3),
    "What will the agent delete soon?": (3,),
}
SUBSTITUTES = {
    FROST: SESSION,
    "a4c1e07b92d83f516": "abc",
    "'frost-warning'": "'topic'",
    "seedlings": "tidy",
    "'2026-03'": "'2026-01'",
    "'2026-04'": "'2026-02'",
}


@pytest.fixture(scope="module")
def traps(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    place = tmp_path_factory.mktemp("traps")
    database = place / "traps.db"
    database.write_bytes(template.read_bytes())
    _home(place / "home")
    sync(database, [place / "home"])
    connection = sqlite3.connect(database)
    copies = connection.execute("select count(*) from messages where copy_of is not null")
    assert copies.fetchone() == (5,)
    yield connection
    connection.close()


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not hasattr(time, "tzset"):
        pytest.skip("the time zone of a process cannot be set here")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("new_york")
@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_not_misled_by_copies_refusals_subagents_and_time_zones(
    traps: sqlite3.Connection, question: str
) -> None:
    now = "2026-01-21 12:00:00" if "yesterday" in question else "2026-03-30 12:00:00"
    columns = TRAP_COLUMNS.get(question)
    rows = ask(traps, question, now, **SUBSTITUTES)
    answer = [tuple(row[column] for column in columns) if columns else row for row in rows]
    assert answer == TRAPS[question]


def test_views_say_on_which_branch_it_was(traps: sqlite3.Connection) -> None:
    assert traps.execute(
        "select target, git_branch from tool_calls_full order by started_at, id"
    ).fetchall() == [
        ("rm -rf build", "main"), ("make", "main"), ("rm -rf /srv/data", "main"),
        ("Look", "topic"), ("cd /tmp rm -f x", "topic"), ("make", "topic"),
        ("echo confirm storm", "topic"),
    ]  # fmt: skip
    assert traps.execute(
        "select git_branch, count(*) from response_costs group by 1 order by 1"
    ).fetchall() == [("main", 3), ("topic", 4)]
    # A sum has the last branch of its conversation.
    last = {SESSION: "topic", OTHER: "main", THIRD: None}
    for view in ("usage_by_session", "session_ends", "retention"):
        rows = traps.execute(f"select session_key, git_branch from {view}").fetchall()
        assert {(key, last[key]) for key, _ in rows if key} == {row for row in rows if row[0]}, view


# -- cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_does_not_go_through_all_messages(traps: sqlite3.Connection, question: str) -> None:
    """In a plan, m is a message of the view conversation, c a call's of tool_calls_full."""
    plan = traps.execute(f"explain query plan {QUESTIONS[question]}")
    scans = [step for *_, step in plan if re.match(r"SCAN (m|c|messages)\b", step)]
    assert [step for step in scans if "INDEX messages_prompts" not in step] == []

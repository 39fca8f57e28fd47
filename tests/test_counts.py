"""Counts add up: of sessions and projects, in every list and report, each line counts once."""

from __future__ import annotations

import datetime
import html
import json
import os
import random
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from benchmarks.generate import generate
from tests.support.cases import CASES, DEMO, home_of
from tests.support.counting import (
    Call,
    Prices,
    Response,
    Session,
    blocks,
    named,
    objects,
    pieces,
    programs,
    sessions,
    stated,
)
from tests.support.counting import issues as unusable
from tests.support.served import get, served
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    THIRD,
    TRANSCRIPT,
    Object,
    assistant,
    call,
    result,
    user,
    write,
)

from assoc_ingest import sql
from assoc_ingest.ask.conversation import Conversation
from assoc_ingest.ask.excerpt import find
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.questions.question import Reader
from assoc_ingest.questions.show import show
from assoc_ingest.store.database import open_reader
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, dump
from assoc_ingest.web.map import Mapper, Stretch

ELSEWHERE = TRANSCRIPT.replace("-srv-demo", "-srv-other")
COUNTS = (
    "select message_count, copied_message_count, prompt_count, tool_call_count"
    " from sessions order by session_key"
)


@pytest.fixture
def read(fresh: Callable[[], Path], home: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Syncs the home and opens the database."""
    database = fresh()
    opened = []

    def run() -> sqlite3.Connection:
        sync(database, [home])
        check(database, home)
        opened.append(open_reader(database))
        return opened[-1]

    yield run
    for connection in opened:
        connection.close()


def rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in connection.execute(query)]


def lines() -> list[Object]:
    counts = {"input_tokens": 10, "output_tokens": 5}
    return [
        user("begin", "u1", None, 0),
        assistant([call("t1")], "a1", "u1", 1, usage=counts),
        user([result("t1")], "u2", "a1", 2),
        assistant("ready", "a2", "u2", 3, id="msg_2", usage=counts),
    ]


# -- one session, several transcripts ------------------------------------------------------------


def test_a_session_is_described_by_all_of_its_transcripts(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    more = [user("go on", "u3", "a2", 10), assistant("done", "a3", "u3", 20, id="msg_3")]
    titled = {"type": "custom-title", "customTitle": "The whole", "sessionId": SESSION}
    write(home, TRANSCRIPT, *lines(), titled)
    write(home, ELSEWHERE, *lines(), *more)
    connection = read()
    assert rows(connection, COUNTS) == [(6, 0, 2, 1)]
    facts = "select title, substr(started_at, 18, 2), substr(ended_at, 18, 2) from sessions"
    assert rows(connection, facts) == [("The whole", "00", "20")]


@pytest.mark.slow
def test_each_line_of_it_is_shown_once(home: Path, read: Callable[[], sqlite3.Connection]) -> None:
    write(home, TRANSCRIPT, *lines())
    write(home, ELSEWHERE, *lines(), user("go on", "u3", "a2", 10))
    conversation = Conversation(read(), SESSION)
    shown = [m.text for file in conversation.files for m in conversation.messages(file) if m.text]
    assert sorted(shown) == ["begin", "go on", "ready"]


@pytest.mark.slow
def test_no_order_of_syncing_changes_the_description(home: Path, fresh: Callable[[], Path]) -> None:
    grown = fresh()
    more = [user("go on", "u3", "a2", 10), assistant("done", "a3", "u3", 20, id="msg_3")]
    for count in range(1, 7):
        write(home, ELSEWHERE, *[*lines(), *more][:count])
        sync(grown, [home])
        write(home, TRANSCRIPT, *[*lines(), *more][: max(0, count - 2)])
        write(home, f"{PROJECT}/{OTHER}.jsonl", *lines()[:count], user("fork", "f1", "u1", 30))
        sync(grown, [home])
    scratch = fresh()
    sync(scratch, [home])
    assert_same(dump(grown), dump(scratch))


# -- sums ----------------------------------------------------------------------------------------


def test_what_a_fork_repeats_counts_where_it_was_first_said(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    write(home, TRANSCRIPT, *lines(), user("go on", "u3", "a2", 10))
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines(), user("try this", "u4", "a2", 20))
    connection = read()
    assert rows(connection, COUNTS) == [(5, 0, 2, 1), (1, 4, 1, 0)]


@pytest.fixture
def busy(home: Path, read: Callable[[], sqlite3.Connection]) -> sqlite3.Connection:
    """A home in which lines are repeated in all ways: forks, exports, compaction, the queue."""
    queued = {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION}
    delivered = {**queued, "content": "later", "timestamp": "2026-01-20T10:00:04.000Z"}
    own = [*lines(), delivered, user("later", "u5", "a2", 5), lines()[0]]
    write(home, TRANSCRIPT, *own)
    write(home, ELSEWHERE, *own, user("go on", "u3", "a2", 10))
    write(home, f"{PROJECT}/{OTHER}.jsonl", *lines(), user("fork", "u4", "a2", 20))
    write(home, f"projects/-srv-third/{THIRD}.jsonl", *lines()[:2], user("fork", "u6", "a1", 30))
    return read()


def total(connection: sqlite3.Connection, query: str, column: str) -> int:
    found = list(sql.ask(connection, query, limit=1000))
    assert found, query
    return sum(row[column] or 0 for row in found)


@pytest.mark.parametrize(
    ("what", "once", "reports"),
    [
        (
            "messages",
            "select count(*) from (select distinct uuid from messages where copy_of is null"
            " and role in ('user', 'assistant') and kind <> 'queued_prompt')",
            [("lists/sessions", "message_count"), ("reports/longest_sessions", "message_count")],
        ),
        (
            "prompts",
            "select count(*) from messages where copy_of is null and kind in"
            " ('prompt', 'command', 'bash_input', 'queued_prompt')",
            [
                ("lists/sessions", "prompt_count"),
                ("reports/longest_sessions", "prompt_count"),
                ("reports/projects_overview", "prompts"),
                ("pages/dashboard_projects", "prompts"),
            ],
        ),
        (
            "calls",
            "select count(*) from tool_calls c join messages m on m.id = c.call_id"
            " where m.copy_of is null",
            [
                ("lists/sessions", "tool_call_count"),
                ("reports/longest_sessions", "tool_call_count"),
                ("reports/projects_overview", "tool_calls"),
                ("pages/dashboard_projects", "tool_calls"),
                ("reports/tool_use", "calls"),
            ],
        ),
        (
            "output tokens",
            "select sum(output_tokens) from responses",
            [
                ("lists/sessions", "output_tokens"),
                ("reports/longest_sessions", "output_tokens"),
                ("reports/projects_overview", "output_tokens"),
                ("pages/usage", "output_tokens"),
                ("reports/activity_by_hour", "output_tokens"),
                ("reports/usage_by_session", "output_tokens"),
            ],
        ),
    ],
)
def test_reports_that_count_the_same_agree(
    busy: sqlite3.Connection, what: str, once: str, reports: list[tuple[str, str]]
) -> None:
    (expected,) = rows(busy, once)[0]
    assert expected > 0
    for query, column in reports:
        assert total(busy, query, column) == expected, (what, query)


# -- files that were changed ---------------------------------------------------------------------


def edited(number: int, name: str, said: str = "done", **more: Any) -> list[Object]:
    """Return a call that edits a file, and its result."""
    key = f"e{number}"
    change = call(key, "Edit", file_path=f"/srv/demo/{name}", old_string="a", new_string="b")
    answer = result(key, said, **more)
    return [
        assistant([change], f"x{number}", None, 2 * number, id=f"msg_{key}"),
        user([answer], f"y{number}", f"x{number}", 2 * number + 1),
    ]


def test_each_file_has_its_own_edits(home: Path, read: Callable[[], sqlite3.Connection]) -> None:
    """Not what failed or was declined, and what a second transcript repeats once."""
    declined = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    edits = [
        *edited(1, "beds.py"), *edited(2, "soil.py"), *edited(3, "beds.py"),
        *edited(4, "soil.py", "no such text", is_error=True),
        *edited(5, "seeds.py", declined, is_error=True),
    ]  # fmt: skip
    write(home, TRANSCRIPT, user("begin", "u1", None, 0), *edits)
    write(home, ELSEWHERE, user("begin", "u1", None, 0), *edits)
    connection = read()
    conversation = Conversation(connection, SESSION)
    (summary,) = show.ask(Reader(connection, 0, budget=10_000), SESSION).items
    assert [(one["path"], one["edits"]) for one in summary.changed_files] == [
        ("/srv/demo/beds.py", 2), ("/srv/demo/soil.py", 1)
    ]  # fmt: skip
    files = [file.id for file in conversation.files]
    mapper = Mapper(conversation, None, files, lambda place: "", lambda subagent: "")
    (changed,) = [
        part.lines for part in mapper.map(Stretch((0, -1, 0), (0, -1, 0))).parts
        if part.name == "Files changed"
    ]  # fmt: skip
    assert [(line.text, line.facts) for line in changed] == [
        ("beds.py", "2 changes"), ("soil.py", "1 change")
    ]  # fmt: skip


# -- every number that is shown, counted once more -----------------------------------------------

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
NUMBER = r"(?:[≥~] ?)?(\d[\d,]*)"
"""A number on a page; a sign says that it is a lower bound or an estimate."""


class Home(NamedTuple):
    """Homes, what is counted of them from their bytes, and the database that has them."""

    roots: list[Path]
    counted: dict[str, Session]
    database: Path

    @property
    def shown(self) -> dict[str, Session]:
        """Conversations that lists show: those with something said that no other one counts."""
        return {key: session for key, session in self.counted.items() if session.messages}

    @property
    def responses(self) -> list[Response]:
        return [one for session in self.counted.values() for one in session.responses]

    @property
    def prices(self) -> Prices:
        columns = "input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "web_search"
        with closing(sqlite3.connect(self.database)) as connection:
            rows = connection.execute(
                f"select model, valid_from, above_tokens, {', '.join(columns)} from prices"
            )
            return {tuple(row[:3]): dict(zip(columns, row[3:], strict=True)) for row in rows}

    @property
    def calls(self) -> list[Call]:
        return [one for session in self.counted.values() for one in session.calls]


@pytest.fixture(scope="module", params=["demo", "generated", "real"])
def counted(
    request: pytest.FixtureRequest, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Home:
    place = tmp_path_factory.mktemp(request.param)
    if request.param == "demo":
        roots = [Path(__file__).parent / "demo" / "claude"]
    elif request.param == "generated":
        generate(place / "home", 1_000_000)
        roots = [place / "home"]
    elif not (roots := sorted(CORPUS.glob("homes/*"))):
        pytest.skip("ASSOC_REAL_CORPUS names no transcripts")
    database = Path(shutil.copy(template, place / "db.db"))
    sync(database, roots)
    return Home(roots, sessions(*roots), database)


@pytest.fixture
def shell(counted: Home, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(counted.database, capsys)


def asked(shell: Shell, *arguments: str) -> dict[str, Any]:
    answer = shell.json(*arguments, "--json", "-n", "0", "--db", str(shell.database))
    assert isinstance(answer, dict)
    return answer


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


SUMS = (*TOKENS, "responses", "partial", "unpriced")


def added(responses: Iterable[Response], prices: Prices) -> list[int]:
    """The tokens of responses, how many there are, are partial and unpriced, and their cost."""
    each = [
        (*one.tokens, 1, one.is_partial, cost is None, cost or 0)
        for one in responses
        for cost in [one.cost(prices)]
    ]
    return [sum(column) for column in zip(*each, strict=True)] or [0] * 8


def summed(row: dict[str, Any]) -> list[int]:
    """The same, as a report has it."""
    return [*(row[column] or 0 for column in SUMS), round((row["cost_usd"] or 0) * 1_000_000)]


@pytest.mark.slow
def test_lists_and_show_say_what_was_counted(counted: Home, shell: Shell) -> None:
    listed = {row["session_key"]: row for row in asked(shell, "list", "sessions")["items"]}
    expected = {
        key: (one.prompts, one.messages, one.copied, len(one.calls), one.tokens[1], *one.times)
        for key, one in counted.shown.items()
    }
    columns = ("prompt_count", "message_count", "copied_message_count", "tool_call_count",
               "output_tokens")  # fmt: skip
    found = {
        key: (*(row[column] or 0 for column in columns),
              row["started_at"], row["ended_at"])
        for key, row in listed.items() if row["message_count"]
    }  # fmt: skip
    assert found == expected
    for key, one in counted.shown.items():
        session = asked(shell, "show", key)["session"]
        assert [session[column] or 0 for column in TOKENS] == list(one.tokens)
        assert session["prompt_count"] == one.prompts
        assert session["tool_call_count"] == len(one.calls)
        assert session["subagent_count"] == len(one.subagents)
        assert shell("show", key, "--last", "1", "--db", str(shell.database)) == 0
        words = " ".join(shell.out.split())
        for count, noun in (
            (one.prompts, "prompt"), (one.messages, "message"), (len(one.calls), "tool call"),
        ):  # fmt: skip
            assert re.search(rf"\b{count:,} {noun}{'s' * (count != 1)}\b", words), (key, noun)


NAMES = {
    "day": "day", "week": "week_of", "month": "month", "model": "model", "session": "session_key",
    "project": "project_id",
}  # fmt: skip
PAIRS = [
    *((by, None) for by in NAMES),
    ("day", "model"), ("month", "day"), ("week", "project"), ("project", "model"),
    ("model", "month"), ("model", "session"),
]  # fmt: skip


@pytest.mark.parametrize(("by", "split"), PAIRS)
def test_stats_add_up_to_what_was_counted(
    counted: Home, shell: Shell, by: str, split: str | None
) -> None:
    """Tokens and costs, what is partial and what has no price, to the millionth of a dollar."""
    given = ("--split", split) if split else ()
    answer, prices = asked(shell, "stats", "--by", by, *given, "-n", "0"), counted.prices
    everything = added(counted.responses, prices)
    assert summed(answer["totals"]) == everything
    groups: dict[object, list[Response]] = {}
    sessions: dict[object, set[str]] = {}
    for key, session in counted.counted.items():
        for one in session.responses:
            values = {
                "session": key,
                "day": one.day,
                "week": one.day and _monday(one.day),
                "month": one.day and one.day[:7],
                "model": one.model,
                "project": session.directory,
            }
            name = tuple(values[group] for group in (by, split) if group)
            groups.setdefault(name, []).append(one)
            sessions.setdefault(name, set()).add(key)
    projects = asked(shell, "list", "projects", "--all")["items"]
    keys = {row["id"]: row["key"].lower() for row in projects}
    found: dict[object, list[int]] = {}
    for row in answer["items"]:
        name = tuple(
            keys[row["project_id"]] if group == "project" else row[NAMES[group]]
            for group in (by, split) if group
        )  # fmt: skip
        sums = found.setdefault(name, [0] * 8)
        found[name] = [before + count for before, count in zip(sums, summed(row), strict=True)]
        assert row["is_lower_bound"] == bool(row["partial"] or row["unpriced"])
        assert row["sessions"] <= len(sessions[name])
    assert found == {name: added(responses, prices) for name, responses in groups.items()}
    bound = bool(everything[5] or everything[6])
    assert answer["totals"]["is_lower_bound"] == bound


def _monday(day: str) -> str:
    date = datetime.date.fromisoformat(day)
    return (date - datetime.timedelta(days=date.weekday())).isoformat()


def test_calls_are_counted_by_tool_and_by_how_they_ended(counted: Home, shell: Shell) -> None:
    answer = asked(shell, "stats", "--by", "tool")
    expected: dict[str, list[int]] = {}
    for call_ in counted.calls:
        sums = expected.setdefault(call_.name, [0, 0, 0])
        sums[0] += 1
        sums[1] += call_.status == "error"
        sums[2] += call_.status == "declined"
    columns = "calls", "errors", "declined"
    found = {row["name"]: [row[column] for column in columns] for row in answer["items"]}
    assert found == expected
    assert [answer["totals"][column] for column in columns] == [
        sum(column) for column in zip(*expected.values(), strict=True)
    ]


@pytest.mark.slow
def test_the_estimates_of_lists_follow_from_each_response(counted: Home, shell: Shell) -> None:
    """By arithmetic of this test, from what the responses of each session and subagent wrote."""
    with closing(sqlite3.connect(counted.database)) as connection:
        complete, partial = (
            connection.execute(
                "select r.model, s.session_key, a.agent_key, r.output_tokens, r.written_bytes"
                " from responses r left join sessions s on s.id = r.session_id"
                " left join subagents a on a.id = r.subagent_id where r.partial = ?",
                (is_partial,),
            ).fetchall()
            for is_partial in (0, 1)
        )
    sums: dict[str | None, list[int]] = {}
    for model, _, _, tokens, written in complete:
        for name in (model, None) if written else ():
            sums.setdefault(name, [0, 0, 0])
            sums[name] = [a + b for a, b in zip(sums[name], (1, tokens, written), strict=True)]
    rates = {name: tokens / size for name, (count, tokens, size) in sums.items() if count >= 20}

    def extra(rows: list[Any]) -> int | None:
        begun: dict[str, list[int]] = {}
        for model, _, _, tokens, written in rows:
            if written is None or not {model, None} & rates.keys():
                return None
            have = begun.setdefault(model, [0, 0])
            begun[model] = [have[0] + written, have[1] + tokens]
        more = (
            rates.get(model, rates.get(None, 0)) * written - tokens
            for model, (written, tokens) in begun.items()
        )
        return round(sum(max(0, one) for one in more)) if rows else None

    estimated = 0
    for what, key, column in (
        ("sessions", 1, "output_tokens"), ("subagents", 2, "tokens"),
    ):  # fmt: skip
        for row in asked(shell, "list", what)["items"]:
            name = row["session_key" if what == "sessions" else "agent_key"]
            expected = extra([one for one in partial if one[key] == name])
            found = row[f"estimated_{column}"]
            assert (found is None) == (expected is None), row
            if expected is not None:
                assert found == row[column] + expected
                estimated += 1
    assert estimated or not any(written for *_, written in partial) or None not in rates


def test_subagents_are_counted_with_their_messages(counted: Home, shell: Shell) -> None:
    expected = {
        (key, agent): count
        for key, session in counted.counted.items()
        for agent, count in session.subagents.items()
    }
    items = asked(shell, "list", "subagents", "--all")["items"]
    found = {(row["session_key"], row["agent_key"]): row["message_count"] for row in items}
    assert found == expected


@pytest.mark.parametrize(
    ("what", "channel", "pattern"),
    [
        ("tasks", "file", "**/task*/**/*.json"), ("todos", "file", "todos/*.json"),
        ("inbox", "inbox", "teams/*/inboxes/*.json"), ("teams", None, "teams/*/config.json"),
        ("prompts", None, "history.jsonl"), ("plans", "file", "plans/*.md"),
    ],
)  # fmt: skip
def test_entries_are_those_of_their_files(
    counted: Home, shell: Shell, what: str, channel: str | None, pattern: str
) -> None:
    paths = [path for root in counted.roots for path in root.glob(pattern)]
    if what in ("todos", "inbox"):
        expected = sum(len(json.loads(path.read_text("utf-8"))) for path in paths)
    elif what == "prompts":
        typed = [line for path in paths for line in objects(path)]
        expected = len({tuple(map(str, map(line.get, ("timestamp", "display", "sessionId"))))
                        for line in typed})  # fmt: skip
    elif what == "tasks":
        read = [json.loads(path.read_text("utf-8")) for path in paths]
        expected = sum(len(value["tasks"]) if "tasks" in value else 1 for value in read)
    else:
        expected = len(paths)
    items = asked(shell, "list", what, *(["--all"] if what in ("tasks", "todos") else []))["items"]
    assert sum(channel in (None, row.get("channel")) for row in items) == expected


@pytest.mark.parametrize("what", ["todos", "tasks"])
def test_what_only_transcripts_state_is_listed(counted: Home, shell: Shell, what: str) -> None:
    items = asked(shell, "list", what, "--all")["items"]
    found = sum(row["channel"] == "transcript" for row in items)
    assert found == stated(*counted.roots)[what]


def test_blocks_are_those_of_the_lines(counted: Home) -> None:
    """Of what people and agents said, called and answered, repeated lines too."""
    with closing(sqlite3.connect(counted.database)) as connection:
        found = connection.execute(
            "select role, kind, count(*) from messages where role in ('user', 'assistant')"
            " and kind <> 'queued_prompt' group by role, kind"
        ).fetchall()
    expected = blocks(*counted.roots)
    assert sum(count for *_, count in found) == expected.total()
    kinds = Counter({kind: count for _, kind, count in found})
    for kind, block in (("tool_use", "tool_use"), ("tool_result", "tool_result"),
                        ("thinking", "thinking")):  # fmt: skip
        assert kinds[kind] == expected[block], kind


def test_pull_requests_are_those_of_the_lines(counted: Home, shell: Shell) -> None:
    expected = {(key, url) for key, one in counted.counted.items() for url in one.links}
    items = asked(shell, "list", "links")["items"]
    linked = [row for row in items if row["kind"] == "pull_request"]
    assert {(row["session_key"], row["url"]) for row in linked} == expected
    assert len(linked) == len(expected)


def test_projects_have_the_conversations_of_their_directories(counted: Home, shell: Shell) -> None:
    expected: Counter[str] = Counter()
    for session in counted.shown.values():
        main = [file for file in session.files if not file.stem.startswith("agent-")]
        expected[main[0].parent.name.lower()] += 1
    items = asked(shell, "list", "projects", "--all")["items"]
    found = Counter({row["key"].lower(): row["session_count"] for row in items})
    assert +found == expected
    for row in items[:5]:
        listed = asked(shell, "list", "sessions", "--project", str(row["id"]))
        assert listed["total"] == (row["sessions_with_worktrees"] or row["session_count"])
    usage = asked(shell, "stats", "--by", "project")["items"]
    assert sum(row["responses"] for row in usage) == len(counted.responses)


APPLICATIONS = ("ccinsights", "chorus", "cortex")


@pytest.mark.parametrize("name", [
    *(name for name in CASES if name.split("/")[0] in APPLICATIONS),
    *(f"{application}/generated" for application in APPLICATIONS),
])  # fmt: skip
def test_what_programs_around_agents_wrote_is_counted(
    name: str, template: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    application = name.split("/")[0]
    if name.endswith("/generated"):
        home = _converse(tmp_path / "home", application)
    else:
        home = home_of(name, tmp_path / "case")
    homes = [home, DEMO / application]
    database = Path(shutil.copy(template, tmp_path / "db.db"))
    shell = Shell(database, capsys)
    for place in homes:
        sync(database, [place])
    expected = {key: counts for place in homes for key, counts in programs(place).items()}
    assert len(expected) > 1
    items = asked(shell, "list", "sessions", "--all", "--source", application)["items"]
    found = {
        row["session_key"]: (row["message_count"], row["prompt_count"])
        for row in items if row["kind"] != "listed"
    }  # fmt: skip
    assert found == expected
    index = Index(Settings(database))
    for key, (messages, prompts) in expected.items():
        session = asked(shell, "show", key)["session"]
        assert (session["message_count"], session["prompt_count"]) == (messages, prompts), key
        answer: Any = Tools(index).call("open", {"ref": key})
        (item,) = answer["structuredContent"]["items"]
        assert (item.get("messages", 0), item.get("prompt_count", 0)) == (messages, prompts), key
    index.close()


def _converse(home: Path, application: str) -> Path:
    """Write conversations of lines of all types, in any order."""
    order = random.Random(application)
    path, types, said = {
        "chorus": ("sessions/w1/g1/k{}-messages.jsonl",
                   ("user", "assistant", "tool_use", "tool_result", "system", "error",
                    "research_progress", "research_result"), "content"),
        "ccinsights": ("projects/5ad8ff26/chats/chat-{}.chat.jsonl",
                       ("user", "assistant", "tool_use", "tool_result", "system_notification",
                        "session_marker", "context_summary"), "text"),
        "cortex": ("transcripts/agent{}/transcript.jsonl", ("user", "assistant"), "content"),
    }[application]  # fmt: skip
    kind = "role" if application == "cortex" else "type"
    for number in range(8):
        lines = [
            {kind: order.choice(types), said: f"said {place}", "toolUseId": f"t{place}",
             "timestamp": f"2026-02-03T10:00:{place:02}.000Z", "uuid": f"{number}-{place}"}
            for place in range(order.randint(1, 40))
        ]  # fmt: skip
        if application == "cortex":
            lines = [{**line, "timestamp": 1771250500000 + at} for at, line in enumerate(lines)]
        write(home, path.format(number), *lines)
    return home


def test_files_are_those_on_the_disk(counted: Home, shell: Shell) -> None:
    files = asked(shell, "list", "files")["items"]
    for row in files:
        path = Path(row["root"], row["path"])
        assert row["size"] == path.stat().st_size, path
        if row["kind"] in ("transcript", "agent"):
            assert row["line_count"] == pieces(path), path
    status = shell.json("status", "--json", "--db", str(shell.database))
    assert isinstance(status, dict)
    told = sum(source["block_count"] for source in status["sources"])
    for source in status["sources"]:
        root = Path(source["root"])
        own = [row for row in files if Path(row["root"]) == root]
        assert source["file_count"] == len(own)
        assert source["bytes"] == sum(row["read"] for row in own)
        logs = [Path(root, row["path"]) for row in own if row["kind"] in ("transcript", "agent")]
        assert sum(path.stat().st_size for path in logs) <= source["bytes"]
        assert source["gone_count"] == 0
        with closing(sqlite3.connect(shell.database)) as connection:
            (others,) = connection.execute(
                "select count(*) from messages m join files f on f.id = m.file_id"
                " join sources o on o.id = f.source_id where o.root = ?"
                " and (m.role = 'system' or m.kind = 'queued_prompt')", (source["root"],),
            ).fetchone()  # fmt: skip
        if source["kind"] == "claude":
            assert source["session_count"] == len(named(root))
            assert source["block_count"] - others == blocks(root).total()
    assert status["last_run"]["files_read"] == len(files)
    with closing(sqlite3.connect(shell.database)) as connection:
        (stored,) = connection.execute("select count(*) from messages").fetchone()
    assert status["last_run"]["rows"] == told == stored
    assert shell("status", "--db", str(shell.database)) == 0
    assert f"{stored:,} block{'s' * (stored != 1)}" in shell.out
    assert " blocks" in shell.out.splitlines()[3], "a message is a line, and has several"
    issues = asked(shell, "list", "issues", "--all")
    found = Counter({str(Path(row["root"], row["path"])): row["issue_count"] for row in files})
    expected = unusable(*counted.roots)
    assert +found == expected
    assert issues["total"] == expected.total()
    assert sum(row["count"] for row in asked(shell, "list", "issues")["items"]) == expected.total()
    assert sum(row["pieces"] for row in status["issues"]) == expected.total()


def test_mcp_says_what_was_counted(counted: Home) -> None:
    index = Index(Settings(counted.database))
    tools = Tools(index)
    prices = counted.prices
    for key, one in counted.shown.items():
        answer: Any = tools.call("open", {"ref": key, "max_chars": 100_000})
        (item,) = answer["structuredContent"]["items"]
        assert item["messages"] == one.messages
        assert item["prompt_count"] == one.prompts
        assert item["tool_calls"] == len(one.calls)
        assert (item["started"], item["ended"]) == one.times
        spent, usage = added(one.responses, prices), item["usage"]
        assert [usage.get(name) or 0 for name in ("output_tokens", "partial", "unpriced")] == [
            spent[1], spent[5], spent[6]
        ]  # fmt: skip
        assert round((usage.get("cost_usd") or 0) * 1_000_000) == spent[7]
        assert bool(usage.get("is_lower_bound")) == bool(spent[5] or spent[6])
        edits = {row["path"]: row["edits"] for row in item.get("changed_files", [])}
        assert edits.items() <= one.edits.items()
        totals = item.get("totals", {})
        assert totals.get("changed_files", len(edits)) == len(one.edits)
        assert totals.get("subagents", len(item.get("subagents", []))) == len(one.subagents)
    recent: Any = tools.call("recent", {"limit": 50, "max_chars": 100_000})
    for item in recent["structuredContent"]["items"]:
        if item["kind"] == "conversation":
            ((_, one),) = [
                (key, one) for key, one in counted.counted.items() if key.startswith(item["key"])
            ]
            assert item["prompt_count"] == one.prompts
            assert item["tool_calls"] == len(one.calls)
            assert (item["started"], item["ended"]) == one.times
    assert recent["structuredContent"]["conversations"] == len(counted.shown)
    index.close()


def _root_of(counted: Home, session: Session) -> Path:
    return next(root for root in counted.roots if session.files[0].is_relative_to(root))


def words_of(page: Any) -> str:
    assert page.status_code == 200, page.text[:300]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


@pytest.mark.slow
def test_pages_say_what_was_counted(counted: Home, capsys: pytest.CaptureFixture[str]) -> None:
    site = served(counted.database)
    total = len(counted.shown)
    front = words_of(get(site, "/-/assoc"))
    assert re.search(rf"All conversations \({NUMBER}\)", front)[1] == f"{total:,}"  # type: ignore[index]
    files = re.search(rf"{NUMBER} files read", front)
    on_disk = asked(Shell(counted.database, capsys), "list", "files")["total"]
    assert files is not None
    assert files[1] == f"{on_disk:,}"
    html_board = get(site, "/db/-/stats?when=all").text
    every = added(counted.responses, counted.prices)
    if every[4]:
        for columns, number in (
            ("input_tokens cache_write_tokens", every[0] + every[3]), ("output_tokens", every[1]),
        ):  # fmt: skip
            tile = re.findall(rf'data-count="([\d.]+)" data-sum="{columns}"', html_board)
            assert [float(one) for one in tile] == ([number] if number else []), columns
        costs = re.findall(r'data-count="([\d.]+)" data-sum="cost_usd"', html_board)
        assert sum(map(float, costs)) == pytest.approx(every[7] / 1_000_000)
    board = words_of(get(site, "/db/-/stats?by=tool&when=all"))
    by_name = Counter(one.name for one in counted.calls)
    for name, count in by_name.most_common(5):
        assert re.search(rf" {re.escape(name)} (\w+ )?{count:,} ", board), name
    # The conversations with the most calls, subagents and repetitions.
    some = sorted(
        counted.shown.items(), key=lambda one: (len(one[1].files), len(one[1].calls)), reverse=True
    )
    some[8:] = [one for one in some[8:] if one[1].copied]
    for key, session in some[:12]:
        html_page = get(site, f"/db/-/session/{key}")
        page = words_of(html_page)
        sizes = re.search(rf"Size {NUMBER} prompts? · {NUMBER} messages? · {NUMBER} tool calls?",
                          page)  # fmt: skip
        assert sizes is not None, key
        assert [int(one.replace(",", "")) for one in sizes.groups()] == [
            session.prompts, session.messages, len(session.calls)
        ]  # fmt: skip
        if "ai-copies" in html_page.text and 'rel="next"' not in html_page.text:
            folded = re.findall(r"<summary>([\d,]+) messages? copied from", html_page.text)
            assert sum(int(one.replace(",", "")) for one in folded) == session.copied, key
        timeline = get(site, f"/db/-/session/{key}/timeline")
        own = sum(not one.of_subagent for one in session.calls)
        in_turns = re.findall(r'>([\d,]+)<span class="ai-unit"> calls?<', timeline.text)
        assert sum(int(one.replace(",", "")) for one in in_turns) == own
        if session.calls:
            assert f"{len(session.calls):,} tool call" in words_of(timeline)


@pytest.mark.slow
def test_the_page_of_a_conversation_counts_what_is_in_its_files(counted: Home) -> None:
    """What it folds, the parts of its map, and what its find box finds."""
    site = served(counted.database)
    words = 0
    for key, session in sorted(counted.counted.items()):
        if not session.messages and not session.copied:
            continue
        address: str | None = f"/db/-/session/{key}"
        folded: Counter[str] = Counter()
        parts: dict[str, int] | None = None
        while address:
            page = get(site, address).text
            folded += _folded(page)
            if parts is None:
                parts = {name: _number(total) for name, total in _PART.findall(page)}
            following = re.search(r'<a rel="next" href="([^"]*)"', page)
            address = html.unescape(following[1]) if following else None
        assert folded == +session.page.noise, key
        assert parts == session.page.parts, key
        frequent = Counter(word for text in session.page.texts for word in text)
        plain = [word for word in frequent if re.fullmatch("[a-z]{4,12}", word)]
        known = sorted(set(plain) - session.page.unclear)
        for word in random.Random(key).sample(known, min(2, len(known))):
            status = _FOUND.search(get(site, f"/db/-/session/{key}?find={word}").text)
            assert status is not None, (key, word)
            assert _number(status[1]) == frequent[word], (key, word)
            words += 1
    assert words


_PART = re.compile(r'<summary>([\w ]+) <span class="ai-count">([\d,]+)</span>')
_FOUND = re.compile(
    r'<span id="found" role="status" class="ai-facts">(?:[\d,]+ of )?([\d,]+) match'
)
_DETAILS = re.compile(r"<details([^>]*)>(?:\s*<summary>(.*?)</summary>)?|</details>", re.DOTALL)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _folded(page: str) -> Counter[str]:
    """Return how many blocks a page folds outside of subagents, by what it calls them."""
    found: Counter[str] = Counter()
    around: list[str] = []
    for match in _DETAILS.finditer(page):
        if match[1] is None:
            around.pop()
            continue
        around.append(match[1])
        if "ai-noise" in match[1] and not any("ai-agent" in one for one in around):
            kinds = html.unescape(match[2]).partition(": ")[0].split(", ")
            for number, kind in (one.split(" ", 1) for one in kinds):
                found[kind.removesuffix("s") if number != "1" else kind] += _number(number)
    return found


@pytest.mark.slow
def test_what_a_second_transcript_repeats_is_on_the_map_once(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    summary = user("So far.", "c1", "a2", 5, isCompactSummary=True)
    failed = assistant("API Error", "e1", "c1", 6, id="msg_e", isApiErrorMessage=True)
    write(home, TRANSCRIPT, *lines(), summary, failed)
    write(home, ELSEWHERE, *lines(), summary, failed, user("go on", "u3", "e1", 10))
    conversation = Conversation(read(), SESSION)
    mapper = Mapper(conversation, None, [file.id for file in conversation.files],
                    lambda place: "", lambda subagent: "")  # fmt: skip
    parts = mapper.map(Stretch((0, -1, 0), (0, -1, 0))).parts
    assert {part.name: part.total for part in parts} == {
        "Prompts": 2, "Errors": 1, "Compactions": 1
    }  # fmt: skip


@pytest.mark.slow
def test_a_queued_prompt_that_a_fork_repeats_is_one_prompt(
    home: Path, read: Callable[[], sqlite3.Connection]
) -> None:
    """The queue and its delivery are copies of one message, which is in another conversation."""
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "paint later"}
    own = [*lines(), {**queued, "sessionId": SESSION}, user("paint later", "u5", "a2", 5)]
    fork = [{**line, "sessionId": OTHER} for line in own]
    write(home, TRANSCRIPT, *own)
    write(home, f"{PROJECT}/{OTHER}.jsonl", *fork, user("try this", "u6", "u5", 20))
    connection = read()
    for key, prompts in ((SESSION, 2), (OTHER, 3)):
        conversation = Conversation(connection, key)
        files = [file.id for file in conversation.files]
        mapper = Mapper(conversation, None, files, lambda place: "", lambda subagent: "")
        (part, *_) = mapper.map(Stretch((0, -1, 0), (0, -1, 0))).parts
        assert (part.name, part.total) == ("Prompts", prompts), key
        shown = [m.text for m in conversation.messages(conversation.files[0])
                 if not m.stands_elsewhere]  # fmt: skip
        assert shown.count("paint later") == 1, key
        matches = find(connection, int(conversation.session["id"]), "paint later").matches
        assert len(matches) == 1, key

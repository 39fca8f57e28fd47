"""What one system says of another's conversation is joined, whichever of the two is read first."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import home_of

from assoc_ingest import sql
from assoc_ingest.ask.filters import Filters
from assoc_ingest.sync.run import sync
from assoc_ingest.testing.dump import assert_same, check, connect, dump
from assoc_ingest.web import conversations

SESSION = "0b7c2f4e-1111-4222-8333-444455556666"
AGENT = "a1b2c3d4e5f60718"


def write(path: Path, *values: object) -> None:
    """Write JSON, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")


def line(uuid: str, **more: object) -> dict[str, object]:
    return {
        "type": "user", "uuid": uuid, "parentUuid": None, "sessionId": SESSION,
        "cwd": "/srv/garden", "timestamp": "2026-02-16T14:00:00.000Z",
        "message": {"role": "user", "content": "plan the beds"}, **more,
    }  # fmt: skip


def answer(uuid: str) -> dict[str, object]:
    usage = {"input_tokens": 12, "output_tokens": 340}
    message = {
        "id": "msg_0Demo", "role": "assistant", "model": "claude-sonnet-5", "usage": usage,
        "stop_reason": "end_turn", "content": [{"type": "text", "text": "Tomatoes."}],
    }  # fmt: skip
    return line(uuid, type="assistant", requestId="req_0Demo", message=message)


def claude(home: Path) -> Path:
    project = home / "projects" / "-srv-garden"
    write(project / f"{SESSION}.jsonl", line("u1"), answer("u2"))
    agent = project / SESSION / "subagents" / f"agent-{AGENT}.jsonl"
    write(agent, line("u3", isSidechain=True, agentId=AGENT))
    return home


def associate(home: Path) -> Path:
    event = {"session_id": SESSION.upper(), "cwd": "/srv/garden"}
    start = {**event, "hook_event_name": "SubagentStart", "agent_id": AGENT, "agent_type": "Plan"}
    transcript = f"/home/ada/.claude/projects/-srv-garden/{SESSION}.jsonl"
    stop = {"transcript_path": transcript, "hook_event_name": "Stop"}
    write(home / "hook-events.jsonl", {**event, "hook_event_name": "SessionStart"}, start, stop)
    project = home / "projects" / "-srv-garden"
    write(project / "notes" / "n1.json", {"id": "n1", "title": "Seeds", "content": "Beans"})
    write(project / "plan-links.json", {"brave-green-fern.md": SESSION})
    summary = project / "summaries" / f"{SESSION}-summary-001.md"
    summary.parent.mkdir()
    summary.write_text("# Beds\n")
    return home


def chorus(home: Path) -> Path:
    agent = home / "sessions" / "w1" / "g1"
    entry = {"id": "k1", "sessionId": SESSION, "title": "Beds", "workspaceId": "w1"}
    write(agent / "conversations.json", {"conversations": [entry]})
    totals = {"costUsd": 0.04, "durationMs": 812, "inputTokens": 12, "outputTokens": 340}
    write(
        agent / "k1-messages.jsonl",
        {"uuid": "m1", "type": "user", "content": "plan the beds"},
        {"uuid": "m2", "type": "assistant", "content": "Tomatoes.", **totals},
        {"uuid": "m3", "type": "system", "content": "Turn completed", **totals},
    )
    return home


def ccinsights(home: Path) -> Path:
    chat = {"name": "Beds", "chatId": "chat-1", "lastSessionId": SESSION}
    project = {"id": "a1b2c3d4", "name": "Garden"}
    worktrees = {"/srv/garden": {"type": "primary", "name": "main", "chats": [chat]}}
    write(home / "projects.json", {"/srv/garden": {**project, "worktrees": worktrees}})
    ticket = {"id": 1, "title": "Frost", "linkedChats": [{"chatId": "chat-1"}]}
    write(home / "projects" / "a1b2c3d4" / "tickets.json", {"tickets": [ticket]})
    return home


MAKERS: dict[str, Callable[[Path], Path]] = {
    "claude": claude, "associate": associate, "chorus": chorus, "ccinsights": ccinsights
}  # fmt: skip


@pytest.fixture
def read(fresh: Callable[[], Path], tmp_path: Path) -> Callable[..., sqlite3.Connection]:
    """Makes a database of homes, read one after the other."""

    def reading(*names: str) -> sqlite3.Connection:
        database = fresh()
        for name in names:
            home = tmp_path / name
            sync(database, [home if home.exists() else MAKERS[name](home)])
        check(database)
        return connect(database)

    return reading


def one(connection: sqlite3.Connection, sql: str) -> Any:
    rows = [tuple(row) for row in connection.execute(sql)]
    assert len(rows) == 1, rows
    return rows[0] if len(rows[0]) > 1 else rows[0][0]


def pairs(name: str) -> pytest.MarkDecorator:
    """Either of Claude Code and the other system may be read first."""
    orders = [("claude", name), (name, "claude")]
    return pytest.mark.parametrize("order", orders, ids=["claude first", "claude last"])


@pairs("chorus")
def test_a_chorus_conversation_is_linked_to_its_session(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    linked = "select o.session_key from sessions s join sessions o on o.id = s.linked_session_id"
    assert one(read(*order), f"{linked} where s.session_key = 'k1'") == SESSION


@pairs("ccinsights")
def test_a_chat_is_linked_to_its_session(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    linked = "select o.session_key from sessions s join sessions o on o.id = s.linked_session_id"
    assert one(read(*order), f"{linked} where s.session_key = 'chat-1'") == SESSION


@pairs("chorus")
def test_a_linked_pair_is_listed_once(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    """As the transcript of the agent, which names both systems."""
    connection = read(*order)

    def listed(**wanted: str) -> list[tuple[str, str]]:
        found = sql.ask(connection, "lists/sessions", **wanted)
        return [(row["session_key"], row["source"]) for row in found]

    (both,) = listed()
    assert both == (SESSION, "claude,chorus")
    assert len(listed(all="1")) == 2
    assert [source for _, source in listed(source="chorus")] == ["chorus"]
    (row,) = conversations.rows(connection, Filters(), 50)
    assert row["session_key"] == SESSION
    assert row["labels"].startswith("Claude Code, ")
    (row,) = sql.ask(connection, "pages/dashboard_projects")
    assert row["sessions"] == 1
    (row,) = sql.ask(connection, "pages/newest_session")
    assert row["sessions"] == 1


HOMES_WITH_IT = ("of before", "of today")


@pytest.mark.parametrize("order", [HOMES_WITH_IT, HOMES_WITH_IT[::-1], ["both"]])
def test_a_conversation_that_a_second_home_repeats_is_listed_once(
    order: Iterable[str], fresh: Callable[[], Path], tmp_path: Path
) -> None:
    """OpenCode copied its files into a database: here, each is in a home of its own."""
    story = home_of("opencode/files-that-were-copied-into-a-database", tmp_path / "story")
    parts = dict(zip(HOMES_WITH_IT, ("storage", "opencode.db"), strict=True))
    homes = []
    for name, part in parts.items():
        homes.append(tmp_path / name)
        homes[-1].mkdir()
        (story / part).rename(homes[-1] / part)
    database = fresh()
    for name in order:
        sync(database, homes if name == "both" else [tmp_path / name])
    at_once = fresh()
    sync(at_once, homes)
    check(database)
    assert_same(dump(database), dump(at_once))
    connection = connect(database)
    for wanted in ({}, {"source": "opencode"}):
        (row,) = sql.ask(connection, "lists/sessions", **wanted)
        assert (row["session_key"], row["source"], row["message_count"]) == (
            "ses_5b01ffee", "opencode", 15
        )  # fmt: skip
        (row,) = conversations.rows(connection, Filters.of(wanted), 50)
        assert (row["session_key"], row["labels"]) == ("ses_5b01ffee", "OpenCode")
    (project,) = sql.ask(connection, "pages/dashboard_projects")
    assert (project["sessions"], project["prompts"]) == (1, 2)
    for query in ("reports/longest_sessions", "lists/subagents"):
        assert len(sql.ask(connection, query).fetchall()) == 1, query
    connection.close()
    with closing(sqlite3.connect(homes[1] / "opencode.db")) as store:
        store.execute(
            "update part set data = json_set(data, '$.text', 'Which?'),"
            " time_updated = time_updated + 1 where id = 'prt_a101'"
        )
        store.commit()
    sync(database, homes)  # each has something that the other has not
    other = fresh()
    sync(other, homes)
    check(database)
    assert_same(dump(database), dump(other))
    with closing(connect(other)) as connection:
        assert len(sql.ask(connection, "lists/sessions").fetchall()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_conversation_that_went_on_in_one_of_two_homes_counts_there(
    first: str, fresh: Callable[[], Path], tmp_path: Path
) -> None:
    """At each moment, and whichever home was read first: a backup has nothing of its own."""
    lines = [line("u1"), answer("u2"), line("u3"), line("u4"), line("u5")]
    agent, fork = line("s1", isSidechain=True, agentId=AGENT), SESSION.replace("0b7c", "1c8d")

    def grow(home: str, count: int, *more: dict[str, object]) -> None:
        project = tmp_path / home / "projects" / "-srv-garden"
        write(project / f"{SESSION}.jsonl", *lines[:count], *more)
        write(project / SESSION / "subagents" / f"agent-{AGENT}.jsonl", agent)

    database, other = fresh(), "b" if first == "a" else "a"
    steps: list[tuple[Callable[[], object], list[int]]] = [
        (lambda: grow(first, 3), [3]),
        (lambda: grow(other, 2), [3, 0]),
        (lambda: grow(other, 5), [5, 0]),
        (lambda: write(tmp_path / first / "projects" / "-srv-garden" / f"{fork}.jsonl",
                       *lines[:2], line("f3")), [5, 1, 0]),
        # Each has something of its own now: none is a copy.
        (lambda: grow(first, 3, line("u9")), [5, 1, 1] if first == "b" else [4, 2, 1]),
    ]  # fmt: skip
    for step, counts in steps:
        step()
        homes = [tmp_path / name for name in "ab" if (tmp_path / name).exists()]
        sync(database, homes)
        scratch = fresh()
        sync(scratch, homes)
        check(database)
        assert_same(dump(database), dump(scratch))
        with closing(connect(database)) as connection:
            every = "select message_count from sessions order by 1 desc"
            assert [count for (count,) in connection.execute(every)] == counts
            # A conversation of which a home has only a copy is listed once.
            listed = [row["message_count"] for row in sql.ask(connection, "lists/sessions")]
            assert sorted(listed, reverse=True) == [count for count in counts if count]


def test_a_conversation_whose_transcript_is_not_there_is_listed(
    read: Callable[..., sqlite3.Connection],
) -> None:
    connection = read("chorus")
    assert [row["source"] for row in sql.ask(connection, "lists/sessions")] == ["chorus"]
    assert len(conversations.rows(connection, Filters(), 50)) == 1


@pairs("chorus")
def test_usage_that_an_application_repeats_can_be_left_out(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    connection = read(*order)
    rows = connection.execute("select output_tokens, stated_cost_usd from responses order by 2")
    assert [tuple(row) for row in rows] == [(340, None), (340, 0.04)]
    own = one(
        connection,
        "select sum(r.output_tokens) from responses r join sessions s on s.id = r.session_id"
        " where not exists (select 1 from responses o where o.session_id = s.linked_session_id)",
    )
    assert own == 340
    assert one(connection, "select sum(output_tokens) from usage_by_day") == 340


def test_usage_that_only_an_application_has_counts(
    read: Callable[..., sqlite3.Connection],
) -> None:
    assert one(read("chorus"), "select sum(output_tokens) from usage_by_day") == 340


@pairs("associate")
def test_hook_events_are_of_a_session_and_of_a_subagent(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    connection = read(*order)
    rows = connection.execute(
        "select h.event, s.session_key, a.agent_key from hook_events h"
        " join sessions s on s.id = h.session_id left join subagents a on a.id = h.subagent_id"
        " order by h.byte_offset"
    )
    assert [tuple(row) for row in rows] == [
        ("SessionStart", SESSION, None),
        ("SubagentStart", SESSION, AGENT),
        ("Stop", SESSION, None),  # only its transcript_path names the session
    ]
    assert one(connection, "select session_key from sessions") == SESSION, "no placeholder"


@pairs("associate")
def test_notes_and_summaries_are_of_the_project_that_their_directory_names(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    rows = read(*order).execute(
        "select d.kind, p.path, s.session_key from documents d"
        " left join projects p on p.id = d.project_id left join sessions s on s.id = d.session_id"
        " order by d.kind"
    )
    assert [tuple(row) for row in rows] == [
        ("note", "/srv/garden", None),
        ("summary", "/srv/garden", SESSION),
    ]


@pairs("associate")
def test_a_plan_is_linked_to_its_session(
    order: tuple[str, str], read: Callable[..., sqlite3.Connection]
) -> None:
    linked = "select l.url, s.session_key from links l join sessions s on s.id = l.session_id"
    assert one(read(*order), linked) == ("brave-green-fern.md", SESSION)


def test_a_ticket_is_of_its_chat_and_its_project(read: Callable[..., sqlite3.Connection]) -> None:
    sql = (
        "select d.title, s.session_key, p.name from documents d"
        " join sessions s on s.id = d.session_id join projects p on p.id = d.project_id"
    )
    assert one(read("ccinsights"), sql) == ("Frost", "chat-1", "Garden")


@pytest.mark.slow
def test_the_order_of_reading_changes_nothing(fresh: Callable[[], Path], tmp_path: Path) -> None:
    homes = {name: make(tmp_path / name) for name, make in MAKERS.items()}
    at_once = fresh()
    sync(at_once, list(homes.values()))
    whole = dump(at_once)
    orders = 0
    for order in itertools.permutations(homes.values()):
        database = fresh()
        for home in order:
            sync(database, [home])
        assert_same(dump(database), whole)
        orders += 1
    assert orders == 24


@pytest.mark.parametrize("is_long_first", [False, True])
def test_a_title_line_means_the_session_of_the_first_block(
    tmp_path: Path, fresh: Callable[[], Path], is_long_first: bool
) -> None:
    """The blocks of a line that stands twice may have their originals in two sessions."""
    project = tmp_path / "home" / "projects" / "-srv-garden"
    text, other = {"type": "text", "text": "plan"}, {"type": "text", "text": "and the beds"}
    lines = {
        "short": line("u5", message={"role": "user", "content": [text]}),
        "long": line("u5", message={"role": "user", "content": [text, other]}),
    }
    files = {"short": "1c8d3a5f", "long": "2d9e4b60"}
    title = {"type": "summary", "summary": "The garden", "leafUuid": "u5"}
    write(project / f"3{SESSION[1:]}.jsonl", title)
    databases = (fresh(), fresh())
    for name in sorted(lines, reverse=not is_long_first):
        write(project / f"{files[name]}{SESSION[8:]}.jsonl", lines[name])
        sync(databases[0], [tmp_path / "home"])
    sync(databases[1], [tmp_path / "home"])
    assert_same(dump(databases[0]), dump(databases[1]))
    titled = "select s.session_key from summaries u join sessions s on s.id = u.session_id"
    assert connect(databases[0]).execute(titled).fetchone()[0].startswith(files["short"])

"""What a sync does grows with what changed, not with what is there.

Work is counted, not timed: the instructions that SQLite executes, and the bytes that are read.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import DEMO
from tests.support.writing import (
    PROJECT,
    SESSION,
    TRANSCRIPT,
    Object,
    agent,
    assistant,
    call,
    jsonl,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.source import Line
from assoc_ingest.sources import SOURCES
from assoc_ingest.store import batch
from assoc_ingest.sync import run as syncing
from assoc_ingest.sync.plan import Report
from assoc_ingest.upkeep import verify as verifying
from assoc_ingest.upkeep.rebuild import rebuild

_STEP = 50  # instructions of SQLite between two looks

Sync = Callable[[Path], "Work"]


class Work:
    """What a sync did."""

    def __init__(self) -> None:
        self.instructions = 0
        self.bytes_read = 0
        self.report = Report("")

    def look(self) -> int:
        self.instructions += _STEP
        return 0


@pytest.fixture
def work(fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> Sync:
    """Syncs a home and counts."""
    database, writing, pread = fresh(), syncing.writing, os.pread
    counted = Work()

    @contextmanager
    def watched(path: Path) -> Iterator[sqlite3.Connection]:
        with writing(path) as connection:
            connection.set_progress_handler(counted.look, _STEP)
            yield connection

    def read(descriptor: int, size: int, offset: int) -> bytes:
        data = pread(descriptor, size, offset)
        counted.bytes_read += len(data)
        return data

    def run(home: Path) -> Work:
        nonlocal counted
        counted = Work()
        counted.report = syncing.sync(database, [home])
        return counted

    monkeypatch.setattr(syncing, "writing", watched)
    monkeypatch.setattr(os, "pread", read)
    return run


QUEUED: Object = {
    "type": "queue-operation", "operation": "enqueue", "content": "later", "sessionId": SESSION,
}  # fmt: skip


def turn(number: int, session: str = SESSION) -> list[Object]:
    """Return what a person, an agent and a tool add to a session in one turn."""
    name = f"{session[:8]}-{number}"
    spawn = call(f"toolu_{name}", "Task", prompt=f"part {number}")
    lines = [
        user(f"prompt {number}", f"u{name}"),
        assistant([spawn], f"a{name}", f"u{name}", 2, id=f"msg_{name}", usage={"output_tokens": 7}),
        user([result(f"toolu_{name}", f"done\nagentId: a{number}")], f"r{name}"),
    ]
    return [{**line, "sessionId": session} for line in lines]


def turns(count: int, session: str = SESSION) -> list[Object]:
    return [line for number in range(count) for line in turn(number, session)]


def append(path: Path, *lines: Object) -> int:
    """Append lines; return their bytes."""
    with path.open("ab") as file:
        return file.write(jsonl(*lines))


def test_nothing_new_is_not_opened(work: Sync, tmp_path: Path) -> None:
    write(tmp_path, TRANSCRIPT, *turns(200))
    first, second = work(tmp_path), work(tmp_path)
    assert first.bytes_read > 100_000
    assert (second.bytes_read, second.report.files_read) == (0, 0)
    assert second.instructions < first.instructions / 20


@pytest.mark.slow
def test_an_append_reads_what_was_appended_and_the_marker(work: Sync, tmp_path: Path) -> None:
    path = write(tmp_path, TRANSCRIPT, *turns(3000))
    assert path.stat().st_size > 1024 * 1024
    work(tmp_path)
    appended = append(path, *turn(3000))
    assert appended <= work(tmp_path).bytes_read <= appended + 2 * 1024


def test_no_statement_goes_through_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when a file grows, not when one is rewritten or vanishes: rows are found by an index.

    One may: messages between agents, of which there are few, are matched anew when some come.
    """
    plans: dict[str, list[str]] = {}

    class Explained(sqlite3.Connection):
        def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
            if re.match(r"\s*(with|select|insert|update|delete)\b", statement):
                rows = super().execute(f"explain query plan {statement}", *parameters)
                plans.setdefault(statement, [detail for *_, detail in rows])
            return super().execute(statement, *parameters)

    homes = shutil.copytree(DEMO, tmp_path / "homes")
    database, roots = tmp_path / "assoc.db", sorted(homes.iterdir())
    syncing.sync(database, roots)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Explained))
    grown, cut, lost, *_ = sorted((homes / "claude" / "projects").rglob("*.jsonl"))
    append(grown, *turn(1))
    cut.write_bytes(cut.read_bytes()[:-300])
    lost.unlink()
    assert syncing.sync(database, roots).files_read == 2
    assert len(plans) > 80
    with closing(connect(database)) as connection:  # of a part of a table, few rows
        partial_indexes = connection.execute(
            "select i.name from sqlite_master m join pragma_index_list(m.name) i"
            " where m.type = 'table' and i.partial"
        )
        parts = {f"INDEX {name}" for (name,) in partial_indexes}
    scans = {
        statement: found
        for statement, plan in plans.items()
        if "affected_mail" not in statement
        and (found := [step for step in plan if _is_scan(step, statement)])
        and not all(any(step.endswith(part) for part in parts) for step in found)
    }
    assert not scans, "\n".join(f"{steps}: {text}" for text, steps in scans.items())


GROWING = {
    "messages", "tool_calls", "usage", "responses", "sessions", "transcripts", "summaries",
    "archive", "line_types", "issues", "agent_links", "working_directories", "prompts",
    "hook_events", "tool_result_files", "documents", "todos", "inbox_items", "file_snapshots",
    "subagents", "session_entries", "plan_lines", "links", "statements",
}  # fmt: skip


def _is_scan(step: str, statement: str) -> bool:
    """Does a step of a plan go through a table that grows with use?"""
    found = re.match(r"SCAN (\w+)", step)
    if not found or " VIRTUAL TABLE" in step:
        return False
    name = found[1]
    named = re.findall(rf"(?:from|join|,)\s+(\w+)(?:\s+as)?\s+{name}\b", statement)
    return {name, *named} & GROWING != set() and all(table in GROWING for table in named)


@pytest.mark.slow
def test_an_append_costs_the_same_in_a_long_session(work: Sync, tmp_path: Path) -> None:
    costs = []
    for count in (200, 4000):
        home = tmp_path / str(count)
        path = write(home, TRANSCRIPT, QUEUED, *turns(count))
        work(home)
        append(path, *turn(count))
        costs.append(work(home).instructions)
    # The totals of a session are added up again, from indexes; nothing else is looked at twice.
    assert costs[1] - costs[0] < 100 * (4000 - 200), costs


def rollout(home: Path, responses: int) -> Path:
    """Write a thread of Codex whose only turn has so many responses, each with a call."""
    thread = f"019e5615-9632-7740-b2cf-{responses:012}"
    payloads: list[tuple[str, Object]] = [
        ("session_meta", {"id": thread, "cwd": "/srv/demo"}),
        ("event_msg", {"type": "task_started", "turn_id": f"{thread[:-1]}9"}),
    ]
    for number in range(1, responses + 1):
        total = {"input_tokens": number * 10, "output_tokens": number}
        item: Object = {"name": "shell", "arguments": '{"command":["ls"]}', "call_id": f"c{number}"}
        thought = {"type": "reasoning", "summary": [{"text": f"step {number % 7}"}]}
        payloads += [
            ("response_item", thought),
            ("response_item", {"type": "function_call", **item}),
            ("event_msg", {"type": "exec_command_end", "call_id": f"c{number}", "exit_code": 0}),
            ("response_item", {**item, "type": "function_call_output", "output": "ok"}),
            ("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}),
        ]
    lines = [
        {"timestamp": "2026-05-23T18:25:02.612Z", "type": kind, "payload": payload}
        for kind, payload in payloads
    ]
    return write(home, f"sessions/2026/05/23/rollout-2026-05-23T18-25-02-{thread}.jsonl", *lines)


@pytest.mark.slow
def test_a_turn_of_many_responses_costs_what_it_has(work: Sync, tmp_path: Path) -> None:
    """In instructions of SQLite, and in calls of functions while its lines are read."""
    costs, calls = [], []
    for count in (600, 6000):
        home = tmp_path / str(count)
        path = rollout(home, count)
        claim = SOURCES["codex"].claim(path.relative_to(home).parts)
        assert claim is not None
        counted = [0]

        def look(frame: object, event: str, argument: object, counted: list[int] = counted) -> None:
            counted[0] += 1

        lines = [Line(n * 500, data) for n, data in enumerate(path.read_bytes().splitlines())]
        sys.setprofile(look)
        SOURCES["codex"].read(claim, lines, {})
        sys.setprofile(None)
        calls.append(counted[0])
        costs.append(work(home).instructions)
        assert work(home).report.files_read == 0
    assert costs[1] < 11 * costs[0], costs
    assert calls[1] < 11 * calls[0], calls


@pytest.mark.slow
def test_an_append_costs_the_same_beside_many_sessions(work: Sync, tmp_path: Path) -> None:
    costs = []
    for count in (5, 100):
        home = tmp_path / str(count)
        for number in range(count):
            key = SESSION.replace("0b7c2f4e", f"{number:08x}")
            path = write(home, f"{PROJECT}/{key}.jsonl", *turns(40, key))
            write(home, f"{PROJECT}/{key}/subagents/agent-a1.jsonl", agent("a1", user("part 1")))
        work(home)
        append(path, *turn(40, key))
        costs.append(work(home).instructions)
    # The sessions of its project are counted again; the others are not looked at.
    assert costs[1] - costs[0] < 200 * (100 - 5), costs


def test_an_append_costs_the_same_beside_many_prompts_and_plans(work: Sync, tmp_path: Path) -> None:
    """Of projects and sessions that are not here, as those that the agent deleted long ago."""
    costs = []
    for count in (20, 1020):
        home, key = tmp_path / str(count), f"{count:08x}{SESSION[8:]}"
        lines = ({**line, "slug": "bold-fox"} for line in turns(40, key))
        path = write(home, f"{PROJECT}/{key}.jsonl", *lines)
        write(home, "history.jsonl", *(
            {"display": f"prompt {n}", "timestamp": 1_750_000_000_000 + n, "project": f"/gone/{n}"}
            for n in range(count)
        ))  # fmt: skip
        for number in range(count // 10):
            other = f"{PROJECT}/{number:04x}{count:04x}{SESSION[8:]}.jsonl"
            write(home, other, user("hello", f"u{count}-{number}"))
            write_bytes(home, f"plans/old-plan-{number}.md", b"# A plan")
        work(home)
        append(path, *turn(40, key))
        costs.append(work(home).instructions)
    # The sessions of its project are counted again, and each plan looks for its session by name.
    assert costs[1] - costs[0] < 200 * (102 - 2), costs


@pytest.mark.slow
def test_an_append_costs_the_same_in_a_session_with_many_tasks(work: Sync, tmp_path: Path) -> None:
    """Only a call that states something of a list makes a sync look at what was stated before."""

    def stated(key: str, number: int, name: str, **arguments: Any) -> list[Object]:
        place = f"{key[:8]}-{number}"
        answer = result(f"toolu_t{place}", f"Task #{number} created successfully: Dig")
        lines = [
            assistant(
                [call(f"toolu_t{place}", name, **arguments)], f"ta{place}", id=f"msg_{place}"
            ),
            user([answer], f"tr{place}"),
        ]
        return [{**line, "sessionId": key} for line in lines]

    costs = []
    for count in (1, 1001):
        home, key = tmp_path / str(count), f"{count:08x}{SESSION[8:]}"
        calls = (stated(key, number, "TaskCreate", subject="Dig") for number in range(count))
        lines = [*turn(0, key), *(line for lines in calls for line in lines)]
        path = write(home, f"{PROJECT}/{key}.jsonl", *lines)
        assert work(home).report.files_read == 1
        append(path, *turn(1, key))
        costs.append(work(home).instructions)
    # The totals of a session are added up again, from indexes.
    assert costs[1] - costs[0] < 100 * 1000, costs
    append(path, *stated(key, 1001, "TaskUpdate", taskId="1", status="completed"))
    assert work(home).instructions - costs[1] > 100 * 1000


def test_calls_of_agents_are_found_without_going_through_all_calls(
    work: Sync, tmp_path: Path
) -> None:
    costs = []
    for count in (100, 800):
        home, key = tmp_path / str(count), SESSION.replace("0b7c2f4e", f"{count:08x}")
        write(home, f"{PROJECT}/{key}.jsonl", *turns(count, key))
        write(home, f"{PROJECT}/{key}/subagents/agent-a1.jsonl", agent("a1", user("part 1")))
        costs.append(work(home).instructions)
    assert costs[1] < 9 * costs[0], costs


@pytest.mark.slow
def test_a_verification_costs_what_there_is_to_verify(
    fresh: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all of it is one file, and one session."""
    costs, checking = [], verifying.checking

    for count in (100, 800):
        database, counted = fresh(), Work()

        @contextmanager
        def watched(path: Path, counted: Work = counted) -> Iterator[sqlite3.Connection]:
            with checking(path) as connection:
                connection.set_progress_handler(counted.look, _STEP)
                yield connection

        write(tmp_path / str(count), TRANSCRIPT, *turns(count))
        syncing.sync(database, [tmp_path / str(count)])
        monkeypatch.setattr(verifying, "checking", watched)
        assert verifying.verify(database).findings == []
        costs.append(counted.instructions)
    assert costs[1] < 10 * costs[0], costs


@pytest.mark.parametrize("again", ["sync", "rebuild"])
def test_a_batch_holds_no_more_than_so_many_small_files(
    fresh: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """Each has something in memory until its batch is committed, however few bytes it has."""
    home, database = tmp_path / "home", fresh()
    for number in range(20):
        key = f"{number:08x}{SESSION[8:]}"
        write(home, f"{PROJECT}/{key}.jsonl", {**user("hello", f"u{number}"), "sessionId": key})
    if again == "rebuild":
        syncing.sync(database, [home])
    prepare, sizes = batch.Batch.prepare, []

    def counted(batch: batch.Batch) -> None:
        sizes.append(len(batch._files))
        prepare(batch)

    monkeypatch.setattr(batch, "BATCH_BYTES", 5 * batch.FILE_BYTES)
    monkeypatch.setattr(batch.Batch, "prepare", counted)
    if again == "rebuild":
        rebuild(database)
    else:
        syncing.sync(database, [home])
    assert len(sizes) >= 4
    assert max(sizes) == 5

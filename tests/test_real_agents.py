"""Real files of other agents are read to the last line, with the tokens that they state.

Beside the demonstration homes, transcripts of real people are read where ASSOC_REAL_CORPUS names a
directory with `agents/<source>/*`, each as the home of that agent would be. What is expected is
calculated here from the bytes, sharing no code with the program.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.dump import assert_same, check, connect, dump
from tests.support.shell import Shell

from assoc_ingest.sync.run import SyncOptions, sync

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"), "agents")
DEMO = Path(__file__).parent / "demo"
Tokens = tuple[int, int, int, int]
"""Fresh input, output, read from the cache, written to it."""


def homes(agent: str) -> list[Path]:
    return [DEMO / agent, *sorted(path for path in CORPUS.glob(f"{agent}/*") if path.is_dir())]


def lines(agent: str, pattern: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the lines of the logs of all homes of an agent."""
    for home in homes(agent):
        for path in sorted(home.glob(pattern)):
            for line in path.read_text("utf-8").split("\n"):
                if line.strip():
                    yield path, json.loads(line)


def added(*stated: dict[str, Any], keys: str) -> list[int]:
    """Return the sums of these fields, separated by blanks."""
    return [sum(each.get(key) or 0 for each in stated) for key in keys.split(" ")]


def of_pi() -> Tokens:
    """Each entry that states usage counts once, whatever forks repeat."""
    stated = {}
    for _, line in lines("pi", "sessions/*/*.jsonl"):
        usage = line.get("message", line).get("usage")
        if usage:
            stated[line.get("id") or json.dumps(line), line["timestamp"]] = usage
    fresh, output, cached, written = added(
        *stated.values(), keys="input output cacheRead cacheWrite"
    )
    return fresh, output, cached, written


def of_codex() -> Tokens:
    """Each change of a thread's totals is a response, but for those that a fork copied.

    A fork copies turns that are older than itself: ids of both begin with their time.
    """
    responses: dict[tuple[object, ...], dict[str, Any]] = {}
    state: dict[str, Any] = {}
    for path, line in lines("codex", "sessions/**/*.jsonl"):
        if state.get("path") != path:
            state = {"path": path, "thread": path.stem[-36:], "is_own": True}
        payload = line.get("payload") or {}
        if line.get("type") == "session_meta" and payload["id"] != state["thread"]:
            state["is_own"] = False
        if payload.get("type") == "task_started":
            state["is_own"] |= payload["turn_id"] > state["thread"]
        info = payload.get("info") if payload.get("type") == "token_count" else None
        if not info:
            continue
        total, last = info["total_token_usage"], info["last_token_usage"]
        if total != state.get("total") and state["is_own"] and last["total_tokens"]:
            responses[state["thread"], *total.values()] = last
        state["total"] = total
    given, cached, output = added(
        *responses.values(), keys="input_tokens cached_input_tokens output_tokens"
    )
    return given - cached, output, cached, 0


def of_copilot() -> Tokens:
    """The last shutdown of each file has its sums; their input contains what the cache had."""
    last = {
        path: line["data"]["modelMetrics"]
        for path, line in lines("copilot", LOGS["copilot"])
        if line["type"] == "session.shutdown"
    }
    usage = [model["usage"] for metrics in last.values() for model in metrics.values()]
    fields = "inputTokens outputTokens cacheReadTokens cacheWriteTokens"
    given, output, cached, written = added(*usage, keys=fields)
    return given - cached - written, output, cached, written


def messages_of_gemini() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the messages of both forms, restated ones too, with their session."""
    for home in homes("gemini"):
        for path in sorted(home.glob("tmp/*/chats/*.json")):
            chat = json.loads(path.read_text("utf-8"))
            yield from ((chat["sessionId"], message) for message in chat["messages"])
    sessions: dict[Path, str] = {}
    for path, line in lines("gemini", LOGS["gemini"]):
        if "startTime" in line:
            sessions[path] = line["sessionId"]
        restated = line.get("$set", {}).get("messages", [])
        for message in [line] if "id" in line else restated:
            yield sessions[path], message


def texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if "text" in part]


def of_gemini() -> Tokens:
    """What the last form of each message states, whatever file has it."""
    last = {
        (session, message["id"]): message["tokens"]
        for session, message in messages_of_gemini()
        if message.get("tokens")
    }
    given, cached, output, thoughts, tool = added(
        *last.values(), keys="input cached output thoughts tool"
    )
    return given - cached + tool, output + thoughts, cached, 0


def of_opencode() -> Tokens:
    """What each answer states; a fork repeats answers, with their times, under other ids.

    With a total, the output is without the reasoning.
    """
    stated = {}
    for home in homes("opencode"):
        texts = [path.read_text("utf-8") for path in home.glob("storage/message/*/*.json")]
        for path in home.glob("opencode.db"):
            with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
                texts += [data for (data,) in connection.execute("select data from message")]
        for message in map(json.loads, texts):
            if message.get("tokens"):
                stated[message["time"]["created"], message["time"].get("completed")] = message
    tokens = [{**one["tokens"], **one["tokens"]["cache"]} for one in stated.values()]
    tokens = [one if "total" in one else {**one, "reasoning": 0} for one in tokens]
    fresh, output, reasoning, cached, written = added(
        *tokens, keys="input output reasoning read write"
    )
    return fresh, output + reasoning, cached, written


LOGS = {
    "codex": "sessions/**/*.jsonl",
    "copilot": "session-state/*/*.jsonl",
    "gemini": "tmp/*/chats/*.jsonl",
    "pi": "sessions/*/*.jsonl",
}
EXPECTED: dict[str, Callable[[], Tokens]] = {
    "opencode": of_opencode,
    "codex": of_codex,
    "copilot": of_copilot,
    "gemini": of_gemini,
    "pi": of_pi,
}


@pytest.fixture(scope="module", params=LOGS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def database(agent: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / f"{agent}.db"
    sync(path, homes(agent))
    return path


def rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = connect(database)
    found = [tuple(row) for row in connection.execute(sql)]
    connection.close()
    return found


def test_every_byte_is_accounted_for_and_nothing_is_wrong(agent: str, database: Path) -> None:
    check(database, *homes(agent))
    assert rows(database, "select reason from issues") == []
    assert rows(database, "select distinct kind from sources") == [(agent,)]


def test_every_line_is_counted_under_its_type(agent: str, database: Path) -> None:
    """A line that begins by repeating messages counts as those of them that are new."""
    expected: dict[str, int] = {}
    known: set[tuple[Path, str]] = set()
    for path, line in lines(agent, LOGS[agent]):
        restated = line.get("$set", {}).get("messages", [])
        new = [message for message in restated if (path, message["id"]) not in known]
        for item in new or [line]:
            known.add((path, str(item.get("id"))))
            expected[item.get("type", "")] = expected.get(item.get("type", ""), 0) + 1
    counted = rows(
        database,
        "select type, sum(count) from line_types t join files f on f.id = t.file_id"
        " where f.path like '%.jsonl' group by type",
    )
    assert dict(counted) == expected


def test_tokens_are_those_that_the_files_state(agent: str, database: Path) -> None:
    columns = "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens"
    sums = ", ".join(f"sum({column})" for column in columns)
    assert rows(database, f"select {sums} from responses") == [EXPECTED[agent]()]
    sessions = sums.replace("_5m", "")
    assert rows(database, f"select {sessions} from sessions") == [EXPECTED[agent]()]


@pytest.mark.parametrize("agent", ["gemini"], indirect=True)
def test_what_several_files_repeat_is_found_once(database: Path) -> None:
    typed = {
        (session, text)
        for session, message in messages_of_gemini()
        if message["type"] == "user"
        for text in texts(message["content"])
        if not text.startswith("<session_context>")
    }
    found = rows(
        database,
        "select s.session_key, m.text from messages m join sessions s on s.id = m.session_id"
        " where m.kind = 'prompt' and m.copy_of is null",
    )
    assert sorted(found) == sorted(typed)


def calls_of_pi() -> Iterator[tuple[object, str]]:
    for _, line in lines("pi", LOGS["pi"]):
        message = line.get("message", {})
        for block in message.get("content") or []:
            if isinstance(block, dict) and block.get("type") == "toolCall":
                yield block["id"], block["name"]


def calls_of_gemini() -> Iterator[tuple[object, str]]:
    for session, message in messages_of_gemini():
        for made in message.get("toolCalls") or []:
            yield (session, made["id"]), made["name"]


def calls_of_copilot() -> Iterator[tuple[object, str]]:
    for path, line in lines("copilot", LOGS["copilot"]):
        if line["type"] == "tool.execution_start":
            yield (path, line["data"]["toolCallId"]), line["data"]["toolName"]


CALLS = {"pi": calls_of_pi, "gemini": calls_of_gemini, "copilot": calls_of_copilot}


@pytest.mark.parametrize("agent", CALLS, indirect=True)
def test_calls_are_those_of_the_files(
    agent: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = Counter(name for _, name in {*CALLS[agent]()})
    shell = Shell(database, capsys)
    given = "--json", "-n", "0", "--db", str(database)
    tools: Any = shell.json("stats", "--by", "tool", *given)
    assert {row["name"]: row["calls"] for row in tools["items"]} == expected
    listed: Any = shell.json("list", "sessions", *given)
    assert sum(row["tool_call_count"] for row in listed["items"]) == expected.total()


@pytest.mark.parametrize("agent", EXPECTED, indirect=True)
def test_stats_say_the_tokens_that_the_files_state(
    agent: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(database, capsys)
    totals: Any = shell.json("stats", "--by", "model", "--json", "--db", str(database))
    columns = "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"
    assert tuple(totals["totals"][column] or 0 for column in columns) == EXPECTED[agent]()


def test_reading_again_changes_nothing(agent: str, database: Path) -> None:
    before = dump(database)
    assert sync(database, homes(agent)).files_read == 0
    assert sync(database, homes(agent), SyncOptions(full=True)).rows == 0
    assert_same(dump(database), before)

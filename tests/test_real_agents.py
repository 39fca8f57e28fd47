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
from tests.support.shell import Shell

from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.sync.run import SyncOptions, sync
from assoc_ingest.testing.dump import assert_same, check, dump, rows

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
        if not text.startswith(("<session_context>", "System: Please continue."))
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


def items_of_codex() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield what the threads' own turns wrote, items and events, with the file."""
    state: dict[str, Any] = {}
    for path, line in lines("codex", LOGS["codex"]):
        if state.get("path") != path:
            state = {"path": path, "thread": path.stem[-36:], "is_own": True}
        payload = line.get("payload") or line
        if line.get("type") == "session_meta" and payload["id"] != state["thread"]:
            state["is_own"] = False
        if payload.get("type") == "task_started":
            state["is_own"] |= payload["turn_id"] > state["thread"]
        if state["is_own"] and line.get("type") not in ("compacted", "world_state"):
            yield path, payload


def calls_of_codex() -> Iterator[tuple[object, str]]:
    for path, item in items_of_codex():
        if item.get("type") in ("function_call", "custom_tool_call"):
            yield (path, item["call_id"]), item["name"]


def messages_of_opencode() -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], bool]]:
    """Yield the messages with their parts; True for those of a subagent."""
    for home in homes("opencode"):
        messages: dict[str, dict[str, Any]] = {}
        parts: list[tuple[str, dict[str, Any]]] = []
        below = set()
        for kind in ("session", "message", "part"):
            for path in sorted(home.glob(f"storage/{kind}/*/*.json")):
                value = json.loads(path.read_text("utf-8"))
                if kind == "session" and value.get("parentID"):
                    below.add(value["id"])
                elif kind == "message":
                    messages[value["id"]] = value
                elif kind == "part":
                    parts.append((value["messageID"], value))
        for path in home.glob("opencode.db"):
            with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
                for key, session, data in connection.execute(
                    "select id, session_id, data from message"
                ):
                    messages[key] = {"sessionID": session, **json.loads(data)}
                found = connection.execute("select message_id, data from part")
                parts += [(key, json.loads(data)) for key, data in found]
                found = connection.execute("select id from session where parent_id is not null")
                below |= {key for (key,) in found}
        for key, message in messages.items():
            own = [part for of, part in parts if of == key]
            yield message, own, message["sessionID"] in below


def calls_of_opencode() -> Iterator[tuple[object, str]]:
    """A fork repeats answers, with their times, under other ids."""
    for message, parts, _ in messages_of_opencode():
        for part in parts:
            if part["type"] == "tool":
                yield (message["time"]["created"], part["callID"]), part["tool"]


CALLS = {
    "pi": calls_of_pi, "gemini": calls_of_gemini, "copilot": calls_of_copilot,
    "codex": calls_of_codex, "opencode": calls_of_opencode,
}  # fmt: skip


# What was said: how many prompts there are, and how many lines of people and agents: what they
# said, thought and called, and what tools answered. What a fork repeats counts once.

Said = tuple[int, int]


def said_in_pi() -> Said:
    roles = {
        (line.get("id") or json.dumps(line), line["timestamp"]): line["message"]["role"]
        for _, line in lines("pi", LOGS["pi"])
        if line["type"] == "message"
    }
    count = Counter(roles.values())
    return count["user"] + count["bashExecution"], count.total()


def said_in_copilot() -> Said:
    """An answer whose text and calls are left out says nothing."""
    count = Counter(
        line["type"]
        for _, line in lines("copilot", LOGS["copilot"])
        if line["type"] in ("user.message", "tool.execution_complete")
        or (line["type"] == "assistant.message"
            and (line["data"].get("content") or line["data"].get("toolRequests")))
    )  # fmt: skip
    return count["user.message"], count.total()


def said_in_gemini() -> Said:
    """The answer of a tool is no prompt; nor is what the program says in the name of its user."""
    prompts, said = set(), set()
    for session, message in messages_of_gemini():
        content = message["content"]
        answers = [part.get("functionResponse") for part in content if isinstance(part, dict)]
        answers = [answer["id"] for answer in answers if answer]
        words = texts(content)
        if message["type"] not in ("user", "gemini") or words[:1] == ["System: Please continue."]:
            continue
        if not any(text.startswith("<session_context>") for text in words):
            key = session, *(answers or [message["id"]])
            said.add(key)
            if message["type"] == "user" and not answers:
                prompts.add(key)
    return len(prompts), len(said)


def said_in_codex() -> Said:
    """What the program puts before a prompt, as instructions, is not said by anybody."""
    count: Counter[str] = Counter()
    running = set()
    for _, item in items_of_codex():
        kind, text = item.get("type") or "", "".join(texts(item.get("content") or []))
        if kind == "message" and item["role"] == "user":
            is_typed = not text.startswith(("#", "<")) or text.startswith("<user_shell_command>")
            count["prompt"] += is_typed
            count["interrupt"] += text.startswith("<turn_aborted>")
        elif kind == "message":
            count["text"] += item["role"] == "assistant"
        elif kind == "reasoning":
            count[kind] += bool(item.get("summary") or item.get("content"))
        elif kind.endswith("_call_output"):
            count[kind] += 1
            if "Process running with session ID" in str(item["output"]):
                running.add(item["call_id"])
        elif kind.endswith("_call"):
            count[kind] += 1
        elif kind == "exec_command_end":  # what a command in the background gave in the end
            count[kind] += item["call_id"] in running
    return count["prompt"], count.total()


def said_in_opencode() -> Said:
    said = {}
    for message, parts, is_of_subagent in messages_of_opencode():
        if not is_of_subagent:
            kinds = [p["type"] for p in parts if p["type"] in ("text", "reasoning", "tool")]
            said[message["time"]["created"], message["role"]] = len(kinds)
    return sum(role == "user" and bool(n) for (_, role), n in said.items()), sum(said.values())


SAID: dict[str, Callable[[], Said]] = {
    "pi": said_in_pi, "copilot": said_in_copilot, "gemini": said_in_gemini,
    "codex": said_in_codex, "opencode": said_in_opencode,
}  # fmt: skip


@pytest.mark.parametrize("agent", SAID, indirect=True)
def test_prompts_and_messages_are_those_of_the_files(
    agent: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list, of each conversation, by project, and over MCP."""
    prompts, messages = SAID[agent]()
    given = "--json", "-n", "0", "--db", str(database)
    shell = Shell(database, capsys)
    listed: Any = shell.json("list", "sessions", *given)
    columns = "prompt_count", "message_count"
    assert [sum(row[column] for row in listed["items"]) for column in columns] == [
        prompts, messages
    ]  # fmt: skip
    by_project: Any = shell.json("query", "projects_overview", *given)
    assert sum(row["prompts"] for row in by_project["items"]) == prompts
    index = Index(Settings(database))
    tools = Tools(index)
    sums = [0, 0]
    for key in {row["session_key"] for row in listed["items"]}:
        answer: Any = tools.call("open", {"ref": key, "max_chars": 100_000})
        (item,) = answer["structuredContent"]["items"]
        sums[0] += item["prompt_count"]
        sums[1] += item["messages"]
    index.close()
    assert sums == [prompts, messages]


@pytest.mark.parametrize("agent", CALLS, indirect=True)
def test_calls_are_those_of_the_files(
    agent: str, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = Counter(name for _, name in {*CALLS[agent]()})
    shell = Shell(database, capsys)
    given = "--json", "-n", "0", "--db", str(database)
    tools: Any = shell.json("stats", "--by", "tool", *given)
    assert {row["name"]: row["calls"] for row in tools["items"]} == expected
    without = "select count(*) from messages m where kind = 'tool_use' and copy_of is null"
    without += " and not exists (select 1 from tool_calls t where t.call_id = m.id)"
    assert rows(database, without) == [(0,)], "what is shown as a call is one that is counted"
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

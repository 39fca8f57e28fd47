"""Any client of the Model Context Protocol is understood, and nothing it sends ends the server.

The client of the official SDK drives every tool, over the streams of a real process.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from tests.support.shell import running, statements_below

from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.protocol import STATELESS, VERSIONS, WITH_HANDSHAKE, Protocol
from assoc_ingest.mcp.server import INSTRUCTIONS, LONGEST, Tools, all_tools, sent, serve
from assoc_ingest.sync.run import sync

DEMO = Path(__file__).parent / "demo"
PACKAGE = Path(__file__).parents[1] / "ingest"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": STATELESS[0],
    "io.modelcontextprotocol/clientCapabilities": {},
}

CALLS: dict[str, list[dict[str, Any]]] = {
    "recent": [{}, {"cwd": "/srv/fernhill/beds"}, {"project": "fernhill", "limit": 1}],
    "search": [{"query": "frost"}, {"query": "frsot", "kinds": ["prompt"]}, {"query": "zyx"}],
    "open": [{"ref": "5e1f0c9a"}, {"ref": "5e1f0c9a:8", "before": 1, "after": 2},
             {"ref": "a4c1e07b92d83f516"}, {"ref": "plan:brave"}, {"ref": "nothing"}],
    "recap": [{"when": "2026-03"}, {"when": "2026-03-02", "by": "repository"}, {"when": "no"}],
    "blame": [{"what": "calendar.py"}, {"what": "#1"}, {"what": " "}],
    "fix": [{"error": "no attribute is_tender"}, {"error": "nobody has seen this"}],
    "stats": [{"by": "model"}, {"by": "colour"}],
    "sql": [{"query": "select count(*) from sessions"}, {"schema": "all"}, {"query": "drop"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def database(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(template, tmp_path_factory.mktemp("mcp") / "assoc.db"))
    sync(path, sorted(DEMO.iterdir()))
    return path


def command(database: Path, *options: str) -> list[str]:
    return running("mcp", "-d", str(database), *options)


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT")}
    return {**kept, "HOME": str(home), "USERPROFILE": str(home), "PYTHONPATH": str(PACKAGE)}


# -- the official client ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy", STATELESS[0]])
@pytest.mark.parametrize("options", [[], ["--structured"]])
def test_the_official_client_lists_and_calls_every_tool(
    mode: str, options: list[str], database: Path, tmp_path: Path
) -> None:
    """It validates each object against the schema that the tool has announced."""
    program, *arguments = command(database, "--no-sync", *options)
    server = StdioServerParameters(command=program, args=arguments, env=environment(tmp_path))
    seen: dict[str, list[bool]] = {}

    async def talk() -> None:
        async with Client(stdio_client(server), mode=mode) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == [tool.name for tool in all_tools()]
            for tool in listed.tools:
                assert bool(tool.output_schema) == bool(options)
                for arguments in CALLS[tool.name]:
                    result = await client.call_tool(tool.name, arguments)
                    text, content = result.content[0].text, result.structured_content
                    if options:
                        assert content["schema"] == 1
                    assert bool(content) == bool(options), "a client is not sent both"
                    is_told = result.is_error or not options
                    assert (text != "The answer is in structuredContent.") == is_told
                    seen.setdefault(tool.name, []).append(bool(result.is_error))

    asyncio.run(talk())
    assert seen == {
        "search": [False] * 3,
        "open": [False] * 4 + [True],
        "recent": [False] * 3,
        "recap": [False, False, True],
        "blame": [False, False, True],
        "fix": [False, False],
        "stats": [False, True],
        "sql": [False, False, True],
    }


def test_a_client_is_sent_the_text_or_the_object_and_of_an_error_the_text_too() -> None:
    result: dict[str, object] = {
        "content": [{"type": "text", "text": "> blue"}], "structuredContent": {"schema": 1}
    }  # fmt: skip
    assert sent(result, is_structured=False) == {"content": result["content"]}
    as_object = sent(result, is_structured=True)
    assert as_object["structuredContent"] == {"schema": 1}
    assert "blue" not in str(as_object["content"])
    wrong = {**result, "isError": True}
    assert sent(wrong, is_structured=True) == wrong
    assert "structuredContent" not in sent(wrong, is_structured=False)


def test_the_versions_are_the_newest_one_and_the_two_before_it() -> None:
    assert list(VERSIONS) == sorted(KNOWN_PROTOCOL_VERSIONS, reverse=True)[:3]


# -- line by line ----------------------------------------------------------------------------------


@pytest.fixture
def answers(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., list[Any]]]:
    """Sends lines to a server in this process and returns what it writes."""
    index = Index(Settings(database))

    def ask(*lines: object) -> list[Any]:
        sent = tmp_path / "sent"
        sent.write_bytes(
            b"".join(
                (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n"
                for line in lines
            )
        )
        tools = Tools(index)
        with sent.open("rb") as stream:
            serve(
                Protocol(INSTRUCTIONS, tools.offered, tools.call), index.interrupt, stream.fileno()
            )
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    yield ask
    index.close()


def request(method: str, id: object = 1, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


WRONG = {
    b"{": (None, -32700), b"\xff\xfe": (None, -32700), b"[" * 100_000: (None, -32700),
    b"[]": (None, -32600), b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]': (None, -32600),
    b"7": (None, -32600), b"null": (None, -32600), b"{}": (None, -32600),
    b'{"jsonrpc": "1.0", "id": 4, "method": "ping"}': (4, -32600),
    b'{"jsonrpc": "2.0", "id": null, "method": "ping"}': (None, -32600),
    b'{"jsonrpc": "2.0", "id": true, "method": "ping"}': (None, -32600),
    b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}': (None, -32600),
    b'{"jsonrpc": "2.0", "id": "a", "method": 5}': ("a", -32600),
    b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": []}': (5, -32602),
    b'{"jsonrpc": "2.0", "id": 6, "method": "resources/list"}': (6, -32601),
    b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call"}': (7, -32602),
    b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "no"}}': (8, -32602),
    b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call",'
    b' "params": {"name": "open", "arguments": []}}': (9, -32602),
    b'{"jsonrpc": "2.0", "id": 10, "method": "initialize", "params": {}}': (10, -32602),
    b'"' + b"x" * LONGEST + b'"': (None, -32600),
}  # fmt: skip


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:40].decode("utf-8", "replace"))
def test_what_is_no_request_gets_the_error_of_the_protocol_and_the_next_one_its_answer(
    line: bytes, answers: Callable[..., list[Any]]
) -> None:
    wrong, right = answers(line, request("ping", 99))
    id, code = WRONG[line]
    assert (wrong["id"], wrong["error"]["code"]) == (id, code)
    assert right == {"jsonrpc": "2.0", "id": 99, "result": {}}


def test_a_request_may_be_as_long_as_it_is_said(answers: Callable[..., list[Any]]) -> None:
    longest = json.dumps(request("ping", 1)).encode().ljust(LONGEST)
    assert [answer.get("result") for answer in answers(longest, longest + b" ")] == [{}, None]


def test_what_needs_no_answer_gets_none(answers: Callable[..., list[Any]]) -> None:
    quiet = (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
        b"", b"   \r",
    )  # fmt: skip
    assert [answer["id"] for answer in answers(*quiet, request("ping", 1))] == [1]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(version, version) for version in WITH_HANDSHAKE]
    + [("2024-11-05", WITH_HANDSHAKE[0]), ("1.0", WITH_HANDSHAKE[0])],
)
def test_a_handshake_ends_with_a_version_that_both_may_speak(
    wanted: str, given: str, answers: Callable[..., list[Any]]
) -> None:
    (answer,) = answers(request("initialize", protocolVersion=wanted, capabilities={}))
    result = answer["result"]
    assert result["protocolVersion"] == given
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"]["name"] == "assoc-ingest"
    assert "resultType" not in result


def test_a_request_that_states_its_version_needs_no_handshake(
    answers: Callable[..., list[Any]],
) -> None:
    discovered, listed, called, ping = answers(
        request("server/discover", 1, _meta=ENVELOPE),
        request("tools/list", 2, _meta=ENVELOPE),
        request("tools/call", 3, _meta=ENVELOPE, name="search", arguments={"query": "frost"}),
        request("ping", 4, _meta=ENVELOPE),
    )
    assert discovered["result"]["supportedVersions"] == list(VERSIONS)
    assert {answer["result"]["resultType"] for answer in (discovered, listed, called)} == {
        "complete"
    }
    assert listed["result"]["cacheScope"] == "private"
    assert "ttlMs" not in called["result"]
    assert ping["error"]["code"] == -32601


def test_a_version_that_nobody_knows_is_answered_with_those_that_are_spoken(
    answers: Callable[..., list[Any]],
) -> None:
    future = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    bare = {"io.modelcontextprotocol/protocolVersion": STATELESS[0]}
    unknown, incomplete = answers(
        request("tools/list", 1, _meta=future), request("tools/list", 2, _meta=bare)
    )
    assert unknown["error"]["code"] == -32022
    assert unknown["error"]["data"] == {"supported": list(VERSIONS), "requested": "2030-01-01"}
    assert incomplete["error"]["code"] == -32602


def test_what_was_cancelled_is_neither_begun_nor_answered(
    answers: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second request waits while the first one runs: until it was cancelled."""
    from threading import Event

    from assoc_ingest.mcp import server

    cancelled = Event()
    begun = []
    cancel = server._Cancelling.cancel

    def note(self: Any, id: object) -> None:
        cancel(self, id)
        cancelled.set()

    def answer(self: Protocol, request: Any) -> dict[str, object]:
        assert cancelled.wait(10)
        begun.append(request.id)
        return {}

    monkeypatch.setattr(server._Cancelling, "cancel", note)
    monkeypatch.setattr(Protocol, "answer", answer)
    cancellation = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    found = answers(
        request("ping", 1), request("ping", "two"),
        {**cancellation, "params": {"requestId": "two"}}, request("ping", 3),
    )  # fmt: skip
    assert begun == [1, 3]
    assert [answer["id"] for answer in found] == [1, 3]


ENDLESS = "with recursive r (n) as (select 1 union all select n + 1 from r) select max(n) from r"
ONE_STEP = (
    "select instr(x, substr(x, 1, 4999999) || 'b') from (select printf('%.*c', 9999999, 'a') x)"
)


@pytest.mark.slow
@pytest.mark.parametrize("query", [ENDLESS, ONE_STEP], ids=["endless", "one-step"])
def test_what_is_running_is_stopped_when_it_is_cancelled(
    query: str, database: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command(database, "--no-sync"), env=environment(tmp_path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    with process:
        for message in (
            request("ping", 0),
            request("tools/call", 1, name="sql", arguments={"query": query}),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            request("ping", 2),
        ):
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [0, 2]
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(number: signal.Signals, database: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(database), env=environment(tmp_path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    with process:
        process.stdin.write(json.dumps(request("ping")) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(number)
        assert process.wait(30) == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="of Linux only")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_statement_that_is_one_step(
    number: signal.Signals, database: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        command(database, "--no-sync"), env=environment(tmp_path),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin
    with process:
        asked = request("tools/call", 1, name="sql", arguments={"query": ONE_STEP})
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        while not (running_now := statements_below(process.pid)):
            assert process.poll() is None
        (child,) = running_now
        process.send_signal(number)
        assert process.wait(30) == {signal.SIGTERM: 143, signal.SIGINT: 130}[number]
        assert not Path(f"/proc/{child}").exists()
        assert process.stdout
        assert process.stdout.read() == ""  # it did not wait for the answer


def test_a_bug_in_a_tool_is_told_and_the_server_lives_on(
    answers: Callable[..., list[Any]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Index, "standing", lambda self: 1 / 0)
    call = request("tools/call", 1, name="search", arguments={"query": "frost"})
    broken, ping = answers(call, request("ping", 2))
    assert broken["result"]["isError"] is True
    assert broken["result"]["structuredContent"]["error"]["code"] == "internal"
    assert ping["result"] == {}

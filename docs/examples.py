"""What the program prints: help texts, and a worked example over an invented home.

The example runs the real program in an empty home directory. Everything in that home is fixed, so
the output is the same everywhere, but for the seconds that a sync took.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from assoc_ingest.cli import cli

PROGRAM = "assoc-ingest"

_WIDTH = 80
_JSON = dict[str, Any]


# -- help ----------------------------------------------------------------------------------------


def commands() -> str:
    """Return a table of the commands with what each does."""
    context = click.Context(cli, info_name=PROGRAM)
    rows = []
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        rows.append(f"| `{name}` | {command.get_short_help_str(100) if command else ''} |\n")
    return "".join(("| command | does |\n|---|---|\n", *rows))


def help_texts() -> str:
    """Return the help text of every command."""
    settings = {**cli.context_settings, "terminal_width": _WIDTH}
    context = click.Context(cli, info_name=PROGRAM, **settings)
    texts = []
    for name in cli.list_commands(context):
        if command := cli.get_command(context, name):
            text = command.get_help(click.Context(command, context, name))
            texts.append(f"```console\n$ {PROGRAM} {name} --help\n{text}\n```\n")
    return "\n".join(texts)


# -- the example ---------------------------------------------------------------------------------


def example(*lines: str) -> str:
    """Return what a terminal shows when these commands run, one after the other, at home."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve()
        write_home(home / ".claude")
        shown = "\n".join(f"$ {line}\n{_run(home, line)}" for line in lines)
    return f"```console\n{shown}```\n"


def _run(home: Path, line: str) -> str:
    arguments = shlex.split(line)[1:]
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "SYSTEMROOT")}
    done = subprocess.run(
        [sys.executable, "-m", "assoc_ingest", *arguments],
        cwd=home,
        env={
            **kept,
            "HOME": str(home),
            "USERPROFILE": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "ASSOC_INGEST_DB": str(home / "assoc.db"),
            "PYTHONPATH": str(Path(__file__).parents[1] / "ingest"),
            "COLUMNS": str(_WIDTH),
            "TZ": "UTC",
        },
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{line} failed: {done.stderr}")
    shown = (done.stdout + done.stderr).replace(str(home), "/home/ada")
    return re.sub(r"in \d+\.\d s", "in 0.1 s", shown)


# -- the home ------------------------------------------------------------------------------------


def write_home(root: Path) -> None:
    """Write a Claude Code home with two projects, two conversations and a subagent."""
    shop = _Transcript("3f1c9a52-7d04-4b8e-9c61-5a2e8f0b7d13", "/home/ada/work/shop", "2026-03-04")
    shop.says("user", "The checkout hangs under load. Is that a deadlock in the pool?", "14:02:10")
    shop.calls(
        "Agent",
        {
            "subagent_type": "Explore",
            "description": "Find who takes the pool lock",
            "prompt": "Which functions take the lock of the connection pool, in which order?",
        },
        "14:02:31",
    )
    shop.returns(
        "refund() takes the pool lock inside a row lock.",
        "14:03:40",
        {"status": "completed", "agentId": "a1b2c3d4e5f60718"},
    )
    shop.says(
        "assistant",
        "Yes. `refund()` holds a row lock while it waits for a connection, and every connection"
        " waits for that row. Take the connection first.",
        "14:03:52",
    )
    shop.says("user", "Do that, and run the tests.", "14:04:20")
    shop.calls("Bash", {"command": "pytest tests/test_refund.py -q"}, "14:05:01")
    shop.returns("2 passed in 0.31s", "14:05:03", {"stdout": "2 passed in 0.31s", "stderr": ""})
    shop.says("assistant", "Done: connection first, then the row. The tests pass.", "14:05:09")
    shop.state({"type": "custom-title", "customTitle": "Deadlock between refund and checkout"})
    shop.write(root)

    agent = _Transcript(shop.session, shop.cwd, shop.day, agent="a1b2c3d4e5f60718")
    agent.says(
        "user",
        "Which functions take the lock of the connection pool, in which order?",
        "14:02:32",
    )
    agent.calls("Grep", {"pattern": "pool.acquire", "path": "src"}, "14:02:40")
    agent.returns("src/refund.py:41\nsrc/checkout.py:17", "14:02:41")
    agent.says("assistant", "refund() takes the pool lock inside a row lock.", "14:03:38")
    agent.write(root)

    blog = _Transcript("8e27d0b4-16fa-4c93-b5d8-0c4f7a9e6621", "/home/ada/work/blog", "2026-05-19")
    blog.says("user", "Write down what we learned about locks.", "09:30:00")
    blog.calls("Read", {"file_path": "/home/ada/work/blog/drafts/locks.md"}, "09:30:08")
    blog.returns("# Locks\n\nEvery deadlock in a connection pool is one of two.", "09:30:08")
    blog.says("assistant", "The draft has the two cases already; I added our own.", "09:31:15")
    blog.write(root)


class _Transcript:
    """Lines of one conversation, each naming the one before."""

    def __init__(self, session: str, cwd: str, day: str, agent: str | None = None) -> None:
        self.session, self.cwd, self.day, self.agent = session, cwd, day, agent
        self._lines: list[_JSON] = []

    def says(self, role: str, text: str, time: str) -> None:
        """Add what a person or the agent says."""
        content: object = text if role == "user" else [{"type": "text", "text": text}]
        self._add(role, content, time)

    def calls(self, tool: str, arguments: _JSON, time: str) -> None:
        """Add a tool call."""
        block = {"type": "tool_use", "id": self._id("toolu"), "name": tool, "input": arguments}
        self._add("assistant", [block], time)

    def returns(self, text: str, time: str, result: object = None) -> None:
        """Add the result of the call before."""
        call = self._lines[-1]["message"]["content"][0]["id"]
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        self._add("user", [block], time, {"toolUseResult": result} if result else {})

    def state(self, line: _JSON) -> None:
        """Add a line that is no message."""
        self._lines.append({**line, "sessionId": self.session})

    def write(self, root: Path) -> None:
        """Write the file where the agent would."""
        folder = root / "projects" / re.sub(r"[^A-Za-z0-9]", "-", self.cwd)
        path = folder / f"{self.session}.jsonl"
        if self.agent:
            path = folder / self.session / "subagents" / f"agent-{self.agent}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in self._lines), "utf-8")

    def _add(self, role: str, content: object, time: str, more: _JSON | None = None) -> None:
        message: _JSON = {"role": role, "content": content}
        if role == "assistant":
            usage = {"input_tokens": 12, "output_tokens": 40, "cache_read_input_tokens": 9_000}
            message |= {"id": self._id("msg"), "model": "claude-opus-4-6", "usage": usage}
        line = {
            "type": role,
            "uuid": self._id("line"),
            "parentUuid": self._lines[-1]["uuid"] if self._lines else None,
            "isSidechain": self.agent is not None,
            "sessionId": self.session,
            "cwd": self.cwd,
            "version": "2.1.219",
            "gitBranch": "main",
            "timestamp": f"{self.day}T{time}.000Z",
            "message": message,
        }
        if self.agent:
            line["agentId"] = self.agent
        self._lines.append({**line, **(more or {})})

    def _id(self, kind: str) -> str:
        return f"{kind}_{(self.agent or self.session)[:8]}{len(self._lines):02}"

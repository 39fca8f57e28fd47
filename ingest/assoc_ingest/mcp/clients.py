"""What to write into the configuration of a client so that it starts the server."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence

NAME = "past-conversations"
"""What the server is called in a client, and before the names of its tools."""

CLIENTS = {
    "claude": "a command for Claude Code",
    "json": "mcpServers, as most clients take it: .mcp.json, .cursor/mcp.json ...",
    "codex": "~/.codex/config.toml of Codex",
    "vscode": ".vscode/mcp.json of VS Code",
}
"""Clients by the form in which they are told, and where that belongs."""


def program() -> list[str]:
    """Return the words that start this program from anywhere."""
    found = shutil.which("assoc-ingest")
    return [found] if found else [sys.executable, "-m", "assoc_ingest"]


def lines(client: str, arguments: Sequence[str]) -> str:
    """Return the lines for a client; `arguments` are those of the server, from `mcp` on."""
    command, *before = program()
    words = [*before, *arguments]
    if client == "claude":
        import shlex

        return shlex.join(["claude", "mcp", "add", NAME, "--", command, *words]) + "\n"
    if client == "codex":
        shown = ", ".join(map(_toml, words))
        return f"[mcp_servers.{NAME}]\ncommand = {_toml(command)}\nargs = [{shown}]\n"
    server = {"command": command, "args": words}
    if client == "vscode":
        return _json({"servers": {NAME: {"type": "stdio", **server}}})
    return _json({"mcpServers": {NAME: server}})


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _toml(text: str) -> str:
    """Return a string of TOML: what JSON escapes is escaped alike there, but for DEL."""
    return json.dumps(text).replace("\x7f", "\\u007f")

"""What a client needs: its configuration, and the skill that teaches an agent when to ask."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ..errors import DatabaseIOError, UsageError
from ..terminal import to_copy

# ------------------------------------------------------------------------------------------------
# The skill: a short file that teaches an agent when and how to ask.


NAME = "past-conversations"
"""Its name, and that of its directory."""

_FILE = "SKILL.md"
_FIRST = f"---\nname: {NAME}\n"
"""How a file of ours begins, of whichever version."""


def text() -> str:
    """Return the file."""
    return (files(__package__) / "skill.md").read_text("utf-8")


def install(directory: Path, *, is_forced: bool = False) -> tuple[Path, bool]:
    """Write the file below a directory of skills; return where it is, and whether it was changed.

    The directory is made where it is not there yet. Raises UsageError where there is a file that
    is not this one, unless `is_forced`; a link is never followed.
    """
    target = directory / NAME / _FILE
    try:
        for place in (target.parent, target):
            if place.is_symlink():
                raise UsageError(f"{place} is a symbolic link. Remove it, or choose another place.")
        if target.exists():
            before = target.read_bytes()
            if before == text().encode():
                return target, False
            if not before.startswith(_FIRST.encode()) and not is_forced:
                raise UsageError(
                    f"{target} is another file. To replace it: assoc-ingest skill install --force"
                )
        if directory.exists() and not directory.is_dir():
            raise UsageError(f"{directory} is not a directory. Give another: --to DIR")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text(), "utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        raise DatabaseIOError(
            f"{target} cannot be written: {why}. Give another: --to DIR"
        ) from None
    return target, True


# ------------------------------------------------------------------------------------------------
# What to write into the configuration of a client so that it starts the server.


CLIENTS = {
    "claude": "a command for Claude Code",
    "json": "mcpServers, as most clients take it: .mcp.json, .cursor/mcp.json ...",
    "codex": "~/.codex/config.toml of Codex",
    "vscode": ".vscode/mcp.json of VS Code",
}
"""The forms of configuration, and the file that each belongs in."""


def program() -> list[str]:
    """Return the words that start this program from anywhere."""
    found = shutil.which("assoc-ingest")
    return [found] if found else [sys.executable, "-m", "assoc_ingest"]


def lines(client: str, arguments: Sequence[str]) -> str:
    """Return the lines for a client; `arguments` are those of the server, from `mcp` on."""
    command, *before = program()
    words = [*before, *arguments]
    if client == "claude":
        return to_copy("claude", "mcp", "add", NAME, "--", command, *words) + "\n"
    if client == "codex":
        shown = ", ".join(map(_toml, words))
        return f"[mcp_servers.{NAME}]\ncommand = {_toml(command)}\nargs = [{shown}]\n"
    if client == "vscode":
        server = {"type": "stdio", "command": command, "args": words}
        return as_json({"servers": {NAME: server}})
    return as_json(servers(arguments))


def servers(arguments: Sequence[str]) -> dict[str, object]:
    """Return the server as most clients name it."""
    command, *before = program()
    return {"mcpServers": {NAME: {"command": command, "args": [*before, *arguments]}}}


def as_json(value: object) -> str:
    return json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n"


def _toml(text: str) -> str:
    """Return a string of TOML: what JSON escapes is escaped alike there, but for DEL."""
    return json.dumps(text).replace("\x7f", "\\u007f")

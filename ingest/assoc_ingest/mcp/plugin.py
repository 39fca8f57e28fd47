"""A plugin of an agent: its hooks, the server and the skill, as files of one directory.

What each agent takes is in its documents, and was tried with the agent itself:

- Claude Code 2.1: https://code.claude.com/docs/en/plugins-reference; `claude plugin validate`
- Codex 0.171: https://developers.openai.com/codex/plugins/build; a plugin lies below the directory
  that lists it
- Gemini CLI 0.61: docs/extensions/reference.md of its repository; `gemini extensions validate`
- Copilot CLI 1.0: https://docs.github.com/en/copilot/reference/copilot-cli-reference/cli-plugin-reference

A hook ends with 0 even if this program was removed, or is an older one without the command: agents
take 2, the code of wrong usage, for the order to stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import __version__
from ..errors import DatabaseIOError, UsageError
from ..terminal import to_copy
from .setup import NAME, as_json, program, servers, text

_ABOUT = "Past conversations with coding agents: hooks that remember, a server and a skill."
_SECONDS, _SYNC_SECONDS = 5, 10
"""How long an agent waits for an answer, and for what is new to be read."""

_AUTHOR = {"name": "assoc-ingest"}
_MARKETPLACE = {
    "name": NAME,
    "description": _ABOUT,
    "owner": _AUTHOR,
    "plugins": [{"name": NAME, "source": "./", "description": _ABOUT}],
}
"""What lists the plugin: an agent installs one only from a list."""

Object = dict[str, object]


def files(agent: str, options: Sequence[str]) -> dict[str, str]:
    """Return the texts of a plugin's files by their paths.

    `options` are those with which this program finds its database.
    """
    made = {"claude": _claude, "codex": _codex, "gemini": _gemini, "copilot": _copilot}[agent]
    return {path: as_json(value) for path, value in made(options).items()} | {
        f"{'plugins/' + NAME + '/' if agent == 'codex' else ''}skills/{NAME}/SKILL.md": text()
    }


def how_to_use(agent: str, directory: Path) -> str:
    """Return the command that makes an agent use its plugin."""
    place = to_copy(str(directory.absolute()))
    if agent == "gemini":
        return f"gemini extensions install {place}"
    add = "add" if agent == "codex" else "install"
    return f"{agent} plugin marketplace add {place} && {agent} plugin {add} {NAME}@{NAME}"


def _claude(options: Sequence[str]) -> dict[str, object]:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact", "SessionEnd")
    return {
        ".claude-plugin/plugin.json": {**_manifest(), "author": _AUTHOR},
        ".claude-plugin/marketplace.json": _MARKETPLACE,
        "hooks/hooks.json": _hooks(events, options),
        ".mcp.json": servers(["mcp", *options]),
    }


def _codex(options: Sequence[str]) -> dict[str, object]:
    inner = f"plugins/{NAME}"
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PreCompact")
    listed = {
        "name": NAME,
        "source": {"source": "local", "path": f"./{inner}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    paths = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    return {
        ".agents/plugins/marketplace.json": {"name": NAME, "plugins": [listed]},
        f"{inner}/.codex-plugin/plugin.json": {**_manifest(), **paths},
        f"{inner}/hooks/hooks.json": _hooks(events, options),
        f"{inner}/.mcp.json": servers(["mcp", *options]),
    }


def _gemini(options: Sequence[str]) -> dict[str, object]:
    events = ("SessionStart", "BeforeAgent", "PreCompress", "SessionEnd")
    return {
        "gemini-extension.json": {**_manifest(), **servers(["mcp", *options])},
        "hooks/hooks.json": _hooks(events, options, second=1000),
    }


def _copilot(options: Sequence[str]) -> dict[str, object]:
    # How an event is spelled decides how its input is. Only the small letter is documented to take
    # a context; only with the capital one does the input name the event.
    events = ("sessionStart", "PreCompact", "SessionEnd")
    hooks = {event: [_command(event, options, "timeoutSec", 1)] for event in events}
    paths = {"skills": "skills/", "mcpServers": ".mcp.json", "hooks": "hooks.json"}
    return {
        "plugin.json": {**_manifest(), **paths},
        ".github/plugin/marketplace.json": _MARKETPLACE,
        "hooks.json": {"version": 1, "hooks": hooks},
        ".mcp.json": servers(["mcp", *options]),
    }


def _manifest() -> Object:
    return {"name": NAME, "version": __version__, "description": _ABOUT}


_MOMENTS = {
    "SessionStart": "session-start", "sessionStart": "session-start", "PreToolUse": "tool",
    "UserPromptSubmit": "prompt", "BeforeAgent": "prompt",
}  # fmt: skip
"""The moment that an event is; the others are before something ends."""

_CHANGING = "Bash|Edit|MultiEdit|Write|NotebookEdit|apply_patch"
"""The tools that run a command or edit a file."""


def _hooks(events: Sequence[str], options: Sequence[str], second: int = 1) -> Object:
    """Return hooks in the form that began with Claude Code; a second is so many of its units."""
    groups = {}
    for event in events:
        matcher = {"matcher": _CHANGING} if event == "PreToolUse" else {}
        groups[event] = [{**matcher, "hooks": [_command(event, options, "timeout", second)]}]
    return {"hooks": groups}


def _command(event: str, options: Sequence[str], limit: str, second: int) -> Object:
    hook = _MOMENTS.get(event, "compact")
    words = to_copy(*program(), "recall", "--hook", hook, *options)
    seconds = _SYNC_SECONDS if hook == "compact" else _SECONDS
    return {"type": "command", "command": f"{words} || exit 0", limit: seconds * second}


def install(directory: Path, contents: Mapping[str, str], *, is_forced: bool = False) -> list[Path]:
    """Write files below a directory, which is made if it is not there; return those that changed.

    Raises UsageError, before anything is written, if a file is there and says something else,
    unless `is_forced`. A link is never followed.
    """
    targets = {directory / path: content.encode() for path, content in contents.items()}
    try:
        for target in targets:
            inner = [place for place in target.parents if directory in place.parents]
            for place in (*inner, target):
                if place.is_symlink():
                    raise UsageError(f"{place} is a symbolic link. Give another: --to DIR")
        changed = [
            target
            for target, content in targets.items()
            if not target.exists() or target.read_bytes() != content
        ]
        others = [target for target in changed if target.exists()]
        if others and not is_forced:
            raise UsageError(
                f"{others[0]} is another file, or of another version. To replace it: --force"
            )
        for target in changed:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(targets[target])
    except OSError as error:
        why = error.strerror or str(error)
        raise DatabaseIOError(
            f"{error.filename or directory} cannot be written: {why}. Give another: --to DIR"
        ) from None
    return changed

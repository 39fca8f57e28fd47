"""What docs/agents.md shows: the contract of the tools, and calls that an agent could make.

The calls go to a real server over the demonstration homes, so that the page cannot say otherwise.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from assoc_ingest.mcp.server import all_tools
from assoc_ingest.mcp.tool import BOUNDS, FRAME
from docs.examples import at_home

_SEQUENCE: tuple[tuple[str, dict[str, object]], ...] = (
    ("recent", {"cwd": "/srv/fernhill", "limit": 1}),
    ("search", {"query": "frost kale", "limit": 1}),
    ("open", {"ref": "5e1f0c9a:8", "before": 1, "after": 0}),
    ("sql", {"query": "select kind, count(*) n from messages group by 1 order by 2 desc limit 3"}),
)  # fmt: skip


def contract() -> str:
    """Return the arguments and the fields of every tool."""
    lines = []
    for tool in all_tools():
        lines += [
            f"### `{tool.name}`",
            "",
            tool.description,
            "",
            *_arguments(tool.properties, tool.required),
        ]
        fields = {name: schema for name, schema in tool.fields.items() if name != "items"}
        items: Any = tool.fields["items"]
        lines += ["", f"Items: {items['description']}"]
        if "properties" in items["items"]:  # the columns of a report are those of its query
            lines += ["", "| field of an item | meaning |", "|---|---|"]
            lines += _rows(items["items"]["properties"])
        if fields:
            lines += ["", "| beside the items | meaning |", "|---|---|", *_rows(fields)]
        lines.append("")
    return "\n".join(lines) + "\n"


def frame() -> str:
    """Return what every tool takes, and what every answer has."""
    arguments = ["| argument of every tool | meaning |", "|---|---|", *_rows(BOUNDS), ""]
    return (
        "\n".join([*arguments, "| field of every answer | meaning |", "|---|---|", *_rows(FRAME)])
        + "\n"
    )


def conversation() -> str:
    """Return calls and the text of their answers."""
    requests = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call",
         "params": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(_SEQUENCE)
    ]  # fmt: skip
    answers = _asked(requests)
    shown = []
    for (name, arguments), answer in zip(_SEQUENCE, answers, strict=True):
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
        text = answer["result"]["content"][0]["text"]
        shown.append(f"```text\n{name}({given})\n\n{_fixed(text)}\n```\n")
    return "\n".join(shown)


def answer() -> str:
    """Return the object of one answer, whole."""
    arguments = {"query": "frost kale", "limit": 1, "kinds": ["queued_prompt"]}
    params = {"name": "search", "arguments": arguments}
    request: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    (found,) = _asked([{**request, "params": params}], "--structured")
    text = json.dumps(found["result"]["structuredContent"], indent=1, ensure_ascii=False)
    return f"```json\n{_fixed(text)}\n```\n"


_NEW = {"transcript_path": "/home/ada/.claude/projects/-srv-fernhill/7d20b1c4.jsonl"}
_MOMENTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("session-start", {"hook_event_name": "SessionStart", "source": "startup"}),
    ("prompt", {"hook_event_name": "UserPromptSubmit",
                "prompt": "Do bean seedlings die below zero?", **_NEW}),
    ("tool", {"hook_event_name": "PreToolUse", "tool_name": "Edit",
              "tool_input": {"file_path": "calendar.py"}, **_NEW}),
    ("tool", {"hook_event_name": "PreToolUse", "tool_name": "Bash",
              "tool_input": {"command": "python -m pytest -q"}, **_NEW}),
    ("session-start", {"hook_event_name": "SessionStart", "source": "compact",
                       "session_id": "5e1f0c9a-3b72-4d18-9c44-70a2d6b8e301"}),
)  # fmt: skip


def moments() -> str:
    """Return what an agent writes to its hooks, and what its model is told."""
    shown = []
    with at_home() as (home, environment):
        for hook, about in _MOMENTS:
            event = json.dumps({**about, "cwd": "/srv/fernhill"})
            done = subprocess.run(
                [sys.executable, "-m", "assoc_ingest", "recall", "--hook", hook],
                input=event, cwd=home, env=environment, capture_output=True, text=True, check=True,
            )  # fmt: skip
            text = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
            shown.append(f"```text\nrecall --hook {hook} < {event}\n\n{text}\n```\n")
    return "\n".join(shown)


def _asked(requests: list[dict[str, object]], *options: str) -> list[Any]:
    with at_home() as (home, environment):
        done = subprocess.run(
            [sys.executable, "-m", "assoc_ingest", "mcp", *options],
            input="".join(f"{json.dumps(request)}\n" for request in requests),
            cwd=home, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [
            json.loads(line.replace(str(home), "/home/ada"))
            for line in done.stdout.split("\n")
            if line
        ]


def _fixed(text: str) -> str:
    """Return what is shown without what is different each time."""
    text = re.sub(r'(?<="next": ")\w+|(?<=cursor )\w{12,}', "MS4yMTJkNGUzNQ", text)
    return re.sub(r'(?<="synced_at": ")[^"]+', "2026-03-06T08:00:00.000Z", text)


def _arguments(properties: dict[str, Any], required: tuple[str, ...]) -> list[str]:
    named = {f"{name}{' (required)' * (name in required)}": one for name, one in properties.items()}
    return ["| argument | meaning |", "|---|---|", *_rows(named)]


def _rows(properties: dict[str, Any]) -> list[str]:
    rows = []
    for name, schema in properties.items():
        kind = schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])
        bounds = ""
        if "minimum" in schema:
            bounds = f" {schema['minimum']:,} to {schema['maximum']:,}"
        word, _, rest = name.partition(" ")
        meaning = str(schema.get("description", "")).replace("|", "\\|")
        rows.append(
            f"| `{word}`{' ' * bool(rest)}{rest} | {kind}{bounds}{'. ' * bool(meaning)}{meaning} |"
        )
    return rows

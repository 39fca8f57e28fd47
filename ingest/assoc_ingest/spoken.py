"""What a stored text says to a reader, without the tags in which the agent wrapped it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_outer_tag = re.compile(r"<([a-z][\w-]*)(?:\s[^<>]*)?>(.*?)(?:</\1>|\Z)\s*", re.DOTALL)
_sender = re.compile(
    r'<(?:teammate|cross-session)-message\s[^<>]*?(?:teammate_id|from-name|from)="([^"]*)"'
)

PEOPLE = frozenset({"prompt", "command", "bash_input", "memory_input", "queued_prompt"})
"""Kinds of what a person typed."""

NOISE = {"meta": "injected text", "attachment": "attachment", "hook": "hook"}
"""Kinds of what the program injects: what follows each other of these is shown as one line."""

COMPACTED = "Conversation compacted"
"""How the notice begins behind which an agent knows only a summary of what was said before."""


@dataclass(frozen=True, slots=True)
class Aside:
    """How a message is shown that is neither prompt nor answer nor call."""

    head: str
    lines: int
    colour: str | None = None


_ASIDES = {
    "thinking": Aside("∴ ", 4),
    "compact_summary": Aside("≡ ", 8),
    "task_notification": Aside("task: ", 3),
    "agent_message": Aside("✉ ", 8, "cyan"),
    "command_output": Aside("", 6),
    "bash_output": Aside("", 6),
    "tool_result": Aside("result: ", 4),
    "interrupt": Aside("■ ", 2, "yellow"),
    "error": Aside("✗ ", 8, "red"),
    "image": Aside("", 1),
    "system": Aside("· ", 3),
}


def aside(kind: str) -> Aside:
    """Return how a message of this kind is shown; a kind of tomorrow is shown like a notice."""
    return _ASIDES.get(kind, Aside(f"{kind}: ", 3))


def typed(kind: str, text: str) -> str:
    """Return what a person typed: `/command arguments`, `! command`, `# memory`, or the prompt."""
    if kind == "command":
        name, arguments = tagged(text, "command-name"), tagged(text, "command-args")
        return f"{name or tagged(text, 'command-message') or text} {arguments or ''}".strip()
    if kind == "bash_input":
        return f"! {untagged(text)}"
    if kind == "memory_input":
        return f"# {untagged(text)}"
    return text


def heard(kind: str, text: str) -> str:
    """Return what the program or another agent says, in few words where it is wrapped."""
    if kind == "task_notification":
        summary, status = tagged(text, "summary"), tagged(text, "status")
        return summary or status or untagged(text)
    if kind == "agent_message":
        sender = _sender.search(text)
        body = untagged(text)
        return f"{sender[1]}: {body}" if sender else body
    if kind in ("command_output", "bash_output"):
        return untagged(text)
    return text


def tagged(text: str, tag: str) -> str | None:
    """Return what stands in the first `<tag>`, None if there is nothing."""
    found = re.search(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL)
    return found[1] or None if found else None


def untagged(text: str) -> str:
    """Return the text without the tags around its parts: `<stdout>a</stdout><stderr/>` is `a`."""
    parts = [match[2].strip("\n") for match in _outer_tag.finditer(text.strip())]
    inner = "\n".join(part for part in parts if part.strip())
    return inner if parts else text

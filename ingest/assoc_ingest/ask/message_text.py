"""Stored text for a reader, without the tags in which the agent wrapped it."""

from __future__ import annotations

from dataclasses import dataclass

from .. import tags
from ..tags import inside
from . import terms

PEOPLE = frozenset({"prompt", "command", "bash_input", "memory_input", "queued_prompt"})
"""Kinds of what a person typed."""

NOISE = {"meta": "injected text", "attachment": "attachment", "hook": "hook"}
"""Kinds of what the program injects: what follows each other of these is shown as one line."""

COMPACTED = "Conversation compacted"
"""How the notice begins behind which an agent knows only a summary of what was said before."""

BORDERS = ("the conversation continues", "taken back from here")
"""The lines behind and before messages that are no longer part of the conversation."""


@dataclass(frozen=True, slots=True)
class Aside:
    """How a message is shown that is neither prompt nor answer nor call."""

    head: str
    lines: int
    colour: str | None = None


_LETTERS = ("teammate-message", "cross-session-message")
_SENDERS = ("teammate_id", "from-name", "from")

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
        name, arguments = inside(text, "command-name"), inside(text, "command-args")
        return f"{name or inside(text, 'command-message') or text} {arguments or ''}".strip()
    if kind == "bash_input":
        return f"! {untagged(text)}"
    if kind == "memory_input":
        return f"# {untagged(text)}"
    return text


def heard(kind: str, text: str) -> str:
    """Return what the program or another agent says, in few words where it is wrapped."""
    if kind == "task_notification":
        summary, status = inside(text, "summary"), inside(text, "status")
        return summary or status or untagged(text)
    if kind == "agent_message":
        sender, body = _sender(text), untagged(text)
        return f"{sender}: {body}" if sender is not None else body
    if kind in ("command_output", "bash_output"):
        return untagged(text)
    return text


def whole(text: str, shown: str) -> str:
    """Return what is shown of a stored text if that leaves out no word but tags, else the text."""
    words = set(_words(tags.without(text)))
    for tag in tags.openings(text):
        words.update(*map(_words, (tag.attributes or {}).values()))
    return shown if words <= set(_words(shown)) else text


def _words(text: str) -> list[str]:
    found: list[str] = terms.TOKEN.findall(text)
    return found


def untagged(text: str) -> str:
    """Return the text without the tags around its parts: `<stdout>a</stdout><stderr/>` is `a`."""
    parts = [element.text.strip("\n") for element in tags.outermost(text.strip())]
    inner = "\n".join(part for part in parts if part.strip())
    return inner if parts else text


def _sender(text: str) -> str | None:
    """Return who sent a message that is wrapped as one from an agent."""
    for tag in tags.openings(text):
        if tag.name in _LETTERS:
            for key, value in (tag.attributes or {}).items():
                if key in _SENDERS:
                    return value
    return None

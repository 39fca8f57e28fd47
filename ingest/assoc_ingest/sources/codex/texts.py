"""Tells what a person typed from what Codex adds to it, in the messages of the role `user`.

Newer versions say of each block of a message what it is (`content_item_kinds`: `user.*` was typed,
`agents_md.*` and `environments.*` was added). Without that, the beginning of the text decides. What
is added ends at its closing tag, and a prompt may follow in the same block. An editor adds its
context as Markdown, with the prompt below the heading `_REQUEST`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...fields import mapping, string

Said = tuple[str, str]
"""The kind of a message, and its text."""

# How a stretch begins and ends, and its kind.
_STRETCHES = (
    ("# AGENTS.md instructions", "</INSTRUCTIONS>", "meta"),
    ("<user_instructions>", "</user_instructions>", "meta"),
    ("<INSTRUCTIONS>", "</INSTRUCTIONS>", "meta"),
    ("<environment_context>", "</environment_context>", "meta"),
    ("<recommended_plugins>", "</recommended_plugins>", "meta"),
    ("<skill>", "</skill>", "meta"),
    ("<goal_context>", "</goal_context>", "meta"),
    ("<codex_internal_context", "</codex_internal_context>", "meta"),
    ("<hook_prompt", "</hook_prompt>", "meta"),
    ("<user_shell_command>", "</user_shell_command>", "bash_input"),
    ("<turn_aborted>", "</turn_aborted>", "interrupt"),
    ("<subagent_notification>", "</subagent_notification>", "agent_message"),
)
_STARTS = tuple(start for start, _, _ in _STRETCHES)
_EDITOR = "# Context from my IDE setup"
_REQUEST = "## My request for Codex:"

_blanks = re.compile(r"\s*+")


def said_in(text: str, kind: str | None = None) -> Iterator[Said]:
    """Yield what a block of a user message says, in order.

    `kind` is what the message itself says of the block, None if it says nothing.
    """
    if kind is not None and kind.startswith(("agents_md", "environments")):
        yield "meta", text
        return
    start = _after_blanks(text, 0)
    while start < len(text) and text.startswith(_STARTS, start):
        end, kind_of_stretch = _stretch(text, start)
        yield from _said(kind_of_stretch, text[start:end])
        start = _after_blanks(text, end)
    request = text.find(_REQUEST, start) if text.startswith(_EDITOR, start) else -1
    if request >= 0:
        yield "meta", text[start:request]
        start = _after_blanks(text, request + len(_REQUEST))
    if start < len(text):
        yield "prompt", text[start:]


def kinds_of(message: dict[str, object], count: int) -> list[str | None]:
    """Return what a message says of each of its `count` blocks."""
    passed = mapping(message.get("internal_chat_message_metadata_passthrough"))
    stated = passed.get("content_item_kinds")
    kinds = [string(kind) for kind in stated] if isinstance(stated, list) else []
    return (kinds + [None] * count)[:count]


def _stretch(text: str, start: int) -> tuple[int, str]:
    """Return the end of the stretch that begins at `start`, and its kind."""
    ending, kind = next(
        (ending, kind)
        for beginning, ending, kind in _STRETCHES
        if text.startswith(beginning, start)
    )
    end = text.find(ending, start)
    return (len(text) if end < 0 else end + len(ending)), kind


def _said(kind: str, text: str) -> Iterator[Said]:
    """Yield a stretch; a command that the person ran has its output with it."""
    if kind != "bash_input":
        yield kind, text
        return
    yield kind, inside(text, "command") or text
    output = inside(text, "result")
    if output:
        yield "bash_output", output


def inside(text: str, tag: str) -> str:
    """Return the text in the first element of this name, without blanks around it."""
    start = text.find(f"<{tag}>")
    end = text.find(f"</{tag}>", start)
    return "" if start < 0 else text[start + len(tag) + 2 : end if end >= 0 else None].strip()


def _after_blanks(text: str, start: int) -> int:
    found = _blanks.match(text, start)
    return found.end() if found else start

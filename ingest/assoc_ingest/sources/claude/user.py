"""Classifies user lines of Claude Code, which are prompts, commands, tool output and much else.

The order of the tests follows the format: the kind follows from the beginning of a block. Blocks
that an editor adds to a prompt (the open file, the selection) are skipped.
"""

from __future__ import annotations

from ... import tags

# How the text of a whole line begins, and its kind.
_PREFIXES = (
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<local-command-stdout>", "command_output"),
    ("<local-command-stderr>", "command_output"),
    ("<bash-input>", "bash_input"),
    ("<bash-stdout>", "bash_output"),
    ("<bash-stderr>", "bash_output"),
    ("<task-notification>", "task_notification"),
    ("<agent-notification>", "task_notification"),
    ("<ci-monitor-event>", "task_notification"),
    ("<teammate-message", "agent_message"),
    ("<cross-session-message", "agent_message"),
    ("<user-memory-input>", "memory_input"),
    ("[Request interrupted by user", "interrupt"),
)
_TYPED_TAGS = ("bash-input", "command-message", "command-name", "user-memory-input")
_STARTS = tuple(prefix for prefix, _ in _PREFIXES)
_NOTICES = tuple(
    prefix for prefix, kind in _PREFIXES if kind in ("task_notification", "agent_message")
)

_BESIDE = ("ide_opened_file", "ide_selection", "system-reminder")


def is_beside(text: str) -> bool:
    """Does the block contain only what an editor or the program added to the prompt?"""
    return text.lstrip()[:1] == "<" and tags.is_only(text, _BESIDE)


def is_notice(text: str) -> bool:
    """Is the text from the queue a notice of the program?

    Some are known by how they begin; in 2.1.16, a line with the path of a transcript follows the
    last tag. Others are wrapped in a tag with a hyphen in its name; the names change from version
    to version. A person can type a tag, but hardly such a tag around the whole text.
    """
    body = text.strip()
    if not body.startswith("<"):
        return False
    if body.startswith(_NOTICES):
        return True
    name = body[1 : body.find(">")].partition(" ")[0]
    return "-" in name and name not in _TYPED_TAGS and body.endswith(f"</{name}>")


def kind_of(text: str, *, is_sidechain: bool, origin: str | None) -> str:
    """Return the kind of a user line; `text` is its first block that is not skipped."""
    start = text.lstrip()
    if start.startswith(_STARTS):
        return next(kind for prefix, kind in _PREFIXES if start.startswith(prefix))
    if origin is not None and origin != "human":
        return "meta"
    return "agent_prompt" if is_sidechain else "prompt"

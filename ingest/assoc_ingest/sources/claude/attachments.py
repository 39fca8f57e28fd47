"""The text of attachments: what Claude Code added to the context, of which kind, and where.

`_LEAVES` says for each kind that is known where its text stands: keys from the attachment on, lists
on the way are walked through; a path that ends in `*` means all text below it. A kind without a
path has no text of its own (a mode, a count, a path), or its text is stored elsewhere (the plan).
Of any other kind, all strings up to a length are its text, but not ids, hashes and signatures.
`rendered` repeats the text as the model saw it, and counts only where there is no other.
`prompt_snapshot` has the system prompt and the schemas of all tools; nobody searches for that, so
only the archive has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...fields import leaves, mapping, obvious_text, string
from ...records import InboxItem
from ...when import utc
from ..jsonl import JSONObject
from .teams import item_of

_LEAVES = {
    "already_read_file": ("content", "content.file.content"),
    "agent_listing_delta": ("addedLines",),
    "async_hook_response": (
        *("stdout", "stderr", "response.systemMessage", "response.additionalContext"),
        "response.hookSpecificOutput.additionalContext",
    ),
    "critical_system_reminder": ("content",),
    "current_session_memory": ("content",),
    "diagnostics": ("files.diagnostics.message",),
    "directory": ("content",),
    "edited_text_file": ("snippet",),
    "file": ("content", "content.file.content"),
    "goal_status": ("content", "condition", "reason"),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError.*", "stdout", "stderr"),
    "hook_error_during_execution": ("content",),
    "hook_non_blocking_error": ("content", "stdout", "stderr"),
    "hook_stopped_continuation": ("message",),
    "hook_success": ("content", "stdout", "stderr"),
    "hook_system_message": ("content",),
    "instructions": ("files.content", "content"),
    "invoked_skills": ("skills.content",),
    "mcp_instructions_delta": ("addedBlocks",),
    "mcp_resource": ("content.contents.text",),
    "nested_memory": ("content.content",),
    "poll_events": ("envelopes.*", "events.*"),
    "queued_command": ("prompt",),
    "read_truncation_notice": ("content",),
    "relevant_memories": ("memories.content",),
    "selected_lines_in_ide": ("content",),
    "skill_discovery": ("skills.description",),
    "skill_listing": ("content",),
    "structured_output": ("data.*",),
    "task_reminder": ("content",),
    "task_status": ("description", "deltaSummary", "shell.command"),
    "teammate_mailbox": ("messages.text",),
    "todo_reminder": ("content", "content.content"),
    **dict.fromkeys(
        (
            *("agent_mention", "auto_mode", "auto_mode_exit", "bagel_console", "budget_usd"),
            *("command_permissions", "compact_file_reference", "compaction_reminder"),
            *("companion_intro", "context_efficiency", "date_change", "deferred_tools_delta"),
            *("dynamic_skill", "edited_image_file", "hook_cancelled", "hook_permission_decision"),
            *("max_turns_reached", "opened_file_in_ide", "output_style", "output_token_usage"),
            *("pdf_reference", "plan_file_reference", "plan_mode", "plan_mode_exit"),
            *("plan_mode_reentry", "prompt_snapshot", "slash_command_metadata", "team_context"),
            *("teammate_shutdown_batch", "token_usage", "total_tokens_reminder"),
            *("ultra_effort_enter", "ultrathink_effort", "verify_plan_reminder"),
            *("workflow_keyword_request",),
        ),
        (),
    ),
}

KINDS = frozenset(_LEAVES)
"""The kinds whose text is known to stand somewhere, or nowhere."""

_NOT_SEARCHED = "prompt_snapshot"
_PATHS = {kind: tuple(tuple(path.split(".")) for path in paths) for kind, paths in _LEAVES.items()}
_MAX_DEPTH = 8


def text_of(kind: str, attachment: JSONObject) -> str:
    """Return the text of an attachment, each part of it once."""
    if kind == _NOT_SEARCHED:
        return ""
    if kind in _PATHS:
        parts = [text for path in _PATHS[kind] for text in _at(attachment, path, _MAX_DEPTH)]
        return "\n".join(dict.fromkeys(parts)) or obvious_text(attachment)
    own = {key: value for key, value in attachment.items() if key != "rendered"}
    parts = list(leaves(own)) or list(leaves(attachment.get("rendered")))
    return "\n".join(dict.fromkeys(parts))


def _at(value: object, path: tuple[str, ...], depth: int) -> Iterator[str]:
    """Yield the strings at a path."""
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _at(item, path, depth - 1)
    elif path == ("*",):
        yield from leaves(value)
    elif not path:
        if isinstance(value, str) and value:
            yield value
    elif isinstance(value, dict):
        yield from _at(value.get(path[0]), path[1:], depth - 1)


def mail_in(attachment: JSONObject, moment: str | None) -> Iterator[InboxItem]:
    """Yield the messages from other agents in a `teammate_mailbox`."""
    messages = attachment.get("messages")
    for item in messages if isinstance(messages, list) else ():
        message = mapping(item)
        text = string(message.get("text"))
        if text is not None:
            sent_at = utc(message.get("timestamp")) or moment
            yield item_of(text, string(message.get("from")), None, sent_at)._replace(
                summary=string(message.get("summary")), color=string(message.get("color"))
            )

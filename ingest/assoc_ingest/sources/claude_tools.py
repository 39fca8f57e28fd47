"""Tool calls of Claude Code: what a call was applied to, what its result says beside its text.

A result stands twice on a line: as a `tool_result` block, which is what the model saw, and as
`toolUseResult`, a structured copy that only enriches it (duration, exit code, ids of agents).
Agent files before 2.1.200 mostly lack the copy, so nothing here may depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..model import AgentLink, ToolCall, WorkflowLink
from .fields import mapping, obvious_text, placeholder, string

Position = tuple[int, int]

# The inputs that say what a call was about, the most telling first.
_TARGETS = (
    "file_path", "notebook_path", "command", "pattern", "url", "query", "path", "skill",
    "subject", "description", "recipient", "to", "prompt", "taskId", "task_id",
)  # fmt: skip
_MAX_TARGET = 300

BY_META, BY_RESULT, BY_PROGRESS, BY_RESULT_TEXT, BY_NOTIFICATION = 1, 2, 3, 4, 5
"""How a call and its subagent were found to belong together; the smaller is trusted more."""

_exit_code = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b").match
_agent_id = re.compile(r"^agentId: ([\w-]{1,200})", re.MULTILINE | re.ASCII).search
_workflow_task = re.compile(r"\bTask ID: ([\w-]{1,200})", re.ASCII).search
_saved_to = re.compile(r"Full output saved to: (.+)").search


class Call(NamedTuple):
    """The calling half of a tool call."""

    name: str | None
    target: str | None
    timestamp: str | None
    position: Position
    length: int


class Result(NamedTuple):
    """The answering half of a tool call."""

    is_error: bool
    timestamp: str | None
    stated_ms: int | None
    exit_code: int | None
    output_file: str | None
    position: Position
    length: int


def target(arguments: dict[str, object]) -> str | None:
    """Return what a call is about, on one line, or None."""
    for key in _TARGETS:
        value = arguments.get(key)
        if value and isinstance(value, str):
            return " ".join(value[: 4 * _MAX_TARGET].split())[:_MAX_TARGET]
    return None


def result_text(content: object) -> str:
    """Return the text of a `tool_result`: strings as they are, images as placeholders."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return obvious_text(content)
    return "\n".join(text for text in map(_part_text, content) if text)


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    block = mapping(part)
    kind = block.get("type")
    if kind in ("image", "document"):
        return placeholder(block)
    if kind == "tool_reference":
        return f"[{block.get('tool_name')}]"
    return string(block.get("text")) or obvious_text(block)


def result(
    block: dict[str, object], text: str, extra: dict[str, object], timestamp: str | None,
    position: Position, length: int,
) -> Result:  # fmt: skip
    """Return the answering half: the block's own words first, `toolUseResult` beside them."""
    is_error = block.get("is_error") is True or extra.get("interrupted") is True
    code = _exit_code(text) if is_error else None
    stated = extra.get("totalDurationMs", extra.get("durationMs"))
    return Result(
        is_error,
        timestamp,
        round(stated) if _is_duration(stated) else None,  # type: ignore[call-overload]
        int(code[1]) if code else None,
        _output_file(text, extra),
        position,
        length,
    )


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12


def _output_file(text: str, extra: dict[str, object]) -> str | None:
    """Return the name under tool-results/ of an output that was too large for the line.

    The path is that of the machine that wrote it, so only its last component means anything.
    """
    path = string(extra.get("persistedOutputPath"))
    if path is None and text.startswith("<persisted-output>"):
        found = _saved_to(text, 0, 4096)
        path = found[1] if found else None
    return re.split(r"[/\\]", path.strip())[-1] or None if path else None


def joined(tool_use_id: str | None, call: Call | None, answer: Result | None) -> ToolCall:
    """Return the record of a call, of its result, or of both."""
    position, length = (call or answer).position, (call or answer).length  # type: ignore[union-attr]
    return ToolCall(
        call.name if call else None,
        call.target if call else None,
        "pending" if answer is None else "error" if answer.is_error else "ok",
        call.timestamp if call else None,
        answer.timestamp if answer else None,
        answer.stated_ms if answer else None,
        answer.exit_code if answer else None,
        answer.output_file if answer else None,
        tool_use_id,
        call.position if call else None,
        answer.position if answer else None,
        position[0],
        length,
        position[1],
    )


def agent_links(
    tool_use_id: str, text: str, extra: dict[str, object], offset: int
) -> Iterable[AgentLink]:
    """Yield what a tool result says of the subagent that its call spawned."""
    agent = string(extra.get("agentId"))
    if agent:
        yield AgentLink(agent, tool_use_id, BY_RESULT, offset)
    if "agentId: " in text and (found := _agent_id(text)):
        yield AgentLink(found[1], tool_use_id, BY_RESULT_TEXT, offset)


def workflow_link(
    tool_use_id: str, text: str, extra: dict[str, object], offset: int
) -> WorkflowLink | None:
    """Return what a tool result says of the workflow run that its call started."""
    run = string(extra.get("runId"))
    task = string(extra.get("taskId")) if run else None
    if task is None and text.startswith("Workflow") and (found := _workflow_task(text)):
        task = found[1]
    return WorkflowLink(run, task, tool_use_id, offset) if run or task else None

"""Tool calls of Claude Code: what a call was applied to, what its result says beside its text.

A result stands twice on a line: as a `tool_result` block, which is what the model saw, and as
`toolUseResult`, a structured copy that only enriches it (duration, exit code, ids of agents).
Agent files before 2.1.200 mostly lack the copy, so nothing here may depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ...fields import integer, json_text, mapping, obvious_text, placeholder, string
from ...records import (
    ASK,
    EDIT,
    OTHER,
    PLAN,
    READ,
    RUN,
    SEARCH,
    SPAWN,
    AgentLink,
    AgentTotals,
    ToolCall,
    WorkflowLink,
)

Position = tuple[int, int]

# The inputs that say what a call was about, the most telling first.
_TARGETS = (
    "file_path", "notebook_path", "command", "pattern", "url", "query", "path", "skill",
    "subject", "description", "recipient", "to", "prompt", "taskId", "task_id",
)  # fmt: skip
_MAX_TARGET = 300

ACTIONS = {
    tool: action
    for action, tools in {
        RUN: ("Bash", "BashOutput", "KillBash", "KillShell", "PowerShell"),
        READ: ("Read", "NotebookRead", "WebFetch", "ReadMcpResource"),
        EDIT: ("Edit", "MultiEdit", "Write", "NotebookEdit"),
        SEARCH: ("Glob", "Grep", "LS", "WebSearch", "ToolSearch"),
        PLAN: (
            *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
            *("EnterPlanMode", "ExitPlanMode", "exit_plan_mode"),
        ),
        SPAWN: ("Task", "Agent"),
        ASK: ("AskUserQuestion",),
    }.items()
    for tool in tools
}
"""What each tool does; one that is not here, such as those of MCP servers, does something else."""

OK, ERROR, DECLINED, PENDING = "ok", "error", "declined", "pending"
"""How a call ended."""

CHARGED = frozenset({"WebSearch"})
"""Tools that make searches of their own, which are charged with the response that called."""

# What stands in place of a result that a person did not allow.
_DECLINED_TEXTS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user",
    "User rejected tool use",
    "User declined to answer questions",
)

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
    response_key: str | None = None
    """The response that called, of tools whose use is charged with it."""
    action: str | None = None
    """What the tool does; None: its name tells."""
    paths: tuple[str, ...] = ()
    """The files that it was given, if they are several."""


class Result(NamedTuple):
    """The answering half of a tool call. `status` is ok, error or declined."""

    status: str
    timestamp: str | None
    position: Position
    length: int
    stated_ms: int | None = None
    exit_code: int | None = None
    output_file: str | None = None
    search_count: int | None = None


def action_of(name: str | None) -> str:
    """Return what a tool does, by its name; some programs write `ReadTool` for `Read`."""
    return ACTIONS.get((name or "").removesuffix("Tool"), OTHER)


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
    block: dict[str, object], text: str, extra: dict[str, object], denial: str | None,
    timestamp: str | None, position: Position, length: int,
) -> Result:  # fmt: skip
    """Return the answering half: the block's own words first, `toolUseResult` beside them.

    `denial` is the `toolDenialKind` of the line.
    """
    status = status_of(
        text, denial, is_error=block.get("is_error") is True or extra.get("interrupted") is True
    )
    code = _exit_code(text) if status == ERROR else None
    return Result(
        status,
        timestamp,
        position,
        length,
        _stated_ms(extra),
        int(code[1]) if code else None,
        _output_file(text, extra),
        integer(extra.get("searchCount")),
    )


def status_of(text: str, denial: str | None, *, is_error: bool) -> str:
    """Return how a call ended. One that a person did not allow did not fail: it never ran.

    Programs that refuse a call by a rule of their own report an error like any other.
    """
    if not is_error:
        return OK
    is_declined = (denial or "").startswith("user-") or text.removeprefix("Error: ").startswith(
        _DECLINED_TEXTS
    )
    return DECLINED if is_declined else ERROR


def _stated_ms(extra: dict[str, object]) -> int | None:
    """Return how long the tool says that it took: in milliseconds, or as a search, in seconds."""
    for name, factor in (("totalDurationMs", 1), ("durationMs", 1), ("durationSeconds", 1000)):
        value = extra.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12:
            return round(value * factor)
    return None


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
        (call.action or action_of(call.name)) if call else None,
        json_text(call.paths) if call and call.paths else None,
        answer.status if answer else PENDING,
        call.timestamp if call else None,
        answer.timestamp if answer else None,
        answer.stated_ms if answer else None,
        answer.exit_code if answer else None,
        answer.output_file if answer else None,
        answer.search_count if answer else None,
        call.response_key if call else None,
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


def agent_totals(extra: dict[str, object], offset: int) -> AgentTotals | None:
    """Return what a tool result states about the run of a subagent, None if it states nothing."""
    agent, tokens = string(extra.get("agentId")), integer(extra.get("totalTokens"))
    if agent is None or tokens is None:
        return None
    calls = integer(extra.get("totalToolUseCount"))
    return AgentTotals(
        agent, string(extra.get("agentType")), tokens, _stated_ms(extra), calls, offset
    )


def workflow_link(
    tool_use_id: str, text: str, extra: dict[str, object], offset: int
) -> WorkflowLink | None:
    """Return what a tool result says of the workflow run that its call started."""
    run = string(extra.get("runId"))
    task = string(extra.get("taskId")) if run else None
    if task is None and text.startswith("Workflow") and (found := _workflow_task(text)):
        task = found[1]
    return WorkflowLink(run, task, tool_use_id, offset) if run or task else None

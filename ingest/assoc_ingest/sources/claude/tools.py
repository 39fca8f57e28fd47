"""Tool calls of Claude Code: what a call was applied to, and what its result says in addition.

A result is on a line twice: as a `tool_result` block, which is what the model saw, and as
`toolUseResult`, a structured copy with additional fields (duration, exit code, ids of agents).
Agent files before 2.1.200 mostly lack the copy, so nothing here can depend on it.

Tools that the server runs, and those of MCP servers that it asks, have results of other types:
`web_search_tool_result`, `code_execution_tool_result`, `mcp_tool_result`, `advisor_tool_result`.
Their content is a list of blocks, or one object: `{"type":"web_search_tool_result_error",
"error_code":".."}`, `{"type":"code_execution_result","stdout","stderr","return_code"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...fields import integer, mapping, obvious_text, placeholder, string
from ...records import (
    ASK,
    BY_RESULT,
    BY_RESULT_TEXT,
    DECLINED,
    EDIT,
    ERROR,
    OK,
    OTHER,
    PLAN,
    READ,
    RUN,
    SEARCH,
    SPAWN,
    AgentLink,
    AgentTotals,
    WorkflowLink,
)
from ..chat_reader import ChatReader, Position, Result

ACTIONS = {
    tool: action
    for action, tools in {
        RUN: ("Bash", "BashOutput", "KillBash", "KillShell", "PowerShell"),
        READ: ("Read", "NotebookRead", "WebFetch", "ReadMcpResource"),
        EDIT: ("Edit", "MultiEdit", "Write", "NotebookEdit"),
        SEARCH: ("Glob", "Grep", "LS", "WebSearch", "ToolSearch"),
        PLAN: (
            *("TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
            "EnterPlanMode",
        ),
        SPAWN: ("Task", "Agent"),
        ASK: ("AskUserQuestion", "ExitPlanMode", "exit_plan_mode"),
    }.items()
    for tool in tools
}
"""What each tool does; all others, such as those of MCP servers, count as `OTHER`."""

CHARGED = frozenset({"WebSearch"})
"""Tools that run searches, which are charged with the response that made the call."""

# The text in place of a result if a person did not allow the call.
_DECLINED_TEXTS = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "The agent proposed a plan that was rejected by the user",
    "User rejected tool use",
    "User declined to answer questions",
)

_exit_code = re.compile(r"(?:Error: )?Exit code (\d{1,9})\b").match
_agent_id = re.compile(r"^agentId: ([\w-]{1,200})", re.MULTILINE | re.ASCII).search
_workflow_task = re.compile(r"\bTask ID: ([\w-]{1,200})", re.ASCII).search
_saved_to = re.compile(r"Full output saved to: (.+)").search


def action_of(name: str | None) -> str:
    """Return what a tool does, by its name; some programs write `ReadTool` for `Read`."""
    return ACTIONS.get((name or "").removesuffix("Tool"), OTHER)


def result_text(content: object) -> str:
    """Return the text of a `tool_result`: strings unchanged, images as placeholders."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return obvious_text(content) or string(mapping(content).get("error_code")) or ""
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
    if kind in ("web_search_result", "search_result"):
        return found_text(block)
    return string(block.get("text")) or obvious_text(block)


def found_text(block: dict[str, object]) -> str:
    """Return what a search found: title, address and text."""
    parts = [string(block.get(key)) for key in ("title", "url", "source")]
    return "\n".join(filter(None, [*parts, obvious_text(block.get("content"))]))


def result(
    block: dict[str, object], text: str, extra: dict[str, object], denial: str | None,
    timestamp: str | None, position: Position, length: int,
) -> Result:  # fmt: skip
    """Return the answering half, from the block and, in addition, from `toolUseResult` (`extra`).

    `denial` is the `toolDenialKind` of the line.
    """
    content = mapping(block.get("content"))
    returned = integer(content.get("return_code"))
    is_error = block.get("is_error") is True or extra.get("interrupted") is True
    is_error = is_error or bool(returned) or str(content.get("type")).endswith("_error")
    status = status_of(text, denial, is_error=is_error)
    code = _exit_code(text) if status == ERROR else None
    return Result(
        status,
        timestamp,
        position,
        length,
        _stated_ms(extra),
        int(code[1]) if code else returned,
        _output_file(text, extra),
        integer(extra.get("searchCount")),
    )


def status_of(text: str, denial: str | None, *, is_error: bool) -> str:
    """Return how a call ended. A call that a person did not allow has not failed: it never ran.

    A call that was refused by a rule of the program is an ordinary error.
    """
    if not is_error:
        return OK
    is_declined = (denial or "").startswith("user-") or text.removeprefix("Error: ").startswith(
        _DECLINED_TEXTS
    )
    return DECLINED if is_declined else ERROR


def _stated_ms(extra: dict[str, object]) -> int | None:
    """Return the duration that the tool states, in milliseconds; searches state seconds."""
    for name, factor in (("totalDurationMs", 1), ("durationMs", 1), ("durationSeconds", 1000)):
        value = extra.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**12:
            return round(value * factor)
    return None


def _output_file(text: str, extra: dict[str, object]) -> str | None:
    """Return the name, below tool-results/, of an output that was too large for the line.

    The path is that of the machine that wrote it, so only its last component is used.
    """
    path = string(extra.get("persistedOutputPath"))
    if path is None and text.startswith("<persisted-output>"):
        found = _saved_to(text, 0, 4096)
        path = found[1] if found else None
    return re.split(r"[/\\]", path.strip())[-1] or None if path else None


def agent_links(
    tool_use_id: str, text: str, extra: dict[str, object], offset: int
) -> Iterable[AgentLink]:
    """Yield what a tool result says about the subagent that its call spawned."""
    agent = string(extra.get("agentId"))
    if agent:
        yield AgentLink(agent, tool_use_id, BY_RESULT, offset)
    if "agentId: " in text and (found := _agent_id(text)):
        yield AgentLink(found[1], tool_use_id, BY_RESULT_TEXT, offset)


def agent_totals(extra: dict[str, object], offset: int) -> AgentTotals | None:
    """Return what a tool result states about the run of a subagent, None if nothing."""
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
    """Return what a tool result says about the workflow run that its call started."""
    run = string(extra.get("runId"))
    task = string(extra.get("taskId")) if run else None
    if task is None and text.startswith("Workflow") and (found := _workflow_task(text)):
        task = found[1]
    return WorkflowLink(run, task, tool_use_id, offset) if run or task else None


class AroundClaude(ChatReader):
    """Reads a conversation with Claude Code that a program around it wrote down."""

    action_of = staticmethod(action_of)

    @staticmethod
    def status_of(text: str, *, is_error: bool) -> str:
        """A declined call has the same text in place of a result as in Claude Code."""
        return status_of(text, None, is_error=is_error)

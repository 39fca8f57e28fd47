"""Tool calls of Gemini CLI: what each tool does, what it gave, and what else is kept of both."""

from __future__ import annotations

from ..fields import mapping, number, obvious_text, string
from ..records import ASK, EDIT, OTHER, PLAN, READ, RUN, SEARCH, SPAWN
from .jsonl import JSONObject
from .media import image_in, readable

_ACTIONS = {
    tool: action
    for action, names in {
        RUN: "run_shell_command",
        READ: "read_file read_many_files web_fetch get_internal_docs",
        EDIT: "write_file replace edit",
        SEARCH: "list_directory glob grep search_file_content grep_search google_web_search",
        PLAN: "write_todos enter_plan_mode exit_plan_mode",
        SPAWN: "delegate_to_agent invoke_agent codebase_investigator generalist cli_help",
        ASK: "ask_user",
    }.items()
    for tool in names.split(" ")
}
ENDED = ("success", "error", "cancelled")
"""How a call can end. With any other status, it goes on."""

_IN_ROWS = frozenset(["content", "thoughts", "model"])
_OF_CALLS = frozenset(["id", "name", "args", "result", "description", "timestamp"])
_EXIT = "Exit Code: "


def action_of(name: str | None) -> str:
    """Return what a tool does, by its name."""
    return _ACTIONS.get(name or "", OTHER)


def exit_code(text: str) -> int | None:
    """Return the exit code that the output of the shell states, None if it states none."""
    if _EXIT not in text:
        return None
    return number(text.rpartition(_EXIT)[2].partition("\n")[0].strip())


def result_text(call: JSONObject) -> str:
    """Return what the tool gave to the model; else what it showed."""
    result = call.get("result")
    texts = map(_text_of, result if isinstance(result, list) else [result])
    return "\n".join(filter(None, texts)) or string(call.get("resultDisplay")) or ""


def _text_of(part: object) -> str:
    block = mapping(part)
    response = mapping(mapping(block.get("functionResponse")).get("response"))
    text = string(response.get("output")) or string(response.get("error"))
    return text or image_in(mapping(block.get("inlineData"))) or obvious_text(part)


def rest_of(value: JSONObject) -> JSONObject:
    """Return a message without what its rows have, and without what nobody can read."""
    bare = mapping(readable({key: item for key, item in value.items() if key not in _IN_ROWS}))
    if isinstance(calls := bare.get("toolCalls"), list):
        bare["toolCalls"] = [
            {key: item for key, item in mapping(call).items() if key not in _OF_CALLS}
            for call in calls
        ]
    return bare

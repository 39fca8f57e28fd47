"""Tool calls of Gemini CLI: what each tool does, what it gave, and what else is kept of both."""

from __future__ import annotations

from ..fields import mapping, obvious_text, string, without
from .agent import actions
from .jsonl import JSONObject
from .media import image_in, readable

action_of = actions(
    run="run_shell_command",
    read="read_file read_many_files web_fetch get_internal_docs",
    edit="write_file replace edit",
    search="list_directory glob grep search_file_content grep_search google_web_search",
    plan="write_todos enter_plan_mode exit_plan_mode",
    spawn="delegate_to_agent invoke_agent codebase_investigator generalist cli_help",
    ask="ask_user",
)
ENDED = ("success", "error", "cancelled")  # with any other status, a call goes on

_IN_ROWS = frozenset(["content", "thoughts", "model"])
_ITSELF = ["messages"]  # of a conversation
_OF_CALLS = frozenset(["id", "name", "args", "result", "description", "timestamp"])


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
    bare = mapping(readable(without(value, _IN_ROWS if "type" in value else _ITSELF)))
    if isinstance(stated := bare.get("$set"), dict):
        bare["$set"] = without(stated, _ITSELF)
    if isinstance(calls := bare.get("toolCalls"), list):
        bare["toolCalls"] = [without(call, _OF_CALLS) for call in calls]
    return bare

"""The parts of OpenCode's messages: what was said, thought, called and answered.

`text` (if `synthetic`, the program wrote it), `reasoning`, `tool`, `file` and `subtask` become
messages, and so does the error of a `retry`; all others are kept as JSON. `step-finish` repeats the
tokens of its message.

A tool has its call and its result in `state`: `status` is pending, running, completed or error;
then `error` takes the place of `output`. A command with an exit code other than 0, and a call of a
tool that does not exist (`invalid`), fail although they are completed. `task` starts a subagent,
whose session is in `metadata.sessionId`.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import Any

from ...fields import json_text, left_over, mapping, string
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
    Statement,
)  # fmt: skip
from ...source import Claim, Context
from ..chat_reader import ChatReader
from ..claude import tools
from ..jsonl import JSONObject

_ACTIONS = {
    tool: action
    for action, names in {
        RUN: ("bash",),
        READ: ("read", "webfetch", "lsp_hover", "lsp_diagnostics", "lsp"),
        EDIT: ("edit", "write", "patch", "multiedit", "apply_patch"),
        SEARCH: ("glob", "grep", "list", "websearch", "codesearch"),
        PLAN: ("todowrite", "todoread", "plan_enter", "plan_exit"),
        SPAWN: ("task",),
        ASK: ("question",),
    }.items()
    for tool in names
}
_DECLINED = (
    "The user rejected permission",
    "The user has specified a rule which prevents you",
    "The user dismissed this question",
)
_SPOKEN = ("text", "reasoning", "tool", "file", "subtask")
IDS = ("id", "sessionID", "messageID")
_REPEATED = ("output", "exit", "description", "preview")
_STATE = ("status", "input", "output", "error", "time", "metadata", "attachments")
TODO = ("content", "status", "priority")


class PartReader(ChatReader):
    """Reads the parts of messages; `context` is what the lines so far have said."""

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim, type_key="table")
        self._context: dict[str, Any] = dict(context)

    def _part(self, value: JSONObject, data: JSONObject) -> None:
        message = self._context.get("message", {})
        kind = self.name(data, "type") or ""
        state, times = self.mapping(data, "state"), self.mapping(data, "time")
        started = mapping(state.get("time")).get("start", times.get("start"))
        place = message.get("parts", 0)
        if message:
            message["parts"] = place + 1
        self.begin(
            {
                "timestamp": message.get("created") if started is None else started,
                "uuid": _identity(message, place, data),
            },
            is_message=kind in _SPOKEN and data.get("text") != "",
        )
        self._note_revert(value, "partID")
        is_agents = message.get("role") == "assistant"
        self.model = message.get("model")
        taken = {*IDS, "type", "time"}
        if kind in ("text", "reasoning"):
            said = "thinking" if kind == "reasoning" else self._kind_of(message, data)
            if text := self.text(data, "text"):
                self.say(said, text, _role(is_agents))
            taken |= {"text", "synthetic"}
        elif kind == "tool":
            data = {**data, "state": self._tool(data, state, string(value.get("id")))}
            taken.add("tool")
        elif kind == "file":
            self.say("image", _placeholder(data), _role(is_agents))
            taken |= {"mime", "filename", "url"}
        elif kind == "subtask":
            self.say("prompt", self.text(data, "prompt") or "", "user")
            taken.add("prompt")
        elif kind == "retry":
            self._fail(self.mapping(data, "error"))
        elif kind == "step-finish":
            taken |= {"tokens", "cost"}
        self._keep(kind, data, taken)

    def _kind_of(self, message: JSONObject, data: JSONObject) -> str:
        if message.get("is_summary"):
            return "compact_summary"
        if message.get("role") == "assistant":
            return "text"
        if data.get("synthetic") is True:
            return "meta"
        return "prompt" if self.claim.agent_key is None else "agent_prompt"

    def _tool(self, data: JSONObject, state: JSONObject, key: str | None) -> JSONObject:
        """Add a call and its result; return what is left of its state."""
        name, arguments = self.name(data, "tool"), self.mapping(state, "input")
        given = {"file_path": arguments.get("filePath"), **arguments}
        files = [string(file.get("filePath")) for file in _files(state)]
        self.call(
            name,
            given,
            json_text(arguments, lambda: self._exact_input(arguments)),
            key,
            action=_ACTIONS.get(name or "", OTHER),
            paths=[file for file in files if file],
        )
        call = (self.start, self._block - 1)
        metadata = self.mapping(state, "metadata")
        if self.text(state, "status") in ("completed", "error"):
            self._answer(name, state, metadata, key)
        agent = string(metadata.get("sessionId"))
        if key is not None and agent is not None and name == "task":
            self.records.append(AgentLink(agent, key, tools.BY_RESULT, self.start))
        if name == "todowrite" and key is not None:
            self._state_todos(self.items(arguments, "todos"), key, call[1])
        rest = {word: item for word, item in metadata.items() if word not in _REPEATED}
        return {
            **{word: item for word, item in state.items() if word not in _STATE},
            **({"metadata": rest} if rest else {}),
        }

    def _answer(
        self, name: str | None, state: JSONObject, metadata: JSONObject, key: str | None
    ) -> None:
        error, code = self.text(state, "error"), self.whole(metadata, "exit")
        texts = [error or self.text(state, "output") or ""]
        texts += map(_placeholder, self.items(state, "attachments"))
        if error is not None and error.startswith(_DECLINED):
            status = tools.DECLINED
        else:
            is_failure = state.get("status") == "error" or bool(code) or name == "invalid"
            status = tools.ERROR if is_failure else tools.OK
        times = self.mapping(state, "time")
        begin, end = self.whole(times, "start"), self.whole(times, "end")
        self._moment = self.time(times, "end") or self._moment
        position = (self.start, self._block)
        self.say("tool_result", "\n".join(texts), "user", is_error=status == tools.ERROR)
        if key is not None:
            duration = None if begin is None or end is None else max(0, end - begin)
            self._results[key] = tools.Result(
                status, self._moment, position, self.length, duration, code
            )

    def _exact_input(self, arguments: JSONObject) -> object:
        data = mapping(self.exact("data", {}))
        return mapping(data.get("state")).get("input", arguments)

    def _state_todos(self, items: list[JSONObject], key: str | None, block: int = 0) -> None:
        listed = [{word: string(item.get(word)) for word in TODO} for item in items]
        self.records.append(
            Statement(
                "todos", self.claim.session_key or "", None, json_text({"items": listed}), None,
                self.moment, key, self.start, self.length, block,
            )
        )  # fmt: skip

    def _note_revert(self, value: JSONObject, name: str) -> None:
        """Note where the message or the part is with which begins what was taken back."""
        revert = self._context.get("revert", {})
        if value.get("id") == revert.get(name):
            self._context["reverted"] = self.start

    def _fail(self, error: JSONObject) -> None:
        if error:
            said = string(mapping(error.get("data")).get("message")) or string(error.get("message"))
            words = ": ".join(filter(None, [string(error.get("name")), said]))
            self.say("error", words or json_text(error), "system", is_error=True)

    def _keep(self, kind: str, data: JSONObject, taken: Iterable[str]) -> None:
        """Keep what has become no row."""
        extra = left_over(data, (*taken,))
        self.keep(extra, kind=kind, moment=self.moment, is_silent=self._block == 0)


def _role(is_agents: bool) -> str:
    return "assistant" if is_agents else "user"


def _identity(message: JSONObject, place: int, data: JSONObject) -> str | None:
    """Return what a part is recognised by in a fork, None if its message has no time."""
    if message.get("created") is None:
        return None
    said = data.get("callID") or data.get("text") or data.get("url") or ""
    facts = [message["created"], message["role"], message["model"], place, data.get("type"), said]
    return blake2b(repr(facts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _files(state: JSONObject) -> list[JSONObject]:
    files = mapping(state.get("metadata")).get("files")
    return [mapping(file) for file in files] if isinstance(files, list) else []


def _placeholder(data: JSONObject) -> str:
    """Return the description of a file: of one that is included, also its size and hash."""
    parts = ["file", string(data.get("mime")) or "unknown type"]
    url = string(data.get("url")) or ""
    if url.startswith("data:"):
        parts.append(f"{len(url):,} letters")
        parts.append(sha256(url.encode("utf-8", "replace")).hexdigest()[:16])
        url = ""
    name = string(data.get("filename")) or url
    return f"[{' '.join(parts)}{f': {name}' if name else ''}]"

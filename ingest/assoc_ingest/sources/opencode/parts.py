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

from collections.abc import Collection
from hashlib import blake2b, sha256
from typing import Any

from ...fields import json_text, left_over, mapping, string, without
from ...records import AgentLink, Statement
from ...source import Claim, Context
from ..agent import actions
from ..chat_reader import ChatReader
from ..claude import tools
from ..jsonl import JSONObject

_action_of = actions(
    run="bash",
    read="read webfetch lsp_hover lsp_diagnostics lsp",
    edit="edit write patch multiedit apply_patch",
    search="glob grep list websearch codesearch",
    plan="todowrite todoread plan_enter plan_exit",
    spawn="task",
    ask="question",
)
_DECLINED = (
    "The user rejected permission",
    "The user has specified a rule which prevents you",
    "The user dismissed this question",
)
_SPOKEN = ("text", "reasoning", "tool", "file", "subtask")
IDS = ("id", "sessionID", "messageID")
_SILENT = ("step-start", "step-finish", "snapshot", "patch")
_TAKEN = {
    kind: frozenset([*IDS, "type", "time", *fields.split()])
    for kind, fields in {
        "": "",
        "text": "text synthetic",
        "reasoning": "text synthetic",
        "tool": "tool",
        "file": "mime filename url",
        "subtask": "prompt",
        "step-finish": "tokens cost",
    }.items()
}
"""Fields of a part that have rows, or repeat those of its message."""

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
        identity = None
        if kind not in _SILENT:
            identity = _identity(message, place, data, self._context.get("began"))
        moment = message.get("created") if started is None else started
        is_message = kind in _SPOKEN and data.get("text") != ""
        self.begin({"timestamp": moment, "uuid": identity}, is_message=is_message)
        self._note_revert(value, "partID")
        is_agents = message.get("role") == "assistant"
        self.model = message.get("model")
        if kind in ("text", "reasoning"):
            said = "thinking" if kind == "reasoning" else self._kind_of(message, data)
            if text := self.text(data, "text"):
                self.say(said, text, _role(is_agents))
                if not is_agents:
                    self._context.setdefault("began", digest(text))
        elif kind == "tool":
            data = {**data, "state": self._tool(data, state, string(value.get("id")))}
        elif kind == "file":
            self.say("image", _placeholder(data), _role(is_agents))
        elif kind == "subtask":
            self.say("prompt", self.text(data, "prompt") or "", "user")
        elif kind == "retry":
            self._fail(self.mapping(data, "error"))
        self._keep(kind, data, _TAKEN.get(kind, _TAKEN[""]))

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
        metadata, block = self.mapping(state, "metadata"), self._block
        files = metadata.get("files")
        listed = files if isinstance(files, list) else []
        stated = [mapping(file).get("filePath") for file in listed]
        paths = list(filter(None, map(string, stated)))
        text = json_text(arguments, lambda: self._exact_input(arguments))
        self.call(name, given, text, key, action=_action_of(name), paths=paths)
        if self.text(state, "status") in ("completed", "error"):
            self._answer(name, state, metadata, key)
        agent = string(metadata.get("sessionId"))
        if key is not None and agent is not None and name == "task":
            self.records.append(AgentLink(agent, key, tools.BY_RESULT, self.start))
        if name == "todowrite" and key is not None:
            self._state_todos(self.items(arguments, "todos"), key, block)
        rest = without(metadata, _REPEATED)
        return {**without(state, _STATE), **({"metadata": rest} if rest else {})}

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
        time = None if begin is None or end is None else max(0, end - begin)
        self._moment = self.time(times, "end") or self._moment
        self.answer(
            "\n".join(texts), key, is_error=False, status=status, exit_code=code, duration_ms=time
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

    def _keep(self, kind: str, data: JSONObject, taken: Collection[str]) -> None:
        """Keep what has become no row."""
        self.keep(left_over(data, taken), kind=kind, moment=self.moment, is_silent=self._block == 0)


def _role(is_agents: bool) -> str:
    return "assistant" if is_agents else "user"


def digest(fact: object) -> str:
    """Return a short text that is the same for the same value."""
    return blake2b(repr(fact).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _identity(message: JSONObject, place: int, data: JSONObject, began: str | None) -> str | None:
    """Return what a part is recognised by in a copy, None if its message has no time.

    What the agent says grows while it is written, so a copy may have less of it: in place of that,
    the first prompt tells conversations apart that are held at the same time.
    """
    if message.get("created") is None:
        return None
    grows = message["role"] == "assistant" and data.get("type") in ("text", "reasoning")
    said = began if grows else data.get("callID") or data.get("text") or data.get("url") or ""
    return digest(
        [message["created"], message["role"], message["model"], place, data.get("type"), said]
    )


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

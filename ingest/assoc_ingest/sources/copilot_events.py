"""The events of a Copilot CLI session, of the versions 0.0.342 and later.

```json
{"type":"assistant.message","data":{"messageId":"m","model":"m","content":"..","reasoningText":"..",
 "toolRequests":[{"toolCallId":"c","name":"n","arguments":{}}],"apiCallId":"a","outputTokens":50},
 "id":"e2","timestamp":"..","parentId":"e1","agentId":"g"}
```

There are about 120 types. These give rows:

- `user.message`: `content` is what was typed, unless `source` says that something else wrote it: a
  skill, the autopilot, or `agent-<id>` for the prompt of a subagent. `transformedContent` repeats
  it with what the program added, and is left out.
- `assistant.message`: a text, a thought and tool calls; without any of them, nothing.
  `tool.execution_start` repeats the calls. `tool.user_requested` is a call that a person made.
- `tool.execution_complete`: the result of a call, or its error; the code `rejected` says that the
  person did not allow it. Shells end their output with `<exited with exit code 0>`.
- `session.compaction_complete` has a summary, `session.task_complete` the last answer of the
  autopilot. `session.error`, `session.warning`, `session.info`, `system.notification` and `abort`
  are notices of the program.

`session.start`, `session.resume` and `session.context_changed` state where the session is,
`session.title_changed` what it is called, `session.snapshot_rewind` from which event on it was
taken back. All other types are kept as they are, without texts that others have: the results of
tools in `hook.start` and the instructions in `system.message` are half of a file.

**Subagents** write into the same file. Their events have an `agentId`, in older versions the
`parentToolCallId` of the call that started them; `subagent.started` names both.

Tokens are described in `copilot_tokens`.
"""

from __future__ import annotations

from typing import Any

from ..fields import integer, json_text, mapping, string, without
from ..records import AgentLine, AgentLink, AgentTotals, Superseded
from ..records import Context as Fact
from ..source import Claim, Context
from .agent import actions, exit_code
from .chat_reader import ChatReader, tools
from .copilot_tokens import Tokens
from .jsonl import JSONObject
from .media import image_in, readable, text_of
from .patches import patched

_action_of = actions(
    run="bash read_bash write_bash stop_bash list_bash powershell read_powershell"
    " write_powershell stop_powershell list_powershell",
    read="view web_fetch fetch_copilot_cli_documentation",
    edit="edit create apply_patch str_replace_editor",
    search="glob grep rg web_search search_code_subagent tool_search_tool_regex",
    plan="update_todo exit_plan_mode report_intent task_complete",
    spawn="task",
    ask="ask_user",
)
_NOTICES = {
    "session.error": ("error", "message"),
    "session.warning": ("system", "message"),
    "session.info": ("system", "message"),
    "session.compaction_complete": ("compact_summary", "summaryContent"),
    "subagent.failed": ("error", "error"),
    "system.notification": ("task_notification", "content"),
    "abort": ("interrupt", "reason"),
}
"""Types of notices: the kind of their row, and the field with its text."""

_SAID = ("user.message", "tool.user_requested", "tool.execution_complete", "session.task_complete")
_REPEATED = {
    "user.message": ("content", "transformedContent"),
    "assistant.message": ("content", "reasoningText", "model", "outputTokens"),
    "tool.execution_start": ("arguments",),
    "tool.user_requested": ("arguments", "toolName"),
    "tool.execution_complete": ("result", "error", "toolCallId"),
    "session.task_complete": ("summary",),
    "hook.start": ("input",),
    "system.message": ("content",),
    "skill.invoked": ("content",),
    **{kind: (field,) for kind, (_, field) in _NOTICES.items()},
}
"""Fields of `data` that have rows, or repeat what others have."""

TYPES = frozenset(
    [
        *_REPEATED,
        *("assistant.turn_start", "assistant.turn_end", "hook.end"),
        *("session.start", "session.resume", "session.context_changed", "session.shutdown"),
        *("session.title_changed", "session.snapshot_rewind", "session.usage_record"),
        *("session.model_change", "subagent.started", "subagent.completed"),
    ]
)

_LONGEST_PATH = 4096
_MOST_PROMPTS = 100  # of which a later rewind can say where they are


def is_ours(value: JSONObject) -> bool:
    """Has the object the shape of a line of this format?"""
    return isinstance(value.get("type"), str) and isinstance(value.get("data"), dict)


class Events(ChatReader):
    """Reads the events of one session."""

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim)
        self.context: dict[str, Any] = dict(context)
        """What later lines need: what was spent, where the last prompts are, and where the session
        is."""
        self.tokens = Tokens(self, self.context)
        self._agent: str | None = None

    def take(self, value: JSONObject) -> None:
        """Take one event in."""
        kind, data = self.text(value, "type") or "", self.mapping(value, "data")
        self._agent = self._agent_of(value, data)
        is_said = _is_said(kind, data)
        self.begin({**value, "uuid": value.get("id")}, is_message=is_said and self._agent is None)
        self.parent = self.name(value, "parentId")
        if self._agent is not None:
            self.records.append(AgentLine(self._agent, self.start))
        if kind == "assistant.message":
            self.model = self.name(data, "model")
            self.tokens.message(data, self.name(value, "id"))
        if is_said:
            self._say(kind, data, value)
        elif kind in _NOTICES:
            row, key = _NOTICES[kind]
            if (text := self.text(data, key)) is not None:
                self.say(row, text, "system", is_error=row == "error")
        elif kind.startswith("session."):
            self._session(kind, data, value)
        elif kind.startswith("subagent."):
            self._subagent(data)
        self.keep_rest(value, ("id", "parentId"), _bare)

    def _agent_of(self, value: JSONObject, data: JSONObject) -> str | None:
        stated = self.name(value, "agentId") or self.name(data, "parentToolCallId")
        source = string(data.get("source")) or ""
        if stated is None and source.startswith("agent-") and value.get("type") == "user.message":
            return source.removeprefix("agent-") or None
        return stated

    # -- what was said ---------------------------------------------------------------------------

    def _say(self, kind: str, data: JSONObject, value: JSONObject) -> None:
        if kind == "user.message":
            self._user(data, self.name(value, "id"))
        elif kind == "assistant.message":
            self._assistant(data)
        elif kind == "tool.user_requested":
            self._call(data, "toolName")
        elif kind == "tool.execution_complete":
            self._result(data)
        else:
            self.say("text", self.text(data, "summary") or "", "assistant")

    def _user(self, data: JSONObject, identity: str | None) -> None:
        text = self.text(data, "content") or ""
        self.say(_kind_of_prompt(text, data), text, "user")
        for attachment in self.items(data, "attachments"):
            if (image := image_in(attachment)) is not None:
                self.say("image", image, "user")
        if identity is not None and self._agent is None:
            prompts = [*self.context.get("prompts", ()), [identity, self.start]]
            self.context["prompts"] = prompts[-_MOST_PROMPTS:]

    def _assistant(self, data: JSONObject) -> None:
        for kind, key in (("thinking", "reasoningText"), ("text", "content")):
            if (text := self.text(data, key)) is not None:
                self.say(kind, text, "assistant")
        for request in self.items(data, "toolRequests"):
            self._call(request, "name")

    def _call(self, request: JSONObject, key: str) -> None:
        name, arguments = self.text(request, key), request.get("arguments")
        text = json_text({} if arguments is None else arguments)
        cwd = self.context.get("cwd")
        paths = patched(arguments, cwd) if isinstance(arguments, str) else ()
        given: JSONObject = {"path": paths[0]} if paths else mapping(arguments)
        call = self.text(request, "toolCallId")
        self.call(name, given, text, call, action=_action_of(name), paths=paths)

    def _result(self, data: JSONObject) -> None:
        result, error = self.mapping(data, "result"), self.mapping(data, "error")
        is_error = data.get("success") is False
        text = text_of(result.get("content")) if result else self.text(error, "message") or ""
        is_declined = is_error and error.get("code") == "rejected"
        self.answer(
            text,
            self.text(data, "toolCallId"),
            is_error=is_error,
            status=tools.DECLINED if is_declined else None,
            exit_code=exit_code(text, "exited with exit code ", ">"),
        )

    # -- what the program says -------------------------------------------------------------------

    def _session(self, kind: str, data: JSONObject, value: JSONObject) -> None:
        if kind in ("session.start", "session.resume", "session.context_changed"):
            self._place(data, self.mapping(data, "context") or data)
        elif kind == "session.title_changed":
            self.fact("ai_title", self.text(data, "title"))
        elif kind == "session.snapshot_rewind":
            self._rewind(self.text(data, "upToEventId"))
        elif kind == "session.usage_record":
            self.tokens.record(data, self.name(value, "id"))
        elif kind == "session.shutdown":
            self.tokens.shutdown(data, self.name(value, "id"))

    def _place(self, data: JSONObject, context: JSONObject) -> None:
        cwd = self.text(context, "cwd")
        if cwd is not None:
            self.fact("first_cwd", cwd)
            if not self.context.get("is_placed"):  # a session belongs to where it began
                self.settle(cwd)
            self.context.update(is_placed=True, cwd=cwd[:_LONGEST_PATH])
        stated = ("git_branch", context, "branch"), ("agent_version", data, "copilotVersion")
        for name, value, key in stated:
            if (text := self.text(value, key)) is not None:
                self.fact(name, text)
                self.records.append(Fact(name, text, self.start))

    def _rewind(self, identity: str | None) -> None:
        """Mark what was taken back, if it is still there: some versions delete it from the file."""
        first = dict(self.context.get("prompts", ())).get(identity)
        if first is not None:
            self.records.append(Superseded(self.moment, None, first, self.start))

    def _subagent(self, data: JSONObject) -> None:
        call = self.name(data, "toolCallId")
        agent = self._agent or call
        if agent is None or call is None:
            return
        self.records.append(AgentLink(agent, call, tools.BY_RESULT, self.start))
        stated = ("totalTokens", "durationMs", "totalToolCalls")
        tokens, time, calls = (integer(data.get(key)) for key in stated)
        name = self.name(data, "agentName")
        self.records.append(AgentTotals(agent, name, tokens, time, calls, self.start))


def _is_said(kind: str, data: JSONObject) -> bool:
    """Does the event give rows of what a person, the agent or a tool said?"""
    if kind == "assistant.message":
        return any(data.get(key) for key in ("content", "reasoningText", "toolRequests"))
    return kind in _SAID


def _kind_of_prompt(text: str, data: JSONObject) -> str:
    source = string(data.get("source")) or "user"
    if source.startswith("agent-"):
        return "agent_prompt"
    if source != "user":
        return "meta"
    if text.startswith("<system_notification>"):
        return "task_notification"
    tag = "<cross_session_message>"
    is_sent = tag in (string(data.get("transformedContent")) or "") and tag not in text
    return "agent_message" if is_sent else "prompt"


def _bare(value: JSONObject) -> JSONObject:
    """Return an event without what its rows have or others repeat."""
    bare = mapping(readable(value))
    kind, data = string(bare.get("type")) or "", bare.get("data")
    if not isinstance(data, dict):
        return bare
    rest = without(data, _REPEATED.get(kind, ()))
    if isinstance(requests := rest.get("toolRequests"), list):
        rest["toolRequests"] = [without(request, ["arguments"]) for request in requests]
    if kind == "tool.execution_complete":
        rest["result"] = without(data.get("result"), ["content"])
        rest["error"] = without(data.get("error"), ["message"])
        rest = {key: item for key, item in rest.items() if item not in ({}, None)}
    return {**bare, "data": rest}

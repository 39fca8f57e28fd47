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

from ..fields import integer, json_text, mapping, number, string
from ..project_paths import comparable
from ..records import (
    ASK,
    EDIT,
    OTHER,
    PLAN,
    READ,
    RUN,
    SEARCH,
    SPAWN,
    AgentLine,
    AgentLink,
    AgentTotals,
    SessionEntry,
    Superseded,
)
from ..records import Context as Fact
from ..source import Claim, Context
from .chat_reader import ChatReader, tools
from .copilot_tokens import Tokens
from .jsonl import JSONObject
from .media import image_in, readable, text_of

_ACTIONS = {
    tool: action
    for action, names in {
        RUN: "bash read_bash write_bash stop_bash list_bash powershell read_powershell"
        " write_powershell stop_powershell list_powershell",
        READ: "view web_fetch fetch_copilot_cli_documentation",
        EDIT: "edit create apply_patch str_replace_editor",
        SEARCH: "glob grep rg web_search search_code_subagent tool_search_tool_regex",
        PLAN: "update_todo exit_plan_mode report_intent task_complete",
        SPAWN: "task",
        ASK: "ask_user",
    }.items()
    for tool in names.split(" ")
}
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
}
"""Fields of `data` that have rows, or repeat what others have."""

_EXIT = "exited with exit code "
_MOST_PROMPTS = 100  # of which a later rewind can say where they are


def is_ours(value: JSONObject) -> bool:
    """Has the object the shape of a line of this format?"""
    return isinstance(value.get("type"), str) and isinstance(value.get("data"), dict)


class Events(ChatReader):
    """Reads the events of one session."""

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim)
        self.context: dict[str, Any] = dict(context)
        """What later lines need: what was spent, where the last prompts are, and whether a line
        said where the session is."""
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
            self._notice(kind, data)
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
            self._user(data, value)
        elif kind == "assistant.message":
            self._assistant(data)
        elif kind == "tool.user_requested":
            self._call(data, "toolName")
        elif kind == "tool.execution_complete":
            self._result(data)
        else:
            self.say("text", self.text(data, "summary") or "", "assistant")

    def _user(self, data: JSONObject, value: JSONObject) -> None:
        text, identity = self.text(data, "content") or "", self.name(value, "id")
        kind = _kind_of_prompt(text, data)
        self.say(kind, text, "user")
        for attachment in self.items(data, "attachments"):
            if (image := image_in(attachment)) is not None:
                self.say("image", image, "user")
        if identity is not None and self._agent is None:
            prompts = [*self.context.get("prompts", ()), [identity, self.start]]
            self.context["prompts"] = prompts[-_MOST_PROMPTS:]

    def _assistant(self, data: JSONObject) -> None:
        if (thought := self.text(data, "reasoningText")) is not None:
            self.say("thinking", thought, "assistant")
        if (text := self.text(data, "content")) is not None:
            self.say("text", text, "assistant")
        for request in self.items(data, "toolRequests"):
            self._call(request, "name")

    def _call(self, request: JSONObject, key: str) -> None:
        name, arguments = self.text(request, key), request.get("arguments")
        text = json_text({} if arguments is None else arguments)
        paths = _patched(arguments) if isinstance(arguments, str) else []
        given: JSONObject = {"path": paths[0]} if paths else mapping(arguments)
        self.call(
            name,
            given,
            text,
            self.text(request, "toolCallId"),
            action=_ACTIONS.get(name or "", OTHER),
            paths=paths,
        )

    def _result(self, data: JSONObject) -> None:
        result, error = self.mapping(data, "result"), self.mapping(data, "error")
        is_error = data.get("success") is False
        text = text_of(result.get("content")) if result else self.text(error, "message") or ""
        code = text.rpartition(_EXIT)[2].partition(">")[0] if _EXIT in text else ""
        is_declined = is_error and error.get("code") == "rejected"
        self.answer(
            text,
            self.text(data, "toolCallId"),
            is_error=is_error,
            status=tools.DECLINED if is_declined else None,
            exit_code=number(code),
        )

    # -- what the program says -------------------------------------------------------------------

    def _notice(self, kind: str, data: JSONObject) -> None:
        row, key = _NOTICES[kind]
        if (text := self.text(data, key)) is not None:
            self.say(row, text, "system", is_error=row == "error")

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
                self.context["is_placed"] = True
                key, project = self.claim.session_key or "", comparable(cwd)
                entry = SessionEntry(key, "meta", project_key=project, cwd=cwd)
                self.records.append(entry._replace(byte_offset=self.start))
        for name, text in (
            ("git_branch", self.text(context, "branch")),
            ("agent_version", self.text(data, "copilotVersion")),
        ):
            if text is not None:
                self.fact(name, text)
                self.records.append(Fact(name, text, self.start))

    def _rewind(self, identity: str | None) -> None:
        """Mark what was taken back, if it is still there: some versions delete it from the file."""
        places = {name: start for name, start in self.context.get("prompts", ())}
        if identity in places:
            first = places[identity]
            self.records.append(Superseded(self.moment, None, first, self.start))

    def _subagent(self, data: JSONObject) -> None:
        call = self.name(data, "toolCallId")
        agent = self._agent or call
        if agent is None or call is None:
            return
        self.records.append(AgentLink(agent, call, tools.BY_RESULT, self.start))
        self.records.append(
            AgentTotals(
                agent,
                self.name(data, "agentName"),
                integer(data.get("totalTokens")),
                integer(data.get("durationMs")),
                integer(data.get("totalToolCalls")),
                self.start,
            )
        )


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


def _patched(patch: str) -> list[str]:
    """Return the files that a patch changes."""
    heads = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
    return [line.partition(": ")[2].strip() for line in patch.split("\n") if line.startswith(heads)]


def _bare(value: JSONObject) -> JSONObject:
    """Return an event without what its rows have or others repeat."""
    bare = mapping(readable(value))
    kind, data = string(bare.get("type")) or "", bare.get("data")
    if not isinstance(data, dict):
        return bare
    rest = {key: item for key, item in data.items() if key not in _REPEATED.get(kind, ())}
    if kind in _NOTICES:
        rest.pop(_NOTICES[kind][1], None)
    if isinstance(requests := rest.get("toolRequests"), list):
        rest["toolRequests"] = [
            {key: item for key, item in mapping(request).items() if key != "arguments"}
            for request in requests
        ]
    if kind == "tool.execution_complete":
        result = mapping(data.get("result"))
        rest["result"] = {key: item for key, item in result.items() if key != "content"}
        rest["error"] = {k: v for k, v in mapping(data.get("error")).items() if k != "message"}
        rest = {key: item for key, item in rest.items() if item not in ({}, None)}
    return {**bare, "data": rest}

"""Copilot CLI: conversations with GitHub's agent for the terminal, below `~/.copilot`.

```
session-state/<id>/events.jsonl     a conversation, with those of its subagents
session-state/<id>/workspace.yaml   where it was held, and what it is called
session-state/<id>.jsonl            a conversation, in older versions
```

`COPILOT_HOME` replaces `~/.copilot`. Editors that run this agent write the same files. No retention
is documented, but the directory of a session can outlive its `events.jsonl`.

`workspace.yaml` has one value on each line, `cwd: /srv/demo`; only these lines are read. A text
that does not fit on its line follows it, indented.

`config.json` and `mcp-config.json` contain tokens and are never opened, and neither is `logs/`.
`session-store.db` is derived from the events. Versions before 0.0.342 had another format, in
`history-session-state/`, which is not read.

The lines of a conversation are described in `copilot_events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import proxy

from ..fields import integer, json_text, mapping, string, utc, without
from ..paths import comparable
from ..records import (
    BY_RESULT,
    DECLINED,
    AgentLine,
    AgentLink,
    AgentTotals,
    LineExtra,
    ProjectEntry,
    Record,
    SessionEntry,
    StatedUsage,
    Superseded,
)
from ..records import Context as Fact
from ..source import DOCUMENT, LOG, Claim, Context, Line
from .chat_reader import (
    AgentSource,
    ChatReader,
    actions,
    exit_code,
    image_in,
    patched,
    readable,
    text_of,
)
from .reader import JSONObject, document_text, nothing_in
from .tokens import Counts, beside_cache, since

# ------------------------------------------------------------------------------------------------
# Token counts of Copilot CLI, which states them in three ways.
#
# The input of all numbers includes what was read from the cache and written to it, and the output
# includes reasoning. A *run* goes from the start or the resumption of a session to its shutdown.
#
# 1. Newer versions (1.0.9x on) write a `session.usage_record` for each request. In a run with such
#    records, only they count.
# 2. Otherwise `modelMetrics` of `session.shutdown` has sums by model. They are those of the whole
#    session and go on when it is resumed; in early 2026, they were those of the run. So sums that
#    are smaller than the last ones are those of a run.
# 3. A run without an end has only the `outputTokens` of its messages.
#
# The log may end anywhere, so the output of a message counts as soon as it is read. The first
# message of a run and model is marked as partial: it has the response that is replaced when the
# run ends, by its own output and everything that no message of the run has.


_FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_MOST_MODELS = 50


class Tokens:
    """Counts the tokens of one session.

    `context` has what later lines need: by model, the first message of the run with its output
    (`first`), the output of all its messages (`said`), the sums of the last shutdown (`stated`),
    those of earlier runs that it leaves out (`earlier`); and whether the run has records
    (`has_records`).
    """

    def __init__(self, reader: ChatReader, context: dict[str, Any]) -> None:
        self._reader: ChatReader = proxy(reader)  # which has this: no cycle
        self._context = context

    def message(self, data: JSONObject, identity: str | None) -> None:
        """Count the output of a message, until a record or the end of the run says more."""
        reader = self._reader
        output, model = reader.count(data, "outputTokens"), reader.model or ""
        key = reader.name(data, "apiCallId") or identity
        if not output or key is None or self._context.get("has_records"):
            return
        first, said = self._of_run("first"), self._of_run("said")
        is_first = model not in first
        if is_first and len(first) < _MOST_MODELS:
            first[model] = [key, output]
        if model in first:
            said[model] = said.get(model, 0) + output
        reader.use(key, Counts(0, output), is_partial=is_first)

    def record(self, data: JSONObject, identity: str | None) -> None:
        """Count a request as its record states it."""
        reader = self._reader
        usage = reader.mapping(data, "usage")
        reader.model = reader.name(usage, "model")
        key = reader.name(usage, "apiCallId") or identity
        self._context["has_records"] = True
        stated = self._counts(usage)
        for first, output in self._of_run("first").values():
            if first == key:
                stated[1] = max(stated[1], output)  # or the message would still count instead
        self._spend(key, stated)

    def shutdown(self, data: JSONObject, identity: str | None) -> None:
        """Count what no message of the run has."""
        metrics = self._reader.mapping(data, "modelMetrics")
        stated = {
            model: self._counts(self._reader.mapping(of_model, "usage"))
            for model in list(metrics)[:_MOST_MODELS]
            if (of_model := self._reader.mapping(metrics, model))
        }
        before: dict[str, list[int]] = self._context.get("stated", {})
        goes_on = all(
            model in stated and all(map(int.__ge__, stated[model], sums))
            for model, sums in before.items()
        )
        if stated:
            self._state(stated, {} if goes_on else before)
        first, said = self._of_run("first"), self._of_run("said")
        for model, sums in {} if self._context.get("has_records") else stated.items():
            rest = since(sums, before.get(model) if goes_on else None)
            key, output = first.get(model) or (f"{identity}:{model}", 0)
            rest[1] = max(0, rest[1] - said.get(model, 0)) + output
            self._reader.model = model
            self._spend(key, rest)
        self._context.update(stated=stated, has_records=False, first={}, said={})

    def _state(self, stated: dict[str, list[int]], ended: dict[str, list[int]]) -> None:
        """Keep what the session states: these sums, and those of `ended` runs before them."""
        reader, earlier = self._reader, self._of_run("earlier")
        for model, sums in ended.items():
            earlier[model] = _sum(earlier.get(model), sums)
        models = {
            model: _sum(earlier.get(model), stated.get(model)) for model in {**earlier, **stated}
        }
        models[""] = _sum(*models.values())
        for model, (given, output, cached, written) in models.items():
            counts = beside_cache(given, output, cached, written)[:4]
            place = (reader.start, reader.length)
            reader.records.append(StatedUsage(model, reader.moment, *counts, None, 0, *place))

    def _counts(self, usage: JSONObject) -> list[int]:
        return [self._reader.count(usage, field) for field in _FIELDS]

    def _of_run(self, name: str) -> dict[str, Any]:
        """Return what is known of this run by model, to be changed."""
        known: dict[str, Any] = self._context.setdefault(name, {})
        return known

    def _spend(self, key: str | None, stated: list[int]) -> None:
        if key is not None and any(stated):
            self._reader.use(key, beside_cache(*stated))


def _sum(*counts: list[int] | None) -> list[int]:
    return [sum(column) for column in zip([0, 0, 0, 0], *filter(None, counts), strict=True)]


# ------------------------------------------------------------------------------------------------
# The events of a Copilot CLI session, of the versions 0.0.342 and later.
#
# ```json
# {"type":"assistant.message","data":{"messageId":"m","model":"m","content":"..",
#  "reasoningText":"..","toolRequests":[{"toolCallId":"c","name":"n","arguments":{}}],
#  "apiCallId":"a","outputTokens":50},
#  "id":"e2","timestamp":"..","parentId":"e1","agentId":"g"}
# ```
#
# There are about 120 types. These give rows:
#
# - `user.message`: `content` is what was typed, unless `source` says that something else wrote it:
#   a skill, the autopilot, or `agent-<id>` for the prompt of a subagent. `transformedContent`
#   repeats it with what the program added, and is left out.
# - `assistant.message`: a text, a thought and tool calls; without any of them, nothing.
#   `tool.execution_start` repeats the calls. `tool.user_requested` is a call that a person made.
# - `tool.execution_complete`: the result of a call, or its error; the code `rejected` says that the
#   person did not allow it. Shells end their output with `<exited with exit code 0>`.
# - `session.compaction_complete` has a summary, `session.task_complete` the last answer of the
#   autopilot. `session.error`, `session.warning`, `session.info`, `system.notification` and `abort`
#   are notices of the program.
#
# `session.start`, `session.resume` and `session.context_changed` state where the session is,
# `session.title_changed` what it is called, `session.snapshot_rewind` from which event on it was
# taken back. All other types are kept as they are, without texts that others have: the results of
# tools in `hook.start` and the instructions in `system.message` are half of a file.
#
# **Subagents** write into the same file. Their events have an `agentId`, in older versions the
# `parentToolCallId` of the call that started them; `subagent.started` names both.
#
# Tokens are described in `copilot_tokens`.


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

    action_of = staticmethod(_action_of)

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim)
        self.context: dict[str, Any] = dict(context)
        """What later lines need: what was spent, where the last prompts are, and where the session
        is."""
        self.tokens = Tokens(self, self.context)
        self._agent: str | None = None

    def take(self, value: JSONObject) -> None:
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
        self.call(name, given, text, call, paths=paths)

    def _result(self, data: JSONObject) -> None:
        result, error = self.mapping(data, "result"), self.mapping(data, "error")
        is_error = data.get("success") is False
        text = text_of(result.get("content")) if result else self.text(error, "message") or ""
        is_declined = is_error and error.get("code") == "rejected"
        self.answer(
            text,
            self.text(data, "toolCallId"),
            is_error=is_error,
            status=DECLINED if is_declined else None,
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
        self.records.append(AgentLink(agent, call, BY_RESULT, self.start))
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


_WORKSPACE = "workspace"
_PRIVATE = frozenset(["config.json", "mcp-config.json", "logs", "mcp-oauth-config"])
_LONGEST_VALUE = 2000
_NO_VALUES = ("|", "|-", ">", ">-", "null", "~")  # or texts of several lines
_TAKEN = ("cwd", "branch", "name", "summary", "created_at", "updated_at")


class Copilot(AgentSource):
    """The source of kind `copilot`."""

    name = "copilot"
    label = "Copilot CLI"
    unread_places = (
        *("agents", "history-session-state", "hooks", "ide", "pkg", "restart", "session-store.db"),
        *("skills",),
    )
    checked = "0.0.342 to 1.0.102"
    known_lines = TYPES
    variable, place = "COPILOT_HOME", ".copilot"
    resume = ("copilot", "--resume={}")

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Tokens, and logs that can repeat them."""
        return parts[0].casefold() in _PRIVATE

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        return parts[0] == "session-state" and len(parts) <= 2

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("session-state", session, "events.jsonl"):
                return Claim(self.name, "transcript", session_key=session)
            case ("session-state", session, "workspace.yaml"):
                return Claim(self.name, _WORKSPACE, session_key=session)
            case ("session-state", name) if name.endswith(".jsonl"):
                return Claim(self.name, "transcript", session_key=name.removesuffix(".jsonl"))
        return None

    def shape(self, claim: Claim) -> str:
        """Conversations grow; what is said about one is rewritten."""
        return DOCUMENT if claim.kind == _WORKSPACE else LOG

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; what was spent before comes from earlier lines."""
        if claim.kind == _WORKSPACE:
            (line,) = lines
            return list(_workspace(claim, line)), context
        events = Events(claim, context)
        for value in events.objects(lines, is_ours):
            events.take(value)
        return events.finish(), events.context


def _workspace(claim: Claim, line: Line) -> Iterator[Record]:
    """Yield what the description of a session says about it."""
    text, records = document_text(line)
    values = _values(text)
    if not values:
        yield from nothing_in(line, "no values")
        return
    yield from records
    cwd = values.get("cwd")
    if cwd is not None:
        yield ProjectEntry(comparable(cwd), None, cwd)
    yield SessionEntry(
        claim.session_key or "",
        "meta",
        summary=values.get("name") or values.get("summary"),
        started_at=utc(values.get("created_at")),
        ended_at=utc(values.get("updated_at")),
        project_key=comparable(cwd) if cwd is not None else None,
        git_branch=values.get("branch"),
        cwd=cwd,
    )
    rest = {key: value for key, value in values.items() if key not in _TAKEN}
    if rest:
        yield LineExtra(_WORKSPACE, None, json_text(rest), 0, len(line.data))


def _values(text: str) -> dict[str, str]:
    """Return the values of plain lines `key: value`; those of lists and of objects are left out."""
    values: dict[str, str] = {}
    key = ""
    for line in text.split("\n"):
        if line[:1] in (" ", "\t"):
            if key and len(values[key]) < _LONGEST_VALUE:
                values[key] = f"{values[key]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon or not value or not key.replace("_", "").isalnum():
            key = ""  # what follows is indented, and belongs to a list or an object
            continue
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        values[key] = value[1:-1] if is_quoted else "" if value in _NO_VALUES else value
    return {key: value[:_LONGEST_VALUE] for key, value in values.items() if value}

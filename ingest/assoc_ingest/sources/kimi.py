"""Kimi CLI: conversations with Moonshot's agent for the terminal, below `~/.kimi`.

```
kimi.json                                          {"work_dirs":[{"path":"/srv","kaos":"local"}]}
sessions/<directory>/<session>/wire.jsonl          a conversation as it was shown (0.59 on)
sessions/<directory>/<session>/state.json          its title and its settings (1.14 on)
sessions/<directory>/<session>/subagents/<agent>/  wire.jsonl and meta.json of a subagent (1.25 on)
```

`KIMI_SHARE_DIR` replaces `~/.kimi`. `<directory>` is the MD5 of the working directory, on another
machine with the name of the connection before it; only `kimi.json` tells which one that is.

Beside `wire.jsonl` is `context.jsonl`, what the model gets next: the same messages without times,
begun anew when it is compacted, cleared or reverted. `wire.jsonl` only grows, and it alone has
times and tokens: it is read and the other is not, so nothing counts twice. Missing is what only a
context has: summaries of compactions, and conversations before 0.59.

Credentials are or may be in `config.toml`, `config.json`, `mcp.json`, `credentials/`, `mcp-oauth/`,
`logs/` and `telemetry/`. `user-history/` repeats prompts, without times and sessions.

The format is that of the program's source, from 0.59 (November 2025) to 1.49.0 (July 2026).
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b, md5

from ..fields import MAX_NAME, left_over, mapping, obvious_text, placeholder, string, without
from ..records import (
    BY_PROGRESS,
    BY_RESULT_TEXT,
    DECLINED,
    AgentLine,
    AgentLink,
    AgentMeta,
    ProjectEntry,
    Record,
    SessionEntry,
)
from ..source import DOCUMENT, LOG, Claim, Context, Line
from .chat_reader import AgentSource, ChatReader, Position, actions, exit_code, text_of
from .reader import JSONObject, Reader, exact_object, object_in
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# The lines of `wire.jsonl`, what the agent tells the program that shows it, to protocol 1.10.
#
# ```json
# {"type":"metadata","protocol_version":"1.10"}
# {"timestamp":1767258000.1,"message":{"type":"TurnBegin","payload":{"user_input":".."}}}
# {..,"message":{"type":"ContentPart","payload":{"type":"think","think":".."}}}
# {..,"message":{"type":"ToolCall","payload":{"type":"function","id":"Shell:0",
#  "function":{"name":"Shell","arguments":"{\"command\":\"ls\"}"}}}}
# {..,"message":{"type":"StatusUpdate","payload":{"message_id":"..","token_usage":{
#  "input_other":600,"output":40,"input_cache_read":0,"input_cache_creation":0}}}}
# {..,"message":{"type":"ToolResult","payload":{"tool_call_id":"Shell:0",
#  "return_value":{"is_error":false,"output":"..","message":"..","display":[]}}}}
# {..,"message":{"type":"SubagentEvent","payload":{"parent_tool_call_id":"Agent:1",
#  "agent_id":"a1b2c3d4","event":{"type":"TurnBegin","payload":{}}}}}
# ```
#
# - Lines have no ids. A fork, or `/undo`, is a new session that begins with the same bytes, so the
#   digest of a line identifies it. Of which session it is a fork is not stated.
# - Models count their calls (`Shell:0`), and start again after a compaction. A result comes in the
#   step of its call, which tells such ids apart.
# - **Tokens** are those of one step (0.66 on), input without the cache. Not stated: the model, the
#   cost, and what a compaction or a side question (`Btw..`) took.
# - **Subagents** that a turn waits for are repeated as `SubagentEvent`. Before 1.25 that is their
#   only record: without `agent_id`, they are named by their call (`task_tool_call_id`).
# - A failed request is repeated (`StepRetry`), and a model takes back what it did (`SendDMail`). No
#   line says how much that is, so nothing is marked.


_action_of = actions(
    run="Shell Bash CMD TaskList TaskOutput TaskStop",
    read="ReadFile ReadMediaFile FetchURL",
    edit="WriteFile StrReplaceFile PatchFile",
    search="Glob Grep SearchWeb",
    plan="SetTodoList Think EnterPlanMode ExitPlanMode",
    spawn="Agent Task CreateSubagent",
    ask="AskUserQuestion",
)
_SAID = {
    "Notification": ("task_notification", "system", ("title", "body")),
    "PlanDisplay": ("system", "system", ("content",)),
    "BtwBegin": ("prompt", "user", ("question",)),
    "BtwEnd": ("text", "assistant", ("response",)),
}
"""Lines that are one text: the kind and the role of their row, and where the text is."""

_MEDIA = ("image_url", "audio_url", "video_url")
_REPEATED = {
    **{kind: fields for kind, (_, _, fields) in _SAID.items()},
    **dict.fromkeys(("TurnBegin", "SteerInput"), ("user_input",)),
    "ContentPart": ("type", "text", "think", "encrypted", *_MEDIA),
    "ToolCall": ("type", "id", "function", "extras"),
    "ToolResult": ("tool_call_id", "return_value", "is_error", "output", "message", "display"),
    "StatusUpdate": ("token_usage", "message_id"),
    **dict.fromkeys(("ApprovalRequest", "ToolCallRequest"), ("display", "arguments")),
}
"""Fields of a payload that have rows, repeat what others have, or are for the provider alone."""

_OF_AGENT = "SubagentEvent"
_EVENTS = (
    *_REPEATED,
    *("TurnEnd", "StepBegin", "StepInterrupted", "StepRetry", "CompactionBegin", "CompactionEnd"),
    *("HookTriggered", "HookResolved", "HookRequest", "MCPLoadingBegin", "MCPLoadingEnd"),
    *("ToolCallPart", "ApprovalResponse", "ApprovalRequestResolved", "QuestionRequest"),
)
TYPES = frozenset([*_EVENTS, "metadata", *(f"{_OF_AGENT}/{event}" for event in _EVENTS)])

_BY_PROGRAM = ("<system-reminder>", "[Imported context from ")  # how turns begin that nobody typed
_COUNTED = ("input_other", "output", "input_cache_read", "input_cache_creation")


def _media(block: JSONObject) -> str | None:
    """Return the description of an image, a sound or a video; None for other parts."""
    kind = string(block.get("type")) or ""
    if kind not in _MEDIA:
        return None
    url, name = string(mapping(block.get(kind)).get("url")) or "", kind.removesuffix("_url")
    media_type, is_here, data = url.removeprefix("data:").partition(";base64,")
    source = {"media_type": media_type, "data": data} if is_here else {"type": "url"}
    return placeholder({"type": name, "source": source, "title": None if is_here else url})


class Wire(ChatReader):
    """Reads the lines of a conversation or a subagent; later ones need where a step began."""

    action_of = staticmethod(_action_of)
    _agent: str | None = None  # whose event the line has

    @staticmethod
    def is_ours(value: JSONObject) -> bool:
        return "protocol_version" in value or "type" in mapping(value.get("message"))

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the type of the message, and that of the event in it if it is a subagent's."""
        message = mapping(value.get("message")) or value
        kind, event = message.get("type"), mapping(mapping(message.get("payload")).get("event"))
        return string(kind) or "", (string(event.get("type")) or "") if kind == _OF_AGENT else ""

    def take(self, value: JSONObject) -> None:
        kind, _ = self.line_type
        payload = self.mapping(self.mapping(value, "message"), "payload")
        self._agent, digest = None, blake2b(self.data, digest_size=8).hexdigest()
        self.begin({**value, "uuid": digest}, is_message=False if kind == _OF_AGENT else None)
        self._event(kind, payload)
        self.keep_rest({**value, "type": kind}, (), _bare)

    def _subagent(self, payload: JSONObject) -> None:
        """Read the event of a subagent, unless that has a file of its own."""
        call = self._call_id(payload, "parent_tool_call_id")
        call = call or self._call_id(payload, "task_tool_call_id")
        agent = self.name(payload, "agent_id") or call
        if agent and call is not None:
            self.records.append(AgentLink(agent, call, BY_PROGRESS, self.start))
        if agent and agent not in self.claim.elsewhere:
            self.records.append(AgentLine(agent, self.start))
            self._agent, event = agent, self.mapping(payload, "event")
            self._event(string(event.get("type")) or "", self.mapping(event, "payload"))

    def _event(self, kind: str, payload: JSONObject) -> None:
        if kind == "StepBegin" and self._agent is None:
            self.context["step"] = self.start
        elif kind in ("TurnBegin", "SteerInput"):
            is_asked = self._agent is None and self.claim.agent_key is None
            said = [{"text": payload.get("user_input")}]
            is_text = isinstance(payload.get("user_input"), str)
            for block in said if is_text else self.items(payload, "user_input"):
                self._say(block, "prompt" if is_asked else "agent_prompt", "user")
        elif kind == "ContentPart":
            thought = payload.get("type") == "think"
            self._say(payload, "thinking" if thought else "text", "assistant")
        elif kind == _OF_AGENT and self._agent is None:
            self._subagent(payload)
        elif kind in _READS:
            _READS[kind](self, payload)
        elif kind in _SAID:
            row, role, keys = _SAID[kind]
            if text := "\n".join(filter(None, (self.text(payload, key) for key in keys))):
                self.say(row, text, role)
        elif kind not in (*_EVENTS, _OF_AGENT) and (text := obvious_text(payload)):
            self.say("system", text, "system")

    def _say(self, block: JSONObject, kind: str, role: str) -> None:
        text = self.text(block, "think" if kind == "thinking" else "text") or obvious_text(block)
        if (media := _media(block)) is not None:
            self.say("image", media, role)
        elif role == "user" and text.lstrip().startswith(_BY_PROGRAM):
            self.say("meta", text, "system")
        else:
            self.say(kind, text, role)

    def _call_id(self, value: JSONObject, key: str) -> str | None:
        """Return the id of a call as no other call of the file has it."""
        identity = self.name(value, key)
        if identity is not None and self._agent is not None:
            return f"{self._agent}/{identity}"
        is_counted = identity is not None and identity.rpartition(":")[2].isdigit()
        return f"{identity}@{self.context.get('step', 0)}" if is_counted else identity

    def called(self, payload: JSONObject) -> None:
        function = self.mapping(payload, "function")
        text = self.text(function, "arguments") or "{}"
        name, key = self.text(function, "name"), self._call_id(payload, "id")
        self.call(name, object_in(text), text, key)

    def add_lines(self, arguments: JSONObject, position: Position) -> None:
        """Add the lines that came; an edit has one replacement, or a list of them."""
        edit = arguments.get("edit")
        edits = [mapping(item) for item in (edit if isinstance(edit, list) else [edit])]
        named = [{"old_text": item.get("old"), "new_text": item.get("new")} for item in edits]
        super().add_lines({"edits": named} if edit else arguments, position)

    def answered(self, payload: JSONObject) -> None:
        result = self.mapping(payload, "return_value")
        output, message = result.get("output"), self.text(result, "message") or ""
        parts = output if isinstance(output, list) else [output or ""]
        output = text_of([_media(mapping(part)) or part for part in parts])
        is_error = self.flag(result, "is_error") == 1
        # The message of a refusal varies; what is displayed of it always begins alike.
        briefs = [item.get("text") or item.get("data") for item in self.items(result, "display")]
        is_refused = is_error and any(str(brief).startswith("Rejected") for brief in briefs)
        status, code = DECLINED if is_refused else None, exit_code(message, " exit code: ", ".")
        text = "\n".join(filter(None, (output, message)))
        call = self._call_id(payload, "tool_call_id")
        self.answer(text, call, is_error=is_error, status=status, exit_code=code)
        agent = output.partition("agent_id: ")[2][:MAX_NAME].partition("\n")[0]
        if call is not None and agent and "actual_subagent_type: " in output:
            self.records.append(AgentLink(agent, call, BY_RESULT_TEXT, self.start))

    def spent(self, payload: JSONObject) -> None:
        tokens = self.mapping(payload, "token_usage")
        counts = Counts(*(self.count(tokens, name) for name in _COUNTED))
        if any(counts) and self._uuid is not None:
            self.use(self._uuid, counts, api_message_id=self.name(payload, "message_id"))


_READS = {"ToolCall": Wire.called, "ToolResult": Wire.answered, "StatusUpdate": Wire.spent}


def _bare(value: JSONObject) -> JSONObject:
    """Return a line without what its rows have, or others repeat."""
    message = value.get("message")
    return without({**value, **_rest(message)}, ["message"]) if isinstance(message, dict) else value


def _rest(message: JSONObject) -> JSONObject:
    kind, payload = string(message.get("type")) or "", message.get("payload")
    if isinstance(payload, dict):
        result = mapping(payload.get("return_value")) if kind == "ToolResult" else {}
        rest = without({**payload, **result}, _REPEATED.get(kind, ()))
        payload = {key: item for key, item in rest.items() if item is not None}
        event = mapping(payload.get("event")) if kind == _OF_AGENT else {}
        if event and event.get("type") != _OF_AGENT:
            payload["event"] = {"type": event.get("type"), **_rest(event)}
    return {**without(message, ["type"]), "payload": payload}


def _projects(reader: Reader, value: JSONObject) -> None:
    """Read the list of working directories."""
    for item in reader.items(value, "work_dirs"):
        path, kaos = reader.text(item, "path"), reader.text(item, "kaos") or "local"
        if path is not None:
            digest = md5(path.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
            directory = digest if kaos == "local" else f"{kaos}_{digest}"
            reader.records.append(ProjectEntry(directory, None, path))


def _state(reader: Reader, value: JSONObject) -> None:
    """Read the title of a session: of its person, of a model, or of its first prompt."""
    session, title = reader.claim.session_key or "", reader.text(value, "custom_title")
    reader.records.append(SessionEntry(session, "meta", summary=title))


def _agent(reader: Reader, value: JSONObject) -> None:
    kind, about = reader.text(value, "subagent_type"), reader.text(value, "description")
    model = reader.text(reader.mapping(value, "launch_spec"), "effective_model")
    reader.records.append(AgentMeta(kind, about, None, model, None, None, None))


_DOCUMENTS = {"project_list": _projects, "state": _state, "agent_meta": _agent}
_TAKEN = ("work_dirs", "custom_title", "subagent_type", "description")
_SECRET = ("config.toml", "config.json", "mcp.json", "credentials", "mcp-oauth")


def _is_directory(name: str) -> bool:
    is_digest = len(name) >= 32 and not name[-32:].strip("0123456789abcdef")
    return is_digest and name[-33:-32] in ("", "_")


class Kimi(AgentSource):
    """The source of kind `kimi`."""

    name, label, checked = "kimi", "Kimi CLI", "0.59 to 1.49.0"
    unread_places = ("bin", "imported_*", "plans", "plugins", "prompt-*", "skills", "user-*")
    known_lines = TYPES
    variable, place = "KIMI_SHARE_DIR", ".kimi"
    resume = ("kimi", "--session", "{}")
    telling = ("kimi.json",)

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Credentials, settings that can contain some, and logs that can repeat them."""
        return parts[0].casefold() in (*_SECRET, "logs", "telemetry")

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        is_there = parts[0] == "sessions" and all(map(_is_directory, parts[1:2]))
        return is_there and parts[3:4] in ((), ("subagents",)) and len(parts) <= 5

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("kimi.json",):
                return Claim(self.name, "project_list")
            case ("sessions", directory, session, name):
                kinds, agent = {"wire.jsonl": "transcript", "state.json": "state"}, None
            case ("sessions", directory, session, "subagents", agent, name):
                kinds = {"wire.jsonl": "agent", "meta.json": "agent_meta"}
            case _:
                return None
        ours = name in kinds and _is_directory(directory)
        return Claim(self.name, kinds[name], session, agent, directory, directory) if ours else None

    def shape(self, claim: Claim) -> str:
        """Conversations grow; what is said about them is rewritten."""
        return DOCUMENT if claim.kind in _DOCUMENTS else LOG

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; the step of a result comes from earlier lines."""
        if claim.kind in _DOCUMENTS:
            reader = Reader(claim)
            for value in reader.document(lines):
                _DOCUMENTS[claim.kind](reader, value)
                reader.keep(left_over(value, _TAKEN, lambda: exact_object(reader.data)))
            return reader.finish(), context
        return Wire(claim, context=context).read_lines(lines)

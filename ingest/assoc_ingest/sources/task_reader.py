"""Shared by Cline and agents that were made from it: reads the lines of a task (`task_store`).

* **Messages** have texts, `thinking`, and calls with their results, as the API of Anthropic has
  them. Before native calls (2025), a call was a text, `<read_file><path>a</path></read_file>`,
  and its result a text after `[read_file for 'a'] Result:`.
* In a message of the user, only what is in `<task>`, `<feedback>`, `<answer>`, `<user_message>`
  or `<user_input>` was typed, also within results. `<environment_details>` is the program's, and
  states the working directory, and in Roo Code the mode and the model.
* **Tokens** are those of one request. Input is without what the cache had; where `apiProtocol`
  is stated (Roo Code since 2025), it includes that.
* **A summary** that takes the place of earlier messages has `isSummary`; they stay. Before, Roo
  Code deleted them: of these, only what was shown is left, without calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from ..fields import is_count, json_text, leaves, mapping, placeholder, string, without
from ..records import DECLINED, EDIT, ERROR, READ, AgentMeta
from .chat_reader import ChatReader, Position, exit_code, text_of
from .reader import JSONObject, object_in
from .task_store import MESSAGES, REPEATED, SHOWN, SPENT, kind_of, moment_of, text_shown
from .tokens import Counts, beside_cache

_TYPED = ("task", "feedback", "answer", "user_message", "user_input")
_ENVIRONMENT = "<environment_details>"
_PLACES = ("# Current Working Directory (", "# Current Workspace Directory (")
_SPOKEN = {
    "attempt_completion": "result",
    "plan_mode_respond": "response",
    "act_mode_respond": "response",
}
"""Calls by which the agent only speaks, and the argument that has what it says."""

_RESULT, _LONGEST_HEAD, _LONGEST_TAG = "Result:", 1000, 50
_BEFORE_TYPED = ("feedback:", "context:", "message:")
_OPAQUE = ("redacted_thinking", "thoughtSignature")
_REASONING = ("reasoning_details", "reasoning_content")
_DECLINED = ('{"status":"denied"', "The user denied this operation")
_FAILED = ('{"status":"error"', "The tool execution failed", "[ERROR]")
_SAID = {
    **dict.fromkeys(("task", "user_feedback"), ("prompt", "user")),
    **dict.fromkeys(("text", "completion_result", "plan_completion_result"), ("text", "assistant")),
    **dict.fromkeys(("followup", "plan_mode_respond", "act_mode_respond"), ("text", "assistant")),
    "reasoning": ("thinking", "assistant"),
    **dict.fromkeys(
        (
            *("error", "api_req_failed", "mistake_limit_reached", "diff_error", "rooignore_error"),
            *("clineignore_error", "condense_context_error", "command_permission_denied"),
        ),
        ("error", "system"),
    ),
}
"""The kind and the role of what is shown; anything else is the program's."""

_OTHERS = (
    *("report_bug", "new_task", "condense", "summarize_task", "auto_approval_max_req_reached"),
    *("shell_integration_warning", "shell_integration_warning_with_suggestion", "info", "subagent"),
    *("mcp_notification", "task_progress", "hook_status", "hook_output_stream", "compaction"),
    *("conditional_rules_applied", "generate_explanation", "api_req_retry_delayed"),
    *("api_req_rate_limit_wait", "subtask_result", "sliding_window_truncation"),
    *("too_many_tools_warning",),
)
KNOWN_LINES = frozenset(
    [
        *(f"{SHOWN}/{kind}" for kind in (*_SAID, *SPENT, *REPEATED, *_OTHERS)),
        *("message/user", "message/assistant", "task/", "metadata/", "loss/"),
    ]
)
_MOST_MODELS, _MOST_CALLS, _LONGEST_NAME = 100, 100, 200  # that later lines need
_IN_USAGE = (
    *("request", "tokensIn", "tokensOut", "cacheWrites", "cacheReads", "cost", "summary"),
    "streamingFailedMessage",
)
_IN_ROWS = (
    *("role", "content", "ts", "type", "say", "ask", "text", "partial", "modelInfo", "images"),
    "contextCondense",
)


class Written(NamedTuple):
    """A call that is a text: where it begins and ends, its name and its arguments."""

    begin: int
    end: int
    name: str
    arguments: dict[str, object]


def calls_in(text: str, tools: Iterable[str]) -> list[Written]:
    """Return the calls that are written in a text, in its order."""
    calls = []
    for name in tools:
        begin = text.find(f"<{name}>")
        while begin >= 0:
            inner = begin + len(name) + 2
            end = text.find(f"</{name}>", inner)
            stop = len(text) if end < 0 else end
            calls.append(Written(begin, stop, name, _arguments(text[inner:stop])))
            begin = text.find(f"<{name}>", stop)
    outer: list[Written] = []
    for call in sorted(calls):
        if not outer or call.begin >= outer[-1].end:  # else it is an argument
            outer.append(call)
    return outer


def _arguments(text: str) -> dict[str, object]:
    arguments: dict[str, object] = {}
    begin = text.find("<")
    while begin >= 0:
        close = text.find(">", begin, begin + _LONGEST_TAG)
        name = text[begin + 1 : max(close, begin)]
        if not name.isidentifier():
            begin = text.find("<", begin + 1)
            continue
        end = text.find(f"</{name}>", close)
        stop = len(text) if end < 0 else end
        arguments[name] = text[close + 1 : stop].strip("\n")
        begin = text.find("<", stop + len(name) + 3)
    return arguments


def typed_in(text: str, *, is_result: bool) -> tuple[list[str], str]:
    """Return what a person typed in a text of the program, and the text without it.

    A result may be that of a file that has such tags, too.
    """
    typed = []
    for tag in _TYPED:
        begin = text.find(f"<{tag}")
        close, end = text.find(">", begin), text.find(f"</{tag}>", begin)
        if not 0 <= begin < close < end:
            continue
        before = text[:begin].rstrip()
        if not before or before.endswith(_BEFORE_TYPED if is_result else (":", ">", ".")):
            typed.append(text[close + 1 : end].strip())
            text = f"{before}\n{text[end + len(tag) + 3 :]}"
    return typed, text.strip()


def _status(text: str, *, is_error: bool) -> str | None:
    """Return how a call ended, as far as its result says so."""
    if text.startswith(_DECLINED):
        return DECLINED
    return ERROR if is_error or text.startswith(_FAILED) else None


class TaskReader(ChatReader):
    """Reads the lines of a task; a source says which tools there are.

    Later lines need the model, the calls without ids, and whether a task was given.
    """

    tools: tuple[str, ...] = ()
    """The tools whose calls may be written in a text."""
    is_typed = False
    """Is a text of a user what a person typed, unless it says otherwise?"""

    type_key = "table"

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        data, kind = mapping(value.get("data")), string(value.get("table")) or ""
        subtype = kind_of(data) if kind == SHOWN else string(data.get("role")) or ""
        return kind, subtype if kind in (SHOWN, MESSAGES) else ""

    def take(self, value: JSONObject) -> None:
        table, data = string(value.get("table")), value.get("data")
        if table == "loss":
            self.note(self.text(value, "reason") or "loss")
        elif table not in self._readers or not isinstance(data, dict):
            self.refuse("data: not a JSON object" if table in self._readers else "unknown table")
        else:
            self.begin({"timestamp": value.get("time", data.get("ts"))}, is_message=None)
            self._readers[table](self, value, data)

    # -- the task --------------------------------------------------------------------------------

    def _task(self, value: JSONObject, data: JSONObject) -> None:
        """Read what the item of a list states of the task."""
        self.begin({}, is_message=False)
        mode, about = self.name(data, "mode"), self.text(data, "task")
        self.fact("mode", mode)
        if (cwd := self.name(data, "workspace")) is not None:
            self._place(cwd)
        if self.claim.agent_key is not None:
            self.fact("stated_session_key", session_above(data))
            self.records.append(AgentMeta(mode, about, None, None, None, None, None))
        self.keep_left("task", data, ("task", "workspace", "mode", "ts"))

    def _metadata(self, value: JSONObject, data: JSONObject) -> None:
        """Read which models were used from when on, and the version that was last used."""
        self.begin({}, is_message=False)
        used = self.items(data, "model_usage")[-_MOST_MODELS:]
        stated = [(item.get("ts"), self.name(item, "model_id")) for item in used]
        self.context["models"] = [
            [moment, model[:_LONGEST_NAME]]
            for moment, model in stated
            if is_count(moment) and model
        ]
        for item in self.items(data, "environment_history"):
            self.fact("agent_version", self.name(item, "cline_version"))
        self.keep_left("metadata", data, ("model_usage", "files_in_context"))

    def _place(self, cwd: str) -> None:
        if "cwd" not in self.context:
            self.context["cwd"] = True
            self.fact("first_cwd", cwd)
            if self.claim.agent_key is None:
                self.settle(cwd)

    # -- what was shown --------------------------------------------------------------------------

    def _shown(self, value: JSONObject, data: JSONObject) -> None:
        kind = kind_of(data)
        stated = self.name(self.mapping(data, "modelInfo"), "modelId")
        earlier = [model for at, model in self.context.get("models", ()) if at <= moment_of(data)]
        self.model = stated or (earlier[-1] if earlier else self.context.get("model"))
        row, role = _SAID.get(kind, ("system", "system"))
        if kind == "text" and "is_begun" not in self.context:
            row, role = "prompt", "user"  # the first text is the task
        self.context["is_begun"] = True
        rest: JSONObject = {}
        if kind in SPENT:
            rest = self._spent(kind, data)
        else:
            self.model = self.model if role == "assistant" else None
            if text := text_shown(data):
                self._say(row, text, role)
            if (thought := self.text(data, "reasoning")) is not None:
                self.say("thinking", thought, "assistant")
        self.keep_left(kind, {**data, **rest}, (*_IN_ROWS, "conversationHistoryIndex", "reasoning"))

    def _say(self, row: str, text: str, role: str) -> None:
        if row == "prompt" and self.claim.agent_key is not None:
            row = "agent_prompt"
        self.say(row, text, role, is_error=row == "error")

    def _spent(self, kind: str, data: JSONObject) -> JSONObject:
        """Note what a request took: the object in its text states it. Return the rest of that."""
        stated = object_in(self.text(data, "text")) or self.mapping(data, "contextCondense")
        given, output, written, cached = (
            self.count(stated, name)
            for name in ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")
        )
        counts = Counts(given, output, cached, written)
        if "apiProtocol" in stated and given >= cached + written:
            counts = beside_cache(given, output, cached, written)
        cost = self.number(stated, "cost") or None
        if any(counts) or cost:
            key = f"{self.claim.agent_key or self.claim.session_key}:{kind}:{moment_of(data)}"
            self.use(key, counts, stated_cost_usd=cost)
        if failure := self.text(stated, "streamingFailedMessage"):
            self.say("error", failure, "system", is_error=True)
        return without(stated, _IN_USAGE)

    # -- messages --------------------------------------------------------------------------------

    def message(self, value: JSONObject, data: JSONObject) -> None:
        """Read a message that was sent or received."""
        content = data.get("content")
        said: list[object] = content if isinstance(content, list) else [content]
        blocks = [
            {"type": "text", "text": item} if isinstance(item, str) else item for item in said
        ]
        is_users = data.get("role") == "user"
        if not is_users:
            self.context["calls"] = []
            stated = self.mapping(data, "modelInfo")
            model = self.name(stated, "modelId") or self.name(stated, "id")
            self.model = model or self.context.get("model")
            self._reasoning(data)
        self._result: list[str] | None = None  # of a call without an id, whose texts are read
        for block in blocks:
            if not isinstance(block, dict):
                self._expect(block is None, "content", block)
            elif block.get("type") == "text":
                text = self.text(block, "text") or ""
                self._user(text, data) if is_users else self._assistant(text, value)
            else:
                self._block_of(block, is_users=is_users)
        self._end_result()
        self.context["is_begun"] = True
        self.keep_left(MESSAGES, data, (*_IN_ROWS, "id", "metrics", *_REASONING))

    def _reasoning(self, data: JSONObject) -> None:
        """Read reasoning beside the content, which has none then."""
        texts = [self.text(data, "reasoning_content")]
        for item in self.items(data, "reasoning_details"):
            texts += [string(item.get("text")), string(item.get("summary"))]
        for text in filter(None, texts):
            self.say("thinking", text, "assistant")

    def _block_of(self, block: JSONObject, *, is_users: bool) -> None:
        """Read a block that is no text."""
        kind = string(block.get("type")) or ""
        if kind == "tool_use":
            given = block.get("input") or {}
            self._call(self.name(block, "name"), mapping(given), self.name(block, "id"), given)
        elif kind == "tool_result":
            text = _result_text(block.get("content"))
            self.answer_call(
                text, self.name(block, "tool_use_id"), is_error=block.get("is_error") is True
            )
        elif kind in ("thinking", "reasoning"):
            summary = text_of(block.get("summary") or "")
            text = self.text(block, "thinking") or self.text(block, "text") or summary
            if text:
                self.say("thinking", text, "assistant")
        elif kind == "file":
            self.say("meta", _media(block), "system")
        elif kind in ("image", "document") and self._result is not None:
            self._result.append(_media(block))
        elif kind in ("image", "document"):
            self.say("image", _media(block), "user" if is_users else "assistant")
        elif kind not in _OPAQUE and (text := "\n".join(leaves(block))):
            self.say("system", text, "system")

    def _call(
        self, name: str | None, arguments: dict[str, object], key: str | None, given: object
    ) -> None:
        """Add a call; by some, the agent only speaks."""
        said = arguments.get(_SPOKEN.get(name or "", ""))
        if isinstance(said, str):
            self.say("text", said, "assistant")
            spoken = [*self.context.get("spoken", ()), (key or "")[:_LONGEST_NAME]]
            self.context["spoken"] = spoken[-_MOST_CALLS:]
            return
        paths, about = _paths(arguments), dict(arguments)
        if paths and self.action_of(name) in (READ, EDIT):
            about = {"file_path": paths[0]}
        elif isinstance(commands := arguments.get("commands"), list):
            about = {"command": "\n".join(filter(None, map(string, commands)))}
        elif "regex" in arguments:
            about = {"pattern": arguments["regex"]}
        self.call(name, about, json_text(given), key, paths=paths)

    def add_lines(self, arguments: JSONObject, position: Position) -> None:
        """Add the lines that came; blocks to search for and to replace are pairs."""
        diff = arguments.get("diff")
        pairs = replaced_in(diff) if isinstance(diff, str) else []
        super().add_lines({"edits": pairs} if pairs else arguments, position)

    def _assistant(self, text: str, value: JSONObject) -> None:
        """Add what the agent says, and the calls that are written in it."""
        thought, text = _thinking(text)
        if thought:
            self.say("thinking", thought, "assistant")
        place = 0
        for number, call in enumerate(calls_in(text, self.tools)[:_MOST_CALLS]):
            if said := text[place : call.begin].strip():
                self.say("text", said, "assistant")
            key = f"{value.get('id')}.{number}"
            self.context["calls"].append(key)
            self._call(call.name, call.arguments, key, call.arguments)
            place = call.end + len(call.name) + 3
        if said := text[place:].strip():
            self.say("text", said, "assistant")

    def _user(self, text: str, data: JSONObject) -> None:
        """Add a text of the user: results, what was typed, and what the program says."""
        begin = text.lstrip()
        head, is_result, rest = begin.partition(_RESULT)
        is_head = begin.startswith("[") and len(head) < _LONGEST_HEAD
        if is_result and is_head and head.rstrip().endswith("]"):
            self._end_result()
            self._result = [rest.strip()]
        elif begin.startswith(_ENVIRONMENT):
            self._end_result()
            self._environment(begin)
        elif data.get("isSummary") is True:
            self.say("compact_summary", text, "system")
        elif self._result is not None:
            self._result.append(text)
        else:
            typed, rest = typed_in(begin, is_result=False)
            if not typed and rest and (self.is_typed or "is_begun" not in self.context):
                typed, rest = [rest], ""
            for said in filter(None, typed):
                self._say("prompt", said, "user")
            if rest:
                self.say("meta", rest, "system")

    def _end_result(self) -> None:
        """Add the result of a call that has no id."""
        if self._result is not None:
            calls = self.context.get("calls", [])
            key = calls.pop(0) if calls else None
            self.answer_call("\n".join(filter(None, self._result)), key, is_error=False)
            self._result = None

    def answer_call(self, text: str, key: str | None, *, is_error: bool) -> None:
        """Add the result of a call, and what was typed with it."""
        typed, rest = typed_in(text, is_result=True)
        code = exit_code(text[:_LONGEST_HEAD], "Exit code: ", "\n")
        status = _status(text, is_error=is_error or bool(code))
        if key is not None and key in self.context.get("spoken", ()):
            if rest:
                self.say("meta", rest, "system")
        else:
            text = rest if typed else text
            self.answer(text, key, is_error=False, status=status, exit_code=code)
        for said in filter(None, typed):
            self._say("prompt", said, "user")

    def _environment(self, text: str) -> None:
        """Add what the program says of the surroundings."""
        for mark in _PLACES:
            _, is_there, rest = text.partition(mark)
            cwd, has_end, _ = rest.partition(") Files")
            if is_there and has_end and "\n" not in cwd:
                self._place(cwd)
        for name, mark in (("model", "<model>"), ("mode", "<slug>")):
            stated = text.partition(mark)[2].partition("</")[0]
            if stated and len(stated) <= _LONGEST_NAME:
                self.context[name] = stated
                if name == "mode":
                    self.fact("mode", stated)
        self.say("meta", text, "system")

    _readers: ClassVar = {
        MESSAGES: message,
        SHOWN: _shown,
        "task": _task,
        "metadata": _metadata,
    }


def session_above(data: JSONObject) -> str | None:
    """Return the task that is the session of a task, which another one began."""
    above = string(data.get("parentTaskId"))
    return (string(data.get("rootTaskId")) or above) if above else None


def _thinking(text: str) -> tuple[str, str]:
    """Return the reasoning that a text begins with, and the rest."""
    begin = text.lstrip()
    if not begin.startswith("<thinking>"):
        return "", text
    thought, _, rest = begin.removeprefix("<thinking>").partition("</thinking>")
    return thought.strip(), rest


def _media(block: JSONObject) -> str:
    """Return the description of an image or a file; of a file with its text, that."""
    if (text := string(block.get("content"))) is not None:
        return "\n".join(filter(None, (string(block.get("path")), text)))
    source = {"media_type": block.get("mediaType"), "data": block.get("data")}
    return placeholder({"type": block.get("type"), "source": block.get("source") or source})


def _result_text(content: object) -> str:
    if not isinstance(content, list):
        return text_of(content)
    parts = [mapping(part) or part for part in content]
    kinds = ("image", "file", "document")
    return text_of(
        [_media(p) if isinstance(p, dict) and p.get("type") in kinds else p for p in parts]
    )


def _paths(arguments: dict[str, object]) -> list[str]:
    """Return the files that a call is given: one, a list of them, or a text with that."""
    listed = arguments.get("files")
    items = [mapping(item) or {"path": item} for item in listed] if isinstance(listed, list) else []
    if isinstance(text := arguments.get("args"), str):
        items = [_arguments(part) for part in text.split("<file>")[1:]]
    paths = [item.get("path") for item in (arguments, *items)]
    return [path for path in (*paths, arguments.get("file_path")) if isinstance(path, str) and path]


def replaced_in(diff: str) -> list[dict[str, str]]:
    """Return the pairs of texts in blocks to search for and to replace."""
    pairs: list[dict[str, str]] = []
    old: list[str] = []
    into: list[str] | None = None
    new: list[str] = []
    for line in diff.split("\n"):
        mark = line.lstrip("-<>+ ")
        if mark.startswith("SEARCH") and line[:3] in ("---", "<<<"):
            old, new = [], []
            into = old
        elif into is old and line.startswith("=====") and not line.strip("=\r "):
            into = new
        elif mark.startswith("REPLACE") and line[:3] in ("+++", ">>>"):
            pairs.append({"old_text": "\n".join(old), "new_text": "\n".join(new)})
            into = None
        elif into is old and line.startswith("-------"):
            old.clear()  # before it is where to search
        elif into is not None:
            into.append(line)
    return pairs

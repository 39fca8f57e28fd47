"""The answers in VS Code's chat: texts, calls and their results, whoever answers.

```json
{"value":"..","supportThemeIcons":false}  {"kind":"thinking","value":".."}
{"kind":"inlineReference","inlineReference":{"path":"/srv/demo/a.py","scheme":"file"}}
{"kind":"toolInvocationSerialized","toolId":"copilot_readFile","toolCallId":"c","isConfirmed":
 {"type":1},"pastTenseMessage":{"value":"Read [](file:///srv/demo/a.py)"},"toolSpecificData":
 {"kind":"terminal","commandLine":{"original":"ls"},"terminalCommandOutput":{"text":".."},
 "terminalCommandState":{"exitCode":0}},"resultDetails":{"input":"..","output":[]}}
```

What the model was told of calls follows later, in `result.metadata`: `toolCallRounds` and
`toolCallResults`, whose contents may be trees. The row of a part has a number that follows from its
place in the answer, so it is the same wherever the answer is repeated.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from urllib.parse import unquote, urlsplit

from ..fields import json_text, leaves, mapping, string, without
from ..records import BY_META, DECLINED, EDIT, AgentLink
from .chat_reader import ChatReader, Position, actions, image, image_in, patched
from .reader import JSONObject, object_in
from .tokens import Counts

_action_of = actions(
    run="run_in_terminal copilot_runInTerminal get_terminal_output create_and_run_task run_task "
    "get_task_output runTests copilot_runTests1 copilot_runNotebookCell copilot_runVscodeCommand",
    read="read_file copilot_readFile copilot_viewImage copilot_fetchWebPage fetch_webpage "
    "copilot_getErrors get_errors copilot_getChangedFiles copilot_githubRepo",
    edit="apply_patch copilot_applyPatch insert_edit_into_file copilot_insertEdit create_file "
    "copilot_createFile replace_string_in_file copilot_replaceString multi_replace_string_in_file "
    "copilot_multiReplaceString copilot_editNotebook copilot_editFile textEditGroup",
    search="semantic_search copilot_searchCodebase file_search copilot_findFiles list_dir "
    "copilot_listDirectory grep_search copilot_findTextInFiles copilot_searchWorkspaceSymbols",
    plan="manage_todo_list copilot_think copilot_memory memory",
    spawn="runSubagent search_subagent execution_subagent",
    ask="vscode_askQuestions vscode_get_confirmation",
)

_TOOLS = ("toolInvocationSerialized", "toolInvocation")
_MARKDOWN = ("markdownContent", "markdownVuln")
PARTS = frozenset(
    [
        *(*_TOOLS, *_MARKDOWN, "inlineReference", "thinking", "textEditGroup", "elicitation2"),
        *("autoModeResolution", "clearToPreviousToolInvocation", "codeblockUri", "command"),
        *("confirmation", "disabledClaudeHooks", "elicitation", "elicitationSerialized", "hook"),
        *("extensions", "externalEdit", "info", "mcpAuthenticationRequired", "multiDiffData"),
        *("mcpServersStarting", "mcpServersStartingSlow", "notebookEditGroup", "planReview"),
        *("prepareToolInvocation", "progressMessage", "progressTask", "progressTaskSerialized"),
        *("pullRequest", "questionCarousel", "systemNotification", "treeData", "undoStop"),
        *("voiceProgress", "warning", "workspaceEdit"),
    ]
)
"""The kinds of parts that are known, whatever becomes of them."""
_TEXTS = ("title", "subtitle", "message", "content", "description", "systemMessage", "stopReason")
_DIGITS, _MOST_PARTS, _MOST_CALLS, _LONGEST_ID = 8, 1000, 200, 100
_HIDDEN, _LAST = 1_000_000, 2_000_000  # numbers of rows after those of parts
_DEEPEST = 64


def path_in(value: object) -> str | None:
    """Return the path in a URI, which is a text or an object, or in a location."""
    uri = mapping(value).get("uri") or value
    path = string(mapping(uri).get("path")) or ""
    if isinstance(uri, str) and uri.startswith(("file:", "vscode-remote:")):
        path = unquote(urlsplit(uri.replace("[", "%5B")).path)
    return (path[1:] if path[2:3] == ":" else path) or None


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def text_in(value: object) -> str:
    return string(value) or string(mapping(value).get("value")) or ""  # text, or Markdown


def _words(part: JSONObject) -> str | None:
    """Return what a part adds to the text of the answer, None if it is something else."""
    if (kind := part.get("kind")) == "inlineReference":
        reference = part.get("inlineReference")
        place = path_in(mapping(reference).get("location") or reference) or ""
        return f"`{string(part.get('name')) or place.rpartition('/')[2]}`"
    if kind in _MARKDOWN:
        return text_in(part.get("content")) or text_in(part)
    return string(part.get("value")) if kind is None else None


def _shown(value: object, depth: int = 0) -> str:
    """Return the text of a tool's result, which may be in a tree that was made for the model."""
    if not value or isinstance(value, str):
        return string(value) or ""
    if isinstance(value, list):
        items = value if depth < _DEEPEST else ()
        return "\n".join(filter(None, (_shown(item, depth + 1) for item in items)))
    block = mapping(value)
    if block.get("isText") is False:
        return image(block.get("mimeType"), block.get("value"))
    if text := string(block.get("text")) or image_in(block):
        return text
    inner = (block.get("children"), block.get("node"), block.get("value"))
    return _shown([item for item in inner if item], depth)


def attached(variable: JSONObject) -> str:
    """Return what was attached to a request: its name, and a path or a text."""
    value, name = variable.get("value"), string(variable.get("name")) or ""
    if variable.get("kind") == "image":
        return f"{image(variable.get('mimeType'), mapping(value).get('$base64'))} {name}"
    return "\n".join(filter(None, (name, path_in(value) or string(value), text_in(variable))[:2]))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=_DIGITS // 2).hexdigest()


def _call_id(value: object) -> str:
    return (string(value) or "").partition("__vscode")[0][:_LONGEST_ID]


def _calls_in(result: JSONObject, parts: list[JSONObject]) -> dict[str, list[Any]]:
    """Return name, arguments and result of each call of a request, by the id that its part has.

    In older versions parts have ids of their own, and are in the order of the calls.
    """
    metadata, calls = mapping(result.get("metadata")), {}
    results = mapping(metadata.get("toolCallResults"))
    rounds = map(mapping, as_list(metadata.get("toolCallRounds")))
    for call in (mapping(call) for item in rounds for call in as_list(item.get("toolCalls"))):
        identity = string(call.get("id")) or ""
        content = mapping(results.get(identity)).get("content")
        calls[_call_id(identity)] = [call.get("name"), call.get("arguments"), content]
    own = [_call_id(part.get("toolCallId")) for part in parts if part.get("kind") in _TOOLS]
    is_older = len(calls) == len(own) and not calls.keys() & set(own)
    return dict(zip(own, calls.values(), strict=True)) if is_older else calls


def _told(part: JSONObject) -> JSONObject:
    """Return what the part of a call tells of its arguments, which come later."""
    data = mapping(part.get("toolSpecificData"))
    message = text_in(part.get("pastTenseMessage")) or text_in(part.get("invocationMessage"))
    line = mapping(data.get("commandLine"))
    told = {
        "command": line.get("userEdited") or line.get("toolEdited") or line.get("original"),
        "path": path_in(message.partition("](")[2].partition(")")[0].partition("#")[0]),
        "message": message,
        "input": data.get("rawInput") or data.get("input"),
        **{key: data.get(key) for key in ("command", "description", "prompt") if data.get(key)},
    }
    return {key: value for key, value in told.items() if value}


class Answers(ChatReader):
    """Reads the answers of a conversation.

    Of the last one, later lines need the id, time and model of its request, how many
    parts it has, and digests of them; and its calls: the number of the row of each, whether it was
    answered, and where.
    """

    calls_told: dict[str, list[Any]]
    """Name, arguments and result of calls that the line states beside their parts."""

    @property
    def last(self) -> dict[str, Any]:
        last: dict[str, Any] = self.context["last"]
        return last

    action_of = staticmethod(_action_of)

    def row(self, block: int, kind: str, text: str, role: str) -> None:
        if text.strip():
            self._block = block
            self.say(kind, text, role, is_error=kind == "error")

    def take_answer(self, value: JSONObject, first: int) -> None:
        """Take in the fields of a request that an operation states; its parts begin at a place."""
        response, result = value.get("response"), self.mapping(value, "result")
        metadata = self.mapping(result, "metadata")
        model = self.name(metadata, "resolvedModel") or self.name(value, "modelId")
        model = self.last["model"] = (model or self.last.get("model") or "").removeprefix(
            "copilot/"
        )
        self.model = model or None
        parts = [response] if isinstance(response, str) else as_list(response)
        known = [{"kind": _TOOLS[0], "toolCallId": call} for call in self.last["calls"]]
        stated = [part for part in parts if isinstance(part, dict)] or known
        calls = self.calls_told = _calls_in(result, stated)
        if "response" in value:
            self._parts(parts, first)
        for place, (call, (name, arguments, content)) in enumerate(calls.items()):
            tool, text = string(name), string(arguments) or "{}"
            if call not in self.last["calls"]:
                self._call(call, _HIDDEN + 2 * place, tool, text)
            else:  # its part came before: this is what it did not tell
                block, _, start = self.last["calls"][call]
                self._uuid = None
                self.row(block, "meta", text, "system")
                self._uuid = self.last.get("id")
                if self.action_of(tool) == EDIT:
                    self.add_lines(object_in(text), (start, block))
            self._result(call, {}, content)
        for call in self.last["calls"] if "result" in value else ():
            self._result(call, {}, "", is_over=True)
        for place, item in enumerate(self.items(metadata, "summaries"), 1):
            self.row(_LAST + place, "compact_summary", self.text(item, "text") or "", "system")
        error = self.text(self.mapping(result, "errorDetails"), "message")
        self.row(_LAST, "error", error or "", "system")
        ended = self.time(self.mapping(value, "modelState"), "completedAt")
        self._ended = max(filter(None, (self._ended, ended)), default=None)
        self._spend(value, metadata)
        self.last["calls"] = dict([*self.last["calls"].items()][-_MOST_CALLS:])

    def _spend(self, value: JSONObject, metadata: JSONObject) -> None:
        of_last = [self.count(metadata, key) for key in ("promptTokens", "outputTokens")]
        stated = [self.count(value, key) for key in ("promptTokens", "completionTokens")]
        known = self.last["tokens"] = [
            new or old for new, old in zip(stated, self.last.get("tokens", (0, 0)), strict=True)
        ]
        is_one = len(as_list(metadata.get("toolCallRounds"))) < 2
        for counts, is_partial in ((of_last, not is_one), (known if any(stated) else (), True)):
            if any(counts) and self.last.get("id"):
                self.use(self.last["id"], Counts(*counts), is_partial=is_partial)

    def _parts(self, parts: list[Any], first: int) -> None:
        """Add the parts of an answer, as far as they are new or longer than before."""
        known, (last, length) = self.last.get("parts", ""), self.last.get("text", (-1, 0))
        digests, words, begin = [known[: first * _DIGITS]], "", 0
        for place, part in enumerate([*parts, {"kind": ""}], first):
            value: JSONObject = {"value": part} if isinstance(part, str) else mapping(part)
            if (said := _words(value)) is None:
                self.row(2 * begin + 2, "text", words, "assistant")
                words, self._uuid = "", self.last.get("id")
            if place == first + len(parts):
                break
            self._expect(bool(value), "response[]", part)
            digests.append(_digest(json_text(value) if said is None else said))
            before = known[place * _DIGITS : (place + 1) * _DIGITS]
            if digests[-1] == before:
                continue
            if said is None:
                # A part that changed comes again; its first row has the id.
                is_first = not before or value.get("kind") in _TOOLS
                self._uuid = self.last.get("id") if is_first else None
                self._part(value, 2 * place + 2)
                self._uuid = self.last.get("id")
                continue
            is_longer = place == last and _digest(said[:length]) == before
            if not words:
                begin, self._uuid = place, None if is_longer else self.last.get("id")
            words += said[length:] if is_longer else said
            self.last["text"] = (place, len(said))
        self.last["count"] = first + len(parts)
        if len(digests[0]) == first * _DIGITS:
            self.last["parts"] = "".join(digests)[: _MOST_PARTS * _DIGITS]

    def _part(self, part: JSONObject, block: int) -> None:
        kind, call = string(part.get("kind")) or "", _call_id(part.get("toolCallId"))
        call = call or f"{self.last.get('id')}/{block}"
        if kind == "thinking":
            text = "".join(map(text_in, as_list(part.get("value")) or [part.get("value")]))
            self.row(block, kind, text, "assistant")
        elif kind in _TOOLS:
            counts_next = self.counts_next
            if agent := _call_id(part.get("subAgentInvocationId")):
                self._is_sidechain, self._uuid = 1, f"{self.last.get('id')}/{agent}"
                self._facts["sidechain_count"] = self._facts.get("sidechain_count", 0) + 1
                self._message_count += 1
                self.counts_next = False
                self.records.append(AgentLink(self._uuid, agent, BY_META, self.start))
            name, arguments, content = self.calls_told.pop(call, (None, None, None))
            if call not in self.last["calls"]:
                told, name = _told(part), self.name(part, "toolId") or string(name)
                self._call(call, block, name, string(arguments) or json_text(told), told)
            self._result(call, part, content)
            if agent:
                self._is_sidechain, self._uuid, self.counts_next = (
                    0,
                    self.last.get("id"),
                    counts_next,
                )
        elif kind == "textEditGroup":
            own = f"{self.last.get('id')}/"
            if all(call.startswith(own) for call in self.last["calls"]):  # else a call has the same
                edits = [mapping(e) for group in as_list(part.get("edits")) for e in as_list(group)]
                new = [{"new_text": edit.get("text")} for edit in edits]
                text = json_text({"file_path": path_in(part), "edits": new})
                self._call(call, block, kind, text)
        else:
            asked = [part.get("questions"), part.get("data")] if kind == "questionCarousel" else []
            new_kind = [] if kind in PARTS else [without(part, ("kind", *_TEXTS))]
            texts = [*(text_in(part.get(key)) for key in _TEXTS), *leaves([*asked, *new_kind])]
            self.row(block, "system", "\n".join(filter(None, texts)), "system")

    def _call(
        self, call: str, block: int, name: str | None, text: str, told: JSONObject | None = None
    ) -> None:
        given = {**(told or {}), **object_in(text)}
        given.update({"file_path": path} if (path := given.get("filePath")) else {})
        self._block = block
        paths = patched(string(given.get("input")) or "", None)
        self.call(name, given, text, call, paths=paths)
        self.last["calls"][call] = (block, 0, self.start)

    def add_lines(self, arguments: JSONObject, position: Position) -> None:
        """Add the lines that came; one tool has a list of replacements."""
        edits = arguments.get("replacements")
        super().add_lines({"edits": edits} if edits else arguments, position)

    def _result(
        self, call: str, part: JSONObject, content: object, *, is_over: bool = False
    ) -> None:
        """Add the result of a call, as far as its part or the model's copy of it has one."""
        block, is_answered, start = self.last["calls"].get(call, (0, 1, 0))
        if is_answered:
            return
        data, details = self.mapping(part, "toolSpecificData"), mapping(part.get("resultDetails"))
        confirmed, error = part.get("isConfirmed"), self.text(part, "resultError")
        is_declined = confirmed is False or mapping(confirmed).get("type") in (0, 5)
        code = self.whole(self.mapping(data, "terminalCommandState"), "exitCode")
        outputs = (error, data.get("terminalCommandOutput"), details.get("output"))
        rest = (data.get("output"), data.get("result"), content)
        text = next(filter(None, map(_shown, filter(None, (*outputs, *rest)))), "")
        if text or is_declined or is_over or code is not None:
            self._block, self.last["calls"][call] = block + 1, (block, 1, start)
            self.answer(
                text,
                call,
                is_error=bool(error or code) or details.get("isError") is True,
                is_timed=False,
                status=DECLINED if is_declined else None,
                exit_code=code,
            )

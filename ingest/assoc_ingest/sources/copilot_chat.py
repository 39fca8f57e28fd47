"""Copilot Chat: conversations in VS Code, in its directory `User`.

```
workspaceStorage/<workspace>/chatSessions/<session>.json     a conversation, rewritten as a whole
workspaceStorage/<workspace>/chatSessions/<session>.jsonl    the same, appended to (1.109 on)
workspaceStorage/<workspace>/workspace.json                  {"folder":"file:///srv/demo"}
globalStorage/emptyWindowChatSessions/<session>.json[l]      conversations without a directory
```

`User` is in `Code`, `Code - Insiders` or `VSCodium`, in `~/.config` (`XDG_CONFIG_HOME`), in
`~/Library/Application Support` or `%APPDATA%`; `VSCODE_APPDATA` and `VSCODE_PORTABLE` replace
these. Chats with other extensions look the same. `state.vscdb*`, where extensions keep what they
like, `settings.json` and `mcp.json` may contain credentials. Not read: copies of files in
`chatEditingSessions/`, and what repeats conversations, `transcripts/` and `debug-logs/` of the
extension.

The format is that of the sources of VS Code to September 2026, and of the extension 0.42.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from ..fields import is_count, json_text, leaves, mapping, string, without
from ..records import BY_META, DECLINED, AgentLink, ProjectEntry, Record, Superseded
from ..records import Context as Fact
from ..source import DOCUMENT, LOG, Claim, Context, Line, Listing, Recognition
from .chat_reader import AgentSource, ChatReader, Position, actions, image, image_in, patched
from .reader import JSONObject, Reader, items_at, whole_value
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# A conversation is one object. A log has the operations that make it.
#
# ```json
# {"kind":0,"v":{"version":3,"sessionId":"s","creationDate":1767258000000,"requests":[]}}
# {"kind":2,"k":["requests"],"v":[{"requestId":"request_1","timestamp":1767258000000,"modelId":
#  "copilot/gpt-5","message":{"text":".."},"variableData":{"variables":[]},"response":[]}]}
# {"kind":2,"k":["requests",0,"response"],"i":3,"v":[{"kind":"thinking","value":".."},
#  {"value":".."},{"kind":"toolInvocationSerialized","toolId":"copilot_readFile","toolCallId":"c"}]}
# {"kind":1,"k":["requests",0,"result"],"v":{"metadata":{"promptTokens":100,"outputTokens":9,
#  "toolCallRounds":[{"toolCalls":[{"id":"c__vscode-1","name":"read_file","arguments":"{}"}]}],
#  "toolCallResults":{"c__vscode-1":{"content":[{"value":".."}]}}}}}
# ```
#
# - Kind 0 is all of it, 1 sets a value, 2 adds to a list from `i` on, and 3 deletes a value. After
#   1024 operations the file begins anew.
# - A response consists of parts, of which text has no kind. One that changed comes again, with all
#   after it. The arguments and results of calls come later, in `result`.
# - A request that was taken back is marked, and deleted when the next one is sent.
# - A file of the older form, or in another workspace, may repeat a conversation: requests have ids.
# - A subagent's calls are parts of the response of its caller (`subAgentInvocationId`).
# - **Tokens** are those of the last call of the model, and `completionTokens` the output of all.
#   Input includes what a cache had. Instead of costs there are credits.

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

_TOOLS, _MARKDOWN = (
    ("toolInvocationSerialized", "toolInvocation"),
    ("markdownContent", "markdownVuln"),
)
_PARTS = (
    *(*_TOOLS, *_MARKDOWN, "inlineReference", "thinking", "textEditGroup", "notebookEditGroup"),
    *("autoModeResolution", "clearToPreviousToolInvocation", "codeblockUri", "command", "hook"),
    *(
        "confirmation",
        "disabledClaudeHooks",
        "elicitation",
        "elicitation2",
        "elicitationSerialized",
    ),
    *("extensions", "externalEdit", "info", "mcpAuthenticationRequired", "mcpServersStarting"),
    *("mcpServersStartingSlow", "multiDiffData", "planReview", "prepareToolInvocation", "treeData"),
    *("progressMessage", "progressTask", "progressTaskSerialized", "pullRequest", "undoStop"),
    *("questionCarousel", "systemNotification", "voiceProgress", "warning", "workspaceEdit"),
)
_TEXTS = ("title", "subtitle", "message", "content", "description", "systemMessage", "stopReason")
_OPERATIONS = dict(enumerate(("state", "set", "append", "delete")))
TYPES = frozenset(f"{operation}/" for operation in _OPERATIONS.values())
_OF_PROGRAM = ("isSystemInitiated", "hiddenFromTranscript", "confirmation")

_TAKEN = (
    *("requestId", "timestamp", "message", "response", "variableData", "agent", "modelId"),
    *("requests", "sessionId", "creationDate", "customTitle", "computedTitle", "inputState"),
    *("contentReferences", "usedContext", "followups", "promptTokens", "completionTokens"),
)
_REPEATED = (
    *("toolCallRounds", "toolCallResults", "renderedUserMessage", "renderedGlobalContext"),
    *("promptTokens", "outputTokens", "resolvedModel", "summaries", "summary"),
)
_MOST_REQUESTS, _MOST_PARTS, _MOST_CALLS, _DIGITS = 400, 1000, 300, 8
_HIDDEN, _LAST = 1_000_000, 2_000_000  # numbers of rows after those of parts
_SHORTEST_ID = 20  # of a request; shorter ones are not unique
_DEEPEST = 64


def path_in(value: object) -> str | None:
    """Return the path in a URI, which is a text or an object, or in a location."""
    uri = mapping(value).get("uri") or value
    path = string(mapping(uri).get("path")) or ""
    if isinstance(uri, str) and uri.startswith(("file:", "vscode-remote:")):
        path = unquote(urlsplit(uri.replace("[", "%5B")).path)
    return (path[1:] if path[2:3] == ":" else path) or None


def is_ours(value: JSONObject) -> bool:
    """Has the object the shape of a line of this format?"""
    return "kind" in value and ("v" in value or "k" in value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _said(value: object) -> str:
    return string(value) or string(mapping(value).get("value")) or ""  # text, or Markdown


def _words(part: JSONObject) -> str | None:
    """Return what a part adds to the text of the answer, None if it is something else."""
    if (kind := part.get("kind")) == "inlineReference":
        reference = part.get("inlineReference")
        place = path_in(mapping(reference).get("location") or reference) or ""
        return f"`{string(part.get('name')) or place.rpartition('/')[2]}`"
    if kind in _MARKDOWN:
        return _said(part.get("content")) or _said(part)
    return string(part.get("value")) if kind is None else None


def _shown(value: object, depth: int = 0) -> str:
    """Return the text of a tool's result, which may be in a tree that was made for the model."""
    if isinstance(value, list):
        return "\n".join(filter(None, (_shown(item, depth) for item in value)))
    block = mapping(value)
    if block.get("isText") is False:
        return image(block.get("mimeType"), block.get("value"))
    inner = [block.get(key) for key in ("children", "node", "value") if depth < _DEEPEST]
    text = string(value) or image_in(block) or string(block.get("text"))
    return text or (_shown([item for item in inner if item], depth + 1) if block else "")


def _attached(variable: JSONObject) -> str:
    """Return what was attached to a request: its name, and a path or a text."""
    value, name = variable.get("value"), string(variable.get("name")) or ""
    if variable.get("kind") == "image":
        return f"{image(variable.get('mimeType'), mapping(value).get('$base64'))} {name}"
    return "\n".join(filter(None, (name, path_in(value) or string(value), _said(variable))[:2]))


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=_DIGITS // 2).hexdigest()


def _call_id(value: object) -> str:
    return (string(value) or "").partition("__vscode")[0]


def _bare(value: JSONObject) -> JSONObject:
    """Return an object without what its rows have, or others repeat."""
    bare, result = without(value, _TAKEN), mapping(value.get("result"))
    if metadata := mapping(result.get("metadata")):
        bare["result"] = {**result, "metadata": without(metadata, _REPEATED)}
    return bare


def _calls_in(result: JSONObject, parts: list[JSONObject]) -> dict[str, list[Any]]:
    """Return name, arguments and result of each call of a request, by the id that its part has.

    In older versions parts have ids of their own, and are in the order of the calls.
    """
    metadata, calls = mapping(result.get("metadata")), {}
    results, rounds = (
        mapping(metadata.get("toolCallResults")),
        _list(metadata.get("toolCallRounds")),
    )
    for call in (
        mapping(call) for item in rounds for call in _list(mapping(item).get("toolCalls"))
    ):
        identity = string(call.get("id")) or ""
        content = mapping(results.get(identity)).get("content")
        calls[_call_id(identity)] = [call.get("name"), call.get("arguments"), content]
    own = [_call_id(part.get("toolCallId")) for part in parts if part.get("kind") in _TOOLS]
    is_older = len(calls) == len(own) and not calls.keys() & set(own)
    return dict(zip(own, calls.values(), strict=True)) if is_older else calls


def _told(part: JSONObject) -> JSONObject:
    """Return what the part of a call tells of its arguments, which come later."""
    data = mapping(part.get("toolSpecificData"))
    message = _said(part.get("pastTenseMessage")) or _said(part.get("invocationMessage"))
    line = mapping(data.get("commandLine"))
    told = {
        "command": line.get("userEdited") or line.get("toolEdited") or line.get("original"),
        "path": path_in(message.partition("](")[2].partition(")")[0].partition("#")[0]),
        "message": message,
        "input": data.get("rawInput") or data.get("input"),
        **{key: data.get(key) for key in ("command", "description", "prompt") if data.get(key)},
    }
    return {key: value for key, value in told.items() if value}


class Chat(ChatReader):
    """Reads one conversation.

    `context` has where requests begin and what their ids are, and of the last one what later lines
    need: time and model, digests of the parts of the answer, and the calls in it: the number of the
    row of each, and whether it was answered.
    """

    action_of = staticmethod(_action_of)

    def __init__(self, claim: Claim, context: Context) -> None:
        super().__init__(claim, type_key="kind")
        self.context: dict[str, Any] = {"count": 0, "requests": [], "last": {}, **context}
        self._gone: set[str] = set()  # ids of requests that the line deletes

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the operation, and the kind of the first part that is not known."""
        kind, path = value.get("kind"), _list(value.get("k"))
        name = next((name for n, name in _OPERATIONS.items() if kind == n), str(kind or "")[:40])
        parts = map(mapping, _list(value.get("v")) if path[2:] == ["response"] else [])
        return name, next(
            (k for p in parts if (k := string(p.get("kind"))) not in _PARTS), None
        ) or ""

    def take(self, value: JSONObject) -> None:
        """Take one operation in."""
        kind, new, path = value.get("kind"), value.get("v"), _list(value.get("k"))
        count, requests = self.context["count"], self.context["requests"]
        at: Any = value.get("i")
        self.begin({}, is_message=None)
        self._gone = set()
        if kind == 0:
            self.take_all(mapping(new), "v", "requests")
        elif path == ["requests"]:
            if behind := max(0, count - at) if is_count(at) else 0:
                start = requests[-behind][1] if behind <= len(requests) else 0
                self.records.append(Superseded(None, None, start, self.start))
                self._gone = {identity for identity, _ in requests[-behind:]}
                self.context.update(count=count - behind, requests=requests[:-behind], last={})
            self._requests(_list(new), {"kind": kind, "i": at}, "v")
        else:
            if path == ["customTitle"]:
                self.fact("ai_title", string(new))
            elif path[:2] == ["requests", count - 1] and len(path) == 3:
                known = self.context["last"].get("count", 0) if kind == 2 else 0
                memory = {
                    **self.context["last"],
                    "calls": {**self.context["last"].get("calls", {})},
                }
                self._uuid, self._moment = memory.get("id"), memory.get("time")
                self._answer({path[2]: new}, memory, min(at, known) if is_count(at) else known)
            rest = _bare({str(path[-1]): new} if path and path[0] != "inputState" else {})
            self.keep_rest({**rest, "k": path, "kind": self.type_of(value, "")[0]}, ())

    def take_all(self, value: JSONObject, *keys: str) -> None:
        """Take all of a conversation in."""
        self.context = {"count": 0, "requests": [], "last": {}}
        self._started = self.time(value, "creationDate")
        # Whether a person or a model chose the title is not stated.
        self.fact("ai_title", self.text(value, "customTitle") or self.text(value, "computedTitle"))
        kind = {"kind": 0} if keys[1:] else {}
        self._requests(_list(value.get("requests")), {**_bare(value), **kind}, *keys)

    def _requests(self, items: list[Any], rest: JSONObject, *keys: str) -> None:
        """Take requests in, which divide up the line or the document that has them."""
        start, data, places = self.start, self.data, items_at(self.data, *keys)
        cuts = [place for place, _ in places] if len(places) == len(items) else range(len(items))
        kind, marked = self.type_of(rest, "")[0], []
        for item, (begin, end) in zip(items, pairwise([0, *cuts[1:], len(data)]), strict=False):
            self.start, self.length, self.data = start + begin, end - begin, data[begin:end]
            self._expect(isinstance(item, dict), "requests[]", item)
            request = mapping(item)
            if request.get("shouldBeRemovedOnSend") or request.get("isHidden"):
                marked.append(self.start)
            self._request(request)
            self.keep_rest({**_bare(request), **rest, "kind": kind}, ())
            self._types[kind, ""] = self._types.get((kind, ""), 0) + 1
            self._firsts.setdefault((kind, ""), self.start)
            self._is_refused, rest = True, {}
        self.start, self.length, self.data = start, len(data), data
        if not items:
            self.keep_rest({**rest, "kind": kind}, ())
        if marked:
            self.records.append(Superseded(None, None, marked[0], start + len(data)))

    def _request(self, value: JSONObject) -> None:
        count, identity = self.context["count"], self.name(value, "requestId") or ""
        if len(identity) < _SHORTEST_ID:
            identity = f"{self.claim.session_key}/{identity or count}"
        identity += f"@{self.start}" if identity in self._gone else ""
        self.begin({"timestamp": value.get("timestamp"), "uuid": identity}, is_message=None)
        requests = [*self.context["requests"], [identity, self.start]][-_MOST_REQUESTS:]
        self.context.update(count=count + 1, requests=requests)
        text = (
            _said(value.get("message")) or string(mapping(value.get("message")).get("text")) or ""
        )
        is_typed = not any(map(value.get, _OF_PROGRAM))
        self._row(0, "prompt" if is_typed else "meta", text, "user" if is_typed else "system")
        variables = self.items(self.mapping(value, "variableData"), "variables")
        self._row(1, "attachment", "\n".join(filter(None, map(_attached, variables))), "system")
        self.counts_next = True
        version = self.name(self.mapping(value, "agent"), "extensionVersion")
        if version is not None and version != self.context.get("version"):
            self.context["version"] = version
            self.fact("agent_version", version)
            self.records.append(Fact("agent_version", version, self.start))
        self._answer(value, {"id": identity, "time": self.moment, "calls": {}}, 0)

    def _row(self, block: int, kind: str, text: str, role: str) -> None:
        if text.strip():
            self._block = block
            self.say(kind, text, role, is_error=kind == "error")

    # -- answers ---------------------------------------------------------------------------------

    def _answer(self, value: JSONObject, memory: dict[str, Any], first: int) -> None:
        """Take in the fields of a request that an operation states; its parts begin at a place."""
        response, result = value.get("response"), self.mapping(value, "result")
        metadata = self.mapping(result, "metadata")
        model = self.name(metadata, "resolvedModel") or self.name(value, "modelId")
        self.model = memory["model"] = (model or memory.get("model") or "").removeprefix("copilot/")
        self.model = self.model or None
        parts = [response] if isinstance(response, str) else _list(response)
        known = [{"kind": _TOOLS[0], "toolCallId": call} for call in memory["calls"]]
        calls = _calls_in(result, [part for part in parts if isinstance(part, dict)] or known)
        if "response" in value:
            self._parts(parts, memory, first, calls)
        for place, (call, (name, arguments, content)) in enumerate(calls.items()):
            is_new = call not in memory["calls"]
            block, is_answered = memory["calls"].get(call, (_HIDDEN + 2 * place, 0))
            self._uuid = memory.get("id") if is_new else None
            self._call(memory, call, block, string(name), string(arguments) or "{}", {})
            self._uuid, memory["calls"][call] = memory.get("id"), (block, is_answered)
            self._result(memory, call, {}, content)
        for call in memory["calls"] if "result" in value else ():
            self._result(memory, call, {}, "", is_over=True)
        for place, item in enumerate(self.items(metadata, "summaries"), 1):
            self._row(_LAST + place, "compact_summary", self.text(item, "text") or "", "system")
        error = self.text(self.mapping(result, "errorDetails"), "message")
        self._row(_LAST, "error", error or "", "system")
        ended = self.time(self.mapping(value, "modelState"), "completedAt")
        self._ended = max(filter(None, (self._ended, ended)), default=None)
        self._spend(memory, value, metadata)
        memory["calls"] = dict([*memory["calls"].items()][-_MOST_CALLS:])
        self.context["last"] = memory

    def _spend(self, memory: dict[str, Any], value: JSONObject, metadata: JSONObject) -> None:
        of_last = [self.count(metadata, key) for key in ("promptTokens", "outputTokens")]
        stated = [self.count(value, key) for key in ("promptTokens", "completionTokens")]
        known = memory["tokens"] = [
            new or old for new, old in zip(stated, memory.get("tokens", (0, 0)), strict=True)
        ]
        is_one = len(_list(metadata.get("toolCallRounds"))) < 2
        for counts, is_partial in ((of_last, not is_one), (known if any(stated) else (), True)):
            if any(counts) and memory.get("id"):
                self.use(memory["id"], Counts(*counts), is_partial=is_partial)

    def _parts(
        self, parts: list[Any], memory: dict[str, Any], first: int, calls: dict[str, list[Any]]
    ) -> None:
        """Add the parts of an answer, as far as they are new or longer than before."""
        known, (last, length) = memory.get("parts", ""), memory.get("text", (-1, 0))
        digests, words, begin = [known[: first * _DIGITS]], "", 0
        for place, part in enumerate([*parts, {"kind": ""}], first):
            value: JSONObject = {"value": part} if isinstance(part, str) else mapping(part)
            if (said := _words(value)) is None:
                self._row(2 * begin + 2, "text", words, "assistant")
                words, self._uuid = "", memory.get("id")
            if place == first + len(parts):
                break
            self._expect(bool(value), "response[]", part)
            digests.append(_digest(json_text(value) if said is None else said))
            before = known[place * _DIGITS : (place + 1) * _DIGITS]
            if digests[-1] == before:
                continue
            if said is None:
                self._part(value, memory, 2 * place + 2, calls)
                continue
            is_longer = place == last and _digest(said[:length]) == before
            if not words:
                begin, self._uuid = place, None if is_longer else memory.get("id")
            words += said[length:] if is_longer else said
            memory["text"] = (place, len(said))
        memory["count"] = first + len(parts)
        if len(digests[0]) == first * _DIGITS:
            memory["parts"] = "".join(digests)[: _MOST_PARTS * _DIGITS]

    def _part(
        self, part: JSONObject, memory: dict[str, Any], block: int, calls: dict[str, list[Any]]
    ) -> None:
        kind, call = string(part.get("kind")) or "", _call_id(part.get("toolCallId"))
        call = call or f"{memory.get('id')}/{block}"
        if kind == "thinking":
            text = "".join(map(_said, _list(part.get("value")) or [part.get("value")]))
            self._row(block, kind, text, "assistant")
        elif kind in _TOOLS:
            counts_next = self.counts_next
            if agent := _call_id(part.get("subAgentInvocationId")):
                self._is_sidechain, self._uuid = 1, f"{memory.get('id')}/{agent}"
                self._facts["sidechain_count"] = self._facts.get("sidechain_count", 0) + 1
                self._message_count += 1
                self.counts_next = False
                self.records.append(AgentLink(self._uuid, agent, BY_META, self.start))
            name, arguments, content = calls.pop(call, (None, None, None))
            if call not in memory["calls"]:
                told, name = _told(part), self.name(part, "toolId") or string(name)
                self._call(memory, call, block, name, string(arguments) or json_text(told), told)
            self._result(memory, call, part, content)
            if agent:
                self._is_sidechain, self._uuid, self.counts_next = 0, memory.get("id"), counts_next
        elif kind == "textEditGroup":
            if not memory["calls"]:  # otherwise a call has the same
                edits = [mapping(e) for group in _list(part.get("edits")) for e in _list(group)]
                new = [{"new_text": edit.get("text")} for edit in edits]
                text = json_text({"file_path": path_in(part), "edits": new})
                self._call(memory, call, block, kind, text, {})
        else:
            asked = [part.get("questions"), part.get("data")] if kind == "questionCarousel" else []
            new_kind = [] if kind in _PARTS else [without(part, ("kind", *_TEXTS))]
            texts = [*(_said(part.get(key)) for key in _TEXTS), *leaves([*asked, *new_kind])]
            self._row(block, "system", "\n".join(filter(None, texts)), "system")

    def _call(
        self,
        memory: dict[str, Any],
        call: str,
        block: int,
        name: str | None,
        text: str,
        told: JSONObject,
    ) -> None:
        given = {**told, **mapping((whole_value(text.encode("utf-8", "replace")) or ({},))[0])}
        given.update({"file_path": path} if (path := given.get("filePath")) else {})
        self._block = block
        paths = patched(string(given.get("input")) or "", None)
        self.call(name, given, text, call, paths=paths)
        memory["calls"][call] = (block, 0)

    def add_lines(self, arguments: JSONObject, position: Position) -> None:
        """Add the lines that came; one tool has a list of replacements."""
        edits = arguments.get("replacements")
        super().add_lines({"edits": edits} if edits else arguments, position)

    def _result(
        self,
        memory: dict[str, Any],
        call: str,
        part: JSONObject,
        content: object,
        *,
        is_over: bool = False,
    ) -> None:
        """Add the result of a call, as far as its part or the model's copy of it has one."""
        block, is_answered = memory["calls"].get(call, (0, 1))
        data, details = self.mapping(part, "toolSpecificData"), mapping(part.get("resultDetails"))
        confirmed, error = part.get("isConfirmed"), self.text(part, "resultError")
        is_declined = confirmed is False or mapping(confirmed).get("type") in (0, 5)
        code = self.whole(self.mapping(data, "terminalCommandState"), "exitCode")
        outputs = (error, data.get("terminalCommandOutput"), details.get("output"))
        shown = map(_shown, (*outputs, data.get("output"), data.get("result"), content))
        text = next(filter(None, shown), "")
        if not is_answered and (text or is_declined or is_over or code is not None):
            self._block, memory["calls"][call] = block + 1, (block, 1)
            self.answer(
                text,
                call,
                is_error=bool(error or code) or details.get("isError") is True,
                is_timed=False,
                status=DECLINED if is_declined else None,
                exit_code=code,
            )


_CHATS = ("workspaceStorage", "chatSessions")
_PRODUCTS = ("Code", "Code - Insiders", "VSCodium")


def _workspace(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the directory of a workspace; one of several directories has a file that is not read."""
    reader = Reader(claim)
    for value in reader.document(lines):
        if (path := path_in(value.get("folder"))) is not None:
            reader.records.append(ProjectEntry(claim.project_key or "", None, path))
    return reader.finish()


class CopilotChat(AgentSource):
    """The source of kind `copilot_chat`."""

    name, label = "copilot_chat", "Copilot Chat"
    checked = "0.42.0"
    known_lines = TYPES
    unread_places = ("History", "globalStorage", "profiles", "prompts", "snippets", "sync")

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Every edition has a home, in the directory for settings of the system."""
        portable, below = environment.get("VSCODE_PORTABLE"), environment.get("XDG_CONFIG_HOME")
        places = [
            environment.get("VSCODE_APPDATA"),
            below or (home and f"{home}/.config"),
            home and f"{home}/Library/Application Support",
            environment.get("APPDATA"),
        ]
        roots = [f"{place}/{edition}/User" for place in places if place for edition in _PRODUCTS]
        return [f"{portable}/user-data/User"] if portable else roots

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Settings, and databases that have secrets of extensions."""
        name = parts[-1].casefold()
        return name.startswith("state.vscdb") or name in ("settings.json", "mcp.json")

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        is_near = parts[0] == "workspaceStorage" and len(parts) < 3
        is_global = parts == ("globalStorage", "emptyWindowChatSessions")[: len(parts)]
        return is_near or is_global or (len(parts) == 3 and parts[::2] == _CHATS)

    def recognises(self, listing: Listing) -> Recognition:
        """Editors that were made from VS Code have such directories, and chats of their own."""
        if any(path.startswith("globalStorage/anysphere.") for path in listing):
            return Recognition.NO
        return super().recognises(listing)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("workspaceStorage", place, "workspace.json"):
                return Claim(self.name, "project_list", None, None, place, place)
            case ("workspaceStorage", place, "chatSessions", name):
                pass
            case ("globalStorage", "emptyWindowChatSessions", name):
                place = ""
            case _:
                return None
        session, _, ending = name.rpartition(".")
        ours = session and ending in ("json", "jsonl")
        key = place or None
        return (
            Claim(self.name, "transcript", session, None, key, key, parts=parts) if ours else None
        )

    def shape(self, claim: Claim) -> str:
        """Conversations of newer versions grow; all else is rewritten."""
        return LOG if claim.parts and claim.parts[-1].endswith(".jsonl") else DOCUMENT

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; of what they change, earlier lines say what it is."""
        if claim.kind == "project_list":
            return _workspace(claim, lines), context
        chat = Chat(claim, context)
        if self.shape(claim) == DOCUMENT:
            for value in chat.document(lines):
                chat.take_all(value, "requests")
            return chat.finish(), context
        for value in chat.objects(lines, is_ours):
            chat.take(value)
        return chat.finish(), chat.context

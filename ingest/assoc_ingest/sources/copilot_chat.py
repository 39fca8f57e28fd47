"""Copilot Chat: conversations in VS Code, in its directory `User`.

```
workspaceStorage/<workspace>/chatSessions/<session>.json     a conversation, rewritten as a whole
workspaceStorage/<workspace>/chatSessions/<session>.jsonl    the same, appended to (1.109 on)
workspaceStorage/<workspace>/workspace.json                  {"folder":"file:///srv/demo"}
globalStorage/emptyWindowChatSessions/<session>.json[l]      conversations without a directory
```

`User` is in `Code`, `Code - Insiders` or `VSCodium`, in `~/.config` (`XDG_CONFIG_HOME`), in
`~/Library/Application Support` or `%APPDATA%`; `VSCODE_APPDATA` and `VSCODE_PORTABLE` name
others. Chats with other extensions look the same. `state.vscdb*`, where extensions keep what they
like, `settings.json` and `mcp.json` may contain credentials. Not read: copies of files in
`chatEditingSessions/`, and what repeats conversations, `transcripts/` and `debug-logs/` of the
extension.

The format is that of the sources of VS Code to September 2026, and of the extension 0.42.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from itertools import pairwise
from typing import Any

from ..fields import is_count, json_text, mapping, string, without
from ..records import Context as Fact
from ..records import ProjectEntry, Record, Superseded
from ..source import DOCUMENT, LOG, Claim, Context, Line, Listing, Recognition
from .chat_reader import AgentSource
from .reader import JSONObject, Reader, items_at
from .vscode_answers import PARTS, Answers, as_list, attached, path_in

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
_MOST_REQUESTS = 200  # that a later line can delete
_SHORTEST_ID, _LONGEST_ID = 20, 80  # of a request; shorter ones are not unique


def _bare(value: JSONObject) -> JSONObject:
    """Return an object without what its rows have, or others repeat."""
    bare, result = without(value, _TAKEN), mapping(value.get("result"))
    if metadata := mapping(result.get("metadata")):
        bare["result"] = {**result, "metadata": without(metadata, _REPEATED)}
    return bare


class Chat(Answers):
    """Reads one conversation; later lines need where its requests begin and what their ids are."""

    type_key = "kind"

    def __init__(self, claim: Claim, context: Context) -> None:
        known = deepcopy(dict(context))
        super().__init__(claim, context={"count": 0, "requests": [], "last": {}, **known})
        self._gone: set[str] = set()  # ids of requests that the line deletes

    @staticmethod
    def is_ours(value: JSONObject) -> bool:
        return "kind" in value and ("v" in value or "k" in value)

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """Return the operation, and the kind of the first part that is not known."""
        kind, path = value.get("kind"), as_list(value.get("k"))
        name = next((name for n, name in _OPERATIONS.items() if kind == n), str(kind or "")[:40])
        parts = as_list(value.get("v")) if path[2:] == ["response"] else []
        kinds = (string(mapping(part).get("kind")) for part in parts)
        return name, next((kind for kind in kinds if kind and kind not in PARTS), "")

    def take(self, value: JSONObject) -> None:
        """Take one operation in."""
        kind, new, path = value.get("kind"), value.get("v"), as_list(value.get("k"))
        count, requests = self.context["count"], self.context["requests"]
        at: Any = value.get("i")
        self.begin({}, is_message=None)
        self._gone = set()
        for odd in (step for step in path if not isinstance(step, str | int)):
            self._expect(False, "k[]", odd)
        if kind == 0:
            self.take_all(mapping(new), "v", "requests")
        elif path == ["requests"]:
            if behind := max(0, count - at) if is_count(at) else 0:
                gone = requests[-behind:]
                self._gone = {identity for identity, _ in gone}
                self.records += [Superseded(None, None, at, self.start) for _, at in gone[:1]]
                self.context.update(count=count - behind, requests=requests[:-behind], last={})
            self._requests(as_list(new), {"kind": kind, "i": at}, "v")
        else:
            field = string(path[-1]) if path else None
            if path == ["customTitle"]:
                self.fact("ai_title", string(new))
            elif count and path[:2] == ["requests", count - 1] and field and len(path) == 3:
                self.context["last"] = {"calls": {}, **self.last}
                known = self.last.get("count", 0) if kind == 2 else 0
                self._uuid, self._moment = self.last.get("id"), self.last.get("time")
                self.take_answer({field: new}, min(at, known) if is_count(at) else known)
            is_kept = path and path[0] != "inputState"
            rest = _bare({field or json_text(path[-1]): new} if is_kept else {})
            self.keep_rest({**rest, "k": path, "kind": self.line_type[0]}, ())

    def take_all(self, value: JSONObject, *keys: str) -> None:
        """Take all of a conversation in."""
        self.context = {"count": 0, "requests": [], "last": {}}
        self._started = self.time(value, "creationDate")
        # Whether a person or a model chose the title is not stated.
        self.fact("ai_title", self.text(value, "customTitle") or self.text(value, "computedTitle"))
        kind = {"kind": 0} if keys[1:] else {}
        self._requests(as_list(value.get("requests")), {**_bare(value), **kind}, *keys)

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
        if not _SHORTEST_ID <= len(identity) <= _LONGEST_ID:
            identity = f"{count}/{self.claim.session_key}"[:_LONGEST_ID]
        identity += f"@{self.start}" if identity in self._gone else ""
        self.begin({"timestamp": value.get("timestamp"), "uuid": identity}, is_message=None)
        requests = [*self.context["requests"], [identity, self.start]][-_MOST_REQUESTS:]
        self.context.update(count=count + 1, requests=requests)
        message = value.get("message")
        text = string(message) or string(mapping(message).get("text")) or ""
        is_typed = not any(map(value.get, _OF_PROGRAM))
        self.row(0, "prompt" if is_typed else "meta", text, "user" if is_typed else "system")
        variables = self.items(self.mapping(value, "variableData"), "variables")
        self.row(1, "attachment", "\n".join(filter(None, map(attached, variables))), "system")
        self.counts_next = True
        version = self.name(self.mapping(value, "agent"), "extensionVersion")
        if version is not None and version != self.context.get("version"):
            self.context["version"] = version
            self.fact("agent_version", version)
            self.records.append(Fact("agent_version", version, self.start))
        self.context["last"] = {"id": identity, "time": self.moment, "calls": {}}
        self.take_answer(value, 0)


_CHATS = ("workspaceStorage", "chatSessions")
_OF_OTHERS = "globalStorage/anysphere."
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

    def recognises(self, listing: Listing) -> Recognition:
        """Editors that were made from VS Code have such directories, and chats of their own."""
        if any(path.startswith(_OF_OTHERS) for path in listing):
            return Recognition.NO
        return super().recognises(listing)

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """Settings, and databases that have secrets of extensions."""
        name = parts[-1].casefold()
        return name.startswith("state.vscdb") or name in ("settings.json", "mcp.json")

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        is_near = parts[0] == "workspaceStorage" and len(parts) < 3
        is_global = parts == ("globalStorage", "emptyWindowChatSessions")[: len(parts)]
        return is_near or is_global or (len(parts) == 3 and parts[::2] == _CHATS)

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
        return chat.read_lines(lines)

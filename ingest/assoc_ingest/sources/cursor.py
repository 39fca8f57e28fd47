"""Cursor: conversations in this editor, which are rows of its database `state.vscdb`.

```
~/.config/Cursor/User/globalStorage/state.vscdb
  cursorDiskKV {key, value}             unique on conflict replace
    composerData:<composer>             a conversation: title, model, list of its bubbles
    bubbleId:<composer>:<bubble>        a message, a thought or a tool call of it
  composerHeaders {composerId, value}   since 3.9: in which workspace a conversation is held
```

The directory is `~/Library/Application Support/Cursor/User` on macOS, `%APPDATA%/Cursor/User` on
Windows. A conversation is one entry, `state.vscdb#<composer>`. Learned from programs that read or
write this database (SpecStory, cursor-history, chatrxiv, vibe-replay, skuggsja), and from notes on
Cursor 0.50 to 3.16; no real one was at hand. Versions (`_v`) of a conversation: none, 1, 3, 6, 8
to 11, 14, 16 to 18; of a bubble: none, 2, 3. Each write replaces a row, which gives it another
rowid. So the index of the keys shows what has changed, and no value is read for that.

Never read are credentials, `cursorAuth/*` and `secret://*` in `ItemTable`, and keys for encryption,
in fields that are not in `_FIELDS`. Left out are copies of files (`checkpointId:`, `ofsContent:`,
`codeBlockDiff:`), what went along with a prompt (`messageRequestContext:`), what models get
(`agentKv:`), and the chats of 2023 and 2024 in the databases of workspaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any
from urllib.parse import unquote

from ..fields import json_bytes, mapping, obvious_text, string, without
from ..records import BY_RESULT, DECLINED, AgentLink, AgentMeta, Record, SessionEntry, StatedUsage
from ..records import Superseded as TakenBack
from ..source import (
    DATABASE,
    Claim,
    Context,
    Database,
    EntryLine,
    Line,
    Listing,
    Recognition,
    Table,
    entry_names,
)
from .chat_reader import AgentSource, ChatReader, actions
from .reader import JSONObject, object_in, with_only
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# The lines of a conversation.
#
# ```json
# {"table":"cursorDiskKV","id":"composerData:c1","data":{"_v":16,"name":"..","createdAt":1795329349,
#  "modelConfig":{"modelName":"m"},"fullConversationHeadersOnly":[{"bubbleId":"b1","type":1}]}}
# {"table":"cursorDiskKV","id":"bubbleId:c1:b2","data":{"_v":3,"type":2,"bubbleId":"b2","text":"..",
#  "createdAt":"..","tokenCount":{"inputTokens":1024,"outputTokens":50},"toolFormerData":{"name":
#  "run_terminal_cmd","toolCallId":"t1","rawArgs":"{..}","result":"{..}","status":"completed"}}}
# ```
#
# - **Bubbles** of type 1 are prompts, of type 2 what the agent says (`text`), thinks (`thinking`)
#   or does (`toolFormerData`). The oldest conversations have them in `conversation`. Bubbles that
#   the list does not name were regenerated or edited: they are taken back.
# - **Tools**: `rawArgs` (as the model wrote them), `params` and `result` are JSON as text. `status`
#   is loading, completed, error or cancelled; `userDecision` can be rejected. `task_v2` starts a
#   subagent, whose conversation names its parent in `subagentInfo`.
# - **Tokens** are stated in few bubbles, without what a cache had: sums are lower bounds. The model
#   is the last that the turn names (`modelInfo`). Until 2025, `usageData` has costs by model.
# - **Time**: bubbles have `createdAt` since the summer of 2025; before, some have `timingInfo`.
_action_of = actions(
    run="run_terminal_cmd run_terminal_command run_terminal_command_v2",
    read="read_file read_file_v2 fetch_rules web_fetch read_lints read_project",
    edit="edit_file edit_file_v2 search_replace write apply_patch delete_file edit_notebook"
    " MultiEdit reapply edit_file_v2_search_replace edit_file_v2_write edit_file_v2_apply_patch",
    search="codebase_search semantic_search_full grep grep_search ripgrep ripgrep_raw_search"
    " list_dir list_dir_v2 list_directory file_search glob_file_search web_search",
    plan="todo_write todo_read create_plan switch_mode",
    spawn="task task_v2",
    ask="ask_question",
)

_FIELDS = (
    *("_v", "name", "createdAt", "lastUpdatedAt", "unifiedMode", "modelConfig", "usageData"),
    *("fullConversationHeadersOnly", "conversation", "workspaceIdentifier", "subagentInfo"),
    *("isArchived", "createdOnBranch", "latestConversationSummary", "contextTokensUsed"),
    *("contextTokenLimit", "todos", "subComposerIds", "createdFromBackgroundAgent"),
)
_BUBBLE = (
    *("type", "bubbleId", "text", "richText", "createdAt", "tokenCount", "modelInfo", "thinking"),
    *("workspaceUris", "codeBlocks", "timingInfo", "startedAtMs", "endedAtMs", "errorDetails"),
    # What went along with a prompt, and how it is shown.
    *("context", "contextPieces", "supportedTools", "capabilities", "cursorRules", "lints", "_v"),
    *("attachedFoldersListDirResults", "projectLayouts", "knowledgeItems", "recentlyViewedFiles"),
    *("attachedCodeChunks", "attachedFileCodeChunksMetadataOnly", "unifiedMode", "isAgentic"),
)
_CALL = (
    *("name", "tool", "rawArgs", "params", "result", "status", "toolCallId", "error", "toolIndex"),
    *("modelCallId", "toolCallBinary", "userDecision"),
)
_FILES = (
    *("target_file", "targetFile", "relativeWorkspacePath", "relative_workspace_path"),
    *("effectiveUri", "target_notebook", "target_directory", "targetDirectory"),
)
_QUERIES = ("search_term", "searchTerm", "glob_pattern", "globPattern")
_OUTPUTS = ("output", "contents", "content", "result", "resultForModel")


def _directory(place: object) -> str | None:
    """Return the directory of a workspace, which is a URI, or the parts of one."""
    parts = mapping(place)
    _, is_uri, rest = (string(parts.get("external", place)) or "").partition("://")
    path = unquote(f"/{rest.partition('/')[2]}") if is_uri else ""
    return string(parts.get("fsPath")) or (path[1:] if path[2:3] == ":" else path) or None


def _parent(data: JSONObject) -> str | None:
    stated = mapping(data.get("subagentInfo"))
    return string(stated.get("rootParentConversationId")) or string(stated.get("parentComposerId"))


class Bubbles(ChatReader):
    """Reads the lines of one conversation; later ones need the model, and whether the directory is
    known.
    """

    action_of = staticmethod(_action_of)
    type_key = "id"

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        kind, stated = string(value.get("table")) or "", mapping(value.get("data")).get("type")
        if kind == "cursorDiskKV":
            key = "bubbleId" if "item" in value else string(value.get(type_key)) or ""
            kind = key.partition(":")[0]
        return kind, str(stated) if kind == "bubbleId" and isinstance(stated, int) else ""

    def take(self, value: JSONObject) -> None:
        kind, data = self.line_type[0], value.get("data")
        if kind not in ("composerData", "composerHeaders", "bubbleId"):
            self.refuse("unknown table")
        elif data is None or kind == "composerHeaders":
            self.begin({}, is_message=False)
            self._place(mapping(mapping(data).get("workspaceIdentifier")).get("uri"))
            self.keep(None, kind=kind, is_silent=True)
        elif not isinstance(data, dict):
            self.refuse("data: not a JSON object")
        elif kind == "bubbleId":
            self._bubble(data, is_taken_back=value.get("listed") is False)
        else:
            self._conversation(data)

    def _conversation(self, data: JSONObject) -> None:
        self.begin({"timestamp": data.get("createdAt")}, is_message=False)
        if (ended := self.time(data, "lastUpdatedAt")) is not None:
            self._ended = max(self._ended or ended, ended)
        title, spawned = self.text(data, "name"), self.mapping(data, "subagentInfo")
        model = self.name(self.mapping(data, "modelConfig"), "modelName")
        if self.claim.agent_key is not None:
            self.fact("stated_session_key", _parent(data))
            kind = self.text(spawned, "subagentTypeName")
            self.records.append(AgentMeta(kind, title, None, model, None, None, None))
        else:
            self.fact("ai_title", title)
            used, limit = (self.whole(data, f"contextToken{end}") for end in ("sUsed", "Limit"))
            status = "archived" if data.get("isArchived") is True else None
            entry = SessionEntry(self.claim.session_key or "", "meta", model=model, status=status)
            self.records.append(entry._replace(context_tokens=used, context_window=limit))
        self.fact("mode", self.name(data, "unifiedMode"))
        self.fact("git_branch", self.name(data, "createdOnBranch"))
        for payer, costs in self.mapping(data, "usageData").items():
            if (cents := self.number(mapping(costs), "costInCents")) is not None:
                stated = (None, None, None, None, cents / 100, 0, self.start, self.length)
                self.records.append(StatedUsage(payer, self.moment, *stated))
        self._place(self.mapping(data, "workspaceIdentifier").get("uri"))
        if summary := obvious_text(self.mapping(data, "latestConversationSummary")):
            self.say("compact_summary", summary, "system")
        self.keep_left("composerData", {name: data.get(name) for name in ("_v", *_FIELDS[-3:])})

    def _place(self, uri: object) -> None:
        path = _directory(uri)
        if path is not None and not self.context.get("is_placed"):
            self.context["is_placed"] = True
            self.fact("first_cwd", path)
            self.settle(path)

    def _bubble(self, data: JSONObject, *, is_taken_back: bool = False) -> None:
        moment = data.get("createdAt") or self.mapping(data, "timingInfo").get("clientRpcSendTime")
        moment = int(moment) if isinstance(moment, float) else moment
        key, uris = self.name(data, "bubbleId"), data.get("workspaceUris")
        self.begin({"timestamp": moment, "uuid": key}, is_message=None)
        if is_taken_back:
            self.records.append(TakenBack(None, None, self.start, self.start + 1))
        is_prompt = data.get("type") == 1
        model = self.name(self.mapping(data, "modelInfo"), "modelName")
        model = self.context["model"] = model or (None if is_prompt else self.context.get("model"))
        self.model = None if is_prompt else model
        self._place(uris[0] if isinstance(uris, list) and uris else None)
        self._said(data, is_prompt=is_prompt)
        call = self.mapping(data, "toolFormerData")
        if self.text(call, "name") is not None:
            self._call(call, data)
        if error := obvious_text(self.mapping(data, "errorDetails")):
            self.say("error", error, "system", is_error=True)
        tokens, self.model = self.mapping(data, "tokenCount"), model
        counts = Counts(self.count(tokens, "inputTokens"), self.count(tokens, "outputTokens"))
        if any(counts) and key is not None:
            self.use(key, counts, is_partial=True)
        rest = {**without(data, _BUBBLE), "toolFormerData": without(call, _CALL)}
        self.keep_left("bubbleId", rest)

    def _said(self, data: JSONObject, *, is_prompt: bool) -> None:
        prompt = "prompt" if self.claim.agent_key is None else "agent_prompt"
        kind, role = (prompt, "user") if is_prompt else ("text", "assistant")
        if thought := self.text(self.mapping(data, "thinking"), "text"):
            self.say("thinking", thought, "assistant")
        text = self.text(data, "text") or ""
        if text:
            self.say(kind, text, role)
        for block in self.items(data, "codeBlocks") if not data.get("toolFormerData") else ():
            if (code := self.text(block, "content")) and code not in text:
                self.say(kind, code, role)
        for image in self.items(data, "images"):
            self.say("image", f"[image: {string(image.get('path')) or 'without a name'}]", role)

    def _call(self, call: JSONObject, data: JSONObject) -> None:
        name, key = self.text(call, "name"), self.name(call, "toolCallId")
        raw, result = object_in(call.get("rawArgs")), object_in(call.get("result"))
        given = {**object_in(call.get("params")), **raw}
        for wanted, names in (("file_path", _FILES), ("query", _QUERIES)):
            if found := next(filter(None, (string(given.get(name)) for name in names)), None):
                given.setdefault(wanted, found)
        self.call(name, given, self.text(call, "rawArgs" if raw else "params") or "{}", key)
        added = mapping(call.get("additionalData"))
        agent = string(added.get("subagentComposerId")) or string(result.get("agentId"))
        if agent and key and self.action_of(name) == "spawn":
            self.records.append(AgentLink(agent, key, BY_RESULT, self.start))
        status, failed = call.get("status"), object_in(call.get("error"))
        if status not in ("completed", "error", "cancelled"):
            return  # it has no result yet
        texts = [text for output in _OUTPUTS if (text := string(result.get(output)))]
        texts = texts or [self.text(call, "result") or ""]
        shown = string(failed.get("clientVisibleErrorMessage")) or obvious_text(failed)
        is_declined = call.get("userDecision") == "rejected" or result.get("rejected") is True
        code = self.whole(result, "exitCodeV2" if "exitCodeV2" in result else "exitCode")
        began, ended = (self.whole(data, f"{end}AtMs") for end in ("started", "ended"))
        time = None if began is None or ended is None else max(0, ended - began)
        how = DECLINED if is_declined or status == "cancelled" else None
        is_error, text = status == "error" or bool(code), "\n".join(filter(None, [*texts, shown]))
        stated: dict[str, Any] = {"exit_code": code, "duration_ms": time}
        self.answer(text, key, is_error=is_error, is_timed=False, status=how, **stated)


def lines_of(rows: Iterable[EntryLine]) -> Iterator[EntryLine]:
    """Yield the lines of a conversation: without keys, and bubbles in the order of its list.

    The oldest conversations have bubbles themselves: each is a line, with its number as `item`.
    Those that the list does not name come last, with `"listed":false`. All of them are held.
    """
    bubbles: list[tuple[int, EntryLine]] = []
    places: dict[object, int] = {}
    is_listed, last = False, 0
    for table, key, columns, data in rows:
        if (name := str(key)).startswith("bubbleId:"):
            place = places.get(name.rpartition(":")[2], last)
            facts = {**columns, "listed": False} if is_listed and place == last else columns
            bubbles.append((place, (table, key, facts, data)))
            continue
        kept = with_only(_FIELDS if table == "cursorDiskKV" else ("workspaceIdentifier",), data)
        value = object_in(kept)
        inner, listed = value.get("conversation"), value.get("fullConversationHeadersOnly")
        if isinstance(inner, list):
            kept = json_bytes(without(value, ["conversation"]))
        yield table, key, columns, kept
        for number, item in enumerate(inner if isinstance(inner, list) else ()):
            yield table, key, {"item": number}, json_bytes(item)
        if isinstance(listed, list):
            is_listed, last = True, len(listed)
            names = (string(mapping(item).get("bubbleId")) for item in listed)
            places = {bubble: place for place, bubble in enumerate(names)}
    for _, line in sorted(bubbles, key=itemgetter(0)):
        yield line


_STORE, _MARK = "globalStorage/state.vscdb", "globalStorage/anysphere."
_LISTING = """select substr(key, 14), null, null, rowid from cursorDiskKV
    where key > 'composerData:' and key < 'composerData;'"""
_COUNTS = """select substr(key, 10, instr(substr(key, 10), ':') - 1), count(*), sum(rowid),
    max(rowid) from cursorDiskKV where key > 'bubbleId:' and key < 'bubbleId;' group by 1"""
_COLUMNS = "select key, value from cursorDiskKV limit 0"  # fails if one is missing
_HEADER = Table(
    "composerHeaders", (), "composerId = :key", "rowid", "composerId", "value",
    is_optional=True,
)  # fmt: skip
_BUBBLES = Table(
    "cursorDiskKV", (), "key > 'bubbleId:' || :key || ':' and key < 'bubbleId:' || :key || ';'",
    "rowid", "key", "value",
)  # fmt: skip
_CONVERSATION = Table(
    "cursorDiskKV", (), "key = 'composerData:' || :key", "rowid", "key", "value",
    rows=(_HEADER, _BUBBLES),
)  # fmt: skip


class Cursor(AgentSource):
    """The source of kind `cursor`."""

    name, label, checked = "cursor", "Cursor", "notes on 0.50 to 3.16"
    unread_places = ("History", "snippets", "profiles", "sync", "workspaceStorage")
    known_lines = frozenset(
        ["composerData", "composerHeaders", "bubbleId/", "bubbleId/1", "bubbleId/2"]
    )
    database = Database(_LISTING, (_COUNTS, _COLUMNS), (_CONVERSATION,), lines=lines_of)
    started_in = staticmethod(_parent)

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Each system has its own directory for what applications keep."""
        stated = [environment.get(name, "").strip() for name in ("APPDATA", "XDG_CONFIG_HOME")]
        places = [f"{home}/.config", f"{home}/Library/Application Support"] if home else []
        return [f"{place}/Cursor/User" for place in (*filter(None, stated), *places)]

    def recognises(self, listing: Listing) -> Recognition:
        """Other editors have such a database, too; the extensions that Cursor has do not."""
        is_ours = _STORE in listing and any(path.startswith(_MARK) for path in listing)
        return Recognition.CERTAIN if is_ours else Recognition.NO

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only the directory with the database is walked."""
        return parts == ("globalStorage",)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A path is the database, its log, or an entry of it."""
        path = "/".join(parts)
        if path in (_STORE, f"{_STORE}-wal"):
            is_log = path != _STORE
            kind, store = ("database_log", _STORE) if is_log else (DATABASE, None)
            return Claim(self.name, kind, within=store)
        store, key, agent = entry_names(path) or (None, None, None)
        is_entry = store == _STORE and agent is None
        return Claim(self.name, "transcript", key, within=store) if is_entry else None

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which model answers is in earlier bubbles."""
        return Bubbles(claim, context=context).read_lines(lines)

"""Cursor CLI: conversations with Cursor's agent for the terminal, below `~/.cursor`.

```
chats/<md5 of the directory>/<session>/store.db    a conversation, SQLite
    meta  {key, value}    one row: a JSON object, in hexadecimal digits
    blobs {id, data}      by SHA-256: messages as JSON, all else as protobuf
chats/<md5 of the directory>/<session>/meta.json   its directory, title and times; newer versions
acp-sessions/<session>/...                         the same, of editors that use the agent
```

The home is `CURSOR_CONFIG_DIR`, `$XDG_CONFIG_HOME/cursor` or `~/.cursor`. Learned from programs
that read these files (SpecStory, VibeLens, vibe-replay, VibeCodingTracker) and from notes on
2025.09 to 2026.08; no real one was at hand. It is a source of its own beside that of the editor:
homes, files and what resumes a conversation are different, and none is in both.

Only messages are read, in the order in which they were written. The protobuf would tell which
ones a rewind took back, and times of steps, but nobody has published what it means. No tokens are
stated. Left out are transcripts in `projects/*/agent-transcripts`, which repeat this and what the
editor has, without results, ids or times, and all files with credentials (`_SECRET`); of `meta`,
keys for encryption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .. import tags
from ..fields import json_text, left_over, mapping, string
from ..paths import comparable
from ..records import BY_META, BY_RESULT, AgentLink, AgentMeta, Record, SessionEntry
from ..source import (
    DATABASE,
    DOCUMENT,
    Claim,
    Context,
    Database,
    EntryLine,
    Line,
    Table,
)
from .chat_reader import AgentSource, ChatReader, actions, exit_code, image, text_of
from .reader import JSONObject, Reader, exact_object, with_only

# ------------------------------------------------------------------------------------------------
# The lines of a conversation.
#
# ```json
# {"table":"meta","id":"0","data":{"name":"..","mode":"default","createdAt":1790000000000,
#  "lastUsedModel":"m","subagentInfo":{"rootParentAgentId":"s","toolCallId":"t","typeName":".."}}}
# {"table":"blobs","id":"e1..","data":{"role":"assistant","content":[{"type":"text","text":".."},
#  {"type":"tool-call","toolCallId":"t1","toolName":"Shell","args":{"command":"ls"}}]}}
# {"table":"blobs","id":"f2..","data":{"role":"tool","content":[{"type":"tool-result","toolCallId":
#  "t1","toolName":"Shell","result":".."}],"providerOptions":{"cursor":{"highLevelToolCallResult":
#  {"isError":false,"output":{"success":{"executionTime":12}}}}}}}
# ```
#
# - **Prompts** are in `<user_query>`; what else a user message has is the program's, and what a
#   compaction left is one with `isSummary`. `content` can be a text.
# - **Reasoning** is often encrypted (`redacted-reasoning`), and then left out.
# - **Models**: only the last one of a conversation is stated.

_action_of = actions(
    run="Shell run_terminal_cmd",
    read="Read ReadFile read_file ReadLints WebFetch",
    edit="Write StrReplace Delete EditNotebook ApplyPatch edit_file search_replace write",
    search="Grep Glob LS SemanticSearch WebSearch grep list_dir glob_file_search codebase_search",
    plan="TodoWrite todo_write CreatePlan SwitchMode",
    spawn="Task Subagent",
    ask="AskQuestion",
)
_BY_PROGRAM = (
    *("<user_info>", "<project_layout>", "<git_status>", "<rules>", "<system_reminder>"),
    *("<open_and_recently_viewed_files>", "<additional_data>", "<timestamp>", "<agent_skills>"),
    *("<attached_files>", "<agent_transcripts>", "<mcp_", "<always_applied_workspace_rules>"),
)
"""How texts of user messages begin that nobody typed."""

_UNTITLED = "New Agent"
_EXIT, _WORKSPACE = "Exit code: ", "Workspace Path: "
_META = (
    *("name", "mode", "createdAt", "lastUsedModel", "subagentInfo", "isRunEverything"),
    *("approvalMode", "currentPlanUri"),
)
_TAKEN = ("name", "mode", "createdAt", "lastUsedModel", "subagentInfo")


class Messages(ChatReader):
    """Reads the lines of one conversation; the context says whether the directory is known."""

    action_of = staticmethod(_action_of)
    type_key = "table"

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        role = string(mapping(value.get("data")).get("role")) or ""
        return string(value.get(type_key)) or "", role

    def take(self, value: JSONObject) -> None:
        kind, role = self.line_type
        data = value.get("data")
        if kind not in ("meta", "blobs"):
            self.refuse("unknown table")
        elif not isinstance(data, dict):
            self.refuse("data: not a JSON object")
        elif kind == "meta":
            self._meta(data)
        else:
            key = self.claim.session_key or self.claim.agent_key
            self.begin({"uuid": f"{key}:{string(value.get('id')) or ''}"[:200]}, is_message=None)
            self._message(role, data)

    def _meta(self, data: JSONObject) -> None:
        self.begin({"timestamp": data.get("createdAt")}, is_message=False)
        stated, title = data.get("lastUsedModel"), self.text(data, "name")
        model = string(stated) or string(mapping(stated).get("model"))
        title = None if title == _UNTITLED else title
        spawned = self.mapping(data, "subagentInfo")
        if self.claim.agent_key is not None:
            self.fact("stated_session_key", _parent(data))
            kind, call = self.text(spawned, "typeName"), self.name(spawned, "toolCallId")
            self.records.append(AgentMeta(kind, title, None, model, None, None, None))
            if call is not None:
                link = AgentLink(self.claim.agent_key, call, BY_META, self.start)
                self.records.append(link)
        else:
            self.fact("ai_title", title)
            self.records.append(SessionEntry(self.claim.session_key or "", "meta", model=model))
        self.fact("mode", self.name(data, "mode"))
        self.keep_left("meta", data, _TAKEN)

    def _message(self, role: str, data: JSONObject) -> None:
        content = data.get("content")
        is_text = isinstance(content, str)
        parts = [{"type": "text", "text": content}] if is_text else self.items(data, "content")
        options = self.mapping(self.mapping(data, "providerOptions"), "cursor")
        for part in parts if role != "system" else ():
            kind, text = string(part.get("type")), self.text(part, "text") or ""
            if kind == "tool-call":
                self._call(part)
            elif kind == "tool-result":
                self._result(part, self.mapping(options, "highLevelToolCallResult"))
            elif kind == "image":
                shown = image(part.get("mediaType") or part.get("mimeType"), None)
                self.say("image", shown, "assistant" if role == "assistant" else "user")
            elif role == "user":
                self._user(text, is_summary=options.get("isSummary") is True)
            elif text:
                said = "thinking" if kind == "reasoning" else "text"
                self.say(said, text, "assistant" if role == "assistant" else "system")
        self.keep_left(role, options, ("highLevelToolCallResult", "isSummary"))

    def _user(self, text: str, *, is_summary: bool) -> None:
        prompt = "prompt" if self.claim.agent_key is None else "agent_prompt"
        query = tags.inside(text, "user_query")
        if is_summary:
            self.say("compact_summary", text, "system")
        elif query is not None:
            before, _, rest = text.partition("<user_query>")
            around = f"{before}\n{rest.partition('</user_query>')[2]}".strip()
            if around:
                self.say("meta", around, "system")
            self.say(prompt, query, "user")
        elif text.lstrip().startswith(_BY_PROGRAM):
            self._place(text)
            self.say("meta", text, "system")
        elif text:
            self.say(prompt, text, "user")

    def _place(self, text: str) -> None:
        """Note the directory that is stated at the start of a conversation."""
        path = text.partition(_WORKSPACE)[2].partition("\n")[0].strip()
        if path and text.lstrip().startswith("<user_info>") and not self.context.get("is_placed"):
            self.context["is_placed"] = True
            self.fact("first_cwd", path)
            self.settle(path)

    def _call(self, part: JSONObject) -> None:
        given, key = mapping(part.get("args")), self.name(part, "toolCallId")
        path = string(given.get("target_file")) or string(given.get("path"))
        named = {"file_path": path, **given} if path else given
        text = json_text(given, lambda: given)
        self.call(self.text(part, "toolName"), named, text, key)

    def _result(self, part: JSONObject, stated: JSONObject) -> None:
        text = text_of(part.get("result")) or text_of(part.get("experimental_content"))
        output = mapping(stated.get("output"))
        success, key = mapping(output.get("success")), self.name(part, "toolCallId")
        code = exit_code(text[:40], _EXIT, "\n") if text.startswith(_EXIT) else None
        is_error = stated.get("isError") is True or output.get("isError") is True or bool(code)
        name, agent = self.text(part, "toolName"), string(success.get("agentId"))
        time = self.whole(success, "executionTime")
        self.answer(text, key, is_error=is_error, name=name, exit_code=code, duration_ms=time)
        if agent and key and self.action_of(name) == "spawn":
            self.records.append(AgentLink(agent, key, BY_RESULT, self.start))


def _parent(data: JSONObject) -> str | None:
    stated = mapping(data.get("subagentInfo"))
    return string(stated.get("rootParentAgentId")) or string(stated.get("parentAgentId"))


def _facts(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read what `meta.json` says of a conversation."""
    reader, session = Reader(claim), claim.session_key or ""
    for value in reader.document(lines):
        times = (reader.time(value, "createdAtMs"), reader.time(value, "updatedAtMs"))
        entry = SessionEntry(session, "meta", reader.text(value, "title"), None, None, *times)
        cwd = reader.text(value, "cwd")
        reader.records.append(entry._replace(cwd=cwd, project_key=cwd and comparable(cwd)))
        taken = ("createdAtMs", "updatedAtMs", "title", "cwd")
        reader.keep(left_over(value, taken, lambda: exact_object(reader.data)))
    return reader.finish()


def lines_of(rows: Iterable[EntryLine]) -> Iterator[EntryLine]:
    """Yield the lines of a conversation; keys are in the row of `meta` alone."""
    for table, key, columns, data in rows:
        yield table, key, columns, with_only(_META, data) if table == "meta" else data


# Messages begin like this; other JSON is the content of files.
_MESSAGES = "substr(data, 1, 6) in (x'7b22726f6c65', x'7b226964223a')"
_LAYOUT = Database(
    "select key, null, null, value from meta where key = '0'",
    ("select '0', count(*), max(rowid) from blobs",),
    (
        Table("meta", (), "key = :key", "key", "key", "value"),
        Table("blobs", (), _MESSAGES, "rowid", "id", "data"),
    ),
    lines=lines_of,
)
_SECRET = ("cli-config.json", "mcp.json", "auth.json", "mcp-auth.json", ".env")


class CursorCLI(AgentSource):
    """The source of kind `cursor_cli`."""

    name, label, checked = "cursor_cli", "Cursor CLI", "notes on 2025.09 to 2026.08"
    unread_places = (
        *("agents", "ai-tracking", "argv", "commands", "extensions", "plans", "plugins"),
        *("projects", "rules", "skills*", "snapshots", "workers", "worktrees"),
    )
    known_lines = frozenset(
        ["meta", *(f"blobs/{role}" for role in ("", "user", "assistant", "tool", "system"))]
    )
    variable, place = "CURSOR_CONFIG_DIR", ".cursor"
    resume = ("cursor-agent", "--resume", "{}")
    database = _LAYOUT
    started_in = staticmethod(_parent)

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """Where settings have a directory of their own, they are there."""
        settings = environment.get("XDG_CONFIG_HOME", "").strip()
        own = [f"{settings}/cursor"] if settings else []
        return [*super().default_roots(environment, home), *own]

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """The account, and keys of servers."""
        return parts[-1].casefold() in _SECRET

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        return len(parts) <= {"chats": 3, "acp-sessions": 2}.get(parts[0], 0)

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The directory names the session."""
        match parts:
            case ("chats", digest, session, name) if len(digest) == 32:
                pass
            case ("acp-sessions", session, name):
                pass
            case _:
                return None
        store = "/".join((*parts[:-1], "store.db"))
        if name == "store.db":
            return Claim(self.name, DATABASE)
        kinds = {"store.db-wal": "database_log", "store.db#0": "transcript", "meta.json": "facts"}
        if name not in kinds:
            return None
        within = None if name == "meta.json" else store
        key = None if name == "store.db-wal" else session
        return Claim(self.name, kinds[name], session_key=key, within=within)

    def shape(self, claim: Claim) -> str:
        """What is said of a conversation is rewritten."""
        return DOCUMENT if claim.kind == "facts" else super().shape(claim)

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records."""
        if claim.kind == "facts":
            return _facts(claim, lines), context
        return Messages(claim, context=context).read_lines(lines)

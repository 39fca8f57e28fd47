"""Goose: sessions in its database, and in the files of earlier versions.

```
~/.local/share/goose/sessions/sessions.db      since 1.10 (September 2025)
~/.local/share/goose/sessions/<session>.jsonl  until 1.9
```

`XDG_DATA_HOME` replaces `~/.local/share`; with `GOOSE_PATH_ROOT`, sessions are in `data/sessions`
below it, and on Windows in `Block/goose/data/sessions` below `APPDATA`. A session of the database
is an entry (see `source`): its own line, those of its messages, and those of its requests.

1.10 copied the files into the database, and left them. What is in both counts once: a message is
recognised by its time, its role and its first text or call, because only newer ones have ids. So is
that of a session that was copied (`goose session fork`).

The database has grown from schema 1 to 17 (August 2026): later columns, and the table of requests
(`usage_ledger`), may be missing. Columns with secrets are never selected: `extension_data` and
`recipe_json` have the environments of extensions, `user_recipe_values_json` what was put into a
recipe. Nor are the tables of providers, and `thread_messages`, which repeats messages.

The format is that of the program's source: files of 1.0 to 1.9, schemas 5 to 17.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import ClassVar

from ..fields import json_text, leaves, mapping, placeholder, string, without
from ..records import EDIT, READ, AgentMeta, Record, StatedUsage
from ..source import (
    DATABASE,
    Claim,
    Context,
    Database,
    Line,
    Listing,
    Recognition,
    Table,
    entry_names,
)
from .chat_reader import AgentSource, ChatReader, actions, image_in
from .reader import JSONObject, object_in
from .tokens import beside_cache

# ------------------------------------------------------------------------------------------------
# The lines of a session, whichever store they come from.
#
# ```json
# {"working_dir":"/srv","description":"..","accumulated_total_tokens":1373}
# {"id":"msg_1","role":"assistant","created":1767258000,"content":[{"type":"toolRequest","id":"c1",
#  "toolCall":{"status":"success","value":{"name":"shell","arguments":{"command":"ls"}}}}]}
# {"table":"messages","id":7,"message_id":"msg_2","role":"user","created_timestamp":1767258001,
#  "metadata_json":"{\"userVisible\":true,\"agentVisible\":true}","data":[{"type":"toolResponse",
#  "id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":".."}]}}}]}
# {"table":"usage_ledger","id":3,"model":"m","input_tokens":640,"output_tokens":40}
# ```
#
# - A file begins with what is stated of the session, of which the database has the sums last.
# - What a tool returns can have an audience: it says the same to the person and to the model, or
#   only one of them is told. What is equal is read once.
# - **Compaction** hides messages from the model (`agentVisible`), and adds a summary that the
#   person does not see (`userVisible`). All stay, and nothing is marked.
# - **Tokens** of each request are in `usage_ledger` (schema 15 on); input includes what the cache
#   had. A cost may be an estimate of the program (`cost_source`). Otherwise only the session has
#   sums: these are stated by the program, and no tokens of a message.
# - **Subagents** are sessions of the type `sub_agent`, which name their parent since schema 15.


_ACTIONS = actions(
    run="shell execute execute_code execute_typescript bash automation_script computer_control",
    read="read read_file read_image view image_processor screen_capture read_resource web_scrape",
    edit="write edit text_editor",
    search="tree analyze list_resources search glob grep rg",
    plan="todo_write todo_read update_plan final_output recipe__final_output",
    spawn="delegate subagent create_task execute_task",
)
_SILENT = ("redactedThinking", "text")
_SUMS = tuple(
    f"accumulated_{kind}_tokens" for kind in ("input", "output", "cache_read", "cache_write")
)
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_OF_SESSION = (
    *("table", "id", "name", "description", "working_dir", "model_config_json", "user_set_name"),
    *(*_SUMS, "accumulated_total_tokens", "accumulated_cost", *_COUNTS, "total_tokens"),
    *("updated_at", "message_count", "parent_session_id"),
)
_OF_REQUEST = ("table", "id", "created_timestamp", "model", *_COUNTS, "total_tokens", "cost")
_VISIBLE = {"userVisible": True, "agentVisible": True}


def _is_ours(value: JSONObject) -> bool:
    return "table" in value or "working_dir" in value or ("role" in value and "content" in value)


class _Session(ChatReader):
    """Reads the lines of a session; later ones need its model, and whether that forgot some."""

    type_key = "table"
    is_ours = staticmethod(_is_ours)

    @staticmethod
    def action_of(name: str | None) -> str:
        """The name of an extension may come before that of its tool."""
        return _ACTIONS((name or "").rpartition("__")[2])

    def type_of(self, value: JSONObject, type_key: str) -> tuple[str, str]:
        """A line of a file has no type: what it has tells it."""
        stated = string(value.get("table"))
        kind = stated or ("messages" if "role" in value else "sessions")
        return kind, string(value.get("role")) or "" if kind == "messages" else ""

    def take(self, value: JSONObject) -> None:
        kind, _ = self.line_type
        if kind not in self._readers or not _is_ours(value):
            self.refuse("unknown line")
        else:
            self._readers[kind](self, value)

    def _head(self, value: JSONObject) -> None:
        """Read what is stated of a session: at the beginning, in a database the sums at the end."""
        self.begin({}, is_message=False)
        title = self.text(value, "name") or self.text(value, "description")
        self.fact("custom_title" if value.get("user_set_name") else "ai_title", title)
        if (cwd := self.text(value, "working_dir")) is not None:
            model = object_in(value.get("model_config_json")).get("model_name")
            self.context["model"] = (string(model) or "")[:200] or None
            self.context["is_agent"] = value.get("session_type") == "sub_agent"
            self.fact("first_cwd", cwd)
            if self.claim.agent_key is None:
                self.settle(cwd)
            else:
                self.records.append(AgentMeta(None, title, None, None, None, None, None))
        given, output, cached, written = (self.whole(value, name) for name in _SUMS)
        cost = self.number(value, "accumulated_cost")
        if given or output or cost:
            fresh = max(0, (given or 0) - (cached or 0) - (written or 0))
            stated = ("", self.time(value, "updated_at"), fresh, output, cached, written, cost)
            self.records.append(StatedUsage(*stated, 0, self.start, self.length))
        self.keep_left("sessions", value, _OF_SESSION)

    def _spent(self, value: JSONObject) -> None:
        """Note what a request took."""
        self.begin({"timestamp": value.get("created_timestamp")}, is_message=False)
        self.model = self.name(value, "model")
        counts = beside_cache(*(self.count(value, name) for name in _COUNTS))
        cost = self.number(value, "cost") or None
        if any(counts) or cost:
            session = self.claim.agent_key or self.claim.session_key
            self.use(f"goose {session}:{value.get('id')}", counts, stated_cost_usd=cost)
        self.keep_left("usage_ledger", value, _OF_REQUEST)

    def _message(self, value: JSONObject) -> None:
        content = value.get("data", value.get("content"))
        blocks = content if isinstance(content, list) else []
        self._expect(isinstance(content, list), "content", content)
        created, role = value.get("created_timestamp", value.get("created")), value.get("role")
        identity = _identity(created, role, blocks)
        self.begin({"timestamp": created, "uuid": identity}, is_message=None)
        self.model = self.context.get("model") if role == "assistant" else None
        seen = {**_VISIBLE, **object_in(value.get("metadata_json", value.get("metadata")))}
        is_hidden = seen["userVisible"] is False
        for block in blocks:
            if isinstance(block, dict):
                self._block_of(block, is_users=role == "user", is_hidden=is_hidden)
            else:
                self._expect(is_right=False, key="content[]", value=block)
        if seen["agentVisible"] is False and not is_hidden:
            self.context["is_compacted"] = True
        marks = {key: item for key, item in seen.items() if item is not _VISIBLE.get(key)}
        self.keep_left("messages", marks)

    def _block_of(self, block: JSONObject, *, is_users: bool, is_hidden: bool) -> None:
        kind = string(block.get("type")) or ""
        role = "user" if is_users else "assistant"
        if kind in ("toolRequest", "frontendToolRequest"):
            self._request(block)
        elif kind == "toolResponse":
            self._response(block)
        elif kind == "image":
            self.say("image", image_in(block) or placeholder(block), role)
        elif kind in ("thinking", "reasoning"):
            if text := self.text(block, "thinking") or self.text(block, "text"):
                self.say("thinking", text, "assistant")
        elif kind == "text" and (text := self.text(block, "text")):
            row, role = self._said(is_users=is_users, is_hidden=is_hidden)
            self.say(row, text, role)
        elif kind not in _SILENT and (text := "\n".join(leaves(block))):
            self.say("system", text, "system")

    def _said(self, *, is_users: bool, is_hidden: bool) -> tuple[str, str]:
        """Return the kind and the role of a text of a message."""
        if is_hidden:
            is_summary = is_users and self.context.get("is_compacted")
            return "compact_summary" if is_summary else "meta", "system"
        if not is_users:
            return "text", "assistant"
        is_agents = self.claim.agent_key is not None or self.context.get("is_agent")
        return ("agent_prompt" if is_agents else "prompt"), "user"

    def _request(self, block: JSONObject) -> None:
        """Add a call; one that is no valid call says why."""
        call, key = self.mapping(block, "toolCall"), self.name(block, "id")
        stated = self.mapping(call, "value") or without(call, ["status"])
        name, given = self.name(stated, "name"), mapping(stated.get("arguments"))
        action = self.action_of(name)
        action = READ if action == EDIT and given.get("command") == "view" else action
        about = {"file_path": given.get("path"), **given} if action in (EDIT, READ) else given
        self.call(name, about, json_text(given if name else stated), key, action=action)

    def _response(self, block: JSONObject) -> None:
        result = self.mapping(block, "toolResult")
        stated = result.get("value")
        items = stated if isinstance(stated, list) else mapping(stated).get("content")
        texts = [_item_text(mapping(item)) for item in items] if isinstance(items, list) else []
        text = "\n".join(dict.fromkeys(filter(None, texts)))
        is_error = result.get("status") == "error" or mapping(stated).get("isError") is True
        text = text or string(result.get("error")) or ""
        self.answer(text, self.name(block, "id"), is_error=is_error)

    _readers: ClassVar = {"sessions": _head, "messages": _message, "usage_ledger": _spent}


def _item_text(item: JSONObject) -> str:
    """Return the text of an item of a result, of an image its description."""
    resource = mapping(item.get("resource"))
    named = [string(resource.get("uri")), string(resource.get("text"))]
    said = image_in(item) or string(item.get("text"))
    return said or "\n".join(filter(None, named))


def _identity(created: object, role: object, blocks: list[object]) -> str | None:
    """Return what a message is recognised by in a copy, None if it has no time."""
    if not isinstance(created, int) or not blocks:
        return None
    first = mapping(blocks[0])
    fact = [created, role, *(first.get(key) for key in ("type", "id", "text", "thinking", "msg"))]
    return blake2b(repr(fact).encode("utf-8", "replace"), digest_size=12).hexdigest()


_DATABASE, _LOG, _ENDING = "sessions.db", "sessions.db-wal", ".jsonl"
_LAYOUT = Database(
    # Versions that have no parents take the column from beside the sessions.
    listing="""
        select s.id, (select parent_session_id from sessions o where o.id = s.id),
            cast(strftime('%s', s.updated_at) as integer) * 1000, s.working_dir, s.description,
            s.total_tokens, s.accumulated_total_tokens, s.accumulated_output_tokens
        from (select null as parent_session_id) earlier cross join sessions s
    """,
    counts=("select session_id, count(*), max(id) from messages group by session_id",),
    tables=(
        Table("sessions", (
            *("name", "description", "user_set_name", "session_type", "working_dir", "created_at"),
            *("schedule_id", "provider_name", "model_config_json", "goose_mode", "archived_at"),
            *("project_id", "parent_session_id"),
        ), "id = :key"),
        Table("messages", ("message_id", "role", "created_timestamp", "metadata_json"),
              "session_id = :key", "created_timestamp, id", json="content_json"),
        Table("usage_ledger", (
            *("created_timestamp", "model", *_COUNTS, "total_tokens", "cost", "cost_source"),
            "is_compaction",
        ), "session_id = :key", is_optional=True),
        Table("sessions", ("updated_at", *_SUMS, "accumulated_cost"), "id = :key"),
    ),
)  # fmt: skip


class Goose(AgentSource):
    """The source of kind `goose`."""

    name, label, checked = "goose", "Goose", "1.0 to 1.9, schemas 5 to 17"
    known_lines = frozenset(["sessions", "messages/user", "messages/assistant", "usage_ledger"])
    unread_places = ("backups",)
    resume = ("goose", "session", "--resume", "--session-id", "{}")
    database = _LAYOUT

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """A root that is configured has all directories of the program."""
        if root := environment.get("GOOSE_PATH_ROOT", "").strip():
            return [f"{root}/data/sessions"]
        share = environment.get("XDG_DATA_HOME", "").strip() or (home and f"{home}/.local/share")
        roots = [f"{share}/goose/sessions"] if share else []
        if above := environment.get("APPDATA"):
            roots.append(f"{above}/Block/goose/data/sessions")
        return roots

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a database with tables of this program, or sessions in files."""
        is_possible = False
        for path in listing:
            data = listing.content(path) if path in (_DATABASE, _LOG) else b""
            if b"content_json" in data and b"working_dir" in data:
                return Recognition.CERTAIN
            if path.endswith(_ENDING):
                if b'"working_dir":' in listing.content(path).partition(b"\n")[0]:
                    return Recognition.CERTAIN
                is_possible = is_possible or _is_time(path.removesuffix(_ENDING))
        return Recognition.POSSIBLE if is_possible else Recognition.NO

    def descends(self, parts: tuple[str, ...]) -> bool:
        """All sessions are in one directory."""
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A path is the database, its log, a session of it, or one in a file."""
        match parts:
            case ("sessions.db",):
                return Claim(self.name, DATABASE)
            case ("sessions.db-wal",):
                return Claim(self.name, "database_log", within=_DATABASE)
            case (name,) if (names := entry_names(name)) is not None and names[0] == _DATABASE:
                _, session, agent = names
                kind = "transcript" if agent is None else "agent"
                return Claim(self.name, kind, session, agent, within=_DATABASE)
            case (name,) if name.endswith(_ENDING) and name != _ENDING and "#" not in name:
                return Claim(self.name, "transcript", name.removesuffix(_ENDING))
        return None

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; which model answers comes from the line of the session."""
        return _Session(claim, context=context).read_lines(lines)


def _is_time(name: str) -> bool:
    day, mark, time = name.partition("_")
    return mark == "_" and len(day) == 8 and len(time) == 6 and (day + time).isdecimal()

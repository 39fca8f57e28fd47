"""CC-Insights V2: chats with several agents in this desktop application.

```
.ccinsights/projects.json, projects.json.bak               projects, their worktrees and chats
.ccinsights/projects/<id>/chats/<chat>.chat.jsonl          lines, see `ccinsights_chat`
.ccinsights/projects/<id>/chats/<chat>.meta.json           its model, tokens and cost so far
.ccinsights/projects/<id>/tracking.jsonl                   the cost of closed chats
.ccinsights/projects/<id>/tickets.json                     the project's tickets
```

`config.json` in the root contains environment variables of agents, and keys among them: it is never
opened. `logs/`, `scripts/` and `codex-pricing.json` are ignored.

**projects.json** is copied to `.bak` and then rewritten in place, so one of the two can be read at
any time: the copy counts while the original is broken. Chats that are in no list are kept, too.

```json
{"/srv/demo":{"id":"926574b4","name":"Demo","worktrees":{"/srv/demo":{"type":"primary",
 "name":"main","chats":[{"name":"Tidy menus","chatId":"chat-1771234500123",
 "lastSessionId":"0b7c"}]}},"archivedChats":[{"name":"Old","chatId":"chat-1",
 "lastSessionId":null,"originalWorktreePath":"/srv/demo","archivedAt":"2026-02-01T10:00:00.000"}]}}
```

The id of a project is the beginning of its path's SHA-256; another id is used, and an issue.
`lastSessionId` is the session of Claude Code that does the work; archiving a chat moves its entry.

**meta.json** is overwritten up to once a second. Its counts are running totals, so they become
totals of the session, not responses. **tickets.json** had another shape in its first version, with
`kind`, `priority` and `category`, and `status` instead of `isOpen`. The `id` of a ticket is a
number that is never reused in its project. **tracking.jsonl** names chats by titles that are not
unique: its lines belong to no session, and are kept as JSON. Other fields of these documents are
kept as JSON, too: `backendType`, `modelUsage` and `timing` of a chat, `tags` and `base` of a
worktree, comments and history of a ticket.

Times without a zone are local times of the machine that wrote them. It is an assumption that this
is the same machine, so the zone is a parameter of the source, and sessions say if it was used
(`ts_zone`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from ..fields import (
    MACHINE,
    Zone,
    integer,
    json_text,
    left_over,
    mapping,
    obvious_text,
    orjson,
    placeholder,
    string,
)
from ..paths import comparable, slashed
from ..records import Document, ProjectEntry, Record, SessionEntry
from ..source import DOCUMENT, LOG, Claim, Line, Listing, Recognition, Source
from .claude.tools import AroundClaude, result_text
from .reader import JSONObject, Reader, complete_prefix, folded

# ------------------------------------------------------------------------------------------------
# The lines of a CC-Insights chat, with the field names of old and new versions.
#
# ```json
# {"type":"tool_use","timestamp":"2026-02-19T18:41:07.204518","tool_name":"Read","tool_kind":"read",
#  "tool_use_id":"t1","tool_input":{"path":"a.ts"},"is_error":false}
# {"type":"tool_use","timestamp":"2025-11-03T08:12:44.000Z","id":"t9","tool":"Grep",
#  "input":{"pattern":"menu"}}
# ```
#
# A file can have both, since a chat continues when the application is updated. The fields of each
# type, with newer names first:
#
# - `user`: `text`, `images[{data, media_type}]`; `assistant`: `text`, `content_type` text or
#   thinking, `error_type`;
# - `tool_use`: `tool_use_id`/`id`, `tool_name`/`tool`, `tool_input`/`input`, and `result` with
#   `is_error` if the result existed when the line was written;
# - `tool_result`: `tool_use_id`/`toolUseId`, `result`/`output` (any JSON), `is_error`/`isError`;
# - `context_summary`: `summary`; `auto_compaction`, `system_notification`: `message`;
#   `system_instruction`, `system`: `text`;
# - `context_cleared`, `session_marker` and `unknown_message` have no text for people, or repeat
#   another line: they have no row among the messages.
#
# All other fields of a line (`tool_kind`, `error_type`, `marker_type` ...) are kept as JSON.
#
# Subagents are not written at all.


_NOTICES = {
    "context_summary": ("compact_summary", "summary"),
    "auto_compaction": ("system", "message"),
    "system_notification": ("system", "message"),
    "system_instruction": ("system", "text"),
    "system": ("system", "text"),
}
_COLUMNS = {
    "user": ("text", "images"),
    "assistant": ("text", "content_type"),
    "tool_use": ("model", "result"),
    **{kind: (key,) for kind, (_, key) in _NOTICES.items()},
}
_PAIRS = {
    "tool_use": (
        ("tool_use_id", "id"),
        ("tool_name", "tool"),
        ("tool_input", "input"),
        ("is_error", "isError"),
    ),
    "tool_result": (("tool_use_id", "toolUseId"), ("result", "output"), ("is_error", "isError")),
}
_COUNTED = frozenset(["context_cleared", "session_marker", "unknown_message"])
TYPES = frozenset(["user", "assistant", "tool_use", "tool_result", *_NOTICES, *_COUNTED])


def _is_line(value: JSONObject) -> bool:
    return string(value.get("type")) in TYPES and "timestamp" in value


class ChatLines(AroundClaude):
    """Reads the lines of one chat."""

    def read(self, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records."""
        for value in self.objects(lines, _is_line):
            kind = string(value.get("type")) or ""
            self.begin(value, is_message=kind in ("user", "assistant"))
            if kind == "user":
                self._user(value)
            elif kind == "assistant":
                self._assistant(value)
            elif kind == "tool_use":
                self._tool_use(value)
            elif kind == "tool_result":
                self._tool_result(value)
            elif kind in _NOTICES:
                self._notice(*_NOTICES[kind], value)
            elif kind not in _COUNTED and (text := obvious_text(value)):
                self.say("system", text, "system")
            self.keep_rest(value, _taken(kind, value))
        return self.finish()

    def _user(self, value: JSONObject) -> None:
        self.say("prompt", self.text(value, "text") or "", "user")
        for image in self.items(value, "images"):
            block: JSONObject = {"type": "image", "source": image}
            self.say("image", placeholder(block), "user")

    def _assistant(self, value: JSONObject) -> None:
        kind = "thinking" if value.get("content_type") == "thinking" else "text"
        if self.text(value, "error_type") is not None:
            kind = "error"
        text = self.text(value, "text") or ""
        self.say(kind, text, "assistant", is_error=kind == "error")

    def _tool_use(self, value: JSONObject) -> None:
        self.model = self.name(value, "model")
        identity = self._either(value, "tool_use_id", "id")
        key = "tool_input" if "tool_input" in value else "input"
        arguments = value.get(key)
        text = json_text({} if arguments is None else arguments, lambda: self.exact(key, arguments))
        self.call(self._either(value, "tool_name", "tool"), mapping(arguments), text, identity)
        if value.get("result") is not None:
            self.answer(
                _result(value["result"]), identity, is_error=_is_error(value), is_timed=False
            )

    def _tool_result(self, value: JSONObject) -> None:
        identity = self._either(value, "tool_use_id", "toolUseId")
        result = value["result"] if "result" in value else value.get("output")
        name = self._either(value, "tool_name", "tool")
        self.answer(_result(result), identity, is_error=_is_error(value), name=name)

    def _notice(self, kind: str, key: str, value: JSONObject) -> None:
        text = self.text(value, key)
        if text is not None:
            self.say(kind, text, "system")

    def _either(self, value: JSONObject, newer: str, older: str) -> str | None:
        return self.text(value, newer if newer in value else older)


def _taken(kind: str, value: JSONObject) -> set[str]:
    """Return the keys that became columns; of two with the same meaning, that is the newer one."""
    taken = set(_COLUMNS.get(kind, ()))
    for newer, older in _PAIRS.get(kind, ()):
        taken.add(newer if newer in value else older)
    if kind == "assistant" and value.get("content_type") not in ("text", "thinking"):
        taken.discard("content_type")
    if kind == "tool_use" and value.get("result") is None:  # without a result, it has no meaning
        taken -= {"is_error", "isError"}
    return taken


def _is_error(value: JSONObject) -> bool:
    return value.get("is_error", value.get("isError")) is True


def _result(result: object) -> str:
    """Return the text of a result: blocks as their text, other JSON as it is."""
    if result is None:
        return ""
    text = result_text([result] if isinstance(result, dict) else result)
    return text or (result if isinstance(result, str) else json_text(result))


_CHAT, _META = ".chat.jsonl", ".meta.json"
_CLOSED = ("completed", "cancelled", "split")
_WORKTREE_COLUMNS = ("name", "chats")
_CHAT_COLUMNS = ("chatId", "name", "lastSessionId")
_ARCHIVED_COLUMNS = (*_CHAT_COLUMNS, "originalWorktreePath")
_META_COLUMNS = ("createdAt", "lastActiveAt", "model", "permissionMode")
_USAGE_COLUMNS = (
    "inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens", "costUsd",
)  # fmt: skip
_CONTEXT_COLUMNS = ("currentTokens", "maxTokens")
_TICKET_WORDS = ("kind", "priority", "effort", "category", "author")


class CCInsights(Source):
    """The source of kind `ccinsights`. Times without a zone are read as times of `zone`."""

    name = "ccinsights"
    label = "CCInsights"
    known_lines = TYPES
    lists_sessions = True
    reads_local_times = True

    def __init__(self, zone: Zone = MACHINE) -> None:
        self._zone = zone

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """It keeps its chats in the user's home."""
        return [f"{home}/.ccinsights"] if home is not None else []

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a list of projects, or chats."""
        for path in listing:
            match path.split("/"):
                case ["projects.json" | "projects.json.bak"]:
                    if _has_projects(listing.content(path)):
                        return Recognition.CERTAIN
                case ["projects", name] if name.startswith("-") or name[1:3] == "--":
                    return Recognition.NO  # no need to list a large home of Claude Code
                case ["projects", _, "chats", name] if name.endswith(_CHAT):
                    return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """The configuration contains environment variables of agents."""
        return len(parts) == 1 and parts[0].casefold() == "config.json"

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("projects",) | ("projects", _) | ("projects", _, "chats"):
                return True
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        match parts:
            case ("projects.json",):
                return Claim(self.name, "chat_list")
            case ("projects.json.bak",):
                return Claim(self.name, "chat_list_backup")
            case ("projects", project, "tracking.jsonl"):
                return self._claim("tracking", project)
            case ("projects", project, "tickets.json"):
                return self._claim("tickets", project)
            case ("projects", project, "chats", name) if name.endswith(_CHAT):
                return self._claim("transcript", project, name.removesuffix(_CHAT))
            case ("projects", project, "chats", name) if name.endswith(_META):
                return self._claim("chat_meta", project, name.removesuffix(_META))
        return None

    def _claim(self, kind: str, project: str, chat: str | None = None) -> Claim:
        return Claim(
            self.name,
            kind,
            session_key=chat or None,
            project_key=project.casefold(),
            project_directory=project,
        )

    def shape(self, claim: Claim) -> str:
        """Chats and tracking grow, all other files are rewritten as a whole."""
        return LOG if claim.kind in ("transcript", "tracking") else DOCUMENT

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records; a document is one line."""
        if claim.kind == "transcript":
            return ChatLines(claim, self._zone).read(lines)
        reader = Reader(claim, self._zone)
        if claim.kind == "tracking":
            for value in reader.objects(lines, _is_tracking):
                moment = reader.time(value, "timestamp")
                reader.keep(left_over(value, ("timestamp",)), moment=moment, is_silent=True)
            return reader.finish()
        read = {"chat_meta": _meta, "tickets": _tickets}.get(claim.kind, _projects)
        for value in reader.document(lines):
            reader.records.extend(read(reader, value))
        return reader.finish()


def _has_projects(data: bytes) -> bool:
    try:
        projects = mapping(orjson.loads(data))
    except orjson.JSONDecodeError:
        return False
    return any({"id", "worktrees"} <= mapping(project).keys() for project in projects.values())


def _is_tracking(value: JSONObject) -> bool:
    return "chatName" in value and "worktree" in value


# -- projects.json -------------------------------------------------------------------------------


def _projects(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for path in value:
        project = reader.mapping(value, path)
        place = comparable(path)
        derived = sha256(path.encode()).hexdigest()[:8]
        key = (reader.text(project, "id") or derived).casefold()
        if key != derived:
            reader.note("id: not the beginning of the SHA-256 of the path")
        worktrees = reader.mapping(project, "worktrees")
        mains: JSONObject = {}
        for where in worktrees:
            worktree = reader.mapping(worktrees, where)
            here = comparable(where)
            is_main = here == place or worktree.get("type") == "primary"
            if is_main:
                mains[where] = {word: item for word, item in worktree.items() if word != "chats"}
            else:
                name, extra = reader.text(worktree, "name"), left_over(worktree, _WORKTREE_COLUMNS)
                yield ProjectEntry(here, name, slashed(where), key, 1, extra=extra)
            for chat in reader.items(worktree, "chats"):
                yield from _chat(reader, chat, key if is_main else here, slashed(where), None)
        extra = left_over({**project, "worktrees": mains}, ("id", "name", "archivedChats"))
        yield ProjectEntry(key, reader.text(project, "name"), slashed(path), extra=extra)
        others = set(map(comparable, worktrees)) - {place}
        for chat in reader.items(project, "archivedChats"):
            where = reader.text(chat, "originalWorktreePath") or path
            here = comparable(where)
            owner = here if here in others else key
            yield from _chat(reader, chat, owner, slashed(where), "archived")


def _chat(
    reader: Reader, chat: JSONObject, project: str, cwd: str, status: str | None
) -> Iterator[Record]:
    key, linked = reader.text(chat, "chatId"), reader.text(chat, "lastSessionId")
    if key is None:
        reader.note("chatId: missing")
    else:
        yield SessionEntry(
            key,
            "chat",
            title=reader.text(chat, "name"),
            project_key=project,
            cwd=cwd,
            status=status,
            linked_session_key=folded(linked) if linked else None,
            extra=left_over(chat, _CHAT_COLUMNS if status is None else _ARCHIVED_COLUMNS),
        )


# -- the other documents -------------------------------------------------------------------------


def _meta(reader: Reader, value: JSONObject) -> Iterator[Record]:
    usage, context = reader.mapping(value, "usage"), reader.mapping(value, "context")
    yield SessionEntry(
        reader.claim.session_key or "",
        "meta",
        started_at=reader.time(value, "createdAt"),
        ended_at=reader.time(value, "lastActiveAt"),
        model=reader.text(value, "model"),
        permission_mode=reader.text(value, "permissionMode"),
        input_tokens=reader.whole(usage, "inputTokens"),
        output_tokens=reader.whole(usage, "outputTokens"),
        cache_read_tokens=reader.whole(usage, "cacheReadTokens"),
        cache_write_tokens=reader.whole(usage, "cacheCreationTokens"),
        cost_usd=reader.number(usage, "costUsd"),
        context_tokens=reader.whole(context, "currentTokens"),
        context_window=reader.whole(context, "maxTokens"),
        extra=_rest_of_meta(value, usage, context),
    )


def _rest_of_meta(value: JSONObject, usage: JSONObject, context: JSONObject) -> str | None:
    rest = {
        "usage": {key: item for key, item in usage.items() if key not in _USAGE_COLUMNS},
        "context": {key: item for key, item in context.items() if key not in _CONTEXT_COLUMNS},
    }
    return left_over({**value, **rest}, _META_COLUMNS)


def _tickets(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for place, ticket in enumerate(reader.items(value, "tickets")):
        number = integer(ticket.get("id"))
        chats = [reader.text(chat, "chatId") for chat in reader.items(ticket, "linkedChats")]
        body = "body" if reader.text(ticket, "body") else "description"
        yield Document(
            "ticket",
            reader.text(ticket, "title"),
            _ticket_text(reader, ticket),
            f"projects/{reader.claim.project_directory}/tickets.json",
            session_key=chats[0] if chats else None,
            modified_at=reader.time(ticket, "updatedAt") or reader.time(ticket, "createdAt"),
            ordinal=-1 - place if number is None else number,
            extra=left_over(ticket, ("title", body, "updatedAt")),
        )
    reader.keep(left_over(value, ("tickets",)))


def _ticket_text(reader: Reader, ticket: JSONObject) -> str:
    """Return the text of a ticket: a line about it, its body, and its comments."""
    about = [f"#{_words(ticket.get('id'))}", _ticket_state(reader, ticket)]
    about += [f"{word} {text}" for word in _TICKET_WORDS if (text := reader.text(ticket, word))]
    for word, key in (("tags", "tags"), ("depends on", "dependsOn")):
        if ticket.get(key):
            about.append(f"{word} {_words(ticket[key])}")
    body = reader.text(ticket, "body") or reader.text(ticket, "description")
    comments = [
        f"{reader.text(comment, 'author') or 'someone'}: {text}"
        for comment in reader.items(ticket, "comments")
        if (text := reader.text(comment, "text") or reader.text(comment, "body"))
    ]
    return "\n\n".join(filter(None, [", ".join(about), body, *comments]))


def _ticket_state(reader: Reader, ticket: JSONObject) -> str:
    status = reader.text(ticket, "status")
    if status is not None:
        return f"closed ({status})" if status in _CLOSED else f"open ({status})"
    return "closed" if reader.flag(ticket, "isOpen") == 0 else "open"


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""OpenCode: conversations in its database, and in the many small files of earlier versions.

```
~/.local/share/opencode/opencode.db, opencode-<channel>.db       since 1.2
~/.local/share/opencode/storage/project/<project>.json           until 1.1
~/.local/share/opencode/storage/session/<project>/<session>.json
~/.local/share/opencode/storage/message/<session>/<message>.json
~/.local/share/opencode/storage/part/<message>/<part>.json
~/.local/share/opencode/storage/todo/<session>.json
```

Each conversation is one entry (see `entry`), of the database or of `storage`: the lines of its
project, of the session, of its messages, each followed by its parts, and of its todos; if
something is taken back, the session has another one at the end. In a file,
the fields of a row are in one object; in the database, most are in the column `data`. The session
of a subagent names its parent: its entry is that of a subagent of the first one.

1.2 copied the files to rows of the same ids, and left the files. So a session can be in both; what
is equal counts once, and the rows take precedence (`opencode.db` sorts before `storage`).

Ids of messages and parts ascend with time; those of sessions descend. A change of a row moves its
`time_updated`; a deleted row leaves nothing. Tables and columns with secrets are never selected:
`account`, `control_account`, `credential`, `session_share`, `share_url`. Nor is `event`, a log of
all that is in the other tables, which can be a hundred times as large.

The package is larger than that of an agent with one kind of files: both stores have to give the
same lines, and copies are recognised by their content, because forks do not name their origin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b, sha256
from typing import ClassVar

from ..fields import json_text, mapping, string, without
from ..paths import comparable, slashed
from ..records import (
    BY_RESULT,
    DECLINED,
    ERROR,
    OK,
    AgentLink,
    AgentMeta,
    Record,
    SessionEntry,
    Statement,
    Superseded,
)
from ..source import (
    DATABASE,
    Claim,
    Context,
    Database,
    Gathered,
    Line,
    Listing,
    Member,
    Recognition,
    Table,
    entry_names,
)
from .chat_reader import AgentSource, ChatReader, actions
from .reader import JSONObject, object_in, whole_value
from .tokens import Counts

# ------------------------------------------------------------------------------------------------
# The parts of OpenCode's messages: what was said, thought, called and answered.
#
# `text` (if `synthetic`, the program wrote it), `reasoning`, `tool`, `file` and `subtask` become
# messages, and so does the error of a `retry`; all others are kept as JSON. `step-finish` repeats
# the tokens of its message.
#
# A tool has its call and its result in `state`: `status` is pending, running, completed or error;
# then `error` takes the place of `output`. A command with an exit code other than 0, and a call
# of a tool that does not exist (`invalid`), fail although they are completed. `task` starts a
# subagent, whose session is in `metadata.sessionId`.


_action_of = actions(
    run="bash",
    read="read webfetch lsp_hover lsp_diagnostics lsp",
    edit="edit write patch multiedit apply_patch",
    search="glob grep list websearch codesearch",
    plan="todowrite todoread plan_enter plan_exit",
    spawn="task",
    ask="question",
)
_DECLINED = (
    "The user rejected permission",
    "The user has specified a rule which prevents you",
    "The user dismissed this question",
)
_SPOKEN = ("text", "reasoning", "tool", "file", "subtask")
IDS = ("id", "sessionID", "messageID")
_SILENT = ("step-start", "step-finish", "snapshot", "patch")
_TAKEN = {
    kind: frozenset([*IDS, "type", "time", *fields.split()])
    for kind, fields in {
        "": "",
        "text": "text synthetic",
        "reasoning": "text synthetic",
        "tool": "tool",
        "file": "mime filename url",
        "subtask": "prompt",
        "step-finish": "tokens cost",
    }.items()
}
"""Fields of a part that have rows, or repeat those of its message."""

_REPEATED = ("output", "exit", "description", "preview")
_STATE = ("status", "input", "output", "error", "time", "metadata", "attachments")
TODO = ("content", "status", "priority")


class PartReader(ChatReader):
    """Reads the parts of messages; the context is what the lines so far have said."""

    action_of = staticmethod(_action_of)
    type_key = "table"

    def _part(self, value: JSONObject, data: JSONObject) -> None:
        message = self.context.get("message", {})
        kind = self.name(data, "type") or ""
        state, times = self.mapping(data, "state"), self.mapping(data, "time")
        started = mapping(state.get("time")).get("start", times.get("start"))
        place = message.get("parts", 0)
        if message:
            message["parts"] = place + 1
        identity = None
        if kind not in _SILENT:
            identity = _identity(message, place, data, self.context.get("began"))
        moment = message.get("created") if started is None else started
        is_message = kind in _SPOKEN and data.get("text") != ""
        self.begin({"timestamp": moment, "uuid": identity}, is_message=is_message)
        self._note_revert(value, "partID")
        is_agents = message.get("role") == "assistant"
        self.model = message.get("model")
        if kind in ("text", "reasoning"):
            said = "thinking" if kind == "reasoning" else self._kind_of(message, data)
            if text := self.text(data, "text"):
                self.say(said, text, _role(is_agents))
                if not is_agents:
                    self.context.setdefault("began", digest(text))
        elif kind == "tool":
            data = {**data, "state": self._tool(data, state, string(value.get("id")))}
        elif kind == "file":
            self.say("image", _placeholder(data), _role(is_agents))
        elif kind == "subtask":
            self.say("prompt", self.text(data, "prompt") or "", "user")
        elif kind == "retry":
            self._fail(self.mapping(data, "error"))
        self.keep_left(kind, data, _TAKEN.get(kind, _TAKEN[""]))

    def _kind_of(self, message: JSONObject, data: JSONObject) -> str:
        if message.get("is_summary"):
            return "compact_summary"
        if message.get("role") == "assistant":
            return "text"
        if data.get("synthetic") is True:
            return "meta"
        return "prompt" if self.claim.agent_key is None else "agent_prompt"

    def _tool(self, data: JSONObject, state: JSONObject, key: str | None) -> JSONObject:
        """Add a call and its result; return what is left of its state."""
        name, arguments = self.name(data, "tool"), self.mapping(state, "input")
        given = {"file_path": arguments.get("filePath"), **arguments}
        metadata, block = self.mapping(state, "metadata"), self._block
        files = metadata.get("files")
        listed = files if isinstance(files, list) else []
        stated = [mapping(file).get("filePath") for file in listed]
        paths = list(filter(None, map(string, stated)))
        text = json_text(arguments, lambda: self._exact_input(arguments))
        self.call(name, given, text, key, paths=paths)
        if self.text(state, "status") in ("completed", "error"):
            self._answer(name, state, metadata, key)
        agent = string(metadata.get("sessionId"))
        if key is not None and agent is not None and name == "task":
            self.records.append(AgentLink(agent, key, BY_RESULT, self.start))
        if name == "todowrite" and key is not None:
            self._state_todos(self.items(arguments, "todos"), key, block)
        rest = without(metadata, _REPEATED)
        return {**without(state, _STATE), **({"metadata": rest} if rest else {})}

    def _answer(
        self, name: str | None, state: JSONObject, metadata: JSONObject, key: str | None
    ) -> None:
        error, code = self.text(state, "error"), self.whole(metadata, "exit")
        texts = [error or self.text(state, "output") or ""]
        texts += map(_placeholder, self.items(state, "attachments"))
        if error is not None and error.startswith(_DECLINED):
            status = DECLINED
        else:
            is_failure = state.get("status") == "error" or bool(code) or name == "invalid"
            status = ERROR if is_failure else OK
        times = self.mapping(state, "time")
        begin, end = self.whole(times, "start"), self.whole(times, "end")
        time = None if begin is None or end is None else max(0, end - begin)
        self._moment = self.time(times, "end") or self._moment
        self.answer(
            "\n".join(texts), key, is_error=False, status=status, exit_code=code, duration_ms=time
        )

    def _exact_input(self, arguments: JSONObject) -> object:
        data = mapping(self.exact("data", {}))
        return mapping(data.get("state")).get("input", arguments)

    def _state_todos(self, items: list[JSONObject], key: str | None, block: int = 0) -> None:
        listed = [{word: string(item.get(word)) for word in TODO} for item in items]
        self.records.append(
            Statement(
                "todos", self.claim.session_key or "", None, json_text({"items": listed}), None,
                self.moment, key, self.start, self.length, block,
            )
        )  # fmt: skip

    def _note_revert(self, value: JSONObject, name: str) -> None:
        """Note where the message or the part is with which begins what was taken back."""
        revert = self.context.get("revert", {})
        if value.get("id") == revert.get(name):
            self.context["reverted"] = self.start

    def _fail(self, error: JSONObject) -> None:
        if error:
            said = string(mapping(error.get("data")).get("message")) or string(error.get("message"))
            words = ": ".join(filter(None, [string(error.get("name")), said]))
            self.say("error", words or json_text(error), "system", is_error=True)


def _role(is_agents: bool) -> str:
    return "assistant" if is_agents else "user"


def digest(fact: object) -> str:
    """Return a short text that is the same for the same value."""
    return blake2b(repr(fact).encode("utf-8", "replace"), digest_size=12).hexdigest()


def _identity(message: JSONObject, place: int, data: JSONObject, began: str | None) -> str | None:
    """Return what a part is recognised by in a copy, None if its message has no time.

    What the agent says grows while it is written, so a copy may have less of it: in place of that,
    the first prompt tells conversations apart that are held at the same time.
    """
    if message.get("created") is None:
        return None
    grows = message["role"] == "assistant" and data.get("type") in ("text", "reasoning")
    said = began if grows else data.get("callID") or data.get("text") or data.get("url") or ""
    return digest(
        [message["created"], message["role"], message["model"], place, data.get("type"), said]
    )


def _placeholder(data: JSONObject) -> str:
    """Return the description of a file: of one that is included, also its size and hash."""
    parts = ["file", string(data.get("mime")) or "unknown type"]
    url = string(data.get("url")) or ""
    if url.startswith("data:"):
        parts.append(f"{len(url):,} letters")
        parts.append(sha256(url.encode("utf-8", "replace")).hexdigest()[:16])
        url = ""
    name = string(data.get("filename")) or url
    return f"[{' '.join(parts)}{f': {name}' if name else ''}]"


# ------------------------------------------------------------------------------------------------
# The lines of an OpenCode conversation, whichever store they come from.
#
# ```json
# {"table":"message","id":"msg_2","data":{"role":"assistant","parentID":"msg_1","modelID":"m",
#  "providerID":"p","agent":"build","path":{"cwd":"/srv/demo"},"cost":0.01,
#  "tokens":{"total":1052,"input":402,"output":40,"reasoning":10,"cache":{"read":600,"write":0}},
#  "time":{"created":1795329349455,"completed":1795329352456}}}
# {"table":"part","id":"prt_3","data":{"type":"tool","tool":"bash","callID":"c2",
#  "state":{"status":"completed","input":{"command":"ls"},"output":"a.ts","metadata":{"exit":0},
#  "time":{"start":1795329350916,"end":1795329350930}}}}
# ```
#
# * **Messages** say who speaks: their parts follow. One with `summary` is what a compaction left.
# * **Parts** are described in `parts`.
# * **Tokens** are those of the message; `step-finish` repeats them. With a `total`, as since 1.2,
#   `output` is without `reasoning`; without one, it includes it.
# * **A fork copies all rows under new ids**, and does not say so. A message is recognised by its
#   time, its model and the first prompt of the conversation, a part by its place in the message,
#   and by its text or call unless it grows. So files and rows of one message are recognised, too,
#   although the files may have less of it.
# * **revert** of a session: from this message (and part) on, all is taken back. The next prompt
#   deletes it.


_UNTITLED = ("New session - ", "Child session - ")
_MOST_TODOS = 200  # of a list that comes row by row


class TranscriptReader(PartReader):
    """Reads the lines of one conversation."""

    def take(self, value: JSONObject) -> None:
        table = string(value.get("table"))
        if table not in self._readers:
            self.refuse("unknown table")
        elif "data" in value and not isinstance(value["data"], dict) and table != "todo":
            self.refuse("data: not a JSON object")
        else:
            self._readers[table](
                self, value, self.mapping(value, "data") if table != "todo" else {}
            )

    # -- the session -----------------------------------------------------------------------------

    def _project(self, value: JSONObject, data: JSONObject) -> None:
        row = {**data, **value}
        self.begin({}, is_message=False)
        self.context["worktree"] = self.name(row, "worktree")
        self.keep_left("project", row, ("table", "data", "worktree", "time", "sandboxes"))

    def _session(self, value: JSONObject, data: JSONObject) -> None:
        row = {**data, **value}
        self.begin({}, is_message=False)
        if "revert" in self.context:  # the second line of the session, at the end
            first = self.context.get("reverted")
            if first is not None:
                self.records.append(Superseded(None, None, first, self.start))
            self.keep_left("session", {}, ())
            return
        if revert := object_in(row.get("revert")):
            self.context["revert"] = {
                key: self.name(revert, key) for key in ("messageID", "partID")
            }
        directory, title = self.text(row, "directory"), self.text(row, "title")
        self.fact("first_cwd", directory)
        self.fact("agent_version", self.text(row, "version"))
        if title is not None and not title.startswith(_UNTITLED):
            self.fact("ai_title", title)
        worktree = self.context.get("worktree")
        place = directory if worktree in (None, "/") else worktree
        if self.claim.agent_key is not None:
            self._about_agent(row, title)
        elif place is not None:
            archived = mapping(row.get("time")).get("archived") or row.get("time_archived")
            self.records.append(
                SessionEntry(
                    self.claim.session_key or "",
                    "meta",
                    project_key=comparable(place),
                    cwd=slashed(place),
                    status="archived" if archived else None,
                )
            )
        taken = ("table", "data", "directory", "title", "version", "time", "share", "permission")
        self.keep_left("session", row, taken)

    def _about_agent(self, row: JSONObject, title: str | None) -> None:
        """Add what a session says of the subagent that it is: its title names its type."""
        about, _, suffix = (title or "").rpartition(" (@")
        kind = suffix.removesuffix(" subagent)") if suffix.endswith(" subagent)") else None
        stated = self.name(row, "agent") or kind
        self.records.append(
            AgentMeta(stated, (about if kind else title) or None, None, None, None, None, None)
        )

    def _todo(self, value: JSONObject, data: JSONObject) -> None:
        """Add the list so far: a file has all of it, a row one item."""
        self.begin({"timestamp": value.get("time_updated")}, is_message=False)
        if "data" in value:
            self._state_todos(self.items(value, "data"), None)
        else:
            listed = self.context.setdefault("todos", [])
            if len(listed) < _MOST_TODOS:
                listed.append({word: value.get(word) for word in TODO})
            self._state_todos(listed, None)
        taken = ("table", "id", "data", "time_updated", *TODO)
        self.keep_left("todo", value, taken)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, value: JSONObject, data: JSONObject) -> None:
        times = self.mapping(data, "time")
        created = times.get("created", value.get("time_created"))
        self.begin({"timestamp": created}, is_message=False)
        role = self.name(data, "role")
        is_agents = role == "assistant"
        model = self.name(data if is_agents else self.mapping(data, "model"), "modelID")
        self.context["message"] = {
            "created": created if isinstance(created, int) else None,
            "role": role,
            "model": model if is_agents else None,
            "is_summary": data.get("summary") is True,
            "parts": 0,
        }
        self._note_revert(value, "messageID")
        self.fact("mode", self.name(data, "agent") or self.name(data, "mode"))
        taken = {*IDS, "role", "modelID", "time", "cost"}
        if is_agents:
            self._spend(data, created)
            taken.add("tokens")
        self.model = None
        self._fail(self.mapping(data, "error"))
        self.keep_left("message", data, taken)

    def _spend(self, data: JSONObject, created: object) -> None:
        """Note the tokens of a message, which grow until it is complete: a copy may have less."""
        tokens = self.mapping(data, "tokens")
        cache = self.mapping(tokens, "cache")
        given, written = self.count(tokens, "input"), self.count(tokens, "output")
        thought = self.count(tokens, "reasoning")
        if tokens.get("total") is not None:
            written += thought
        read, kept = self.count(cache, "read"), self.count(cache, "write")
        cost = self.number(data, "cost")
        if not any((given, written, read, kept, cost)):
            return
        self.model = self.name(data, "modelID")
        facts = [created, self.model, self.context.get("began")]
        if not isinstance(created, int):
            facts += [given, written, read, kept]
        self.use(
            f"opencode {digest(facts)}",
            Counts(given, written, read, kept),
            stated_cost_usd=cost or None,
            stop_reason=self.name(data, "finish"),
        )

    _readers: ClassVar = {
        "project": _project,
        "message": _message,
        "part": PartReader._part,
        "todo": _todo,
        "session": _session,
    }


_STORAGE = "storage"
_LOG = "-wal"
_KINDS = ("session", "message", "part", "todo", "project")
_SECRETS = ("auth.json", "mcp-auth.json")

_LAYOUT = Database(
    listing="""
        select s.id, s.parent_id, s.time_updated, s.title, s.directory, p.worktree, p.name
        from session s left join project p on p.id = s.project_id
    """,
    counts=tuple(
        # Without the plus, the rows would be read in the order of an index, which takes longer.
        f"select session_id, count(*), max(time_updated), sum(time_updated % 1000000007)"
        f" from {table} group by +session_id"
        for table in ("message", "part", "todo")
    ),
    tables=(
        Table(
            "project",
            ("worktree", "name"),
            "id = (select project_id from session where id = :key)",
        ),
        Table(
            "session",
            (
                *("parent_id", "directory", "title", "version", "agent", "model", "revert"),
                *("time_created", "time_archived"),
            ),
            "id = :key",
        ),
        Table(
            "message",
            ("time_created",),
            "session_id = :key",
            "time_created, id",
            json="data",
            rows=(Table("part", (), "message_id = :above", json="data"),),
        ),
        Table(
            "todo",
            ("content", "status", "priority", "time_updated"),
            "session_id = :key",
            "position",
            id="position",
        ),
        Table("session", (), "id = :key and revert is not null"),
    ),
    unread=("session_message",),
)


class OpenCode(AgentSource):
    """The source of kind `opencode`."""

    name = "opencode"
    label = "OpenCode"
    unread_places = ("bin", "log", "project", "repos", "snapshot", "tool-output", "worktree")
    checked = "1.1.53, 1.2.6 and 1.18.33"
    known_lines = frozenset(["project", "session", "message", "part", "todo"])
    # The same on macOS and Windows.
    variable, below, place = "XDG_DATA_HOME", "opencode", ".local/share/opencode"
    resume = ("opencode", "-s", "{}")
    database = _LAYOUT

    def recognises(self, listing: Listing) -> Recognition:
        """A home has its database, or messages in files."""
        for path in listing:
            match path.split("/"):
                case [name] if _is_database(name):
                    return Recognition.CERTAIN
                case ["storage", "message", session, _] if session.startswith("ses_"):
                    return Recognition.CERTAIN
        return Recognition.NO

    def withholds(self, parts: tuple[str, ...]) -> bool:
        """The keys of providers and servers are in files of their own."""
        return len(parts) == 1 and parts[0].casefold() in _SECRETS

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("storage",) | ("storage", "project" | "todo"):
                return True
            case ("storage", "session" | "message" | "part", *below) if len(below) < 2:
                return True
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """A path is a database, its log, an entry of either store, or a file of `storage`."""
        match parts:
            case (name,) if _is_database(name):
                return Claim(self.name, DATABASE)
            case (name,) if name.endswith(_LOG) and _is_database(name.removesuffix(_LOG)):
                return Claim(self.name, "database_log", within=name.removesuffix(_LOG))
            case (name,) if (names := entry_names(name)) is not None:
                return self._entry(*names)
        return Claim(self.name, "part", within=_STORAGE) if _member(parts) else None

    def _entry(self, store: str, session: str, agent: str | None) -> Claim | None:
        if store != _STORAGE and not _is_database(store):
            return None
        kind = "transcript" if agent is None else "agent"
        return Claim(self.name, kind, session_key=session, agent_key=agent, within=store)

    def gather(
        self, members: Collection[tuple[str, ...]], content: Callable[[tuple[str, ...]], bytes]
    ) -> list[Gathered]:
        """Sort the files of `storage` by session and message."""
        below: dict[tuple[str, str], list[Member]] = defaultdict(list)
        for above, member in filter(None, map(_member, sorted(members))):
            below[member.table, above].append(member)
        sessions = [row for (table, _), rows in below.items() if table == "session" for row in rows]
        gathered = []
        for key, session in {session.id: session for session in sessions}.items():
            lines = [*below["project", session.parts[2]], session]
            for message in below["message", key]:
                lines += [message, *below["part", message.id]]
            lines += below["todo", key]
            found = whole_value(content(session.parts))
            stated = mapping(found[0]) if found else {}
            lines += [session] if stated.get("revert") else []
            gathered.append(Gathered(key, string(stated.get("parentID")), lines))
        return gathered

    def read(
        self, claim: Claim, lines: Iterable[Line], context: Context
    ) -> tuple[list[Record], Context]:
        """Turn lines into records; what a part says depends on its message."""
        return TranscriptReader(claim, context=context).read_lines(lines)


def _is_database(name: str) -> bool:
    return name.endswith(".db") and (name == "opencode.db" or name.startswith("opencode-"))


def _member(parts: tuple[str, ...]) -> tuple[str, Member] | None:
    """Return what a file of `storage` belongs to, and the row that it is."""
    match parts:
        case ("storage", "session" | "message" | "part" as table, above, name):
            pass
        case ("storage", "todo" | "project" as table, name):
            above = name.removesuffix(".json")
        case _:
            return None
    identity = name.removesuffix(".json")
    withheld = ("share",) if table == "session" else ()
    is_json = name.endswith(".json") and identity != ""
    return (above, Member(table, identity, parts, withheld)) if is_json else None

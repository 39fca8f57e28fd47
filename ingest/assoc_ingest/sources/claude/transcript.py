"""The lines of a Claude Code transcript, of every version from 1.0.0 on.

A line is one JSON object. *Chain lines* have a `uuid` and are linked by `parentUuid`; their content
depends on their type:

- `user`, `assistant`: a message, as a string or a list of content blocks; one row per block.
  One API response spans several assistant lines with the same `message.id`, whose token counts
  grow: the line with the most output tokens counts.
- `system`: notices of the program; a row if there is a text; `api_error` is an error.
- `attachment` (2.1.9x on): what the program added to the context (`attachments`).
  `queued_command` is a prompt typed while the agent was busy; `hook_*` is the output of a hook.
- `progress` (2.1.9 to 2.1.81): ticks that repeat output and whole messages. They are counted, and
  read for the link between an agent and its call. For an agent without a file of its own they are
  the only record: then their messages are those of the agent.

Lines without `uuid` are the state of the session (titles, modes: the last value wins), summaries
(titles for a session elsewhere), queue operations (the only record of much that was typed before
2.1.82) and links. Lines in `PRIVATE` contain secrets or ids of accounts: they are counted, but
nothing of them is kept. Those in `_COUNTED` contain nothing that a person would search for.

Lineage: `continued-in` names the session in which a conversation goes on, `derived-from` those from
which one was made, and every line of a branch has `forkedFrom` with the session that it branched
from. `relocated` says the directory of the session from there on.

What becomes part of the session's row is gathered in one `Transcript` record, so that a transcript
can be read in stretches: the store merges them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...fast_json import orjson
from ...fields import (
    MAX_NAME,
    MAX_TEXT,
    TOOL_KINDS,
    has_cjk,
    has_invisible,
    json_text,
    left_over,
    mapping,
    obvious_text,
    placeholder,
    sample,
    string,
)
from ...records import (
    AgentLine,
    AgentLink,
    Context,
    FileSnapshot,
    InboxItem,
    Issue,
    LineExtra,
    LineType,
    Link,
    Message,
    Record,
    SessionEntry,
    Statement,
    Summary,
    TaskChange,
    ToolCall,
    Transcript,
    Usage,
    WorkingDirectory,
)
from ...source import Claim, Line
from ...tags import inside
from ...when import utc
from ..jsonl import JSONObject, exact_object, pieces
from . import attachments as attachments
from . import side_lines as side_lines
from . import statements as statements
from . import teams as teams
from . import tools as tools
from . import user as people
from .paths import encoded, folded, named_after
from .usage import merged, other_requests, stated_usage, total, usage_of_line, written_bytes

PRIVATE = frozenset(
    [
        "bridge-session",
        "session-owner",
        "hybrid-organization",
        "artifact-autoreact-ledger",
        "memory-mode",
    ]
)
"""Types of lines with secrets or ids of accounts: no part of them is stored, or quoted."""

_COUNTED = frozenset(
    [
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "attribution-snapshot",
        "data-flow-records",
        "ended-by-model",
        "history-suppression",
        "isolation-latch",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "observer-ref",
        "speculation-accept",
        "tools-used",
    ]
)
ARTIFACT = "artifact-"  # how the types of more lines begin that are only counted

TRANSCRIPT_TYPES = frozenset(
    [
        *PRIVATE,
        *_COUNTED,
        "user",
        "assistant",
        "system",
        "progress",
        "attachment",
        "summary",
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "last-prompt",
        "ai-title",
        "custom-title",
        "agent-name",
        "permission-mode",
        "mode",
        "agent-setting",
        "worktree-state",
        "pr-link",
        "frame-link",
        "fork-context-ref",
        "cost-state",
        "continued-in",
        "derived-from",
        "relocated",
        "tag",
        "agent-color",
        "content-replacement",
        "host-row",
    ]
)

KNOWN_LINES = frozenset(
    [
        *(TRANSCRIPT_TYPES - {"attachment"}),
        "attachment/",
        *(f"attachment/{kind}" for kind in attachments.KINDS),
    ]
)
"""The types of lines, and the kinds of attachments."""

_MAX_TITLE = 2000

# State lines: type, key of the value, and the field of `Transcript` that it sets.
_STATE = {
    "custom-title": ("customTitle", "custom_title"),
    "ai-title": ("aiTitle", "ai_title"),
    "agent-name": ("agentName", "agent_name"),
    "permission-mode": ("permissionMode", "permission_mode"),
    "mode": ("mode", "mode"),
    "agent-setting": ("agentSetting", "agent_setting"),
    "last-prompt": ("lastPrompt", "last_prompt"),
    "tag": ("tag", "tag"),
    "agent-color": ("agentColor", "agent_color"),
}
_CLEARED = ("tag",)  # state that a person can take back: then the value is empty
# Keys of the envelope; the session keeps the last value of each.
_ENVELOPE = (
    ("gitBranch", "git_branch"),
    ("version", "agent_version"),
    ("slug", "slug"),
    ("entrypoint", "entrypoint"),
    ("permissionMode", "permission_mode"),
    ("sessionKind", "session_kind"),
    ("teamName", "team_name"),
    ("userType", "user_type"),
)
# Keys whose value is also kept for each line: it can change within a session.
_CONTEXTS = ("git_branch", "agent_version", "permission_mode")
# Modes in which a person typed the queued text.
_TYPED_MODES = (None, "prompt", "bash")
_SUBTYPES = {"system": "subtype", "queue-operation": "operation"}
_NESTED_SUBTYPES = {"attachment": "attachment", "progress": "data"}


def is_known(line: JSONObject) -> bool:
    """Does the object have the shape of a transcript line, not of something within one?"""
    kind = string(line.get("type")) or role_of(line)
    return kind in TRANSCRIPT_TYPES and not line.keys().isdisjoint(
        ("uuid", "sessionId", "leafUuid", "messageId", "agentId")
    )


def role_of(line: JSONObject) -> str:
    """Return the type of a line without one, from the role in its message; '' if there is none.

    Programs that write the first lines of a conversation for Claude Code omit the type.
    """
    role = mapping(line.get("message")).get("role")
    return role if role in ("user", "assistant", "system") and "type" not in line else ""


class TranscriptReader:
    """Turns the lines of one stretch of a transcript into records.

    `read` the lines in order, then take what `finish` returns.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._is_main = claim.kind == "transcript"
        self._records: list[Record] = []
        self._types: dict[tuple[str, str], int] = {}
        self._firsts: dict[tuple[str, str], int] = {}
        self._calls: dict[str, tools.Call] = {}
        self._results: dict[str, tools.Result] = {}
        self._usage: dict[str, Usage] = {}
        self._links: dict[tuple[str, str, int], AgentLink] = {}
        self._urls: dict[tuple[str, str], Link] = {}
        self._snapshots: dict[tuple[str, int | None], FileSnapshot] = {}
        self._facts: dict[str, Any] = {}
        self._contexts: dict[str, str | None] = dict.fromkeys(_CONTEXTS)
        self._cwd: object = None
        self._exact: JSONObject | None = None
        self._noted: set[tuple[int, str]] = set()
        self._directories: dict[str, WorkingDirectory] = {}
        self._started: str | None = None
        self._ended: str | None = None
        self._message_count = 0
        self._sidechain_count = 0
        self._written: int | None = 0
        self._relocation: SessionEntry | None = None

    def read(self, lines: Iterable[Line]) -> None:
        """Read whole lines, in the order of the file."""
        loads = orjson.loads
        for line in lines:
            start, data = line
            if data.startswith(b"{") and data.endswith(b"}") and b"\\u0000" not in data:
                try:
                    self._object(loads(data), start, data)
                    continue
                except orjson.JSONDecodeError:
                    pass
            self._pieces(line)

    def _pieces(self, line: Line) -> None:
        """Read a line that is not simply one object."""
        for piece in pieces(line, is_known):
            begin = piece.start - line.start
            data = line.data[begin : begin + piece.length]
            if piece.object is None:
                self._quarantine(piece.reason or "not an object", piece.start, data)
                continue
            if piece.reason:
                self._issue(piece.reason, piece.start, data)
            self._object(piece.object, piece.start, data)

    # -- one object ------------------------------------------------------------------------------

    def _object(self, line: JSONObject, start: int, data: bytes) -> None:
        get = line.get
        kind = get("type")
        if kind.__class__ is not str:
            kind = ""
        key = (kind, self._subtype(kind, line))
        self._types[key] = self._types.get(key, 0) + 1
        if not kind:
            kind = role_of(line)
        if kind in PRIVATE or (kind not in TRANSCRIPT_TYPES and not get("sessionId")):
            return  # secrets, and lines of other programs: only counted
        self._firsts.setdefault(key, start)
        self._start = start
        self._length = len(data)
        self._data = data
        self._rows = 0
        self._items = 0
        self._line = line
        self._exact = None
        self._envelope(line)
        if kind == "assistant":
            self._count_message()
            self._assistant(line)
        elif kind == "user":
            self._count_message()
            self._user(line)
        elif kind == "progress":
            self._progress(line)
        elif kind == "attachment":
            self._attachment(line)
        elif kind == "system":
            self._system(line)
        elif kind in _STATE:
            self._state(kind, line)
        else:
            self._other(kind, line)

    @staticmethod
    def _subtype(kind: object, line: JSONObject) -> str:
        value: object = None
        if kind in _SUBTYPES:
            value = line.get(_SUBTYPES[kind])
        elif kind in _NESTED_SUBTYPES:
            value = mapping(line.get(_NESTED_SUBTYPES[kind])).get("type")
        return value if isinstance(value, str) else ""

    def _envelope(self, line: JSONObject) -> None:
        """Read what every line can state: identity, time, and facts of the session."""
        get = line.get
        self._uuid = self._name("uuid", get("uuid"))
        self._parent = self._name("parentUuid", get("parentUuid"))
        self._is_meta = 1 if get("isMeta") is True else 0
        self._is_sidechain = 1 if get("isSidechain") is True else 0
        self._model: str | None = None
        self._response_key: str | None = None
        stated = get("timestamp")
        moment = self._timestamp = utc(stated)
        if moment is not None:
            if self._started is None or moment < self._started:
                self._started = moment
            if self._ended is None or moment > self._ended:
                self._ended = moment
        elif stated is not None:
            self._wrong("timestamp", stated)
        self._session_facts(line)
        cwd = get("cwd")
        if cwd.__class__ is str and cwd and cwd != self._cwd:
            self._directory(cwd)

    def _session_facts(self, line: JSONObject) -> None:
        """Read facts of the session: the last value of each, and the first session key."""
        get, facts, contexts = line.get, self._facts, self._contexts
        for key, name in _ENVELOPE:
            value = get(key)
            if value.__class__ is str:
                if value:
                    facts[name] = value
                if contexts.get(name, value) != value:
                    self._context(name, value)
        session = get("sessionId")
        if session.__class__ is str and session and "stated_session_key" not in facts:
            facts["stated_session_key"] = folded(session)
        if "forkedFrom" in line:
            parent = mapping(line["forkedFrom"])
            if origin := string(parent.get("sessionId")):
                facts["forked_from_key"] = folded(origin)
                facts["forked_from_uuid"] = self._name("messageUuid", parent.get("messageUuid"))

    def _directory(self, cwd: str) -> None:
        """Record the directory that the session has changed to."""
        self._cwd = cwd
        self._facts.setdefault("first_cwd", cwd)
        if cwd not in self._directories:
            self._directories[cwd] = WorkingDirectory(cwd, encoded(cwd), self._start)

    def _context(self, name: str, value: str) -> None:
        """Record a value that holds from this line on."""
        self._contexts[name] = value
        self._records.append(Context(name, value, self._start))

    # -- user and assistant lines ----------------------------------------------------------------

    def _assistant(self, line: JSONObject) -> None:
        message = line.get("message")
        self._written = 0
        if isinstance(message, dict):
            content = message.get("content")
            self._model = self._name("model", message.get("model", line.get("model")))
            self._add_usage(line)
        else:
            content = message
        is_failure = line.get("isApiErrorMessage") is True
        if isinstance(content, list):
            for number, block in enumerate(content):
                self._assistant_block(number, block, is_failure)
        elif isinstance(content, str):
            self._say("error" if is_failure else "text", content, 0, "assistant")
            self._write("text", {}, content)
        if not self._rows:
            self._say("text", "", 0, "assistant")
        if self._response_key is not None:
            usage = self._usage[self._response_key]
            written = total(usage.written_bytes, self._written)
            self._usage[self._response_key] = usage._replace(written_bytes=written)

    def _add_usage(self, line: JSONObject) -> None:
        position = (self._start, self._length)
        place = f"{self._claim.session_key}/{self._claim.agent_key or 'main'}"
        stated = usage_of_line(
            line, self._model, self._uuid, self._timestamp, position, place, self._wrong
        )
        if stated is None:
            return
        self._response_key = stated.response_key
        usage = mapping(mapping(line.get("message")).get("usage"))
        others = other_requests(stated, usage, self._wrong) if usage.get("iterations") else ()
        for use in (stated, *others):
            known = self._usage.get(use.response_key)
            self._usage[use.response_key] = merged(known, use) if known else use

    def _assistant_block(self, number: int, block: object, is_failure: bool) -> None:
        if block.__class__ is not dict:
            if isinstance(block, str):
                self._say("text", block, number, "assistant")
            return
        kind = block.get("type")
        if kind == "text":
            text = self._text_of(block, "text")
            self._say("error" if is_failure else "text", text, number, "assistant")
            self._write(kind, block, text)
        elif kind == "thinking" or kind == "redacted_thinking":
            text = self._text_of(block, "thinking") if kind == "thinking" else ""
            self._say("thinking", text, number, "assistant")
            self._write(kind, block, text)
        elif kind == "image" or kind == "document":
            self._say("image", placeholder(block), number, "assistant")
        elif kind == "fallback":
            ends = [block.get(end) for end in ("from", "to")]
            models = [string(end) or string(mapping(end).get("model")) or "?" for end in ends]
            self._say("system", f"Fell back from {models[0]} to {models[1]}", number, "assistant")
        else:
            self._tool_block(number, block, kind if isinstance(kind, str) else "")

    def _tool_block(self, number: int, block: JSONObject, kind: str) -> None:
        """Read a call or a result: those of the server and of MCP servers have types of their own.

        Some gateways put all results on the assistant's line.
        """
        if kind.endswith("tool_use"):
            self._tool_use(number, block)
        elif kind.endswith("tool_result"):
            self._tool_result(number, block, {}, "assistant")
        elif text := obvious_text(block):
            self._say("text", text, number, "assistant")

    def _write(self, kind: str, block: JSONObject, text: str) -> None:
        """Add what the model wrote for one block to the length of this line."""
        self._written = total(self._written, written_bytes(kind, block, text))

    def _tool_use(self, number: int, block: JSONObject) -> None:
        arguments = block.get("input")
        if arguments is None:
            arguments = {}
        text = json_text(arguments, lambda: self._exact_input(number, arguments))
        self._say("tool_use", text, number, "assistant")
        self._write("tool_use", block, text)
        position = (self._start, number)
        name = self._name("tool name", block.get("name"))
        call = tools.Call(
            name, tools.target(mapping(arguments)), self._timestamp, position, self._length,
            self._response_key if name in tools.CHARGED else None,
        )  # fmt: skip
        identity = string(block.get("id"))
        self._add_statement(statements.called(name, mapping(arguments), identity, self._at(number)))
        if name == "SendMessage":
            self._item(teams.sent(mapping(arguments), identity, self._timestamp))
        if identity is None:
            self._records.append(tools.joined(None, call, None))
        else:
            self._calls.setdefault(identity, call)

    def _exact_input(self, number: int, arguments: object) -> object:
        """Decode the line again with integers of any size; orjson turns the largest into floats."""
        if self._exact is None:  # once for all blocks that need it
            self._exact = exact_object(self._data)
        message = mapping(self._exact.get("message"))
        content = message.get("content")
        block = mapping(content[number]) if isinstance(content, list) else {}
        return block.get("input", arguments)

    def _user(self, line: JSONObject) -> None:
        message = line.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if content.__class__ is not list:
            blocks: list[object] = [content] if isinstance(content, str) else []
        else:
            blocks = content
        if "planContent" in line:
            self._add_statement(statements.begun_with(self._at(0)))
        kind = ""
        for number, block in enumerate(blocks):
            if block.__class__ is dict:
                block_type = block.get("type")
                if block_type.__class__ is str and block_type.endswith("tool_result"):
                    extra = mapping(line.get("toolUseResult"))
                    self._tool_result(number, block, extra, "user")
                    continue
                if block_type == "image" or block_type == "document":
                    self._say("image", placeholder(block), number, "user")
                    continue
                if block_type == "search_result":  # what the program found, not what was typed
                    self._say("attachment", tools.found_text(block), number, "user")
                    continue
                text = self._text_of(block, "text") or obvious_text(block)
            elif isinstance(block, str):
                text = block
            else:
                continue
            kind = self._user_text(line, kind, text, number)
        if not self._rows:
            self._say(kind or self._user_kind(line, ""), "", 0, "user")

    def _user_text(self, line: JSONObject, kind: str, text: str, number: int) -> str:
        """Add a block of text; return the kind of the line, as soon as a block shows it."""
        if "-message " in text:
            for item in teams.received(text, line.get("origin"), self._timestamp):
                self._item(item)
        if people.is_beside(text) and line.get("isCompactSummary") is not True:
            self._say("meta", text, number, "user")
            return kind
        if not kind:
            kind = self._user_kind(line, text)
            if self._is_main and kind == "prompt" and text.strip():
                self._facts.setdefault("first_prompt", text[:_MAX_TITLE])
        self._say(kind, text, number, "user")
        return kind

    def _user_kind(self, line: JSONObject, text: str) -> str:
        if line.get("isCompactSummary") is True:
            return "compact_summary"
        origin = string(mapping(line.get("origin")).get("kind"))
        if self._is_meta:
            return "agent_message" if origin in ("peer", "coordinator") else "meta"
        return people.kind_of(text, is_sidechain=bool(self._is_sidechain), origin=origin)

    def _tool_result(self, number: int, block: JSONObject, extra: JSONObject, role: str) -> None:
        text = tools.result_text(block.get("content"))
        position = (self._start, number)
        denial = string(self._line.get("toolDenialKind"))
        answer = tools.result(block, text, extra, denial, self._timestamp, position, self._length)
        self._say("tool_result", text, number, role, int(answer.status == tools.ERROR))
        identity = string(block.get("tool_use_id"))
        if identity is None:
            self._wrong("tool_use_id", block.get("tool_use_id"))
            return
        self._results.setdefault(identity, answer)
        for link in tools.agent_links(identity, text, extra, self._start):
            self._link(link)
        if (totals := tools.agent_totals(extra, self._start)) is not None:
            self._records.append(totals)
        self._effects(identity, extra)
        self._add_statement(statements.answered(text, extra, identity, self._at(number)))
        if extra or text.startswith("Workflow"):
            run = tools.workflow_link(identity, text, extra, self._start)
            if run:
                self._records.append(run)

    def _effects(self, tool_use_id: str, extra: JSONObject) -> None:
        """Read what a result says about a message that was sent, and a task that changed."""
        if "routing" in extra or "msg_id" in extra:
            sent = teams.delivered(extra, tool_use_id, self._timestamp)
            if sent is not None:
                self._item(sent)
        if "statusChange" in extra:
            change, task = mapping(extra["statusChange"]), string(extra.get("taskId"))
            session, team = string(self._line.get("sessionId")), self._team()
            tasks = team or (folded(session) if session else None)
            if task and tasks:
                before, after = string(change.get("from")), string(change.get("to"))
                self._records.append(
                    TaskChange(tasks, task, "status", before, after, self._timestamp, self._start)
                )

    def _at(self, block: int) -> statements.Place:
        return statements.Place(
            self._claim, self._line, self._timestamp, self._start, self._length, block
        )

    def _add_statement(self, statement: Statement | None) -> None:
        if statement is not None:
            self._records.append(statement)

    def _count_message(self) -> None:
        self._message_count += 1
        self._sidechain_count += self._is_sidechain

    # -- other chain lines -----------------------------------------------------------------------

    def _system(self, line: JSONObject) -> None:
        subtype = line.get("subtype")
        if subtype == "api_error":
            self._say("error", _api_error(line), 0, "system")
            return
        content = line.get("content", mapping(line.get("message")).get("content"))
        text = content if isinstance(content, str) else obvious_text(content)
        if subtype == "stop_hook_summary":
            text = text or obvious_text([line.get("hookErrors"), line.get("stopReason")])
            if text:
                self._say("hook", text, 0, "system")
        elif text:
            kind = "system"
            if subtype == "local_command":
                kind = people.kind_of(text, is_sidechain=False, origin="system")
                kind = "system" if kind == "meta" else kind
            self._say(kind, text, 0, "system")

    def _attachment(self, line: JSONObject) -> None:
        attachment = mapping(line.get("attachment"))
        kind = string(attachment.get("type")) or ""
        if kind == "queued_command":
            prompt = attachment.get("prompt")
            text = prompt if isinstance(prompt, str) else tools.result_text(prompt)
            mode = string(attachment.get("commandMode"))
            is_meta = attachment.get("isMeta") is True
            if mode in _TYPED_MODES and not people.is_notice(text) and not is_meta:
                self._say("queued_prompt", text, 0, "user")
            else:
                self._say("meta" if is_meta else "task_notification", text, 0, "system")
            return
        self._add_statement(statements.attached(attachment, self._at(0)))
        if kind == "teammate_mailbox":
            for item in attachments.mail_in(attachment, self._timestamp):
                self._item(item)
        text = attachments.text_of(kind, attachment)
        if text:
            self._say("hook" if "hook" in kind else "attachment", text, 0, "system")

    def _progress(self, line: JSONObject) -> None:
        data = mapping(line.get("data"))
        if not data and (text := obvious_text(line)):  # the oldest form
            self._say("attachment", text, 0, "system")
        agent, call = string(data.get("agentId")), string(line.get("parentToolUseID"))
        if not agent or data.get("type") != "agent_progress":
            return
        if call:
            self._link(AgentLink(agent, call, tools.BY_PROGRESS, self._start))
        if self._is_main and agent not in self._claim.elsewhere:
            self._repeated(agent, mapping(data.get("message")), line)

    def _repeated(self, agent: str, message: JSONObject, outer: JSONObject) -> None:
        """Read the message of an agent that has no file: this line is the only record of it."""
        if message.get("type") not in ("user", "assistant"):
            return
        self._records.append(AgentLine(agent, self._start))
        self._line = {**message, "sessionId": outer.get("sessionId")}
        self._uuid = self._name("uuid", message.get("uuid"))
        self._parent = None
        self._is_sidechain = 1
        self._timestamp = utc(message.get("timestamp")) or self._timestamp
        if message["type"] == "assistant":
            self._assistant(self._line)
        else:
            self._user(self._line)

    # -- lines without uuid ----------------------------------------------------------------------

    def _state(self, kind: str, line: JSONObject) -> None:
        key, name = _STATE[kind]
        value = line.get(key)
        if isinstance(value, str):
            if value or kind in _CLEARED:
                self._facts[name] = value[:_MAX_TITLE]
                if self._contexts.get(name, value) != value:
                    self._context(name, value)
        elif value is not None:
            self._wrong(key, value)

    def _other(self, kind: str, line: JSONObject) -> None:
        if kind == "cost-state":
            self._cost_state(line)
        elif kind == "queue-operation":
            self._queue(line)
        elif kind == "summary":
            self._summary(line)
        elif kind in side_lines.LINKS:
            self._link_line(kind)
        elif kind in side_lines.SNAPSHOTS:
            for version in side_lines.snapshots(self._at(0), self._snapshots, self._wrong):
                self._snapshots[version.path, version.version] = version
            if mapping(line.get("snapshot")).get("trackedFileBackups") == {}:  # nothing changed yet
                self._keep(kind, left_over({"messageId": line.get("messageId")}))
        elif kind == "fork-context-ref":
            parent = string(line.get("parentSessionId"))
            if parent:
                self._facts["forked_from_key"] = folded(parent)
        else:
            self._newer(kind, line)

    def _newer(self, kind: str, line: JSONObject) -> None:
        """Read the lines of versions since August 2026, and those that nobody knows yet."""
        if kind in side_lines.LINEAGE:
            for link in side_lines.lineage(self._at(0), self._wrong):
                self._urls.setdefault((link.kind, link.url), link)
        elif kind == "relocated":
            self._relocated(line)
        elif kind == "content-replacement":
            self._keep(kind, left_over({"replacements": line.get("replacements")}))
        elif kind == "host-row":
            self._host_row(line)
        elif (
            kind not in TRANSCRIPT_TYPES
            and not kind.startswith(ARTIFACT)
            and (text := obvious_text(line))
        ):
            self._say("system", text, 0, "system")

    def _cost_state(self, line: JSONObject) -> None:
        place = (self._start, self._length)
        self._records.extend(stated_usage(line, self._timestamp, place, self._wrong))

    def _summary(self, line: JSONObject) -> None:
        title, leaf = string(line.get("summary")), string(line.get("leafUuid"))
        if title and leaf:
            self._records.append(Summary(leaf, title[:_MAX_TITLE], self._start))

    def _relocated(self, line: JSONObject) -> None:
        """Note where the session is held from here on; the last of these lines counts."""
        cwd = line.get("relocatedCwd")
        if not isinstance(cwd, str) or not cwd:
            self._wrong("relocatedCwd", cwd)
        elif self._is_main and (session := self._claim.session_key):
            self._relocation = SessionEntry(
                session,
                "relocated",
                cwd=cwd,
                project_key=named_after(cwd),
                byte_offset=self._start,
            )

    def _host_row(self, line: JSONObject) -> None:
        """Read a call that a script ran, or its result: a row of the program, not of the model."""
        begun = len(self._records)
        self._uuid = self._uuid or self._name("rowUuid", line.get("rowUuid"))
        stated = line.get("block")
        for number, block in enumerate(stated if isinstance(stated, list) else [stated]):
            self._assistant_block(number, block, False)
        self._records[begun:] = [
            record._replace(role="system") if isinstance(record, Message) else record
            for record in self._records[begun:]
        ]
        ran_by = {key: line.get(key) for key in ("ranByToolUseId", "rowUuid")}
        self._keep("host-row", left_over(ran_by))

    def _keep(self, kind: str, extra: str | None) -> None:
        """Keep what a line states that has no column."""
        if extra is not None:
            self._records.append(LineExtra(kind, self._timestamp, extra, self._start, self._length))

    def _queue(self, line: JSONObject) -> None:
        content = line.get("content")
        if line.get("operation") != "enqueue" or not content:
            return
        text = content if isinstance(content, str) else tools.result_text(content)
        task = side_lines.queued_task(text)
        if task is None and not people.is_notice(text):
            self._say("queued_prompt", text, 0, "user")
            return
        self._say("task_notification", text, 0, "system")
        if task is None:
            return
        agent, call = string(task.get("task_id")), string(task.get("tool_use_id"))
        if agent and call:
            self._link(AgentLink(agent, call, tools.BY_NOTIFICATION, self._start))

    def _link_line(self, kind: str) -> None:
        link = side_lines.link(kind, self._at(0), self._wrong)
        if link is not None:
            self._urls.setdefault((link.kind, link.url), link)

    def _team(self) -> str | None:
        return string(self._name("teamName", self._line.get("teamName")))

    def _item(self, item: InboxItem) -> None:
        """Add a message between agents."""
        self._records.append(
            item._replace(
                team_name=self._team(),
                ordinal=self._items,
                byte_offset=self._start,
                byte_length=self._length,
            )
        )
        self._items += 1

    # -- rows ------------------------------------------------------------------------------------

    def _say(self, kind: str, text: str, block: int, role: str, is_error: int = 0) -> None:
        """Add the row of one block."""
        is_cut = 0
        if len(text) > MAX_TEXT:
            text = text[:MAX_TEXT]
            is_cut = 1
        if kind in TOOL_KINDS:
            said, given = None, text
        else:
            said, given = text, None
            if kind == "task_notification":
                self._notification(text)
        self._rows += 1
        is_plain = text.isascii()
        self._records.append(
            Message(
                kind,
                said,
                given,
                role,
                self._timestamp,
                self._model,
                self._uuid,
                self._parent,
                self._is_meta,
                self._is_sidechain,
                is_error,
                is_cut,
                0 if is_plain else has_cjk(text),
                0 if is_plain else has_invisible(text),
                self._start,
                self._length,
                block,
            )
        )

    def _notification(self, text: str) -> None:
        """Read the task and the call that a `<task-notification>` names."""
        agent, call = inside(text, "task-id"), inside(text, "tool-use-id")
        if agent and call and len(agent) <= MAX_NAME and len(call) <= MAX_NAME:
            self._link(AgentLink(agent, call, tools.BY_NOTIFICATION, self._start))

    def _link(self, link: AgentLink) -> None:
        self._links.setdefault((link.agent_key, link.tool_use_id, link.method), link)

    def _text_of(self, block: object, key: str) -> str:
        value = block.get(key)  # type: ignore[attr-defined]
        if isinstance(value, str):
            return value
        if value is not None:
            self._wrong(key, value)
        return ""

    def _name(self, field: str, value: object) -> str | None:
        if value is None or (value.__class__ is str and len(value) <= MAX_NAME):
            return value
        self._wrong(field, value)
        return None

    # -- issues ----------------------------------------------------------------------------------

    def _wrong(self, field: str, value: object) -> None:
        """Record that a field is unusable; its column becomes NULL."""
        what = "missing" if value is None else f"unusable {type(value).__name__}"
        self._issue(f"{field}: {what}", self._start, self._data)

    def _issue(self, reason: str, start: int, data: bytes) -> None:
        if (start, reason) in self._noted:
            return  # a thousand blocks with the same fault are not a thousand issues
        self._noted.add((start, reason))
        self._records.append(Issue(reason, 0, sample(data), start, len(data)))

    def _quarantine(self, reason: str, start: int, data: bytes) -> None:
        self._records.append(Issue(reason, 1, sample(data), start, len(data)))

    def finish(self) -> list[Record]:
        """Return all records: messages in the order of the file, then the others."""
        records = self._records
        records.extend(self._tool_calls())
        records.extend(self._usage.values())
        records.extend(self._links.values())
        records.extend(self._urls.values())
        records.extend(self._snapshots.values())
        records.extend(self._directories.values())
        if self._relocation is not None:
            records.append(self._relocation)
        records.extend(
            LineType(*key, count, self._firsts.get(key)) for key, count in self._types.items()
        )
        if self._types:
            records.append(self._transcript())
        return records

    def _tool_calls(self) -> Iterable[ToolCall]:
        for identity, call in self._calls.items():
            yield tools.joined(identity, call, self._results.get(identity))
        for identity, answer in self._results.items():
            if identity not in self._calls:
                yield tools.joined(identity, None, answer)

    def _transcript(self) -> Transcript:
        found = Transcript(
            started_at=self._started,
            ended_at=self._ended,
            message_count=self._message_count,
            sidechain_count=self._sidechain_count,
        )
        return found._replace(**self._facts)


def _api_error(line: JSONObject) -> str:
    """Return the text of an API error, or why there was no response."""
    error = mapping(line.get("error"))
    text = string(error.get("formatted")) or string(error.get("message"))
    text = text or obvious_text(error.get("error")) or string(error.get("type"))
    cause = mapping(error.get("cause")) or mapping(line.get("cause"))
    code = error.get("status") or string(cause.get("code"))
    return text or f"API error {code or ''}".strip()

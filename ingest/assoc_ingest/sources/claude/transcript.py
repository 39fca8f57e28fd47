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

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ... import tags
from ...fields import (
    MAX_NAME,
    MAX_TEXT,
    integer,
    is_count,
    json_text,
    leaves,
    left_over,
    mapping,
    obvious_text,
    orjson,
    placeholder,
    string,
    utc,
)
from ...records import (
    BY_NOTIFICATION,
    BY_PROGRESS,
    EDIT,
    ERROR,
    AgentLine,
    AgentLink,
    Context,
    FileSnapshot,
    InboxItem,
    Link,
    Message,
    Record,
    SessionEntry,
    StatedUsage,
    Statement,
    Summary,
    TaskChange,
    Usage,
    WorkingDirectory,
)
from ...source import Claim, Line
from ...tags import inside
from .. import tokens
from ..chat_reader import Call, ChatReader, joined, target
from ..reader import JSONObject, exact_object, folded, pieces
from ..tokens import Counts
from . import stores as teams
from . import tools
from .stores import UNTITLED, encoded, item_of, named_after, team_key, title_of

# ------------------------------------------------------------------------------------------------
# The text of attachments: what Claude Code added to the context, of which kind, and where.
#
# `_LEAVES` says for each known kind where its text is: keys from the attachment on,
# lists on the way are walked through; a path that ends in `*` means all text below it. A kind
# without a path has no text of its own (a mode, a count, a path), or its text is stored elsewhere
# (the plan). Of any other kind, all strings up to a length are its text, but not ids, hashes and
# signatures. `rendered` repeats the text as the model saw it, and counts only where there is no
# other. `prompt_snapshot` has the system prompt and the schemas of all tools; it is not worth
# searching, so only the archive has it.


_LEAVES = {
    "already_read_file": ("content", "content.file.content"),
    "agent_listing_delta": ("addedLines",),
    "async_hook_response": (
        *("stdout", "stderr", "response.systemMessage", "response.additionalContext"),
        "response.hookSpecificOutput.additionalContext",
    ),
    "critical_system_reminder": ("content",),
    "current_session_memory": ("content",),
    "diagnostics": ("files.diagnostics.message",),
    "directory": ("content",),
    "edited_text_file": ("snippet",),
    "file": ("content", "content.file.content"),
    "goal_status": ("content", "condition", "reason"),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError.*", "stdout", "stderr"),
    "hook_error_during_execution": ("content",),
    "hook_non_blocking_error": ("content", "stdout", "stderr"),
    "hook_stopped_continuation": ("message",),
    "hook_success": ("content", "stdout", "stderr"),
    "hook_system_message": ("content",),
    "instructions": ("files.content", "content"),
    "invoked_skills": ("skills.content",),
    "mcp_instructions_delta": ("addedBlocks",),
    "mcp_resource": ("content.contents.text",),
    "nested_memory": ("content.content",),
    "poll_events": ("envelopes.*", "events.*"),
    "queued_command": ("prompt",),
    "read_truncation_notice": ("content",),
    "relevant_memories": ("memories.content",),
    "selected_lines_in_ide": ("content",),
    "skill_discovery": ("skills.description",),
    "skill_listing": ("content",),
    "structured_output": ("data.*",),
    "task_reminder": ("content",),
    "task_status": ("description", "deltaSummary", "shell.command"),
    "teammate_mailbox": ("messages.text",),
    "todo_reminder": ("content", "content.content"),
    **dict.fromkeys(
        (
            *("agent_mention", "auto_mode", "auto_mode_exit", "bagel_console", "budget_usd"),
            *("command_permissions", "compact_file_reference", "compaction_reminder"),
            *("companion_intro", "context_efficiency", "date_change", "deferred_tools_delta"),
            *("dynamic_skill", "edited_image_file", "hook_cancelled", "hook_permission_decision"),
            *("max_turns_reached", "opened_file_in_ide", "output_style", "output_token_usage"),
            *("pdf_reference", "plan_file_reference", "plan_mode", "plan_mode_exit"),
            *("plan_mode_reentry", "prompt_snapshot", "slash_command_metadata", "team_context"),
            *("teammate_shutdown_batch", "token_usage", "total_tokens_reminder"),
            *("ultra_effort_enter", "ultrathink_effort", "verify_plan_reminder"),
            *("workflow_keyword_request",),
        ),
        (),
    ),
}

KINDS = frozenset(_LEAVES)
"""The kinds for which it is known where their text is, or that they have none."""

_NOT_SEARCHED = "prompt_snapshot"
_PATHS = {kind: tuple(tuple(path.split(".")) for path in paths) for kind, paths in _LEAVES.items()}
_MAX_DEPTH = 8


def text_of(kind: str, attachment: JSONObject) -> str:
    """Return the text of an attachment, each part of it once."""
    if kind == _NOT_SEARCHED:
        return ""
    if kind in _PATHS:
        parts = [text for path in _PATHS[kind] for text in _at(attachment, path, _MAX_DEPTH)]
        return "\n".join(dict.fromkeys(parts)) or obvious_text(attachment)
    own = {key: value for key, value in attachment.items() if key != "rendered"}
    parts = list(leaves(own)) or list(leaves(attachment.get("rendered")))
    return "\n".join(dict.fromkeys(parts))


def _at(value: object, path: tuple[str, ...], depth: int) -> Iterator[str]:
    """Yield the strings at a path."""
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _at(item, path, depth - 1)
    elif path == ("*",):
        yield from leaves(value)
    elif not path:
        if isinstance(value, str) and value:
            yield value
    elif isinstance(value, dict):
        yield from _at(value.get(path[0]), path[1:], depth - 1)


def mail_in(attachment: JSONObject, moment: str | None) -> Iterator[InboxItem]:
    """Yield the messages from other agents in a `teammate_mailbox`."""
    messages = attachment.get("messages")
    for item in messages if isinstance(messages, list) else ():
        message = mapping(item)
        text = string(message.get("text"))
        if text is not None:
            sent_at = utc(message.get("timestamp")) or moment
            yield item_of(text, string(message.get("from")), None, sent_at)._replace(
                summary=string(message.get("summary")), color=string(message.get("color"))
            )


# ------------------------------------------------------------------------------------------------
# What a transcript states about tasks, todos and plans: calls of four tools, and two other lines.
#
# Claude Code keeps tasks, todos and plans as files (`stores`, `plans`) and deletes them earlier
# than its transcripts. A call says what it changes, and its result says whether it did.
#
# ```
# TaskCreate    {"subject","description","activeForm","metadata"}
#               result {"task":{"id":"1","subject":".."}}, or only the text "Task #1 created
#               successfully: .."
# TaskUpdate    {"taskId":"1","status","owner","subject","description","activeForm","metadata",
#                "addBlocks":["2"],"addBlockedBy":["3"]}; a key of metadata with null is removed
#               result {"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{..}};
#               if there is no such task {"success":false}, not an error, or text "Task not found"
# TodoWrite     {"todos":[{"content","status","activeForm"}]}, older {"content","status","priority",
#                "id"}: the whole list, each time
# ExitPlanMode  {"plan":".."}; from 2.0.5x on {}, later {"plan","planFilePath"}: the plan is a file
#               result {"plan":"..","isAgent":false,"filePath":"/home/ada/.claude/plans/a-b-c.md"};
#               of a teammate's plan "awaitingLeaderApproval":true;
#               in text after "## Approved Plan:"
# attachment    plan_file_reference {"planFilePath","planContent"}: the plan, repeated by a
#               compaction
# user line     planContent: an accepted plan, with which a new conversation begins
# ```
#
# Tasks belong to the list of the team, else of the session; the agents of a session share it.
# Todos belong to one agent. A plan is identified by the stem of its file, which is the `slug` of
# the lines; plans of versions without files have no name.


TASK, TODOS, PLAN = "task", "todos", "plan"
"""Kinds of statements."""

_KINDS = {
    "TaskCreate": TASK,
    "TaskUpdate": TASK,
    "TodoWrite": TODOS,
    "ExitPlanMode": PLAN,
    "exit_plan_mode": PLAN,
}
_FIELDS = (
    ("subject", "subject"),
    ("description", "description"),
    ("status", "status"),
    ("owner", "owner"),
    ("activeForm", "active_form"),
)
_ITEM = (("content", "content"), ("status", "status"), ("priority", "priority"), _FIELDS[-1])
_CREATED, _DONE = "Task #", " created successfully"
_MISSING = ("Task not found", "Task #")
_APPROVED = "## Approved Plan"
_REJECTED = "Rejected plan:\n"


class Place(NamedTuple):
    """The place of a statement: the line, which names the session and the team, and the block."""

    claim: Claim
    line: JSONObject
    timestamp: str | None
    byte_offset: int
    byte_length: int
    block: int = 0


def called(
    name: str | None, arguments: JSONObject, tool_use_id: str | None, place: Place
) -> Statement | None:
    """Return what a call states, None if it calls another tool or states nothing usable."""
    kind = _KINDS.get(name or "")
    if kind is None or tool_use_id is None:
        return None
    if kind == TASK:
        task = _key(arguments.get("taskId"))
        is_new = name == "TaskCreate"
        if not is_new and task is None:
            return None
        stated = _task(arguments, is_new)
        return _statement(place, kind, None if is_new else task, stated, None, tool_use_id)
    if kind == TODOS:
        items = arguments.get("todos")
        if not isinstance(items, list):
            return None
        known = [_texts(item, _ITEM) for item in items if isinstance(item, dict)]
        return _statement(place, kind, None, {"items": known}, None, tool_use_id)
    path = string(arguments.get("planFilePath"))
    stated = _plan(string(arguments.get("plan")), _stem(path) or _slug(place), "call")
    return _statement(place, kind, None, stated, None, tool_use_id)


def answered(text: str, extra: JSONObject, tool_use_id: str, place: Place) -> Statement | None:
    """Return what a result adds to its call, None if it is not a result of these tools."""
    task = mapping(extra.get("task"))
    key = _key(task.get("id"))
    subject = string(task.get("subject"))
    if key is None and text.startswith(_CREATED) and _DONE in text[: MAX_NAME + len(_DONE)]:
        number, _, rest = text.removeprefix(_CREATED).partition(_DONE)
        key, subject = _key(number), string(rest.removeprefix(": "))
    if key is not None:
        return _statement(place, TASK, key, None, {"subject": subject}, tool_use_id)
    is_missing = text == _MISSING[0] or (
        text.startswith(_MISSING[1]) and text.endswith(" not found") and len(text) <= MAX_NAME
    )
    if is_missing or ("updatedFields" in extra and extra.get("success") is False):
        return _statement(place, TASK, None, None, {"is_refused": True}, tool_use_id)
    return _answered_plan(text, extra, tool_use_id, place)


def _answered_plan(
    text: str, extra: JSONObject, tool_use_id: str, place: Place
) -> Statement | None:
    plan = None
    if "isAgent" in extra:
        plan = string(extra.get("plan"))
    elif text.startswith("User has approved") and _APPROVED in text:
        plan = string(text.partition(_APPROVED)[2].partition("\n")[2])
    elif text.startswith("The agent proposed a plan") and _REJECTED in text:
        plan = string(text.partition(_REJECTED)[2])
    added = _plan(plan, None, None)
    if extra.get("awaitingLeaderApproval") is True:
        added["is_awaiting"] = True
    return _statement(place, PLAN, None, None, added, tool_use_id) if added else None


def attached(attachment: JSONObject, place: Place) -> Statement | None:
    """Return the plan that an attachment repeats, None if there is none."""
    if attachment.get("type") != "plan_file_reference":
        return None
    path, plan = string(attachment.get("planFilePath")), string(attachment.get("planContent"))
    if plan is None:
        return None
    return _statement(place, PLAN, None, _plan(plan, _stem(path), "attachment"), None, None)


def begun_with(place: Place) -> Statement | None:
    """Return the plan that a conversation begins with, None if the line has none."""
    plan = string(place.line.get("planContent"))
    if plan is None:
        return None
    return _statement(place, PLAN, None, _plan(plan, _slug(place), "prompt"), None, None)


def _statement(
    place: Place,
    kind: str,
    task: str | None,
    stated: JSONObject | None,
    added: JSONObject | None,
    tool_use_id: str | None,
) -> Statement | None:
    list_key = string((stated or {}).get("name")) or _list(place, kind)
    if list_key is None:
        return None
    return Statement(
        kind,
        list_key,
        task,
        None if stated is None else json_text(stated),
        None if added is None else json_text(added),
        place.timestamp,
        tool_use_id,
        place.byte_offset,
        place.byte_length,
        place.block,
    )


def _list(place: Place, kind: str) -> str | None:
    """Return the task list that a line means; for other kinds, the session."""
    stated = string(place.line.get("sessionId"))
    session = folded(stated) if stated else None
    if kind != TASK:
        return place.claim.session_key or session
    team = string(place.line.get("teamName"))
    if team is not None and len(team) <= MAX_NAME:
        return team_key(team)
    return session or place.claim.session_key


def _task(arguments: JSONObject, is_new: bool) -> JSONObject:
    stated = _texts(arguments, _FIELDS)
    if is_new:
        stated["is_new"] = True
    if metadata := mapping(arguments.get("metadata")):
        stated["metadata"] = metadata
    for name, key in (("addBlocks", "blocks"), ("addBlockedBy", "blocked_by")):
        others = arguments.get(name)
        if isinstance(others, list):
            stated[key] = [known for other in others if (known := _key(other)) is not None]
    return stated


def _texts(value: JSONObject, names: tuple[tuple[str, str], ...]) -> JSONObject:
    """Return the texts with these names, under the names of our columns."""
    return {
        column: text[:MAX_TEXT]
        for name, column in names
        if isinstance(text := value.get(name), str)
    }


def _plan(text: str | None, name: str | None, by: str | None) -> JSONObject:
    text = None if text is None else text[:MAX_TEXT]
    title = None if text is None else title_of(text) or UNTITLED
    values = {"by": by, "name": name, "title": title, "text": text}
    return {key: value for key, value in values.items() if value is not None}


def _key(value: object) -> str | None:
    """Return the key of a task, which can be written as a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    known = string(value)
    return known if known is not None and len(known) <= MAX_NAME else None


def _stem(path: str | None) -> str | None:
    """Return the name of a plan's file, without the extension."""
    if path is None or len(path) > MAX_NAME:
        return None
    return path.replace("\\", "/").rpartition("/")[2].removesuffix(".md") or None


def _slug(place: Place) -> str | None:
    """Return the name of the plan of this session, or of this agent of the session."""
    slug = string(place.line.get("slug"))
    if slug is None or len(slug) > MAX_NAME:
        return None
    agent = place.claim.agent_key
    return f"{slug}-agent-{agent}" if agent else slug


# ------------------------------------------------------------------------------------------------
# Token counts of Claude Code: one API response has several lines, of which one counts.
#
# Every line of a response states its usage so far, and most lines repeat the first or an early
# count (`tokens.merged`).
#
# `iterations` lists the requests that one response took. Mostly they are of one model, and the
# usage is that of the last. If another model was asked first, or beside, that is a request of its
# own.
#
# Where no line has the final count, what the response wrote still tells how much it was. Its
# length is measured here, so that it can be compared with that of complete responses
# (docs/costs.md).


_BARE_SIGNATURE = 260  # letters of the signature of an empty thought; the others are base64
_BYTES_OF_CALL = 100  # of text take as many tokens as a call beside its arguments

_STATED = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
_MOST_MODELS = 50

_SYNTHETIC = "<synthetic>"  # created by the client: no request, no tokens


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def written_bytes(kind: str, block: JSONObject, text: str) -> int | None:
    """Return the length of what the model wrote for one block, None where it cannot be known.

    `text` is that of its row. A signature holds all that was thought, encrypted, and the text may
    be a summary of it or missing.
    """
    if kind == "thinking":
        signature = string(block.get("signature")) or ""
        hidden = (len(signature) - _BARE_SIGNATURE) * 3 // 4
        return max(_length(text), hidden) if text or signature else None
    if kind == "redacted_thinking":
        return None
    return _length(text) + (_BYTES_OF_CALL if kind == "tool_use" else 0)


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


# ------------------------------------------------------------------------------------------------
# Lines of a transcript beside its messages: links, versions of files, tasks from the queue.
#
# ```json
# {"type":"pr-link","prUrl":"https://example.org/demo/pull/3","prRepository":"ada/demo"}
# {"type":"frame-link","frameUrl":"https://example.org/frame/1","title":"Menus"}
# {"type":"worktree-state","worktreeSession":{"worktreePath":"/srv/demo-tidy",
#  "worktreeBranch":"tidy","originalCwd":"/srv/demo"}}
# {"type":"file-history-snapshot","messageId":"m1","snapshot":{"trackedFileBackups":{"a.ts":
#  {"version":1,"backupTime":"2026-01-05T10:00:00.000Z","backupFileName":"0f1e2d3c4b5a6978@v1"}}}}
# {"type":"file-history-delta","messageId":"m2","trackingPath":"a.ts","backup":{"version":2}}
# {"type":"continued-in","continuedInSessionId":"1c8d3a5f-2222-4333-9444-555566667777"}
# {"type":"derived-from","sessions":[{"type":"fork","id":"2d9e","via":"handoff"}]}
# ```


LINKS = ("pr-link", "frame-link", "worktree-state")
"""Types of lines that state a link."""

LINEAGE = ("continued-in", "derived-from")
"""Types of lines that name the sessions before and after this one."""

SNAPSHOTS = ("file-history-snapshot", "file-history-delta")
"""Types of lines that state versions of files."""


def queued_task(text: str) -> JSONObject | None:
    """Return the task that a JSON object in the queue announces, None if there is none."""
    if not text.startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "task_id" in value else None


# ------------------------------------------------------------------------------------------------
# Classifies user lines of Claude Code, which are prompts, commands, tool output and much else.
#
# The order of the tests follows the format: the kind follows from the beginning of a block.
# Blocks that an editor adds to a prompt (the open file, the selection) are skipped.


# How the text of a whole line begins, and its kind.
_PREFIXES = (
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<local-command-stdout>", "command_output"),
    ("<local-command-stderr>", "command_output"),
    ("<bash-input>", "bash_input"),
    ("<bash-stdout>", "bash_output"),
    ("<bash-stderr>", "bash_output"),
    ("<task-notification>", "task_notification"),
    ("<agent-notification>", "task_notification"),
    ("<ci-monitor-event>", "task_notification"),
    ("<teammate-message", "agent_message"),
    ("<cross-session-message", "agent_message"),
    ("<user-memory-input>", "memory_input"),
    ("[Request interrupted by user", "interrupt"),
)
_TYPED_TAGS = ("bash-input", "command-message", "command-name", "user-memory-input")
_STARTS = tuple(prefix for prefix, _ in _PREFIXES)
_NOTICES = tuple(
    prefix for prefix, kind in _PREFIXES if kind in ("task_notification", "agent_message")
)

_BESIDE = ("ide_opened_file", "ide_selection", "system-reminder")


def is_beside(text: str) -> bool:
    """Does the block contain only what an editor or the program added to the prompt?"""
    return text.lstrip()[:1] == "<" and tags.is_only(text, _BESIDE)


def is_notice(text: str) -> bool:
    """Is the text from the queue a notice of the program?

    Some are known by how they begin; in 2.1.16, a line with the path of a transcript follows the
    last tag. Others are wrapped in a tag with a hyphen in its name; the names change from version
    to version. A person can type a tag, but hardly such a tag around the whole text.
    """
    body = text.strip()
    if not body.startswith("<"):
        return False
    if body.startswith(_NOTICES):
        return True
    name = body[1 : body.find(">")].partition(" ")[0]
    return "-" in name and name not in _TYPED_TAGS and body.endswith(f"</{name}>")


def kind_of(text: str, *, is_sidechain: bool, origin: str | None) -> str:
    """Return the kind of a user line; `text` is its first block that is not skipped."""
    start = text.lstrip()
    if start.startswith(_STARTS):
        return next(kind for prefix, kind in _PREFIXES if start.startswith(prefix))
    if origin is not None and origin != "human":
        return "meta"
    return "agent_prompt" if is_sidechain else "prompt"


PRIVATE = frozenset(
    [
        *("bridge-session", "session-owner", "hybrid-organization", "artifact-autoreact-ledger"),
        "memory-mode",
    ]
)
"""Types of lines with secrets or ids of accounts: no part of them is stored, or quoted."""

_COUNTED = frozenset(
    [
        *("api-request", "api-request-blob", "api-request-shape", "attribution-snapshot"),
        *("data-flow-records", "ended-by-model", "history-suppression", "isolation-latch"),
        *("marble-origami-commit", "marble-origami-snapshot", "observer-ref"),
        *("speculation-accept", "tools-used"),
    ]
)
ARTIFACT = "artifact-"  # how the types of more lines begin that are only counted

TRANSCRIPT_TYPES = frozenset(
    [
        *PRIVATE,
        *_COUNTED,
        *("user", "assistant", "system", "progress", "attachment", "summary", "queue-operation"),
        *("file-history-snapshot", "file-history-delta", "last-prompt", "ai-title"),
        *("custom-title", "agent-name", "agent-color", "agent-setting", "permission-mode", "mode"),
        *("worktree-state", "pr-link", "frame-link", "fork-context-ref", "cost-state", "tag"),
        *("continued-in", "derived-from", "relocated", "content-replacement", "host-row"),
    ]
)

KNOWN_LINES = frozenset(
    [
        *(TRANSCRIPT_TYPES - {"attachment"}),
        "attachment/",
        *(f"attachment/{kind}" for kind in KINDS),
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
_ENVELOPE = {
    "gitBranch": "git_branch",
    "version": "agent_version",
    "slug": "slug",
    "entrypoint": "entrypoint",
    "permissionMode": "permission_mode",
    "sessionKind": "session_kind",
    "teamName": "team_name",
    "userType": "user_type",
}
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


class TranscriptReader(ChatReader):
    """Turns the lines of one stretch of a transcript into records.

    `read` the lines in order, then take what `finish` returns.
    """

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim)
        self._is_main = claim.kind == "transcript"
        self._unnamed: list[Call] = []
        """Calls of the current line without an id and a result."""
        self._links: dict[tuple[str, str, int], AgentLink] = {}
        self._urls: dict[tuple[str, str], Link] = {}
        self._snapshots: dict[tuple[str, int | None], FileSnapshot] = {}
        self._contexts: dict[str, str | None] = dict.fromkeys(_CONTEXTS)
        self._cwd: object = None
        self._last_stated: list[object] = []
        """What the last line stated of the session; mostly the next one states the same."""
        self._exact: JSONObject | None = None
        self._directories: dict[str, WorkingDirectory] = {}
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
            self.data = line.data[begin : begin + piece.length]
            self.start, self.length = piece.start, piece.length
            if piece.object is None:
                self._issue(piece.reason or "not an object", 1)
                continue
            if piece.reason:
                self._issue(piece.reason, 0)
            self._object(piece.object, piece.start, self.data)

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
        self.start = start
        self.length = len(data)
        self.data = data
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
        self.parent = self._name("parentUuid", get("parentUuid"))
        self._is_meta = 1 if get("isMeta") is True else 0
        self._is_sidechain = 1 if get("isSidechain") is True else 0
        self.model = None
        self._response_key: str | None = None
        stated = get("timestamp")
        moment = self._moment = utc(stated)
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
        get, facts = line.get, self._facts
        stated = [get(key) for key in _ENVELOPE]
        if stated != self._last_stated:
            self._last_stated = stated
            for name, value in zip(_ENVELOPE.values(), stated, strict=True):
                if value.__class__ is str:
                    if value:
                        facts[name] = value
                    if self._contexts.get(name, value) != value:
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
            self._directories[cwd] = WorkingDirectory(cwd, encoded(cwd), self.start)

    def _context(self, name: str, value: str) -> None:
        """Record a value that holds from this line on."""
        self._contexts[name] = value
        self.records.append(Context(name, value, self.start))

    # -- user and assistant lines ----------------------------------------------------------------

    def _assistant(self, line: JSONObject) -> None:
        message = line.get("message")
        self._written = 0
        if isinstance(message, dict):
            content = message.get("content")
            self.model = self._name("model", message.get("model", line.get("model")))
            self._add_usage(line)
        else:
            content = message
        is_failure = line.get("isApiErrorMessage") is True
        if isinstance(content, list):
            self._assistant_blocks(content, is_failure)
        elif isinstance(content, str):
            self._say("error" if is_failure else "text", content, 0, "assistant")
            self._write("text", {}, content)
        if not self._rows:
            self._say("text", "", 0, "assistant")
        if self._response_key is not None:
            usage = self._usage[self._response_key]
            written = tokens.total(usage.written_bytes, self._written)
            self._usage[self._response_key] = usage._replace(written_bytes=written)

    def _assistant_blocks(self, blocks: list[Any], is_failure: bool) -> None:
        for number, block in enumerate(blocks):
            self._assistant_block(number, block, is_failure)
        for call in self._unnamed:
            self.records.append(joined(None, call, None))
        self._unnamed.clear()

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
        self._written = tokens.total(self._written, written_bytes(kind, block, text))

    def _tool_use(self, number: int, block: JSONObject) -> None:
        arguments = block.get("input")
        if arguments is None:
            arguments = {}
        text = json_text(arguments, lambda: self._exact_input(number, arguments))
        self._say("tool_use", text, number, "assistant")
        self._write("tool_use", block, text)
        position = (self.start, number)
        name = self._name("tool name", block.get("name"))
        action = tools.action_of(name)
        call = Call(
            name, target(mapping(arguments)), self._moment, position, self.length,
            self._response_key if name in tools.CHARGED else None, action,
        )  # fmt: skip
        if action == EDIT:
            self.add_lines(mapping(arguments), position)
        identity = string(block.get("id"))
        self._add_statement(called(name, mapping(arguments), identity, self._at(number)))
        if name == "SendMessage":
            self._item(teams.sent(mapping(arguments), identity, self._moment))
        if identity is None:
            self._unnamed.append(call)
        else:
            self._calls.setdefault(identity, call)

    def _exact_input(self, number: int, arguments: object) -> object:
        """Decode the line again with integers of any size; orjson turns the largest into floats."""
        if self._exact is None:  # once for all blocks that need it
            self._exact = exact_object(self.data)
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
            self._add_statement(begun_with(self._at(0)))
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
            for item in teams.received(text, line.get("origin"), self._moment):
                self._item(item)
        if is_beside(text) and line.get("isCompactSummary") is not True:
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
        return kind_of(text, is_sidechain=bool(self._is_sidechain), origin=origin)

    def _tool_result(self, number: int, block: JSONObject, extra: JSONObject, role: str) -> None:
        text = tools.result_text(block.get("content"))
        position = (self.start, number)
        denial = string(self._line.get("toolDenialKind"))
        answer = tools.result(block, text, extra, denial, self._moment, position, self.length)
        self._say("tool_result", text, number, role, int(answer.status == ERROR))
        identity = string(block.get("tool_use_id"))
        if identity is None:
            if block.get("tool_use_id") is None and len(self._unnamed) == 1:
                # The time of the line is that of the call.
                call, answer = self._unnamed.pop(), answer._replace(timestamp=None)
                self.records.append(joined(None, call, answer))
            else:
                self._wrong("tool_use_id", block.get("tool_use_id"))
            return
        self._results.setdefault(identity, answer)
        for link in tools.agent_links(identity, text, extra, self.start):
            self._link(link)
        if (totals := tools.agent_totals(extra, self.start)) is not None:
            self.records.append(totals)
        self._effects(identity, extra)
        self._add_statement(answered(text, extra, identity, self._at(number)))
        if extra or text.startswith("Workflow"):
            run = tools.workflow_link(identity, text, extra, self.start)
            if run:
                self.records.append(run)

    def _effects(self, tool_use_id: str, extra: JSONObject) -> None:
        """Read what a result says about a message that was sent, and a task that changed."""
        if "routing" in extra or "msg_id" in extra:
            sent = teams.delivered(extra, tool_use_id, self._moment)
            if sent is not None:
                self._item(sent)
        if "statusChange" in extra:
            change, task = mapping(extra["statusChange"]), string(extra.get("taskId"))
            session, team = string(self._line.get("sessionId")), self._team()
            tasks = team or (folded(session) if session else None)
            if task and tasks:
                before, after = string(change.get("from")), string(change.get("to"))
                self.records.append(
                    TaskChange(tasks, task, "status", before, after, self._moment, self.start)
                )

    def _at(self, block: int) -> Place:
        return Place(self.claim, self._line, self._moment, self.start, self.length, block)

    def _add_statement(self, statement: Statement | None) -> None:
        if statement is not None:
            self.records.append(statement)

    def _count_message(self) -> None:
        self._message_count += 1
        self._sidechain_count += self._is_sidechain

    # -- tokens ----------------------------------------------------------------------------------

    def _add_usage(self, line: JSONObject) -> None:
        """Add what an assistant line states about its response.

        A response without any id is identified by its place.
        """
        message = mapping(line.get("message"))
        usage = message.get("usage", line.get("usage"))
        if not isinstance(usage, dict):
            if usage is not None:
                self._wrong("usage", usage)
            return
        if self.model == _SYNTHETIC:
            return
        api_id = string(message.get("id")) or string(line.get("id"))
        place = f"{self.claim.session_key}/{self.claim.agent_key or 'main'}@{self.start}"
        searches = self.count(mapping(usage.get("server_tool_use")), "web_search_requests")
        stated = self.use(
            api_id or self._uuid or place,
            self._counts(usage),
            is_partial=message.get("stop_reason") is None,
            api_message_id=api_id,
            request_id=string(line.get("requestId")),
            stated_session_key=string(line.get("sessionId")),
            web_searches=searches,
            stop_reason=string(message.get("stop_reason")),
            written_bytes=0,  # its blocks add to it
        )
        self._response_key = stated.response_key
        if message.get("usage") and usage.get("iterations"):
            self._add_other_requests(stated, usage["iterations"])

    def _add_other_requests(self, stated: Usage, iterations: object) -> None:
        """Add the requests to other models that a response took."""
        requests = [mapping(item) for item in iterations] if isinstance(iterations, list) else []
        models = [string(request.get("model")) for request in requests]
        named = {model for model in models if model is not None}
        if len(named) < 2:
            return
        own = stated.model if stated.model in named else models[-1]
        for number, (request, model) in enumerate(zip(requests, models, strict=True)):
            if model is None or model in (own, _SYNTHETIC) or len(model) > MAX_NAME:
                continue
            fresh, output, cached, five, hour = self._counts(request)
            self.spend(
                stated._replace(
                    response_key=f"{stated.response_key}/{number}",
                    model=model,
                    input_tokens=fresh,
                    output_tokens=output,
                    cache_read_tokens=cached,
                    cache_write_5m_tokens=five,
                    cache_write_1h_tokens=hour,
                    web_searches=0,
                    written_bytes=None,
                    line_count=0,
                    all_input_tokens=0,
                    all_output_tokens=0,
                    all_cache_read_tokens=0,
                    all_cache_write_tokens=0,
                    stop_reason=None,
                )
            )

    def _counts(self, usage: JSONObject) -> Counts:
        """Read a usage. Cache writes that are not divided are those for five minutes."""
        split = mapping(usage.get("cache_creation"))
        five = self.count(split, "ephemeral_5m_input_tokens")
        hour = self.count(split, "ephemeral_1h_input_tokens")
        if not (five or hour):
            five = self.count(usage, "cache_creation_input_tokens")
        fresh = self.count(usage, "input_tokens")
        output = self.count(usage, "output_tokens")
        return Counts(fresh, output, self.count(usage, "cache_read_input_tokens"), five, hour)

    def _cost_state(self, line: JSONObject) -> None:
        """Read what the session took so far, by model and in total.

        ```json
        {"type":"cost-state","sessionId":"..","totalCostUSD":0.75,"hasUnknownModelCost":false,
         "modelUsage":{"claude-opus-5[1m]":{"inputTokens":1,"outputTokens":1,"costUSD":0.74,
          "cacheReadInputTokens":1,"cacheCreationInputTokens":1,"webSearchRequests":0}}}
        ```

        It is the only place that names helper models, which have no line of their own.
        """
        by_model = []
        for model, value in list(self.mapping(line, "modelUsage").items())[:_MOST_MODELS]:
            counts = [self._stated_count(mapping(value), key) for key in _STATED]
            cost = self._dollars(mapping(value), "costUSD")
            by_model.append(self._stated(model[:MAX_NAME], counts, cost))
        total_cost = self._dollars(line, "totalCostUSD")
        if total_cost is None:
            return
        self.records.extend(by_model)
        columns = zip(*(usage[2:6] for usage in by_model), strict=True) if by_model else [()] * 4
        total = self._stated("", [_sum(column) for column in columns], total_cost)
        is_lower_bound = int(line.get("hasUnknownModelCost") is True)
        self.records.append(total._replace(is_lower_bound=is_lower_bound))

    def _stated(self, model: str, counts: Sequence[int | None], cost: float | None) -> StatedUsage:
        fresh, output, cached, written = counts
        return StatedUsage(
            model, self._moment, fresh, output, cached, written, cost, 0, self.start, self.length
        )

    def _stated_count(self, counts: JSONObject, key: str) -> int | None:
        count = counts.get(key)
        self._expect(count is None or is_count(count), key, count)
        return count if is_count(count) else None  # type: ignore[return-value]

    def _dollars(self, value: JSONObject, key: str) -> float | None:
        cost = value.get(key)
        is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
        is_cost = is_number and 0 <= cost < 1e9  # type: ignore[operator]
        self._expect(cost is None or is_cost, key, cost)
        return float(cost) if is_cost else None  # type: ignore[arg-type]

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
                kind = kind_of(text, is_sidechain=False, origin="system")
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
            if mode in _TYPED_MODES and not is_notice(text) and not is_meta:
                self._say("queued_prompt", text, 0, "user")
            else:
                self._say("meta" if is_meta else "task_notification", text, 0, "system")
            return
        self._add_statement(attached(attachment, self._at(0)))
        if kind == "teammate_mailbox":
            for item in mail_in(attachment, self._moment):
                self._item(item)
        text = text_of(kind, attachment)
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
            self._link(AgentLink(agent, call, BY_PROGRESS, self.start))
        if self._is_main and agent not in self.claim.elsewhere:
            self._repeated(agent, mapping(data.get("message")), line)

    def _repeated(self, agent: str, message: JSONObject, outer: JSONObject) -> None:
        """Read the message of an agent that has no file: this line is the only record of it."""
        if message.get("type") not in ("user", "assistant"):
            return
        self.records.append(AgentLine(agent, self.start))
        self._line = {**message, "sessionId": outer.get("sessionId")}
        self._uuid = self._name("uuid", message.get("uuid"))
        self.parent = None
        self._is_sidechain = 1
        self._moment = utc(message.get("timestamp")) or self._moment
        if message["type"] == "assistant":
            self._assistant(self._line)
        else:
            self._user(self._line)

    # -- lines without uuid ----------------------------------------------------------------------

    def _state(self, kind: str, line: JSONObject) -> None:
        key, name = _STATE[kind]
        value = line.get(key)
        self._last_stated = []  # what the next chain line states holds after this one
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
        elif kind in LINKS:
            self._add_link(kind, line)
        elif kind in SNAPSHOTS:
            self._add_snapshots(line)
            if mapping(line.get("snapshot")).get("trackedFileBackups") == {}:  # nothing changed yet
                self._keep_fields(kind, {"messageId": line.get("messageId")})
        elif kind == "fork-context-ref":
            parent = string(line.get("parentSessionId"))
            if parent:
                self._facts["forked_from_key"] = folded(parent)
        else:
            self._newer(kind, line)

    def _newer(self, kind: str, line: JSONObject) -> None:
        """Read the lines of versions since August 2026, and those that are not known yet."""
        if kind in LINEAGE:
            self._add_lineage(kind, line)
        elif kind == "relocated":
            self._relocated(line)
        elif kind == "content-replacement":
            self._keep_fields(kind, {"replacements": line.get("replacements")})
        elif kind == "host-row":
            self._host_row(line)
        elif (
            kind not in TRANSCRIPT_TYPES
            and not kind.startswith(ARTIFACT)
            and (text := obvious_text(line))
        ):
            self._say("system", text, 0, "system")

    def _summary(self, line: JSONObject) -> None:
        title, leaf = string(line.get("summary")), string(line.get("leafUuid"))
        if title and leaf:
            self.records.append(Summary(leaf, title[:_MAX_TITLE], self.start))

    def _relocated(self, line: JSONObject) -> None:
        """Note where the session is held from here on; the last of these lines counts."""
        cwd = line.get("relocatedCwd")
        if not isinstance(cwd, str) or not cwd:
            self._wrong("relocatedCwd", cwd)
        elif self._is_main and (session := self.claim.session_key):
            self._relocation = SessionEntry(
                session,
                "relocated",
                cwd=cwd,
                project_key=named_after(cwd),
                byte_offset=self.start,
            )

    def _host_row(self, line: JSONObject) -> None:
        """Read a call that a script ran, or its result: a row of the program, not of the model."""
        begun = len(self.records)
        self._uuid = self._uuid or self._name("rowUuid", line.get("rowUuid"))
        stated = line.get("block")
        self._assistant_blocks(stated if isinstance(stated, list) else [stated], False)
        self.records[begun:] = [
            record._replace(role="system") if isinstance(record, Message) else record
            for record in self.records[begun:]
        ]
        ran_by = {key: line.get(key) for key in ("ranByToolUseId", "rowUuid")}
        self._keep_fields("host-row", ran_by)

    def _keep_fields(self, kind: str, fields: JSONObject) -> None:
        """Keep what a line states that has no column."""
        self.keep(left_over(fields), kind=kind, moment=self._moment)

    def _queue(self, line: JSONObject) -> None:
        content = line.get("content")
        if line.get("operation") != "enqueue" or not content:
            return
        text = content if isinstance(content, str) else tools.result_text(content)
        task = queued_task(text)
        if task is None and not is_notice(text):
            self._say("queued_prompt", text, 0, "user")
            return
        self._say("task_notification", text, 0, "system")
        if task is None:
            return
        agent, call = string(task.get("task_id")), string(task.get("tool_use_id"))
        if agent and call:
            self._link(AgentLink(agent, call, BY_NOTIFICATION, self.start))

    def _add_link(self, kind: str, line: JSONObject) -> None:
        state = mapping(line.get("worktreeSession"))
        name, url, title = {
            "pr-link": ("pull_request", line.get("prUrl"), line.get("prRepository")),
            "frame-link": ("frame", line.get("frameUrl"), line.get("title")),
            "worktree-state": ("worktree", state.get("worktreePath"), state.get("worktreeBranch")),
        }[kind]
        if isinstance(url, str) and url:
            link = Link(name, url, string(title), self._moment, self.start, self.length)
            if name == "worktree":
                link = link._replace(origin=string(state.get("originalCwd")))
            self._urls.setdefault((name, url), link)
        elif url:  # it is empty when the session leaves its worktree
            self._wrong("url", url)

    def _add_lineage(self, kind: str, line: JSONObject) -> None:
        """Add the sessions that a line names, as links whose address is the key of a session."""
        name, sessions = kind.replace("-", "_"), line.get("sessions")
        if kind == "continued-in":
            sessions = [{"id": line.get("continuedInSessionId")}]
        if not isinstance(sessions, list):
            self._wrong("sessions", sessions)
            return
        for session in map(mapping, sessions):
            key = string(session.get("id"))
            if key is None or len(key) > MAX_NAME:
                self._wrong("session", key)
                continue
            how = [text for part in ("type", "via") if (text := string(session.get(part)))]
            title = " via ".join(how) or None
            link = Link(name, folded(key), title, self._moment, self.start, self.length)
            self._urls.setdefault((link.kind, link.url), link)

    def _add_snapshots(self, line: JSONObject) -> None:
        """Add the versions of files; a snapshot repeats earlier ones, a delta has the last."""
        snapshot = mapping(line.get("snapshot"))
        message = line.get("messageId") or snapshot.get("messageId")
        tracked: list[tuple[object, object, object]] = []
        if "trackingPath" in line:
            tracked.append((line["trackingPath"], line.get("backup"), line.get("messageId")))
        backups = mapping(snapshot.get("trackedFileBackups"))
        tracked += [(path, backup, message) for path, backup in backups.items()]
        for path, backup, message_uuid in tracked:
            if not isinstance(path, str) or not isinstance(backup, dict):
                self._wrong("backup", backup)
                continue
            version = integer(backup.get("version"))
            if (path, version) not in self._snapshots:
                self._snapshots[path, version] = FileSnapshot(
                    path,
                    version,
                    utc(backup.get("backupTime")),
                    string(backup.get("backupFileName")),
                    string(message_uuid),
                    self.start,
                    self.length,
                )

    def _team(self) -> str | None:
        return string(self._name("teamName", self._line.get("teamName")))

    def _item(self, item: InboxItem) -> None:
        """Add a message between agents."""
        self.records.append(
            item._replace(
                team_name=self._team(),
                ordinal=self._items,
                byte_offset=self.start,
                byte_length=self.length,
            )
        )
        self._items += 1

    # -- rows ------------------------------------------------------------------------------------

    def _say(self, kind: str, text: str, block: int, role: str, is_error: int = 0) -> None:
        """Add the row of one block."""
        if kind == "task_notification":
            self._notification(text[:MAX_TEXT])
        self._rows += 1
        self.add_row(kind, text, role, block, is_error)

    def _notification(self, text: str) -> None:
        """Read the task and the call that a `<task-notification>` names."""
        agent, call = inside(text, "task-id"), inside(text, "tool-use-id")
        if agent and call and len(agent) <= MAX_NAME and len(call) <= MAX_NAME:
            self._link(AgentLink(agent, call, BY_NOTIFICATION, self.start))

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

    # -- all of it -------------------------------------------------------------------------------

    def _wrong(self, field: str, value: object) -> None:
        """Record that a field is unusable; its column becomes NULL."""
        what = "missing" if value is None else f"unusable {type(value).__name__}"
        self._issue(f"{field}: {what}", 0)

    def finish(self) -> list[Record]:
        """Return all records: messages in the order of the file, then the others."""
        self._facts["sidechain_count"] = self._sidechain_count
        for records in (self._links, self._urls, self._snapshots, self._directories):
            self.records.extend(records.values())
        if self._relocation is not None:
            self.records.append(self._relocation)
        return super().finish()


def _api_error(line: JSONObject) -> str:
    """Return the text of an API error, or why there was no response."""
    error = mapping(line.get("error"))
    text = string(error.get("formatted")) or string(error.get("message"))
    text = text or obvious_text(error.get("error")) or string(error.get("type"))
    cause = mapping(error.get("cause")) or mapping(line.get("cause"))
    code = error.get("status") or string(cause.get("code"))
    return text or f"API error {code or ''}".strip()

"""Claude Code's stores besides its transcripts: their paths, and how the small ones are read.

```
history.jsonl, paste-cache/<16hex>.txt, paste-cache/<S>/<16hex>.txt   `history`
tasks/<list>/<N>.json                                     a task
todos/<S>-agent-<A>.json                                  a todo list; other names name no owner
teams/<team>/config.json, inboxes/<agent>.json            `teams`
plans/<slug>.md                                           `plans`
projects/<enc>/sessions-index.json, sessions/<pid>.json, jobs/<8hex>/state.json, settings.json
                                                          `lists`
projects/<enc>/memory/**/*.md, agent-memory/**/*.md        notes of the agent: `plans.memory`
loop.md, feedback/drafts/*, usage-data/**/*.json          other texts: `plans.note`
projects/<enc>/<S>/tool-results/**                        outputs too large for their transcript
file-history/<S>/<16hex>@v<N>                             copies of the user's files: never opened
```

Whatever else lies below a session is not opened and becomes an issue, unless it is a text with the
extension of one; so do `server-sessions.json`, `remote-agents/`, and reports in `usage-data/`.

`history.jsonl` grows; all others are rewritten as a whole, mostly by renaming a temporary file.
Names that begin with a dot, temporary names, locks and backups are ignored everywhere.

**A task** is one object; the stem of the file is its id. Both tasks of a dependency state it, in
`blocks` and in `blockedBy`; `owner`, `metadata` and, rarely, `activeForm` can be missing. `<list>`
is a session, a team, or a name that the user chose. A finished list is deleted.

```json
{"id":"3","subject":"Write loader","description":"JSONL first","activeForm":"Writing loader",
 "status":"in_progress","owner":"alice","blocks":["5"],"blockedBy":["2"],"metadata":{"phase":"1"}}
```

**A todo list** is an array of `{"content","status","activeForm"}`, in old versions
`{"content","status","priority","id"}`. `<A>` is `<S>` for the main agent. 98 % of the lists are
`[]`, and some files are empty: neither means anything. A list is rewritten as a whole, and `id`
counts from 1 in each version, so an item is identified by its content.

**A tool result** is any file; most are named after their call (`toolu_...`, `call_...`). For a
binary file, only name, size and type are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from ...fields import MAX_TEXT, json_text, number, string
from ...records import Issue, Record, Task, TaskDependency, Todo, ToolResultFile
from ...source import DOCUMENT, LOG, PRIVATE, UNKNOWN_CONTENT, UNREAD, Claim, Line
from ..jsonl import JSONObject
from ..plain_text import document_text
from ..reader import Reader
from . import history, lists, plans, teams
from .paths import in_project, is_session, uuid

_todo_file = re.compile(rf"({uuid})-agent-(.+)\.json", re.DOTALL).fullmatch
_paste_file = re.compile(r"([0-9a-f]{16})\.txt").fullmatch
_backup_file = re.compile(r"[0-9a-f]{16}@v\d+").fullmatch
_registry_file = re.compile(r"\d+\.json").fullmatch
_job_directory = re.compile(r"[0-9a-f]{8}").fullmatch
_task_file = re.compile(r"\d+\.json").fullmatch
_call_name = re.compile(r"(?:toolu|call|tooluse)_[\w-]+").fullmatch
_left_alone = re.compile(r"\..*|.*(?:\.lock|\.tmp(?:\..*)?|\.bak.*|~)", re.DOTALL).fullmatch

_TOOL_RESULT_DEPTH = 6
_DEPTH = 5  # directories of a path in other places
_TEXTS = (".md", ".txt", ".js")
_MORE = ("agent-memory", "feedback", "memory", "remote-agents", "usage-data")
UNKNOWN = "a file of a kind that this version does not read"
"""Reason of the issue of a file that nothing is known of."""
_MEDIA_TYPES = {
    "txt": "text/plain", "log": "text/plain", "md": "text/markdown", "json": "application/json",
    "jsonl": "application/jsonl", "csv": "text/csv", "html": "text/html", "xml": "text/xml",
    "yaml": "application/yaml", "pdf": "application/pdf", "jpg": "image/jpeg",
    "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    "svg": "image/svg+xml", "zip": "application/zip", "gz": "application/gzip",
    "mp3": "audio/mpeg", "wav": "audio/wav", "mp4": "video/mp4",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip


# -- paths ---------------------------------------------------------------------------------------


def is_store(path: list[str]) -> bool:
    """Does this path in a listing show that the directory is a home?"""
    match path:
        case ["todos", name]:
            return _todo_file(name) is not None
        case ["tasks", _, name]:
            return _task_file(name) is not None
        case ["teams", _, "config.json"]:
            return True
        case ["teams", _, "inboxes", name]:
            return name.endswith(".json") and not is_left_alone(name)
    return False


def is_left_alone(name: str) -> bool:
    """Is this the name of a lock, a backup or a temporary file?"""
    return _left_alone(name) is not None


def descends(parts: tuple[str, ...]) -> bool:
    """Can the directory `parts` contain files of these stores?"""
    match parts:
        case ("tasks" | "todos" | "teams" | "plans" | "paste-cache" | "sessions",):
            return True
        case ("paste-cache", session) if is_session(session):
            return True
        case ("file-history" | "jobs",) | ("tasks" | "teams" | "file-history" | "jobs", _):
            return True
        case ("teams", _, "inboxes"):
            return True
        case ("projects", _, _, "tool-results", *_):
            return len(parts) <= _TOOL_RESULT_DEPTH
        case ("projects", _, session, *_) if session == "memory" or is_session(session):
            return len(parts) <= _DEPTH and not is_left_alone(parts[-1])
        case (first, *_) if first in _MORE:
            return len(parts) < _DEPTH and not is_left_alone(parts[-1])
    return False


def claim(parts: tuple[str, ...]) -> Claim | None:
    """Return the claim of a path, None if it is in none of these stores."""
    if is_left_alone(parts[-1]):
        return None
    if parts[0] == "projects":
        return _in_project(parts)
    kind = _at_top(parts)
    if kind is None:
        return None
    team = teams.team_key(parts[1]) if kind in ("team", "inbox") else None
    return Claim("claude", kind, team_key=team, parts=parts, is_doubtful=kind == "history")


def _in_project(parts: tuple[str, ...]) -> Claim | None:
    match parts:
        case (_, directory, "sessions-index.json"):
            return in_project("session_index", directory, None, parts=parts)
        case (_, directory, "memory", *_, name) if name.endswith(".md"):
            return in_project("memory", directory, None, parts=parts)
        case (_, directory, "loop.md"):
            return in_project("note", directory, None, parts=parts)
        case (_, directory, session, "tool-results", *below) if below:
            return in_project("tool_result", directory, session, parts=tuple(below))
        case (_, directory, session, *_, name) if len(parts) > 3 and is_session(session):
            kind = "note" if name.endswith(_TEXTS) else "unknown"
            return in_project(kind, directory, session, parts=parts)
    return None


def _at_top(parts: tuple[str, ...]) -> str | None:  # noqa: C901
    """Return the kind of a file, with one line for each path."""
    match parts:
        case ("history.jsonl",):
            return "history"
        case ("settings.json",):
            return "settings"
        case ("tasks", _, name) if name.endswith(".json"):
            return "task"
        case ("todos", name) if name.endswith(".json"):
            return "todos"
        case ("teams", _, "config.json"):
            return "team"
        case ("teams", _, "inboxes", name) if name.endswith(".json"):
            return "inbox"
        case ("plans", name) if name.endswith(".md"):
            return "plan"
        case ("paste-cache", name) | ("paste-cache", _, name) if _paste_file(name):
            return "paste"
        case ("file-history", _, name) if _backup_file(name):
            return "file_backup"
        case ("sessions", name) if _registry_file(name):
            return "registry"
        case ("jobs", directory, "state.json") if _job_directory(directory):
            return "job"
        case ("agent-memory" | "memory", *_, name) if name.endswith(".md"):
            return "memory"
        case ("loop.md",):
            return "note"
        case ("feedback", "drafts", *_, name) | ("usage-data", *_, name) if name.endswith(
            (*_TEXTS, ".json")
        ):
            return "note"
        case ("server-sessions.json",):
            return "unknown"
        case (first, _, *_) if first in _MORE:
            return "unknown"
    return None


# -- contents ------------------------------------------------------------------------------------

Parser = Callable[[Claim, Iterable[Line]], list[Record]]


def _tasks(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    reader = Reader(claim)
    list_key = list_name(claim.parts[1])
    key = claim.parts[2].removesuffix(".json")
    for value in reader.document(lines):
        reader.records.append(
            Task(
                key,
                list_key,
                reader.text(value, "subject"),
                reader.text(value, "description"),
                reader.text(value, "status"),
                reader.text(value, "owner"),
                reader.text(value, "activeForm"),
                _metadata(reader, value),
                number(key),
            )
        )
        edges = [(other, key) for other in reader.scalars(value, "blocks")]
        edges += [(key, other) for other in reader.scalars(value, "blockedBy")]
        reader.records.extend(TaskDependency(list_key, *edge) for edge in dict.fromkeys(edges))
    return reader.finish()


def _metadata(reader: Reader, value: JSONObject) -> str | None:
    metadata = reader.mapping(value, "metadata")
    if not metadata:
        return None
    return json_text(metadata, lambda: reader.exact("metadata", metadata))


def list_name(directory: str) -> str:
    """Return the key of a task list: a session's uuid in lower case, other names unchanged."""
    return directory.lower() if re.fullmatch(uuid, directory) else directory


def _todos(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    reader = Reader(claim)
    name = _todo_file(claim.parts[1])
    session, agent = (name[1].lower(), name[2]) if name else (None, None)
    agent = agent.lower() if agent and re.fullmatch(uuid, agent) else agent
    equals: Counter[str | None] = Counter()
    for position, value in reader.array(lines, is_empty_allowed=True):
        content = reader.text(value, "content")
        reader.records.append(
            Todo(
                position,
                content,
                reader.text(value, "status"),
                reader.text(value, "priority"),
                reader.text(value, "activeForm"),
                session,
                agent,
                equals[content],
            )
        )
        equals[content] += 1
    return reader.finish()


def _tool_result(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read an output; a binary one has no lines."""
    name = "/".join(claim.parts)
    stem, _, extension = claim.parts[-1].partition(".")
    media_type = _MEDIA_TYPES.get(extension.rpartition(".")[2].lower())
    call = stem if len(claim.parts) == 1 and _call_name(stem) else None
    text: str | None = None
    records: list[Record] = []
    for line in lines:
        text, records = document_text(line)
        text = text[:MAX_TEXT]
        media_type = media_type or "text/plain"
    media_type = media_type or "application/octet-stream"
    return [ToolResultFile(name, media_type, text, claim.session_key, string(call)), *records]


def _unknown(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    return [Issue(UNKNOWN, 0, None, 0, 0)]


def _nothing(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    return []


STORES: dict[str, tuple[str, Parser]] = {
    "task": (DOCUMENT, _tasks),
    "todos": (DOCUMENT, _todos),
    "team": (DOCUMENT, teams.team),
    "inbox": (DOCUMENT, teams.inbox),
    "plan": (DOCUMENT, plans.plan),
    "memory": (DOCUMENT, plans.memory),
    "note": (DOCUMENT, plans.note),
    "history": (LOG, history.history),
    "paste": (DOCUMENT, history.paste),
    "session_index": (DOCUMENT, lists.index),
    "registry": (PRIVATE, lists.registry),
    "job": (PRIVATE, lists.job),
    "settings": (PRIVATE, lists.settings),
    "tool_result": (UNKNOWN_CONTENT, _tool_result),
    "file_backup": (UNREAD, _nothing),
    "unknown": (UNREAD, _unknown),
}
"""How the files of each kind are read, and the function that parses them."""

"""TheAssociate: hook events, notes, summaries and task snapshots around Claude Code sessions.

```
theassociate/hook-events.jsonl                               hook events, in the order of the file
theassociate/notes/<id>.json                                 notes without a project
theassociate/projects/<enc2>/notes/<id>.json                 notes of a project
theassociate/projects/<enc2>/summaries/<S>-summary-NNN.md    summaries of a session
theassociate/projects/<enc2>/task-snapshots/<team>.json      tasks as they were last seen
theassociate/projects/<enc2>/plan-links.json                 which plan belongs to which session
```

Early builds kept the same files in the home of Claude Code itself: `ide/hook-events.jsonl`,
`notes/<id>.json`, `projects/<enc>/notes/<id>.json`, `projects/<enc>/<S>-summary-NNN.md`. So a home
of Claude Code with the first of these is also a root of this source.

`<enc2>` is the project's directory with `/`, `\\`, `:`, `.` and `_` as hyphens, without those at
the end. The first versions kept `.` and `_`, and Claude Code itself replaces everything but letters
and digits. Reduced to the last form, all three are equal, on Windows and on Unix.

**Hook events.** The hook appends its input, so a line is the whole payload of the hook. Only
`hook_event_name` and `session_id` are always there. There is no time and no id. Parallel processes
append without a lock, so lines can be torn or glued.

```json
{"session_id":"0b7c","transcript_path":"/home/ada/.claude/projects/-srv-demo/0b7c.jsonl",
 "cwd":"/srv/demo","hook_event_name":"SessionStart","source":"startup","model":"claude-sonnet-5"}
```

The view `active_sessions` replays them as the application does.

**Notes** are `{"id","title","content","projectPath","fileRefs":[{"filePath","lineStart","lineEnd",
"quote"}],"issueRefs":[{"provider","key","url","title"}],"created","modified"}`, times in
milliseconds; references become part of the text, and are also kept as JSON. **Task snapshots**
outlive the tasks: `{"teamName","updatedAt","tasks":{"1":{"firstSeen","lastSeen",
"statusChanges":[{"status","at"}],"snapshot":{...}}}}`, or the inner object alone. **Plan links**
map plans to sessions, or sessions to plans, as texts.

`watcher-state.json` (a cursor that can be ahead of what was processed), `ide-settings.json` and
`hook.js` are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..fields import bounded_json, json_text, left_over, mapping, number, string
from ..paths import comparable_name
from ..records import Document, HookEvent, Link, Record, Task, TaskChange, TaskDependency
from ..source import DOCUMENT, LOG, Claim, Line, Listing, Recognition, Source, parts_of
from .claude.stores import homes
from .reader import JSONObject, Reader, complete_prefix, document_text, folded, nothing_in

_summary = re.compile(r"(.+)-summary-(\d+)\.md", re.DOTALL).fullmatch
_session = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}").search
_NOTE_COLUMNS = ("title", "content", "projectPath", "modified")
_CHANGE = {"status", "at"}
_TASK_COLUMNS = (
    *("subject", "description", "status", "owner", "activeForm", "metadata"),
    *("blocks", "blockedBy"),
)
_not_alphanumeric = re.compile(r"[^A-Za-z0-9]")


def _is_note(content: bytes) -> bool:
    return all(f'"{key}"'.encode() in content for key in ("id", *_NOTE_COLUMNS, "fileRefs"))


class Associate(Source):
    """The source of kind `associate`."""

    name = "associate"
    label = "TheAssociate"
    known_lines = frozenset(
        [
            *("SessionStart", "SessionEnd", "Stop", "StopFailure", "SubagentStart", "SubagentStop"),
            *("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
            *("PermissionRequest", "PermissionDenied", "Notification", "PreCompact", "PostCompact"),
            *("TaskCreated", "TaskCompleted", "TeammateIdle", "Setup", "InstructionsLoaded"),
            *("ConfigChange", "CwdChanged", "FileChanged", "WorktreeCreate", "WorktreeRemove"),
            *("Elicitation", "ElicitationResult"),
        ]
    )
    directory_in_home = "theassociate"

    def default_roots(self, environment: Mapping[str, str], home: str | None) -> list[str]:
        """It writes to the default home of Claude Code, even if Claude Code uses another one."""
        around = [*homes(environment, home), *([f"{home}/.claude"] if home is not None else [])]
        return [f"{place}/{self.directory_in_home}" for place in around]

    def recognises(self, listing: Listing) -> Recognition:
        """A home has a file that only this program writes, or is in the home of Claude Code.

        Without the hook events, which can be deleted, its other files show it.
        """
        is_guest = False
        for path in listing:
            match path.split("/"):
                case ["hook-events.jsonl"]:
                    return Recognition.CERTAIN
                case ["watcher-state.json"] if b'"hook_offsets"' in listing.content(path):
                    return Recognition.CERTAIN
                case ["projects", _, "plan-links.json"]:
                    return Recognition.CERTAIN
                case ["projects", _, "summaries" | "task-snapshots", name] if self.claim(
                    parts_of(path)
                ):
                    return Recognition.CERTAIN
                case ["ide", "hook-events.jsonl"]:
                    return Recognition.GUEST
                case ["projects", _, name] if _summary(name):
                    is_guest = True
                case ["notes", _] | ["projects", _, "notes", _] if not is_guest:
                    is_guest = _is_note(listing.content(path))
                case ["projects", _, name] if name.endswith(".jsonl"):
                    break  # no need to list a large home of Claude Code
        return Recognition.GUEST if is_guest else Recognition.NO

    def descends(self, parts: tuple[str, ...]) -> bool:
        """Only directories of the layout are walked."""
        match parts:
            case ("ide",) | ("notes",) | ("projects",) | ("projects", _):
                return True
            case ("projects", _, "notes" | "summaries" | "task-snapshots"):
                return True
        return False

    def claim(self, parts: tuple[str, ...]) -> Claim | None:
        """The claim follows from the position in the layout."""
        kind: str | None = None
        match parts:
            case ("hook-events.jsonl",) | ("ide", "hook-events.jsonl"):
                kind = "hook_events"
            case ("projects", _, "plan-links.json"):
                kind = "plan_links"
            case ("projects", _, "task-snapshots", name) if name.endswith(".json"):
                kind = "task_snapshot"
            case ("projects", _, "summaries", name) | ("projects", _, name) if _summary(name):
                kind = "summary"
            case ("notes", name) | ("projects", _, "notes", name) if name.endswith(".json"):
                kind = "note"
        return Claim(self.name, kind, parts=parts) if kind else None

    def shape(self, claim: Claim) -> str:
        """Events are appended, all other files are rewritten as a whole."""
        return LOG if claim.kind == "hook_events" else DOCUMENT

    def complete_prefix(self, claim: Claim, tail: bytes) -> int:
        """Whole objects at the start of an unterminated tail can be read."""
        return complete_prefix(tail)

    def parse(self, claim: Claim, lines: Iterable[Line]) -> list[Record]:
        """Turn lines into records; a document is one line."""
        if claim.kind == "summary":
            return list(_summary_records(claim, lines))
        reader = Reader(claim)
        if claim.kind == "hook_events":
            for value in reader.objects(lines, _is_event, type_key="hook_event_name"):
                reader.records.append(_event(reader, value))
            return reader.finish()
        read = {"note": _note, "task_snapshot": _snapshot}.get(claim.kind, _plan_links)
        for value in reader.document(lines):
            reader.records.extend(read(reader, value))
        return reader.finish()


def _project_key(claim: Claim) -> str | None:
    """Return the project that the path names, in the form that is compared."""
    if claim.parts[0] != "projects":
        return None
    return folded_directory(claim.parts[1])


def folded_directory(directory: str) -> str:
    """Return a directory in the form that is the same for all its encodings."""
    return comparable_name(_not_alphanumeric.sub("-", directory).rstrip("-"))


# -- hook events ---------------------------------------------------------------------------------


def _is_event(value: JSONObject) -> bool:
    return "hook_event_name" in value


def _event(reader: Reader, value: JSONObject) -> HookEvent:
    session = reader.text(value, "session_id")
    if session is None and (found := _session(reader.text(value, "transcript_path") or "")):
        session = found[0]
    return HookEvent(
        reader.text(value, "hook_event_name"),
        folded(session) if session else None,
        reader.text(value, "agent_id"),
        reader.text(value, "agent_type"),
        reader.text(value, "cwd"),
        reader.text(value, "model"),
        reader.text(value, "source"),
        reader.text(value, "reason"),
        reader.text(value, "tool_name"),
        bounded_json(value),
        reader.start,
        reader.length,
    )


# -- notes and summaries -------------------------------------------------------------------------


def _note(reader: Reader, value: JSONObject) -> Iterator[Record]:
    content = reader.text(value, "content")
    title = reader.text(value, "title")
    if content is None and title is None:
        reader.keep(left_over(value))
        return
    references = [_file_reference(item) for item in reader.items(value, "fileRefs")]
    references += [_issue_reference(item) for item in reader.items(value, "issueRefs")]
    parts = [content or "", "\n".join(filter(None, references))]
    path = reader.text(value, "projectPath")
    yield Document(
        "note",
        title or reader.claim.parts[-1].removesuffix(".json"),
        "\n\n".join(part for part in parts if part),
        "/".join(reader.claim.parts),
        project_path=path,
        modified_at=reader.time(value, "modified") or reader.time(value, "created"),
        project_key=folded_directory(path) if path else _project_key(reader.claim),
        extra=left_over(value, _NOTE_COLUMNS),
    )


def _file_reference(item: JSONObject) -> str:
    lines = [str(item[key]) for key in ("lineStart", "lineEnd") if item.get(key) is not None]
    place = ":".join(filter(None, (string(item.get("filePath")), "-".join(dict.fromkeys(lines)))))
    quote = string(item.get("quote"))
    return f"{place}: {quote}" if quote else place


def _issue_reference(item: JSONObject) -> str:
    return " ".join(filter(None, (string(item.get(key)) for key in ("key", "title", "url"))))


def _summary_records(claim: Claim, lines: Iterable[Line]) -> Iterator[Record]:
    (line,) = lines
    text, records = document_text(line)
    if not text.strip():
        yield from nothing_in(line, "empty")
        return
    yield from records
    name = claim.parts[-1]
    found = _summary(name)
    session = found[1] if found else name
    headings = (row[2:].strip() for row in text.split("\n") if row.startswith("# "))
    yield Document(
        "summary",
        next(filter(None, headings), name.removesuffix(".md")),
        text,
        "/".join(claim.parts),
        session_key=folded(session),
        project_key=_project_key(claim),
    )


# -- plans and tasks -----------------------------------------------------------------------------


def _plan_links(reader: Reader, value: JSONObject) -> Iterator[Record]:
    for left in value:
        right = reader.text(value, left)
        if right is None:
            continue
        is_session_first = _session(left) is not None and _session(right) is None
        session, plan = (left, right) if is_session_first else (right, left)
        yield Link("plan", plan, None, None, 0, reader.length, folded(session))


def _snapshot(reader: Reader, value: JSONObject) -> Iterator[Record]:
    tasks = value.get("tasks")
    name = reader.name(value, "teamName") or reader.claim.parts[-1].removesuffix(".json")
    tasks = tasks if isinstance(tasks, dict) and "snapshot" not in tasks else value
    rest: JSONObject = {}
    for key, entry in tasks.items():
        record = mapping(entry)
        if "snapshot" in record:
            yield from _task(reader, name, key, record)
            rest[key] = _rest_of_task(key, record)
        else:
            rest[key] = entry
    if tasks is not value:
        rest = {**value, "tasks": {key: left for key, left in rest.items() if left}}
    reader.keep(left_over(rest))


def _rest_of_task(key: str, record: JSONObject) -> JSONObject:
    """Return what a record of a task says that is not in the task's row and its changes."""
    taken = {"snapshot", "subject"}
    changes = record.get("statusChanges")
    if isinstance(changes, list) and all(mapping(item).keys() <= _CHANGE for item in changes):
        taken.add("statusChanges")
    own = ("id", key)
    rest = {
        name: item for name, item in record.items() if name not in taken and (name, item) != own
    }
    snapshot = {
        name: item
        for name, item in mapping(record.get("snapshot")).items()
        if name not in _TASK_COLUMNS and (name, item) != own
    }
    return {**rest, "snapshot": snapshot} if snapshot else rest


def _task(reader: Reader, team: str, key: str, record: JSONObject) -> Iterator[Record]:
    task = reader.mapping(record, "snapshot")
    metadata = task.get("metadata")
    yield Task(
        key,
        team,
        reader.text(task, "subject") or reader.text(record, "subject"),
        reader.text(task, "description"),
        reader.text(task, "status"),
        reader.text(task, "owner"),
        reader.text(task, "activeForm"),
        json_text(metadata) if isinstance(metadata, dict) else None,
        number(key),
    )
    for other in reader.scalars(task, "blockedBy"):
        yield TaskDependency(team, key, other)
    for other in reader.scalars(task, "blocks"):
        yield TaskDependency(team, other, key)
    before: str | None = None
    for change in reader.items(record, "statusChanges"):
        status = reader.text(change, "status")
        yield TaskChange(team, key, "status", before, status, reader.time(change, "at"), 0)
        before = status

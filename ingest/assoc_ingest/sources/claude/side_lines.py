"""Lines of a transcript beside its messages: links, versions of files, tasks from the queue.

```json
{"type":"pr-link","prUrl":"https://example.org/demo/pull/3","prRepository":"ada/demo"}
{"type":"frame-link","frameUrl":"https://example.org/frame/1","title":"Menus"}
{"type":"worktree-state","worktreeSession":{"worktreePath":"/srv/demo-tidy",
 "worktreeBranch":"tidy","originalCwd":"/srv/demo"}}
{"type":"file-history-snapshot","messageId":"m1","snapshot":{"trackedFileBackups":{"a.ts":
 {"version":1,"backupTime":"2026-01-05T10:00:00.000Z","backupFileName":"0f1e2d3c4b5a6978@v1"}}}}
{"type":"file-history-delta","messageId":"m2","trackingPath":"a.ts","backup":{"version":2}}
{"type":"continued-in","continuedInSessionId":"1c8d3a5f-2222-4333-9444-555566667777"}
{"type":"derived-from","sessions":[{"type":"fork","id":"2d9e","via":"handoff"}]}
```
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from ...fast_json import orjson
from ...fields import MAX_NAME, integer, mapping, string
from ...records import FileSnapshot, Link
from ...when import utc
from ..jsonl import JSONObject
from .paths import folded
from .statements import Place
from .usage import Complain

LINKS = ("pr-link", "frame-link", "worktree-state")
"""Types of lines that state a link."""

LINEAGE = ("continued-in", "derived-from")
"""Types of lines that name the sessions before and after this one."""

SNAPSHOTS = ("file-history-snapshot", "file-history-delta")
"""Types of lines that state versions of files."""


def link(kind: str, place: Place, complain: Complain) -> Link | None:
    """Return the link that a line states, None if it has none."""
    line = place.line
    if kind == "pr-link":
        return _link("pull_request", line.get("prUrl"), line.get("prRepository"), place, complain)
    if kind == "frame-link":
        return _link("frame", line.get("frameUrl"), line.get("title"), place, complain)
    state = mapping(line.get("worktreeSession"))
    path, branch = state.get("worktreePath"), state.get("worktreeBranch")
    found = _link("worktree", path, branch, place, complain)
    return found and found._replace(origin=string(state.get("originalCwd")))


def lineage(place: Place, complain: Complain) -> Iterator[Link]:
    """Yield the sessions that a line names, as links whose address is the key of a session."""
    line, kind = place.line, "derived_from"
    position = (place.byte_offset, place.byte_length)
    stated: list[JSONObject]
    if line.get("type") == "continued-in":
        kind, stated = "continued_in", [{"id": line.get("continuedInSessionId")}]
    else:
        sessions = line.get("sessions")
        if not isinstance(sessions, list):
            complain("sessions", sessions)
            return
        stated = [mapping(session) for session in sessions]
    for session in stated:
        key = string(session.get("id"))
        if key is None or len(key) > MAX_NAME:
            complain("session", key)
            continue
        how = [text for name in ("type", "via") if (text := string(session.get(name)))]
        yield Link(kind, folded(key), " via ".join(how) or None, place.timestamp, *position)


def _link(kind: str, url: object, title: object, place: Place, complain: Complain) -> Link | None:
    if isinstance(url, str) and url:
        position = (place.byte_offset, place.byte_length)
        return Link(kind, url, string(title), place.timestamp, *position)
    if url:  # it is empty when the session leaves its worktree
        complain("url", url)
    return None


def snapshots(
    place: Place, known: Container[tuple[str, int | None]], complain: Complain
) -> Iterator[FileSnapshot]:
    """Yield the versions of files in a line; a snapshot repeats earlier ones, which are `known`.

    A delta has the file that changed.
    """
    line = place.line
    tracked: list[tuple[object, object, object]] = []
    if "trackingPath" in line:
        tracked.append((line["trackingPath"], line.get("backup"), line.get("messageId")))
    snapshot = mapping(line.get("snapshot"))
    message = line.get("messageId") or snapshot.get("messageId")
    backups = mapping(snapshot.get("trackedFileBackups"))
    tracked += [(path, backup, message) for path, backup in backups.items()]
    for path, backup, message in tracked:
        state = mapping(backup)
        version = integer(state.get("version"))
        if not isinstance(path, str) or not isinstance(backup, dict):
            complain("backup", backup)
        elif (path, version) not in known:
            yield FileSnapshot(
                path,
                version,
                utc(state.get("backupTime")),
                string(state.get("backupFileName")),
                string(message),
                place.byte_offset,
                place.byte_length,
            )


def queued_task(text: str) -> JSONObject | None:
    """Return the task that a JSON object in the queue announces, None if there is none."""
    if not text.startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) and "task_id" in value else None

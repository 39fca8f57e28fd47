"""What Claude Code says about its sessions outside their transcripts.

**projects/<enc>/sessions-index.json** (until about 2.1.3x): one object. Half of its entries belong
to deleted sessions, and a quarter of the sessions are missing, so it is only a hint at titles and
at what is gone. All fields except `sessionId` are optional; `customTitle`, `prUrl` and
`prRepository` are rare.

```json
{"version":1,"originalPath":"/srv/demo","entries":[{"sessionId":"0b7c","fileMtime":1768905000000,
 "firstPrompt":"rename the button","summary":"Button rename","messageCount":12,"gitBranch":"",
 "created":"2026-01-20T10:00:00.000Z","modified":"2026-01-20T10:20:00.000Z",
 "projectPath":"/srv/demo","isSidechain":false}]}
```

**sessions/<pid>.json**: a session that is open now, with `status` idle, busy, shell or waiting. It
is deleted at exit, and stale after a crash. **jobs/<8hex>/state.json**: a session in the
background, with `state` working, blocked or done. Both contain secrets (`bridgeSessionId`,
`messagingSocketPath`; `providerEnv`), so only the keys below and those in `_REGISTRY` and `_JOB`,
which are kept as JSON, are read, and their bytes are not kept.

```json
{"pid":4711,"sessionId":"0b7c","cwd":"/srv/demo","startedAt":1771500000000,"kind":"interactive",
 "status":"busy","updatedAt":1771500090000,"name":"tidy"}
{"state":"done","intent":"tidy menus","sessionId":"0b7c","cwd":"/srv/demo","output":{"result":"ok"},
 "createdAt":"2026-02-19T11:20:00.000Z","updatedAt":"2026-02-19T11:25:00.000Z",
 "worktreePath":"/srv/demo-tidy","worktreeBranch":"tidy","name":"tidy","detail":"running tests"}
```

**settings.json**: only `cleanupPeriodDays`, after which transcripts are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...fields import left_over
from ...records import Link, ProjectEntry, Record, Retention, SessionEntry
from ...source import Claim, Line
from ..jsonl import JSONObject
from ..reader import Reader
from .paths import folded, is_encoded

_INDEX_COLUMNS = (
    "sessionId", "customTitle", "summary", "firstPrompt", "created", "modified", "messageCount",
    "gitBranch", "projectPath", "isSidechain", "prUrl", "prRepository",
)  # fmt: skip
_REGISTRY = (
    "pid", "version", "kind", "entrypoint", "procStart", "nameSource", "waitingFor", "tmux",
    "peerProtocol",
)  # fmt: skip
_JOB = (
    "detail", "intent", "resumeSessionId", "originCwd", "firstTerminalAt", "linkScanPath",
    "linkScanOffset", "backend", "cliVersion",
)  # fmt: skip


def index(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read an index of a project's sessions."""
    reader = Reader(claim)
    for value in reader.document(lines):
        entries = reader.items(value, "entries")
        paths = [reader.text(value, "originalPath")]
        paths += [reader.text(entry, "projectPath") for entry in entries]
        reader.records.extend(_project(claim, [path for path in paths if path]))
        for entry in entries:
            reader.records.extend(_index_entry(reader, entry))
        reader.keep(left_over(value, ("entries",)))
    return reader.finish()


def _project(claim: Claim, paths: list[str]) -> Iterator[Record]:
    """Yield the project's path: the one that its directory is named after, else the first."""
    fitting = [path for path in paths if is_encoded(path, claim.project_key)]
    if claim.project_key and paths:
        yield ProjectEntry(claim.project_key, None, (fitting or paths)[0])


def _index_entry(reader: Reader, entry: JSONObject) -> Iterator[Record]:
    session = _session(reader, entry)
    if session is None:
        return
    yield SessionEntry(
        session,
        "index",
        title=reader.text(entry, "customTitle"),
        summary=reader.text(entry, "summary"),
        first_prompt=reader.text(entry, "firstPrompt"),
        started_at=reader.time(entry, "created"),
        ended_at=reader.time(entry, "modified") or reader.time(entry, "fileMtime"),
        message_count=reader.whole(entry, "messageCount"),
        git_branch=reader.text(entry, "gitBranch"),
        cwd=reader.text(entry, "projectPath"),
        is_sidechain=reader.flag(entry, "isSidechain"),
        extra=left_over(entry, _INDEX_COLUMNS),
    )
    url = reader.text(entry, "prUrl")
    if url is not None:
        repository = reader.text(entry, "prRepository")
        yield Link("pull_request", url, repository, None, 0, reader.length, session)


def _session(reader: Reader, value: JSONObject) -> str | None:
    session = reader.text(value, "sessionId")
    if session is None:
        reader.note("sessionId: missing")
    return folded(session) if session else None


def registry(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read what the registry says about an open session."""
    reader = Reader(claim)
    for value in reader.document(lines):
        session = _session(reader, value)
        if session is not None:
            entry = SessionEntry(
                session,
                "registry",
                title=reader.text(value, "name"),
                started_at=reader.time(value, "startedAt"),
                ended_at=reader.time(value, "updatedAt"),
                cwd=reader.text(value, "cwd"),
                status=reader.text(value, "status"),
                extra=_allowed(value, _REGISTRY),
            )
            reader.records.append(entry)
    return reader.finish()


def job(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the state of a session that runs in the background."""
    reader = Reader(claim)
    for value in reader.document(lines):
        session = _session(reader, value)
        if session is None:
            continue
        output = reader.mapping(value, "output")
        entry = SessionEntry(
            session,
            "job",
            title=reader.text(value, "name") or reader.text(value, "intent"),
            summary=reader.text(output, "result") or reader.text(value, "detail"),
            started_at=reader.time(value, "createdAt"),
            ended_at=reader.time(value, "updatedAt") or reader.time(value, "firstTerminalAt"),
            cwd=reader.text(value, "cwd"),
            status=reader.text(value, "state"),
            extra=_allowed(value, _JOB),
        )
        reader.records.append(entry)
        worktree = reader.text(value, "worktreePath")
        if worktree is not None:
            branch = reader.text(value, "worktreeBranch")
            origin = reader.text(value, "originCwd")
            reader.records.append(
                Link("worktree", worktree, branch, None, 0, reader.length, session, origin)
            )
    return reader.finish()


def _allowed(value: JSONObject, keys: tuple[str, ...]) -> str | None:
    """Return the values of these keys of a document with secrets, as JSON text."""
    return left_over({key: value.get(key) for key in keys})


def settings(claim: Claim, lines: Iterable[Line]) -> list[Record]:
    """Read the number of days after which Claude Code deletes transcripts."""
    reader = Reader(claim)
    for value in reader.document(lines):
        reader.records.append(Retention(reader.whole(value, "cleanupPeriodDays")))
    return reader.finish()

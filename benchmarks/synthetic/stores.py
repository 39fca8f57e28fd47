"""The stores beside the transcripts: history, todos, tasks, plans, indexes, backups, secrets.

Teams and workflows have their documents from ``groups``; everything else that lies in a Claude
home is written here, from what the sessions left.
"""

from __future__ import annotations

import hashlib

import orjson

from . import shapes
from .home import SECRET, Home, Json, Session, stamp

_NEVER_OPENED = (
    ".credentials.json",
    ".claude.json",
    "settings.json",
    "shell-snapshots/snapshot-zsh-1.sh",
    "session-env/0/hook-0.sh",
    "debug/latest.txt",
    "telemetry/1p_failed_events.json",
)
_FOREIGN = (
    "transcripts/ses_0001.jsonl",
    "homunculus/observations.jsonl",
    "plugins/cache/listing.jsonl",
    "statsig/statsig.cached.json",
    "backups/home/projects/-srv-old/0b7c2f4e-0000-4000-a000-000000000000.jsonl",
)


def write_session_stores(home: Home, session: Session) -> None:
    """What one session leaves outside its transcript."""
    _todos(home, session)
    _tasks(home, session)
    _side_directory(home, session)
    _backups(home, session)
    if session.version >= (2, 0, 55) and home.ledger.due("plan", 0.10, spread=1):
        text = f"# {home.words.title(5)}\n\n{home.words.prose(home.length(shapes.PLAN))}\n"
        text += f"\n```python\n{home.words.code(400)}\n```\n\n## {home.words.title()}\n"
        home.write(f"plans/{session.slug}.md", text.encode(), session.end)
    if session.version >= (2, 1, 200) and home.ledger.due("live session", 0.02, spread=1):
        _registry(home, session)


def write_home_stores(home: Home) -> None:
    """What the home has once: history, indexes, memory, and files no reader may open."""
    _history(home)
    newest = home.sessions[-1]
    folders: dict[str, list[Session]] = {}
    for session in home.sessions:
        folders.setdefault(session.folder, []).append(session)
    for folder, sessions in folders.items():
        if home.ledger.due("index", 0.25, spread=1):
            _index(home, folder, sessions)
        if home.ledger.due("memory", 0.15, spread=2):
            text = f"# Memory\n\n{home.words.prose(1_200)}\n"
            home.write(f"{folder}/memory/MEMORY.md", text.encode(), newest.end)
    for path in _NEVER_OPENED:
        home.write_json(path, {"token": SECRET, "cleanupPeriodDays": 30}, newest.end)
    for path in _FOREIGN:
        line = {"type": "user", "sessionId": "ses_0001", "message": {"content": "foreign"}}
        home.write(path, orjson.dumps(line) + b"\n", newest.end)


def _todos(home: Home, session: Session) -> None:
    """One file per agent, nearly always empty lists."""
    if session.version > (2, 1, 138):
        return
    for agent in [session.id, *session.agents[:3]]:
        items: list[Json] = []
        if home.ledger.due("todos", 1 - shapes.TODOS_EMPTY):
            items = session.todos or [_todo(home), {**_todo(home), "priority": "high", "id": "2"}]
        home.write_json(f"todos/{session.id}-agent-{agent}.json", items, session.end)


def _todo(home: Home) -> Json:
    return {"content": home.words.title(5), "status": "pending", "activeForm": "Doing it"}


def _tasks(home: Home, session: Session) -> None:
    """A list that is still open; a finished one leaves only its high-water mark."""
    if not session.tasks:
        return
    folder = f"tasks/{session.id}"
    home.write(f"{folder}/.highwatermark", str(len(session.tasks)).encode(), session.end)
    home.write(f"{folder}/.lock", b"", session.end)
    if home.ledger.due("open task list", 0.35, spread=1):
        for task in session.tasks:
            document = {**task, "owner": "alice"} if home.chance(0.3) else task
            home.write_json(f"{folder}/{task['id']}.json", document, session.end, indent=True)


def _side_directory(home: Home, session: Session) -> None:
    """Half of all session directories have no transcript any more."""
    if not session.agents or session.version < (2, 1, 3):
        return
    gone = f"{session.folder}/{home.uuid()}"
    text = home.words.output(min(home.longest, shapes.TOOL_RESULT_FILE.draw(home.rng)))
    name = home.token("toolu_01")
    home.write(f"{gone}/tool-results/{name}.txt", text.encode(), session.end)
    if home.ledger.due("binary tool result", 0.05, spread=2):
        data = b"%PDF-1.7\x00" + home.rng.randbytes(2_000)
        home.write(f"{gone}/tool-results/webfetch-1-{home.words.hex(6)}.pdf", data, session.end)


def _backups(home: Home, session: Session) -> None:
    """Copies of the user's files, for some of the snapshots."""
    if session.backups and home.ledger.due("file history", 0.2, spread=1):
        for _, name in session.backups[:3]:
            text = home.words.code(home.length(shapes.CONTEXT_FILE))
            home.write(f"file-history/{session.id}/{name}", text.encode(), session.end)


def _registry(home: Home, session: Session) -> None:
    """A session that is open now, and a background job."""
    pid = home.rng.randrange(1_000, 60_000)
    entry: Json = {"pid": pid, "sessionId": session.id, "cwd": session.cwd, "kind": "interactive"}
    entry |= {"startedAt": int(session.start * 1000), "version": session.version_text}
    entry |= {"entrypoint": session.entrypoint, "status": "idle", "bridgeSessionId": SECRET}
    home.write_json(f"sessions/{pid}.json", entry, session.end)
    job: Json = {"state": "done", "intent": home.words.title(6), "sessionId": session.id}
    job |= {"cwd": session.cwd, "createdAt": stamp(session.start), "updatedAt": stamp(session.end)}
    job |= {"output": {"result": home.words.prose(120)}, "cliVersion": session.version_text}
    job["providerEnv"] = {"KEY": SECRET}
    home.write_json(f"jobs/{session.id[:8]}/state.json", job, session.end)


def _history(home: Home) -> None:
    """Every prompt once more, in the order of time; long pastes lie in files of their own."""
    entries = sorted(
        (when, text, session.cwd, session.id, session.version)
        for session in home.sessions
        for when, text in session.prompts
    )
    lines = b""
    for when, text, cwd, session_id, version in entries:
        document: Json = {"display": text, "pastedContents": {}, "timestamp": int(when * 1000)}
        document["project"] = cwd
        if version >= (2, 0, 31):
            document["sessionId"] = session_id
        if home.ledger.due("paste", 0.06):
            _paste(home, document, when)
        line = orjson.dumps(document) + b"\n"
        lines += line * (2 if home.ledger.due("history repeated", shapes.HISTORY_REPEATED) else 1)
    home.write("history.jsonl", lines, entries[-1][0] if entries else 0)


def _paste(home: Home, document: Json, when: float) -> None:
    size = home.length(shapes.PASTE)
    if home.ledger.due("long paste", 0.7, spread=1):
        size = max(size, 1_500)
    text = home.words.output(size)
    document["display"] += f" [Pasted text #1 +{text.count(chr(10))} lines]"
    content: Json = {"id": 1, "type": "text"}
    if len(text) <= 1_024:
        content["content"] = text
    else:
        data = text.encode()
        key = hashlib.sha256(data).hexdigest()[:16]
        content["contentHash"] = key
        if home.ledger.due("paste is kept", 1 - shapes.PASTE_DANGLING, spread=1):
            home.write(f"paste-cache/{key}.txt", data, when)
    document["pastedContents"] = {"1": content}


def _index(home: Home, folder: str, sessions: list[Session]) -> None:
    """An old index: half of its entries name files that are gone."""
    entries: list[Json] = []
    for session in sessions[::2]:
        for key in (session.id, home.uuid()):
            entry: Json = {"sessionId": key, "fullPath": f"/home/dev/.claude/{folder}/{key}.jsonl"}
            entry |= {"fileMtime": int(session.end * 1000), "messageCount": 12}
            entry |= {"firstPrompt": home.words.prose(60), "summary": home.words.title(4)}
            entry |= {"created": stamp(session.start), "modified": stamp(session.end)}
            entry |= {"gitBranch": session.branch, "projectPath": session.cwd}
            entries.append({**entry, "isSidechain": False})
    document = {"version": 1, "originalPath": sessions[0].cwd, "entries": entries}
    home.write_json(f"{folder}/sessions-index.json", document, sessions[-1].end, indent=True)

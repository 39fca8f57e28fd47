"""The lines between prompts, answers and results: progress, attachments, system notes, state.

Half of a new transcript is made of them.  Each function is called at a place where such lines
come, and writes as many as the ledger says its era lacks.
"""

from __future__ import annotations

from . import shapes
from .home import SECRET, Json
from .transcript import Chain


def after_call(chain: Chain, call_id: str, name: str) -> None:
    """Ticks of a running command, hooks around a tool."""
    if chain.session.version >= (2, 1, 9):
        if name == "Bash":
            _bash_ticks(chain, call_id)
        for _ in range(_owed(chain, "hook_progress", 4)):
            hook = {"hookEvent": "PostToolUse", "hookName": f"PostToolUse:{name}"}
            data = {"type": "hook_progress", **hook, "command": "callback"}
            _progress(chain, data, call_id, call_id)
    if chain.session.version < (2, 0, 0) and _owed(chain, "system"):
        text = f"Running PostToolUse:{name} hook: {chain.home.words.prose(60)}"
        body: Json = {"type": "system", "content": text, "isMeta": False}
        chain.line("system", body, {"toolUseID": call_id, "level": "info"})


def _bash_ticks(chain: Chain, call_id: str) -> None:
    home = chain.home
    ticks = _owed(chain, "bash_progress", home.rng.choice((2, 6, 14, 30)))
    text = home.words.output(home.length(shapes.BASH_TICK)) if home.chance(0.55) else ""
    for tick in range(ticks):
        shown = text[: len(text) * (tick + 1) // ticks]
        data: Json = {"type": "bash_progress", "output": shown[-400:], "fullOutput": shown}
        data |= {"elapsedTimeSeconds": 2 + tick, "totalLines": shown.count("\n")}
        _progress(chain, data, f"bash-progress-{tick}", call_id)


def _progress(chain: Chain, data: Json, own_id: str, call_id: str) -> None:
    body: Json = {"type": "progress", "data": data}
    chain.line(data["type"], body, {"toolUseID": own_id, "parentToolUseID": call_id})


def agent_progress(chain: Chain, call_id: str, agent: str, prompt: str, said: list[Json]) -> None:
    """Messages of a running subagent, whole, once more in its parent's transcript."""
    for message in said[: _owed(chain, "agent_progress", 60)]:
        data: Json = {"message": message, "normalizedMessages": [], "type": "agent_progress"}
        data |= {"prompt": prompt, "agentId": agent}
        own_id = f"agent_msg_{chain.home.token('01')}"
        _progress(chain, data, own_id, call_id)


def attachments(chain: Chain, most: int = 3) -> None:
    """Hook results, context and notes, as the program adds them behind a user line."""
    for _ in range(_owed(chain, "attachment", most)):
        chain.line("attachment", {"attachment": _attachment(chain), "type": "attachment"})


def _attachment(chain: Chain) -> Json:
    home, words = chain.home, chain.home.words
    kind = home.rng.choices(list(_ATTACHMENTS), list(_ATTACHMENTS.values()))[0]
    if kind.startswith("hook_"):
        return _hook_result(chain, kind)
    if kind == "async_hook_response":
        text = words.output(home.length(shapes.ASYNC_HOOK_OUTPUT))
        response = {"hook_event_name": "PostToolUse", "session_id": chain.session.id, "out": text}
        fields = {"processId": words.hex(6), "hookName": "PostToolUse:Bash", "response": response}
        return {"type": kind, **fields, "stdout": text[:200], "stderr": "", "exitCode": 0}
    if kind == "skill_listing":
        text = words.prose(home.length(shapes.SKILL_LISTING))
        return {"type": kind, "content": text, "skillCount": 24, "isInitial": True}
    if kind in ("nested_memory", "file", "edited_text_file"):
        path, text = words.path(), words.prose(home.length(shapes.CONTEXT_FILE))
        file = {"path": path, "type": "Project", "content": text}
        return {"type": kind, "filename": path, "content": file, "displayPath": path}
    if kind.endswith("_delta"):
        names = [words.name() for _ in range(home.rng.randrange(1, 30))]
        return {"type": kind, "addedNames": names, "addedLines": names, "removedNames": []}
    if kind in ("opened_file_in_ide", "selected_lines_in_ide"):
        return {"type": kind, "filename": words.path(), "ideName": "Code"}
    if kind == "plan_mode":
        return {"type": kind, "reminderType": "full", "planFilePath": "plans/x.md"}
    return {"type": kind, "content": [], "itemCount": home.rng.randrange(9)}


def _hook_result(chain: Chain, kind: str) -> Json:
    home = chain.home
    text = home.words.output(home.length(shapes.HOOK_OUTPUT))
    event = home.rng.choice(("SessionStart", "PostToolUse", "UserPromptSubmit", "Stop"))
    return {
        "type": kind,
        "hookName": event,
        "toolUseID": home.uuid(),
        "hookEvent": event,
        "content": text if home.chance(0.4) else "",
        "stdout": text,
        "stderr": "",
        "exitCode": int(kind != "hook_success"),
        "command": f"sh -c '{home.words.path()} {home.words.name()}'",
        "durationMs": home.rng.randrange(5, 900),
    }


_ATTACHMENTS = {
    "hook_success": 34.0,
    "task_reminder": 14,
    "edited_text_file": 6,
    "hook_cancelled": 0.4,
    "hook_additional_context": 6,
    "total_tokens_reminder": 6,
    "deferred_tools_delta": 5,
    "todo_reminder": 4,
    "nested_memory": 4,
    "file": 4,
    "async_hook_response": 3,
    "agent_listing_delta": 3,
    "mcp_instructions_delta": 3,
    "skill_listing": 2.5,
    "command_permissions": 2,
    "opened_file_in_ide": 2,
    "selected_lines_in_ide": 1,
    "plan_mode": 1,
    "plan_mode_exit": 1,
    "date_change": 1,
    "auto_mode": 0.6,
    "hook_non_blocking_error": 0.6,
    "ultrathink_effort": 0.3,
    "a_kind_to_come": 0.3,
}


def snapshot(chain: Chain, message_id: str, update: bool = False) -> None:
    """The backups that the program made of edited files."""
    home, session = chain.home, chain.session
    if update:
        path = home.words.path()
        if home.chance(0.3):
            path = session.absolute(path)
        session.backups.append((path, f"{home.words.hex(16)}@v{len(session.backups) % 4 + 1}"))
    for _ in range(_owed(chain, "snapshot", 2)):
        backups = {
            path: {"backupFileName": name, "version": int(name[-1]), "backupTime": chain.stamp()}
            for path, name in session.backups[-home.rng.choice((1, 1, 2, 4, 12)) :]
        }
        if session.version >= (2, 1, 217) and session.backups and home.chance(0.5):
            path, backup = next(iter(backups.items()))
            document: Json = {"type": "file-history-delta", "messageId": message_id}
            document |= {"snapshotMessageId": message_id, "trackingPath": path}
            chain.state("snapshot", {**document, "backup": backup, "timestamp": chain.stamp()})
            continue
        inner = {"messageId": message_id, "timestamp": chain.stamp()}
        document = {"type": "file-history-snapshot", "messageId": message_id}
        document |= {"isSnapshotUpdate": update}
        chain.state("snapshot", {**document, "snapshot": {**inner, "trackedFileBackups": backups}})


def notes(chain: Chain) -> None:
    """System lines: how long a turn took, what hooks said, errors of the API."""
    for _ in range(_owed(chain, "system", 3)):
        body = _system(chain)
        if body is not None:
            chain.line("system", body)


def states(chain: Chain, last_prompt: str, title: str) -> None:
    """The state lines, each appended again with the latest value."""
    session, home = chain.session, chain.home
    values: dict[str, Json] = {
        "last-prompt": {"lastPrompt": last_prompt[:200], "leafUuid": chain.parent},
        "ai-title": {"aiTitle": title},
        "custom-title": {"customTitle": f"{title}, by hand"},
        "agent-name": {"agentName": title.lower().replace(" ", "-")},
        "mode": {"mode": "normal"},
        "permission-mode": {"permissionMode": home.rng.choice(("default", "plan", "acceptEdits"))},
        "bridge-session": {"bridgeSessionId": f"{SECRET}-{home.words.hex(8)}"},
    }
    for kind, value in values.items():
        if session.version >= shapes.STATE_SINCE[kind]:
            for _ in range(_owed(chain, kind, 4)):
                chain.state(kind, {"type": kind, **value, "sessionId": session.id})


def _system(chain: Chain) -> Json | None:
    """One system note of a subtype that this version has."""
    home, words, version = chain.home, chain.home.words, chain.session.version
    kinds = [kind for kind, (since, until) in _SYSTEM.items() if since <= version <= until]
    if not kinds:
        return None
    weights = [4 if kind in ("turn_duration", "stop_hook_summary") else 1 for kind in kinds]
    kind = home.rng.choices(kinds, weights)[0]
    body: Json = {"type": "system", "subtype": kind}
    if kind == "turn_duration":
        return {**body, "durationMs": home.rng.randrange(900, 900_000), "isMeta": False}
    if kind == "stop_hook_summary":
        infos = [{"command": f"{words.name()} stop", "durationMs": home.rng.randrange(90)}]
        fields: Json = {"hookCount": 1, "hookInfos": infos, "hookErrors": [], "hasOutput": False}
        return {**body, **fields, "preventedContinuation": False, "stopReason": ""}
    if kind == "api_error":
        error = {"status": 529, "type": "overloaded_error", "message": "Overloaded"}
        error |= {"headers": {"authorization": SECRET}, "requestID": home.token("req_011")}
        retry = {"retryInMs": 530.1, "retryAttempt": 1, "maxRetries": 10}
        return {**body, "level": "error", "error": error, **retry}
    if kind == "local_command":
        text = f"<command-name>/status</command-name>\n{words.prose(60)}"
        return {**body, "content": text, "level": "info"}
    if kind == "microcompact_boundary":
        meta = {"trigger": "auto", "preTokens": 58_573, "tokensSaved": 20_801}
        meta |= {"compactedToolIds": [], "clearedAttachmentUUIDs": []}
        return {**body, "content": "Context microcompacted", "microcompactMetadata": meta}
    text = words.prose(home.length(shapes.ANSWER))
    link = {"url": f"https://bridge.example.org/{SECRET}"} if kind == "bridge_status" else {}
    return {**body, "content": text, "level": "info", **link}


_ALWAYS = (9, 9, 9)
_SYSTEM: dict[str, tuple[shapes.Version, shapes.Version]] = {  # first and last version
    "api_error": ((2, 0, 5), _ALWAYS),
    "local_command": ((2, 0, 15), _ALWAYS),
    "stop_hook_summary": ((2, 0, 64), _ALWAYS),
    "turn_duration": ((2, 1, 1), _ALWAYS),
    "microcompact_boundary": ((2, 1, 12), (2, 1, 63)),
    "away_summary": ((2, 1, 110), _ALWAYS),
    "informational": ((2, 1, 114), _ALWAYS),
    "scheduled_task_fire": ((2, 1, 114), _ALWAYS),
    "bridge_status": ((2, 1, 217), _ALWAYS),
}


def summaries(chain: Chain, others: list[str]) -> None:
    """Titles of this or of earlier sessions, by the last line they had."""
    home = chain.home
    for _ in range(_owed(chain, "summary", 5)):
        choices = (chain.parent or home.uuid(), home.rng.choice([*others[-20:], home.uuid()]))
        leaf = home.rng.choices([*choices, home.uuid()], (62, 17, 21))[0]
        summary(chain, leaf)


def summary(chain: Chain, leaf: str) -> None:
    """The title of whichever session owns the line *leaf*."""
    title = chain.home.words.title(5)
    chain.state("summary", {"type": "summary", "summary": title, "leafUuid": leaf})


def _owed(chain: Chain, kind: str, most: int = 1) -> int:
    return chain.home.ledger.owed(chain.session.era.name, kind, most)

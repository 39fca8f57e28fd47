"""What tools are called with and what they answer.

A call has three texts: the input in the assistant line, the result block in the user line, and
``toolUseResult``, the structured copy of the result beside it, which is a quarter of all bytes.
Calls that need more than dice (subagents, teams, workflows) are made in ``agents``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import shapes
from .home import Home, Json, Session


@dataclass
class Call:
    """A tool call with its answer."""

    name: str
    input: Json
    answer: str | list[Json]
    result: Any = None
    error: bool = False
    id: str = ""
    extra: Json = field(default_factory=dict)  # more keys of the answering line
    then: Callable[[], None] | None = None  # what happens right after the answering line


def make_call(home: Home, session: Session, name: str) -> Call:
    """A call of tool *name*; one in twenty fails."""
    call = _MAKERS.get(name, _other)(home, session, name)
    if home.chance(0.05):
        text = f"Error: {home.words.output(home.length(shapes.SEARCH_OUTPUT) // 3)}"
        if name == "Bash":
            text = f"Exit code {home.rng.choice((1, 1, 2, 127))}\n{call.answer}"
        call.answer, call.result, call.error = text, f"Error: {text}"[:2_000], True
    return call


def _numbered(text: str, start: int) -> str:
    """Text as Read shows it, each line behind its number and an arrow."""
    return "\n".join(
        f"{number:6d}→{line}" for number, line in enumerate(text.splitlines(), start=start)
    )


def _bash(home: Home, session: Session, name: str) -> Call:
    words, rng = home.words, home.rng
    command = rng.choice(
        (
            lambda: f"git {rng.choice(('status', 'diff', 'log -5', 'show HEAD'))}",
            lambda: f"grep -rn '{words.name()}' {words.path()} | head -{rng.randrange(5, 80)}",
            lambda: f"cd {session.cwd} && npm test -- {words.path()} 2>&1 | tail -40",
            lambda: f"python -m pytest {words.path()} -q -k {words.name()}",
            lambda: f"sed -n '{rng.randrange(300)},{rng.randrange(300, 700)}p' {words.path()}",
            lambda: f"cat <<'EOF' > {words.path()}\n{words.code(home.length(shapes.COMMAND))}EOF",
        )
    )()
    body: Json = {"command": command, "description": f"Show the {words.title(3).lower()}"}
    output = words.output(home.length(shapes.BASH_OUTPUT))
    result: Json = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
    if home.chance(0.06):
        result |= {"stderr": words.output(200), "returnCodeInterpretation": "No matches found"}
    if home.chance(0.03) and session.version >= (2, 0, 0):
        body["run_in_background"] = True
        result["backgroundTaskId"] = f"b{words.hex(6)}"
    if home.chance(0.01) and session.version >= (2, 1, 200):
        result["gitOperation"] = {"commit": {"sha": words.hex(7), "kind": "committed"}}
    if session.version >= (2, 1, 40):
        result["noOutputExpected"] = False
    return Call(name, body, output, result)


def _read(home: Home, session: Session, name: str) -> Call:
    words = home.words
    path = session.absolute(words.path())
    text = words.code(home.length(shapes.READ_OUTPUT))
    count = text.count("\n") + 1
    start = home.rng.choice((1, 1, 1, 120, 400))
    body: Json = {"file_path": path}
    if start > 1:
        body |= {"offset": start, "limit": count}
    file: Json = {"filePath": path, "content": text, "numLines": count, "startLine": start}
    file["totalLines"] = count + start
    return Call(name, body, _numbered(text, start), {"type": "text", "file": file})


def _patch(old: str, new: str, line: int) -> list[Json]:
    before, after = old.splitlines(), new.splitlines()
    return [
        {
            "oldStart": line,
            "oldLines": len(before),
            "newStart": line,
            "newLines": len(after),
            "lines": [f"-{text}" for text in before] + [f"+{text}" for text in after],
        }
    ]


def _edit(home: Home, session: Session, name: str) -> Call:
    words = home.words
    path = session.absolute(words.path())
    old = words.code(home.length(shapes.EDITED_TEXT))
    new = words.code(home.length(shapes.EDITED_TEXT))
    answer = f"The file {path} has been updated successfully."
    if session.version < (2, 1, 0):
        shown = _numbered(new, 40)
        answer = f"The file {path} has been updated. Here's the result of `cat -n`:\n{shown}"
    result: Json = {"filePath": path, "oldString": old, "newString": new}
    result["originalFile"] = words.code(home.length(shapes.EDITED_FILE))
    result |= {"structuredPatch": _patch(old, new, 40), "userModified": False}
    if name == "MultiEdit":
        edits = [{"old_string": old, "new_string": new, "replace_all": False}]
        return Call(name, {"file_path": path, "edits": edits}, answer, result)
    body = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
    return Call(name, body, answer, {**result, "replaceAll": False})


def _write(home: Home, session: Session, name: str) -> Call:
    path = session.absolute(home.words.path())
    text = home.words.code(home.length(shapes.WRITTEN_FILE))
    result: Json = {"type": "create", "filePath": path, "content": text, "structuredPatch": []}
    result["originalFile"] = None
    body: Json = {"file_path": path, "content": text}
    return Call(name, body, f"File created successfully at: {path}", result)


def _grep(home: Home, session: Session, name: str) -> Call:
    words = home.words
    found = words.output(home.length(shapes.SEARCH_OUTPUT))
    body: Json = {"pattern": words.name(), "path": session.cwd, "output_mode": "content"}
    result = {"mode": "content", "numFiles": 0, "filenames": [], "content": found}
    return Call(name, body, found, {**result, "numLines": found.count("\n") + 1})


def _glob(home: Home, session: Session, name: str) -> Call:
    count = max(1, home.length(shapes.SEARCH_OUTPUT) // 60)
    paths = [session.absolute(home.words.path()) for _ in range(min(count, 100))]
    result = {"filenames": paths, "durationMs": 31, "numFiles": len(paths), "truncated": False}
    return Call(name, {"pattern": f"**/*{home.words.word()}*"}, "\n".join(paths), result)


def _todo_write(home: Home, session: Session, name: str) -> Call:
    words, before = home.words, session.todos
    statuses = ["completed", "in_progress", *["pending"] * home.rng.randrange(1, 5)]
    session.todos = [
        {"content": words.title(5), "status": status, "activeForm": words.title(5)}
        for status in statuses
    ]
    answer = (
        "Todos have been modified successfully. Ensure that you continue to use the todo list to"
        " track your progress. Please proceed with the current tasks if applicable"
    )
    result = {"oldTodos": before, "newTodos": session.todos}
    return Call(name, {"todos": session.todos}, answer, result)


def _task_create(home: Home, session: Session, name: str) -> Call:
    words, key = home.words, str(len(session.tasks) + 1)
    body: Json = {"subject": words.title(5), "description": words.prose(140)}
    body["activeForm"] = words.title(4)
    task: Json = {"id": key, **body, "status": "pending", "blocks": [], "blockedBy": []}
    if session.tasks and home.chance(0.3):
        blocker = home.rng.choice(session.tasks)
        blocker["blocks"].append(key)
        task["blockedBy"].append(blocker["id"])
    session.tasks.append(task)
    result = {"task": {"id": key, "subject": body["subject"]}}
    return Call(name, body, f"Task #{key} created successfully: {body['subject']}", result)


def _task_update(home: Home, session: Session, name: str) -> Call:
    if not session.tasks:
        return _task_create(home, session, "TaskCreate")
    task = home.rng.choice(session.tasks)
    following = {"pending": "in_progress", "in_progress": "completed"}
    before, after = task["status"], following.get(task["status"], "deleted")
    task["status"] = after
    result: Json = {"success": True, "taskId": task["id"], "updatedFields": ["status"]}
    result["statusChange"] = {"from": before, "to": after}
    body = {"taskId": task["id"], "status": after}
    return Call(name, body, f"Updated task #{task['id']} status", result)


def _web(home: Home, session: Session, name: str) -> Call:
    words = home.words
    text = words.prose(home.length(shapes.WEB_OUTPUT))
    if name == "WebSearch":
        query = words.title(6)
        found = f'Web search results for query: "{query}"\n{text}'
        result: Json = {"query": query, "results": [text], "durationSeconds": 4.25}
        return Call(name, {"query": query}, found, result)
    url = f"https://docs.example.org/{words.word()}/{words.word()}"
    result = {"bytes": len(text) * 7, "code": 200, "codeText": "OK", "result": text}
    body = {"url": url, "prompt": words.prose(90)}
    return Call(name, body, text, {**result, "durationMs": 812, "url": url})


def _ask(home: Home, session: Session, name: str) -> Call:
    words = home.words
    question = words.title(7) + "?"
    options = [{"label": words.title(2), "description": words.prose(70)} for _ in range(3)]
    asked = [{"question": question, "header": words.word(), "options": options}]
    answers = {question: options[0]["label"]}
    answer = f'User has answered your questions: "{question}"="{options[0]["label"]}".'
    result = {"questions": asked, "answers": answers}
    return Call(name, {"questions": asked}, answer, result)


def _tool_search(home: Home, session: Session, name: str) -> Call:
    answer: list[Json] = [{"type": "tool_reference", "tool_name": "WebFetch"}]
    result = {"matches": ["WebFetch"], "query": "WebFetch", "total_deferred_tools": 41}
    return Call(name, {"query": "WebFetch", "max_results": 1}, answer, result)


def _other(home: Home, session: Session, name: str) -> Call:
    """Skill, an MCP server's tool, and whatever else has no structure of its own."""
    words = home.words
    text = words.prose(home.length(shapes.SEARCH_OUTPUT))
    answer: str | list[Json] = [{"type": "text", "text": text}]
    if name == "Skill":
        skill = f"{words.word()}-{words.word()}"
        answer, result = f"Launching skill: {skill}", {"success": True, "commandName": skill}
        return Call(name, {"skill": skill}, answer, result)
    return Call(name, {"subject": words.title(3), "limit": 2**40}, answer, answer)


_MAKERS = {
    "Bash": _bash,
    "Read": _read,
    "Edit": _edit,
    "MultiEdit": _edit,
    "Write": _write,
    "Grep": _grep,
    "Glob": _glob,
    "TodoWrite": _todo_write,
    "TaskCreate": _task_create,
    "TaskUpdate": _task_update,
    "WebFetch": _web,
    "WebSearch": _web,
    "AskUserQuestion": _ask,
    "ToolSearch": _tool_search,
}

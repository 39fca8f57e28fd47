"""What a transcript states about tasks, todos and plans: calls of four tools, and two other lines.

Claude Code keeps tasks, todos and plans as files (`stores`, `plans`) and deletes them earlier than
its transcripts. A call says what it changes, and its result says whether it did.

```
TaskCreate    {"subject","description","activeForm","metadata"}
              result {"task":{"id":"1","subject":".."}}, or only the text "Task #1 created
              successfully: .."
TaskUpdate    {"taskId":"1","status","owner","subject","description","activeForm","metadata",
               "addBlocks":["2"],"addBlockedBy":["3"]}; a key of metadata with null is removed
              result {"success":true,"taskId":"1","updatedFields":["status"],"statusChange":{..}};
              if there is no such task {"success":false}, not an error, or text "Task not found"
TodoWrite     {"todos":[{"content","status","activeForm"}]}, older {"content","status","priority",
               "id"}: the whole list, each time
ExitPlanMode  {"plan":".."}; from 2.0.5x on {}, later {"plan","planFilePath"}: the plan is a file
              result {"plan":"..","isAgent":false,"filePath":"/home/ada/.claude/plans/a-b-c.md"}, of
              a teammate's plan "awaitingLeaderApproval":true; in text after "## Approved Plan:"
attachment    plan_file_reference {"planFilePath","planContent"}: the plan, repeated by a compaction
user line     planContent: an accepted plan, with which a new conversation begins
```

Tasks belong to the list of the team, else of the session; the agents of a session share it. Todos
belong to one agent. A plan is identified by the stem of its file, which is the `slug` of the lines;
plans of versions without files have no name.
"""

from __future__ import annotations

from typing import NamedTuple

from ...fields import MAX_NAME, MAX_TEXT, json_text, mapping, string
from ...records import Statement
from ...source import Claim
from ..jsonl import JSONObject
from .paths import folded
from .plans import UNTITLED, title_of
from .teams import team_key

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

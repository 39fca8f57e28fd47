"""The tool `recent`: what was done here lately, and what is left open."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from .. import sql, terminal
from ..ask.answer import Cursors
from ..errors import NotFoundError, UsageError
from ..paths import comparable
from ..questions.fit import Answer, Item, Masks, heading, quoted
from .tool import NOTHING, QUOTED, SINCE, TEXT, UNTIL, Arguments, Tool, number

if TYPE_CHECKING:
    from ..ask.filters import Filters
    from ..ask.refs import Names
    from .index import Index

_FILTERS = ("project", "cwd", "since", "until")
_LISTS = ("sessions", "open")
_SESSIONS, _MOST = 6, 50
_OPEN = 100
_PROMPTS = 1  # the first and the last
_SAID = ("text", "status", "title", "project", "branch")
_FIELDS = {
    "title": "title",
    "project": "project",
    "branch": "git_branch",
    "cwd": "cwd",
    "source": "source",
    "started": "started_at",
    "ended": "ended_at",
    "prompt_count": "prompt_count",
    "tool_calls": "tool_call_count",
}


def run(index: Index, arguments: Arguments) -> Answer:
    """Return the newest conversations, then what is open."""
    from ..ask.filters import Filters, nothing

    connection = index.connection
    asked = [arguments.get(field) for field in ("project", "cwd", "since", "until", "limit")]
    cursors = Cursors("recent", str(index.settings.database), index.settings.project, asked)
    (start,) = cursors.place(arguments.get("cursor"), [0])
    filters = Filters.of({name: arguments.get(name) for name in _FILTERS})
    where = _where(connection, filters)
    limit = int(str(arguments.get("limit", _SESSIONS)))
    sessions = sql.ask(connection, "lists/sessions", **where, limit=limit).fetchall()
    left = sql.ask(connection, "lists/open", **where, limit=_OPEN + 1).fetchall()
    said = [f"{terminal.many(len(sessions), 'conversation')}, the newest first."]
    said += [f"Open: {'more than ' * (len(left) > _OPEN)}{min(len(left), _OPEN)}, at the end."]
    found = [*map(dict, sessions), *map(dict, left[:_OPEN])]
    head: Item = {"conversations": len(sessions), "open": min(len(left), _OPEN)}
    if not found:
        why = nothing(filters, lambda other: _count(connection, other))
        head["nothing"] = why.as_json()
        said += map(quoted, why.lines("item"))
    return Answer(
        items=_items(connection, found[start:], index.mask),
        render=_render,
        cursor=lambda number, _: cursors.made(start + number),
        is_continued=False,
        head=head,
        said=tuple(said),
        empty="No activity here in that period.",
    )


def _where(connection: sqlite3.Connection, filters: Filters) -> dict[str, object]:
    """Return the parameters of both lists."""
    if filters.project and filters.cwd:
        raise UsageError("Give the project or the cwd, not both.")
    given = filters.parameters(connection)
    if filters.cwd:
        given["project"] = json.dumps(_around(connection, filters.cwd))
    return {name: given[name] for name in ("project", "since", "until")}


def _count(connection: sqlite3.Connection, filters: Filters) -> int:
    """Return how many conversations and open entries there are."""
    where = _where(connection, filters)
    lists = (sql.ask(connection, f"lists/{name}", **where, limit=-1) for name in _LISTS)
    return sum(1 for rows in lists for _ in rows)


def _around(connection: sqlite3.Connection, directory: str) -> list[int]:
    """Return the projects of a directory: what is there, or nearest above it."""
    from ..ask.filters import find_projects

    if not PurePosixPath(directory).is_absolute() and not PureWindowsPath(directory).is_absolute():
        raise UsageError("cwd is a directory: give its absolute path.")
    rows = sql.ask(connection, "pages/project_names").fetchall()
    inside = comparable(directory).rstrip("/") + "/"
    paths = [row["path"] for row in rows if row["path"]]
    above = [path for path in paths if inside.startswith(comparable(path).rstrip("/") + "/")]
    if not above:
        raise NotFoundError("Nothing is known of this directory or its parents.")
    found = set(find_projects(connection, max(above, key=len)))
    return sorted(found | {row["id"] for row in rows if row["parent_id"] in found})


def _items(connection: sqlite3.Connection, found: list[Item], mask: Masks) -> Iterator[Item]:
    from ..ask.refs import Names, short_key
    from ..questions.show import branches

    names = Names(connection)
    for row in found:
        key = row["session_key"]
        short = short_key(connection, str(key)) if key else None
        if "what" in row:
            item: Item = {
                "kind": row["what"],
                "key": short,
                "text": row["text"],
                "status": row["status"],
                "time": row["last_activity"],
                "project": row["project"],
                "title": row["session"],
            }
        else:
            item = {"kind": "conversation", "key": short}
            item |= {field: row[column] for field, column in _FIELDS.items()}
            item["branches"] = branches(connection, row["id"])
            item |= _ending(connection, row["id"], names, mask)
        yield {field: value for field, value in item.items() if value not in (None, [])}


def _ending(connection: sqlite3.Connection, session: object, names: Names, mask: Masks) -> Item:
    """Return what was asked in a conversation, how it ended, and a last command that failed."""
    from ..questions.show import ending as ending_of
    from ..questions.show import prompts

    state, outcome = ending_of(connection, session, names, mask)
    failed = sql.ask(connection, "pages/last_commands", sessions=f"[{session}]").fetchone()
    asked = map(asdict, prompts(connection, session, names, mask, _PROMPTS))
    ending: Item = {"state": state, "prompts": [*asked]}
    if outcome is not None:
        ending["outcome"] = {"ref": outcome.ref, "text": outcome.text}
    if failed is not None:
        ending["failed_command"] = {
            "ref": names.of(failed["file_id"], failed["byte_offset"]),
            "text": failed["target"],
            "exit_code": failed["exit_code"],
        }
    return ending


def _render(item: Item) -> str:
    time = str(item.get("ended") or item.get("time") or "")[:16]
    lines = ["", heading(item.get("key"), item.get("kind"), time)]
    if "state" in item:
        lines[-1] += f" ({item['state']})"
    said = [item[field] for field in _SAID if item.get(field)]
    if isinstance(several := item.get("branches"), list):
        said.append(f"branches: {', '.join(map(str, several))}")
    if said:
        lines.append(quoted(" · ".join(map(str, said))))
    entries = item.get("prompts")
    for entry in entries if isinstance(entries, list) else ():
        lines += _rendered_entry(entry)
    for field, title in (("outcome", "Last answer:"), ("failed_command", "Last command, failed:")):
        if field in item:
            lines += [title, *_rendered_entry(item[field])]
    return "\n".join(lines)


def _rendered_entry(entry: object) -> list[str]:
    """Return the lines of an entry of a list: its reference, and what it says, quoted."""
    if not isinstance(entry, dict):
        return []
    lines = [heading(entry["ref"])] if entry.get("ref") else []
    return lines + ([quoted(str(entry["text"]))] if entry.get("text") else [])


TOOL = Tool(
    name="recent",
    title="Recent work and open items",
    description=(
        "Recent work and open items: the newest conversations of a project "
        "with their prompts, last answer, how they ended and a last command that failed; then "
        "unfinished tasks, todos, plans and unread messages. Call it at the beginning of work, "
        f"with the cwd. {QUOTED}"
    ),
    properties={
        "project": {**TEXT, "description": "Name, path or id of a project."},
        "cwd": {**TEXT, "description": "A directory: its project, or that of the nearest parent."},
        "since": SINCE,
        "until": UNTIL,
        "limit": number(f"Most conversations. Default {_SESSIONS}.", _MOST),
    },
    run=run,
    only_unlimited=("project", "cwd"),
    fields={
        "conversations": {"type": "integer"},
        "open": {"type": "integer", "description": "Number of open items, at most 100."},
        "nothing": NOTHING,
        "items": {
            "type": "array",
            "description": "Conversations, the newest first, then open items.",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {
                        **TEXT,
                        "description": "conversation; for open items: task, todo, inbox, plan, "
                        "session",
                    },
                    "key": {**TEXT, "description": "What `open` takes."},
                    "title": TEXT,
                    "project": TEXT,
                    "branch": {**TEXT, "description": "The last one in its lines."},
                    "branches": {
                        "type": "array",
                        "items": TEXT,
                        "description": "All of them, if there are several.",
                    },
                    "cwd": TEXT,
                    "source": TEXT,
                    "started": TEXT,
                    "ended": TEXT,
                    "prompt_count": {"type": "integer"},
                    "tool_calls": {"type": "integer"},
                    "state": {**TEXT, "description": "How it ended."},
                    "prompts": {"type": "array", "description": "The first and the last."},
                    "outcome": {"type": "object", "description": "The last answer."},
                    "failed_command": {"type": "object"},
                    "text": {**TEXT, "description": "The open item."},
                    "status": TEXT,
                    "time": TEXT,
                },
            },
        },
    },
)

"""What a tool call was given, in the form in which it is read: a command, a difference, a list."""

from __future__ import annotations

import json

from markupsafe import Markup

from ..calls import BOXES, CHANGES, LISTS, arguments_of, target_of
from ..conversation import Message
from ..terminal import one_line, readable
from .html import difference, joined, markdown

_LONGEST = 10_000  # letters of one argument; its row has the rest
_MARKDOWN = {"prompt", "plan", "message", "summary"}
_FIELD = Markup('<dt>{}</dt><dd class="ai-value">{}</dd>')


def body_of(message: Message) -> Markup:
    """Return the input of a call as HTML."""
    arguments = arguments_of(message)
    if not arguments:
        return shortened(message.content) if message.content.strip("{} \n") else Markup("")
    if message.tool in CHANGES:
        return _changes(arguments)
    if message.tool in LISTS and isinstance(arguments.get("todos"), list):
        return _list(arguments["todos"])
    if message.tool == "Bash" and isinstance(arguments.get("command"), str):
        return _command(arguments)
    return fields(arguments)


def summary_of(message: Message, directory: str | None) -> str:
    """Return one line about a call: what it was applied to, or how far a list is done."""
    arguments = arguments_of(message)
    todos = arguments.get("todos")
    if message.tool in LISTS and isinstance(todos, list):
        done = sum(isinstance(one, dict) and one.get("status") == "completed" for one in todos)
        return f"{done} of {len(todos)} done"
    if message.tool == "TaskUpdate" and isinstance(arguments.get("taskId"), str):
        changes = [
            f"{key} {value}" if key != "status" else str(value)
            for key, value in arguments.items()
            if key != "taskId" and isinstance(value, str)
        ]
        return one_line(f"task {arguments['taskId']}: {', '.join(changes)}")
    return target_of(message, directory)


def shortened(text: str, name: str = "ai-plain") -> Markup:
    """Return text as it was written, cut where it is very long."""
    more = len(text) - _LONGEST
    body = Markup('<pre class="{}" tabindex="0">{}</pre>').format(name, readable(text[:_LONGEST]))
    if more > 0:
        note = Markup('<p class="ai-more">… {} more letters: open the row to read them</p>')
        body += note.format(f"{more:,}")
    return body


def _changes(arguments: dict[str, object]) -> Markup:
    edits = arguments.get("edits")
    parts = [
        difference(_text(edit, "old_string"), _text(edit, "new_string", "new_source", "content"))
        for edit in (edits if isinstance(edits, list) else [arguments])
        if isinstance(edit, dict)
    ]
    return joined(parts)


def _list(items: object) -> Markup:
    rows = [
        Markup("<li><span>{}</span> {}</li>").format(
            BOXES.get(str(item.get("status")), "☐"),
            one_line(str(item.get("content") or item.get("activeForm") or "")),
        )
        for item in (items if isinstance(items, list) else [])
        if isinstance(item, dict)
    ]
    return Markup('<ul class="ai-todos">{}</ul>').format(joined(rows))


def _command(arguments: dict[str, object]) -> Markup:
    rest = {key: value for key, value in arguments.items() if key != "command"}
    command = shortened(f"$ {arguments['command']}", "ai-plain ai-command")
    return command + fields(rest)


def fields(arguments: dict[str, object]) -> Markup:
    """Return named values as HTML, long texts in a form in which they are read."""
    rows = [_FIELD.format(readable(key), _value(key, value)) for key, value in arguments.items()]
    return Markup('<dl class="ai-fields">{}</dl>').format(joined(rows)) if rows else Markup("")


def _value(key: str, value: object) -> Markup:
    if isinstance(value, str):
        if key in _MARKDOWN and "\n" in value:
            return Markup('<div class="ai-prose">{}</div>').format(markdown(value))
        return shortened(value)
    return shortened(json.dumps(value, ensure_ascii=False, indent=2))


def _text(edit: dict[str, object], *keys: str) -> str:
    return next((text for key in keys if isinstance(text := edit.get(key), str)), "")

"""The input of a tool call as a page shows it: a command, a difference, a list."""

from __future__ import annotations

import json
from collections.abc import Sized
from itertools import islice

from markupsafe import Markup

from .. import humanize
from ..ask.conversation import Message
from ..ask.tool_calls import BOXES, arguments_of, changes_files, target_of, things_to_do
from ..records import PLAN, RUN
from ..terminal import one_line
from .budget import Budget
from .html import difference, joined, markdown, note, shortened

_MOST = 50  # arguments, changes and things to do of one call
_LONG_NAME, _LONG_ITEM = 200, 2000  # letters
_NONE = Markup("")
_MARKDOWN = {"prompt", "plan", "message", "summary"}
_FIELD = Markup('<dt>{}</dt><dd class="ai-value">{}</dd>')


def body_of(message: Message, budget: Budget) -> Markup:
    """Return the input of a call as HTML."""
    arguments = arguments_of(message)
    if not arguments:
        is_empty = not message.content.strip("{} \n")
        return _NONE if is_empty else shortened(message.content, budget)
    if changes_files(message):
        return _changes(arguments, budget)
    if (todos := things_to_do(message)) is not None:
        return _list(todos, budget)
    if message.action == RUN and isinstance(arguments.get("command"), str):
        return _command(arguments, budget)
    return fields(arguments, budget)


def summary_of(message: Message, directory: str | None) -> str:
    """Return one line about a call: what it was applied to, or how far a list is done."""
    arguments = arguments_of(message)
    if (todos := things_to_do(message)) is not None:
        done = sum(isinstance(one, dict) and one.get("status") == "completed" for one in todos)
        return f"{done} of {len(todos)} done"
    if message.action == PLAN and isinstance(arguments.get("taskId"), str):
        changes = [
            f"{key} {value}" if key != "status" else str(value)
            for key, value in arguments.items()
            if key != "taskId" and isinstance(value, str)
        ]
        if changes:
            return one_line(f"task {arguments['taskId']}: {', '.join(changes)}")
    return target_of(message, directory)


def fields(arguments: dict[str, object], budget: Budget) -> Markup:
    """Return named values as HTML, long texts in a form in which they are read."""
    count = _few(arguments, budget)
    rows = [
        _FIELD.format(_named(key, budget), _value(key, value, budget))
        for key, value in islice(arguments.items(), count)
    ]
    shown = Markup('<dl class="ai-fields">{}</dl>').format(joined(rows)) if rows else _NONE
    return shown + _more(len(arguments) - count, "value")


def _changes(arguments: dict[str, object], budget: Budget) -> Markup:
    edits = arguments.get("edits")
    changes = edits if isinstance(edits, list) else [arguments]
    count = _few(changes, budget)
    parts = [
        difference(
            _text(edit, "old_string"), _text(edit, "new_string", "new_source", "content"), budget
        )
        for edit in changes[:count]
        if isinstance(edit, dict)
    ]
    return joined(parts) + _more(len(changes) - count, "change")


def _list(items: list[object], budget: Budget) -> Markup:
    count = _few(items, budget)
    rows = [
        Markup("<li><span>{}</span> {}</li>").format(
            BOXES.get(str(item.get("status")), "☐"),
            _named(str(item.get("content") or item.get("activeForm") or ""), budget, _LONG_ITEM),
        )
        for item in items[:count]
        if isinstance(item, dict)
    ]
    shown = Markup('<ul class="ai-todos">{}</ul>').format(joined(rows))
    return shown + _more(len(items) - count, "item")


def _command(arguments: dict[str, object], budget: Budget) -> Markup:
    rest = {key: value for key, value in arguments.items() if key != "command"}
    command = shortened(f"$ {arguments['command']}", budget, "ai-plain ai-command")
    return command + fields(rest, budget)


def _value(key: str, value: object, budget: Budget) -> Markup:
    if isinstance(value, str):
        if key in _MARKDOWN and "\n" in value:
            return Markup('<div class="ai-prose">{}</div>').format(markdown(value, budget))
        return shortened(value, budget)
    return shortened(json.dumps(value, ensure_ascii=False, indent=2), budget)


def _named(text: str, budget: Budget, most: int = _LONG_NAME) -> str:
    """Return a text on one line, as much of it as there is room for."""
    shown = budget.beginning(text, most)
    return one_line(shown) if shown == text else one_line(shown) + "…"


def _few(parts: Sized, budget: Budget) -> int:
    """Return how many of the parts of a call are shown."""
    return budget.pieces(len(parts), _MOST)


def _more(count: int, word: str) -> Markup:
    if not count:
        return _NONE
    return note(f"… and {humanize.many(count, f'more {word}')}: open the row")


def _text(edit: dict[str, object], *keys: str) -> str:
    return next((text for key in keys if isinstance(text := edit.get(key), str)), "")

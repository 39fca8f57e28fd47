"""Prints a tool call: its input, its status, and the start of its output, or all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from .. import humanize
from ..records import EDIT, PLAN
from ..terminal import Paint, columns, cut, one_line, readable, wrap
from .changed_text import patches
from .conversation import Message

_INDENT = "    "
_RESULT_LINES = 4
_ERROR_LINES = 12
_CHANGED_LINES = 4
_MANY = 100_000  # letters of a result that are looked at

BOXES = {"completed": "☑", "in_progress": "◐"}
"""How the status of a thing to do is shown; of any other it is an empty box."""


_WITHOUT_RESULT = {"pending": "no result", "declined": "declined"}
"""What is said of a call that never ran to its end."""


@dataclass(frozen=True, slots=True)
class View:
    """How wide, how coloured, and below which directory paths are shown short."""

    width: int
    paint: Paint
    directory: str | None
    full: bool = False
    """Whole input and output?"""


def changes_files(message: Message) -> bool:
    """Does a call change files? Its result only says that it was done: the input says more."""
    return message.action == EDIT


def things_to_do(message: Message) -> list[object] | None:
    """Return the list of things to do that a call states, None if it states none."""
    todos = arguments_of(message).get("todos") if message.action == PLAN else None
    return todos if isinstance(todos, list) else None


def headline(message: Message, view: View) -> str:
    """Return the line of the call itself: tool, target, status and duration."""
    name = one_line(message.tool or "tool")
    facts, colour = facts_of(message)
    room = view.width - columns(name) - columns(facts) - 6
    target = cut(target_of(message, view.directory), max(room, 10))
    plain = f"▸ {name}  {target}"
    painted = view.paint("▸ ", "blue") + view.paint(name, "blue", bold=True) + f"  {target}"
    if not facts:
        return painted.rstrip()
    gap = " " * max(2, view.width - columns(plain) - columns(facts))
    return painted + gap + view.paint(facts, colour, dim=colour is None)


def details(message: Message, result: str, view: View) -> Iterator[str]:
    """Yield a few lines of what the call changed or gave; all of its input and output if whole."""
    is_error = message.status == "error"
    if view.full:
        yield from _whole_input(message, view)
        yield from _whole(result, view, "→ ", "red" if is_error else None)
    elif not is_error and changes_files(message):
        yield from _changes(message, view)
    elif not is_error and (items := things_to_do(message)) is not None:
        yield from _items(items, view)
    else:
        limit, colour = (_ERROR_LINES, "red") if is_error else (_RESULT_LINES, None)
        yield from _start_of(result, limit, view, colour)


def facts_of(message: Message) -> tuple[str, str | None]:
    """Return what there is to say of how the call went, and its colour."""
    facts = [humanize.duration(message.duration_ms)]
    colour = None
    if message.status == "error":
        facts.insert(0, f"exit {message.exit_code}" if message.exit_code else "error")
        colour = "red"
    elif message.status in _WITHOUT_RESULT:
        facts.insert(0, _WITHOUT_RESULT[message.status])
        colour = "yellow"
    return " · ".join(fact for fact in facts if fact), colour


def target_of(message: Message, directory: str | None) -> str:
    """Return what the call was applied to, a path below `directory` without it."""
    target = one_line(message.target or _first_text(arguments_of(message)) or "")
    return target.removeprefix(directory) if directory else target


def _changes(message: Message, view: View) -> Iterator[str]:
    arguments = arguments_of(message)
    edits = arguments.get("edits")
    for edit in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(edit, dict):
            continue
        for key, sign, colour in (
            ("old_string", "-", "red"),
            ("new_string", "+", "green"),
            ("new_source", "+", "green"),
            ("content", "+", "green"),
        ):
            text = edit.get(key)
            if isinstance(text, str) and text:
                yield from _start_of(text, _CHANGED_LINES, view, colour, sign + " ")
        for lines in patches(edit):
            changed = [line for line in lines if line.startswith(("+", "-"))]
            for line in changed[:_CHANGED_LINES]:
                colour = "green" if line.startswith("+") else "red"
                yield from _start_of(line[1:] or " ", 1, view, colour, f"{line[0]} ")
            if len(changed) > _CHANGED_LINES:
                more = humanize.many(len(changed) - _CHANGED_LINES, "more line")
                yield view.paint(f"{_INDENT}… {more}", dim=True)


def _items(items: list[object], view: View) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict):
            box = BOXES.get(str(item.get("status")), "☐")
            text = one_line(f"{box} {item.get('content') or item.get('activeForm') or ''}")
            yield view.paint(_INDENT + cut(text, view.width - len(_INDENT)), dim=True)


def _start_of(
    text: str, limit: int, view: View, colour: str | None, sign: str = ""
) -> Iterator[str]:
    """Yield the first lines of a text, each cut to the width, and how many more there are."""
    rows = readable(text[:_MANY].strip("\r\n").rstrip()).split("\n") if text.strip() else []
    for row in islice(rows, limit):
        line = _INDENT + cut(sign + row, view.width - len(_INDENT))
        yield view.paint(line.rstrip(), colour, dim=colour is None)
    more = len(rows) - limit + text.count("\n", _MANY)
    if more > 0:
        yield view.paint(f"{_INDENT}… {humanize.many(more, 'more line')}", dim=True)


def _whole_input(message: Message, view: View) -> Iterator[str]:
    arguments = arguments_of(message)
    if not arguments and message.content.strip() != "{}":
        yield from _whole(message.content, view)
    for key, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        yield from _whole(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}", view)


def _whole(text: str, view: View, head: str = "", colour: str | None = None) -> Iterator[str]:
    """Yield all lines of a text, the first behind a head that stands before the indent."""
    indent = " " * (len(_INDENT) - len(head)) + head
    if not text.strip():
        return
    for line in wrap(readable(text.strip("\r\n").rstrip()), view.width - len(_INDENT)):
        yield view.paint(f"{indent}{line}".rstrip(), colour, dim=colour is None)
        indent = _INDENT


def _first_text(value: object) -> str | None:
    """Return the first text inside a value, for a call that has no target."""
    if isinstance(value, str):
        return value.strip() or None
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((text for item in inner if (text := _first_text(item))), None)


def arguments_of(message: Message) -> dict[str, object]:
    """Return the input of the call; {} where its text was cut and is no JSON any more."""
    try:
        value = json.loads(message.content)
    except ValueError:  # the text ends at 256 KiB
        return {}
    return value if isinstance(value, dict) else {}

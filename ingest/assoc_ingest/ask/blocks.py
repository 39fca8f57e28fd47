"""Prints hits: where each was found, and the text around the marked matches."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from .. import humanize, tags
from ..paths import home
from ..sources import SOURCES
from ..terminal import Paint, columns, cut, one_line, safe, terminal_width, wrap
from . import snippets
from .hits import Hit
from .lookup import short_key
from .output import write
from .snippets import CLOSE, OPEN

_MAX_WIDTH = 120
_SNIPPET_LINES = 3
_INDENT = "    "
# In the input of a tool a line break is the two letters \n, and a quote has a backslash.
_json_break = re.compile(r"\\[nrt]")

_json_frame = re.compile(r'^\{"\w+":"?|"?\}$')
_TAGGED = frozenset(
    {"command", "command_output", "bash_input", "bash_output", "task_notification", "agent_message"}
)
_mark = re.compile(f"([{OPEN}{CLOSE}])")

_WHO = {
    "prompt": "you", "command": "you", "queued_prompt": "you", "bash_input": "you",
    "text": "agent", "agent_prompt": "task", "tool_use": "call", "tool_result": "result",
}  # fmt: skip


def write_hits(connection: sqlite3.Connection, hits: Iterable[Hit]) -> None:
    """Print hits, best first."""
    width = terminal_width(_MAX_WIDTH)
    paint = Paint.for_stream(sys.stdout)
    for number, hit in enumerate(hits):
        if number:
            write(["\n"])
        key = short_key(connection, hit.session_key) if hit.session_key else ""
        write(line + "\n" for line in lines_of(hit, key, width, paint))


def lines_of(hit: Hit, key: str, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of one hit; `key` is what `show` takes for its session."""
    when = humanize.moment(hit.time)
    place = f"{key}  " if key else ""
    room = width - columns(place) - columns(when) - 2
    name = hit.title if hit.title != hit.session_key else None
    title = cut(one_line(name or "(untitled)"), room)
    gap = " " * (width - columns(place) - columns(title) - columns(when))
    yield f"{paint(place, 'yellow')}{paint(title, bold=True)}{gap}{paint(when, dim=True)}"
    if hit.what != "session":
        yield from _snippet(hit, width, paint)
    facts = [who_of(hit), hit.project, named_source(hit)]
    known = " · ".join(one_line(fact) for fact in facts if fact)
    file = _below_home(hit.file or "")
    where = f"{one_line(file)}{f':{hit.line}' if hit.line else ''}"
    known = _INDENT + known
    if columns(known) + columns(where) + 2 > width:
        yield paint(known, "cyan")
        known = _INDENT[:-2]  # a path is not cut: it is there to be copied
    yield (paint(known, "cyan") + paint(f"  {where}", dim=True)).rstrip()


def _snippet(hit: Hit, width: int, paint: Paint) -> Iterator[str]:
    """Yield the snippet on a few lines, the matches in colour or, without, in brackets."""
    pieces = snippets.parts(bare(hit))  # the marks would not survive being made harmless
    text = "".join(
        f"{OPEN}{safe(piece)}{CLOSE}" if found else safe(piece) for piece, found in pieces
    )
    is_match = False
    for line in islice(wrap(" ".join(text.split()), width - len(_INDENT)), _SNIPPET_LINES):
        shown = ""
        for piece in _mark.split(line):
            if piece in (OPEN, CLOSE):
                is_match = piece == OPEN
                shown += "" if paint.enabled else "[" if is_match else "]"
            else:
                shown += paint(piece, "red", bold=True) if is_match else piece
        yield _INDENT + shown


def bare(hit: Hit) -> str:
    """Return the snippet without what the program wrapped its text in: JSON, or tags."""
    text = hit.snippet
    if hit.kind == "tool_use":
        text = _json_break.sub(" ", _json_frame.sub("", text)).replace('\\"', '"')
    elif hit.kind in _TAGGED:
        text = tags.without(text)
    return text


def who_of(hit: Hit) -> str:
    """Return who said it, or where it stands that is no message."""
    if hit.what != "message":
        return hit.what.replace("_", " ") if hit.what != "session" else "title"
    who = _WHO.get(hit.kind or "", (hit.kind or "").replace("_", " "))
    if hit.tool:
        who = f"{hit.tool} {who}"
    return f"{hit.subagent}: {who}" if hit.subagent else who


def named_source(hit: Hit) -> str | None:
    """Return the system that a hit comes from, None for the one that most of them come from."""
    return hit.source if hit.source != next(iter(SOURCES)) else None


def _below_home(path: str) -> str:
    above = home()
    if above is None or not path.startswith(f"{above}/"):
        return path
    return f"~{path[len(str(above)) :]}"

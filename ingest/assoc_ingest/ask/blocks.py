"""Prints what a search found: one block for each conversation, or each hit on its own."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice

from .. import tags, terminal
from ..paths import home
from ..sources import SOURCES
from ..terminal import Paint, columns, cut, one_line, safe, terminal_width, to_copy, wrap
from . import matches
from .matches import CLOSE, ELLIPSIS, OPEN
from .output import write_lines
from .search import RELAXED, Group, Hit, SearchResult

_MAX_WIDTH = 120
_SNIPPET_LINES = 3
_IN_BLOCK, _WITH_FEW = 2, 3  # snippets of a conversation; with few conversations, one more
_FEW = 3
_INDENT = "    "
_SHORT_INDENT = "  "
_MANY = 50
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


def write_result(result: SearchResult, limit: int) -> None:
    """Print an result by conversation, through a pager where it does not fit the terminal."""
    width, paint = terminal_width(_MAX_WIDTH), Paint.for_stream(sys.stdout)
    write_lines([*result_lines(result, limit, width, paint)])


def write_hits(result: SearchResult, limit: int) -> None:
    width, paint = terminal_width(_MAX_WIDTH), Paint.for_stream(sys.stdout)
    lines = [line for said in result.said() for line in wrap(said, width)]
    for number, hit in enumerate(result.hits):
        lines += [""] * bool(number or lines)
        lines += lines_of(hit, width, paint)
    lines += ["", *(paint(line, dim=True) for line in _footer(result, limit))]
    write_lines(lines)


def result_lines(result: SearchResult, limit: int, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of an result: what to know of it, its blocks, and how to go on."""
    said = result.said()
    divided = _first_relaxed(result)
    if divided is None and len({group.best.why == RELAXED for group in result.groups}) > 1:
        said.append("Only some of these contain all words.")
    for line in said:
        yield from wrap(line, width)
    shown = _WITH_FEW if len(result.groups) <= _FEW else _IN_BLOCK
    for number, group in enumerate(result.groups):
        if number or said:
            yield ""
        if number == divided:
            yield "Closest matches, with a word missing:"
            yield ""
        yield from block_lines(group, shown, width, paint)
    yield ""
    for line in _footer(result, limit):
        yield from (paint(part, dim=True) for part in wrap(line, width))


def block_lines(group: Group, shown: int, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of one conversation: its title, where and when it was, its best hits."""
    best = group.best
    when = terminal.moment(best.time)
    name = group.title if group.title != group.session_key else None
    title = cut(one_line(name or _name_of(best)), width - columns(when) - 2)
    gap = " " * (width - columns(title) - columns(when))
    yield f"{paint(title, bold=True)}{gap}{paint(when, dim=True)}".rstrip()
    hits = [hit for hit in group.hits if hit.what != "session"][:shown]
    more = group.more + sum(hit.what != "session" for hit in group.hits) - len(hits)
    branch = terminal.branch_besides(best.project, best.branch)
    others = f"{more:,} more in this conversation" if more else None
    facts = [best.project, branch, named_source(best), others]
    if known := " · ".join(one_line(fact) for fact in facts if fact):
        yield paint(cut(_SHORT_INDENT + known, width), dim=True)
    if not hits:
        yield _SHORT_INDENT + paint(f"{best.ref or ''}  in the title", "yellow")
    for number, hit in enumerate(hits):
        yield from _hit_lines(hit, 2 if number == 0 else 1, width, paint)


def _hit_lines(hit: Hit, most: int, width: int, paint: Paint) -> Iterator[str]:
    """Yield a hit of a block: its reference, who said it, and the text around the match."""
    place = hit.ref or short_path(hit.file or "", width // 2)
    who = one_line(who_of(hit))
    first = f"{_SHORT_INDENT}{place}  {who}: "
    if columns(first) > width // 2:
        yield _SHORT_INDENT + paint(place, "yellow") + "  " + paint(who, "cyan")
        first, indent = _INDENT, _INDENT
        label = _INDENT
    else:
        indent = " " * min(columns(first), len(_SHORT_INDENT) + columns(place) + 2)
        label = f"{_SHORT_INDENT}{paint(place, 'yellow')}  {paint(who + ':', 'cyan')} "
    room = width - columns(first)
    text = _near_its_match(_marked_text(hit), room * most)
    head, *others = wrap(text, room) if text else [""]
    if others:
        others = [*wrap(" ".join(others), width - len(indent))]
    lines = [head, *others]
    if len(lines) > most:
        lines = [*lines[:most]]
        lines[-1] = _cut_marked(lines[-1], room if most == 1 else width - columns(indent))
    painted = _painted(lines, paint)
    yield label + next(painted)
    yield from (indent + line for line in painted)


def lines_of(hit: Hit, width: int, paint: Paint) -> Iterator[str]:
    when = terminal.moment(hit.time)
    place = f"{hit.ref}  " if hit.ref else ""
    room = width - columns(place) - columns(when) - 2
    name = hit.title if hit.title != hit.session_key else None
    title = cut(one_line(name or _name_of(hit)), room)
    gap = " " * (width - columns(place) - columns(title) - columns(when))
    yield f"{paint(place, 'yellow')}{paint(title, bold=True)}{gap}{paint(when, dim=True)}".rstrip()
    if hit.what != "session":
        lines = islice(wrap(_marked_text(hit), width - len(_INDENT)), _SNIPPET_LINES)
        yield from (_INDENT + line for line in _painted(lines, paint))
    facts = [who_of(hit), hit.project, named_source(hit)]
    known = _INDENT + " · ".join(one_line(fact) for fact in facts if fact)
    path = short_path(hit.file or "", max(width - columns(known) - 2, width // 2))
    if columns(known) + columns(path) + 2 > width:
        yield paint(known, "cyan")
        known = _INDENT[:-2]
    yield (paint(known, "cyan") + paint(f"  {path}", dim=True)).rstrip()


def short_path(path: str, room: int) -> str:
    """Return a path below the home as `~/...`, its middle cut where it is longer than `room`."""
    above = home()
    if above is not None and path.startswith(f"{above}/"):
        path = f"~{path[len(str(above)) :]}"
    path = one_line(path)
    if columns(path) <= room:
        return path
    head, _, name = path.rpartition("/")
    tail = cut(name, room - 8)
    return f"{cut(head, max(room - columns(tail) - 1, 2))}/{tail}"


def _first_relaxed(result: SearchResult) -> int | None:
    """Return where the conversations begin that lack a word; None if others follow, or precede."""
    lacking = [group.best.why == RELAXED for group in result.groups]
    first = lacking.index(True) if True in lacking else 0
    return first if first and all(lacking[first:]) else None


def _footer(result: SearchResult, limit: int) -> Iterator[str]:
    found = f"{terminal.many(result.conversations, 'conversation')}"
    found += f", {terminal.many(result.count, 'hit')}"
    more = ""
    if not result.groups:
        more = f"More: -n {max(_MANY, 2 * limit)}." if result.count > len(result.hits) else ""
    elif result.conversations > len(result.groups):
        more = f"More: -n {max(_MANY, 2 * limit)}, or --all-hits."
    elif result.count > sum(len(group.hits) for group in result.groups):
        more = "All of them: --all-hits."
    yield f"{'At least ' * result.is_cut}{found}. {more}".rstrip()
    if ref := next((hit.ref for hit in result.shown() if hit.ref), None):
        yield f"Open the first: {to_copy('assoc-ingest', 'show', name=ref)}"


def _name_of(hit: Hit) -> str:
    """Return a name for a hit without a titled conversation: its file."""
    return (hit.file or "").rpartition("/")[2] if hit.session_key is None else "(untitled)"


def _marked_text(hit: Hit) -> str:
    """Return the snippet on one line, harmless, with its marks."""
    pieces = matches.parts(bare(hit))  # the marks would not survive being made harmless
    text = "".join(
        f"{OPEN}{safe(piece)}{CLOSE}" if found else safe(piece) for piece, found in pieces
    )
    return " ".join(text.split())


def _near_its_match(text: str, room: int) -> str:
    """Return the text from shortly before its first match on, if that would not be seen."""
    first = text.find(OPEN)
    if first < room * 2 // 3:
        return text
    start = text.find(" ", first - room // 3, first)
    return ELLIPSIS + text[max(start, first - room // 3) :].lstrip()


def _cut_marked(line: str, width: int) -> str:
    """Return a cut line; a match across the cut is closed."""
    room = width - 2  # for the ellipsis, and for the end of a match
    shown = line.removesuffix(ELLIPSIS)
    shown = cut(shown, room + 1) if columns(shown) > room else shown + ELLIPSIS
    return shown + CLOSE * (shown.rfind(OPEN) > shown.rfind(CLOSE))


def _painted(lines: Iterable[str], paint: Paint) -> Iterator[str]:
    """Yield the lines with their matches in colour or, without, in brackets."""
    is_match = False
    for line in lines:
        shown = ""
        for piece in _mark.split(line):
            if piece in (OPEN, CLOSE):
                is_match = piece == OPEN
                shown += "" if paint.enabled else "[" if is_match else "]"
            else:
                shown += paint(piece, "red", bold=True) if is_match else piece
        yield shown


def bare(hit: Hit) -> str:
    """Return the snippet without what the program wrapped its text in: JSON, or tags."""
    text = hit.snippet
    if hit.kind == "tool_use":
        text = _json_break.sub(" ", _json_frame.sub("", text)).replace('\\"', '"')
    elif hit.kind in _TAGGED:
        text = tags.without(text)
    return text


def who_of(hit: Hit) -> str:
    """Return the author of a message, or the place of another hit."""
    if hit.what != "message":
        return hit.what.replace("_", " ") if hit.what != "session" else "title"
    who = _WHO.get(hit.kind or "", (hit.kind or "").replace("_", " "))
    if hit.tool:
        who = f"{hit.tool} {who}"
    return f"{hit.subagent}: {who}" if hit.subagent else who


def named_source(hit: Hit) -> str | None:
    """Return the system that a hit comes from, None for the one that most of them come from."""
    return hit.source if hit.source != next(iter(SOURCES)) else None

"""What `blame` prints for people: the conversations below their grade, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator

from .. import humanize
from ..terminal import Paint, cut, one_line, wrap
from .blame import Blame
from .evidence import GRADES, Blamed

_INDENT = "    "
_TITLE = 60


def report(found: Blame, limit: int, each: int, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of at most `limit` conversations with `each` pieces of evidence."""
    for line in wrap(_heading(found.of), width):
        yield paint(line, bold=True)
    for note in found.notes:
        yield from wrap(one_line(note), width)
    grade = None
    for one in found.conversations.shown(0, limit, each):
        if one.grade != grade:
            grade = one.grade
            yield ""
            yield paint(f"{grade}: {GRADES[grade]}", "cyan")
        yield from _conversation(one, width, paint)
    more = len(found.conversations) - limit
    if more > 0:
        yield ""
        others = humanize.many(more, "more conversation")
        yield f"... and {others}. To see them: --limit {limit + more}"


def _heading(of: dict[str, object]) -> str:
    facts = [str(of["kind"]).replace("_", " "), str(of.get("path") or of["text"])]
    if of["kind"] == "line":
        facts[1] += f":{of['line']}"
    if name := of.get("hash"):
        facts[1:] = [*(facts[1:] if of["kind"] == "line" else ()), str(name)[:12]]
    facts += [str(of[name]) for name in ("url", "subject") if of.get(name)]
    if time := of.get("time"):
        facts.append(humanize.moment(str(time)))
    return one_line("  ".join(facts))


def _conversation(one: Blamed, width: int, paint: Paint) -> Iterator[str]:
    title = cut(one_line(one.title or "(untitled)"), _TITLE)
    facts = [one.key, title, one.project, one.branch, one.subagent, humanize.moment(one.time)]
    shown = " · ".join(one_line(fact) for fact in facts if fact)
    for number, line in enumerate(wrap(shown, width - 4)):
        yield f"{'  ' if not number else _INDENT}{line}"
    for place in one.evidence:
        grade = f"{place['grade']}: " if place["grade"] != one.grade else ""
        head = f"{_INDENT}{place['ref'] or one.key}  {grade}"
        yield head + cut(one_line(str(place["text"])), max(width - len(head), 20))
        yield paint(f"{_INDENT}  {one_line(str(place['file']))}, byte {place['byte']}", dim=True)
    if one.more:
        yield f"{_INDENT}... and {humanize.many(one.more, 'more place')}"

"""What `fix` prints for people: what ended the error, the most frequent first, and where."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from .. import humanize
from ..terminal import Paint, cut, one_line
from .fix import Fixes, said
from .fix_errors import NEVER

_INDENT = "    "
_TITLE = 60


def report(
    connection: sqlite3.Connection, found: Fixes, limit: int, each: int, width: int, paint: Paint
) -> Iterator[str]:
    """Yield the lines of at most `limit` endings with `each` errors."""
    yield paint(cut(one_line(found.error), width), bold=True)
    if not found.is_exact:
        yield "Nothing has exactly this error. The same one about something else:"
    yield said(found)
    yield from found.notes
    for fix in found.shown(connection, 0, limit, each):
        yield ""
        times = humanize.many(fix.count, "time")
        what = one_line(fix.what)
        yield paint(cut(f"{what} ({times}, last {humanize.moment(fix.time)})", width), "cyan")
        for one in fix.occurrences:
            yield from _occurrence(one, fix.kind, width)
        if fix.count > len(fix.occurrences):
            yield f"  ... and {fix.count - len(fix.occurrences):,} more"
    if len(found) > limit:
        yield ""
        yield f"... and {len(found) - limit:,} more. To see them: --limit {len(found)}"


def _occurrence(one: dict[str, object], kind: str, width: int) -> Iterator[str]:
    title = cut(one_line(str(one["title"] or "(untitled)")), _TITLE)
    facts = [one["key"], title, one["project"], humanize.moment(str(one["time"] or "") or None)]
    yield cut("  " + " · ".join(one_line(str(fact)) for fact in facts if fact), width)
    times = int(str(one["times"]))
    again = f" ({times:,} times)" if times > 1 else ""
    yield _line(one["ref"], f"failed{again}", one["command"] or one["error"], width)
    steps = one["steps"]
    for step in steps if isinstance(steps, list) else ():
        text = f"{step['target']}  {step['text']}" if step["text"] else step["target"]
        yield _line(step["ref"], step["action"], text, width)
    ended = one["ended"]
    if isinstance(ended, dict):
        yield _line(ended["ref"], "worked", ended["target"], width)
    elif kind == NEVER:
        yield _line(one["ref"], "error", one["error"], width)


def _line(ref: object, what: object, text: object, width: int) -> str:
    head = f"{_INDENT}{ref}  {what}  "
    return head + cut(one_line(str(text or "")), max(width - len(head), 20))

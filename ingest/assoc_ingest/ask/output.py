"""Rows on standard output: a table for people, or JSON, JSON lines and CSV for programs.

The table is for reading: times are local, sizes short, a session's key is cut to what still names
it. It fits the terminal: texts are cut, then columns left out from the right; empty ones are not
shown at all. In a pipe or a file nothing is cut. The other formats are exact.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import click

from .. import terminal
from ..terminal import (
    Figure,
    Paint,
    columns,
    for_programs,
    harmless,
    is_terminal,
    lost,
    safe_json,
    table,
    table_width,
)

if TYPE_CHECKING:
    import sqlite3

Row = Sequence[object]

_NARROWEST = (30, 24, 20, 16)
"""Columns that a text keeps before another is left out; fewer if the time or the cost needs it."""
_TIMES = ("timestamp", "first_activity", "last_activity", "last_edited")
_HEADERS = {"session_key": "key", "gone_count": "gone"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Format:
    """How rows are printed: the name of the format, and what belongs to it."""

    name: str = "table"
    """table, whole (a table with whole cells), json, nl or csv"""
    csv_safe: bool = False
    """Put a ' before cells that a spreadsheet would take for a formula."""


def write_rows(
    connection: sqlite3.Connection, names: Sequence[str], rows: Iterable[Row], form: Format
) -> None:
    """Print rows in a format that is not JSON."""
    if form.name == "nl":
        write_objects(dict(zip(names, row, strict=True)) for row in rows)
    elif form.name == "csv":
        write_csv(names, rows, form)
    elif listed := list(rows):
        write_table(connection, names, listed, whole=form.name == "whole")


def write_objects(objects: Iterable[Mapping[str, object]]) -> None:
    write((safe_json(item) + "\n" for item in objects), is_exact=True)


def write_csv(names: Sequence[str], rows: Iterable[Row], form: Format) -> None:
    write(_csv(names, rows, form.csv_safe), is_exact=True)


def write(pieces: Iterable[str], *, is_exact: bool = False) -> None:
    """Print pieces of text, as long as the reader takes them; `is_exact` if that is a program.

    Making the pieces must have no other effect: printing can stop at any of them.
    """
    stream = for_programs() if is_exact else sys.stdout
    for piece in pieces:
        stream.write(piece)
        if lost() is not None:
            return


def say(text: str) -> None:
    """Print words for the user, on standard error."""
    print(terminal.message(text), file=sys.stderr, flush=True)


class Marked(str):
    """A line at which a pager opens."""


def write_lines(lines: Iterable[str], *, has_mark: bool = False) -> None:
    """Print lines; on a terminal through the user's pager.

    Where one of them is marked, as `has_mark` says, `less` opens there: the lines before it are
    held in memory.
    """
    import os

    if not is_terminal(sys.stdout) or _no_pager():
        write(line + "\n" for line in lines)
        return

    found = iter(lines)
    before = []
    for line in found if has_mark else ():
        before.append(line)
        if isinstance(line, Marked):
            break
    options = os.environ.get("LESS", "-FRX")  # it ends at once if all fits the screen
    # Only less reads this. The blank line above the mark is the first on the screen.
    at = f" +{len(before) - 1}" if len(before) > 2 else ""
    os.environ["LESS"] = options + at
    click.echo_via_pager(harmless(line) + "\n" for line in chain(before, found))


def _no_pager() -> bool:
    import os

    context = click.get_current_context(silent=True)
    settings = (context and context.find_root().obj) or {}
    return "no_pager" in settings or os.environ.get("PAGER") in ("", "cat")


def write_table(
    connection: sqlite3.Connection,
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    whole: bool,
    has_total: bool = False,
) -> None:
    write_lines(table_lines(connection, names, rows, whole=whole, has_total=has_total))


def table_lines(
    connection: sqlite3.Connection,
    names: Sequence[str],
    rows: Sequence[Row],
    *,
    whole: bool,
    has_total: bool = False,
) -> list[str]:
    """Return the lines of a table; `whole` cuts no cell and leaves out no column.

    With `has_total` the last row is the sum of the others.
    """
    headers, shown = shown_cells(connection, names, rows)
    width = None if whole else table_width()
    if not whole:
        kept = _fitting(_shown_names(names), headers, shown, width)
        headers, shown = [headers[n] for n in kept], [[row[n] for n in kept] for row in shown]
    first, rule, *others = table(headers, shown, width)
    paint = Paint.for_stream(sys.stdout)
    if has_total:
        others[-1:] = [paint(rule, dim=True), paint(others[-1], bold=True)]
    return [paint(first, bold=True), paint(rule, dim=True), *others]


def shown_cells(
    connection: sqlite3.Connection, names: Sequence[str], rows: Sequence[Row]
) -> tuple[list[str], list[list[object]]]:
    """Return the headers and the cells of a table, as a person reads them."""
    show = _Cells(connection)
    cells = [dict(zip(names, row, strict=True)) for row in rows]
    named = _shown_names(names)
    shown = [[show(name, row[name], row) for name in named] for row in cells]
    return [_header(name) for name in named], shown


def _shown_names(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != "is_lower_bound"]  # the numbers have a sign


def _is_time(name: str) -> bool:
    return name in _TIMES or name.endswith("_at")


_TOKENS = ("output_tokens", "tokens", "estimated_output_tokens", "estimated_tokens")


class _Cells:
    """Values as a person reads them, by the name of their column."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __call__(self, name: str, value: object, row: Mapping[str, object]) -> object:
        if isinstance(value, str):
            if _is_time(name):
                return terminal.moment(value)
            if name == "session_key":
                from .refs import short_key  # a sync also prints, and needs nothing of this

                return short_key(self._connection, value)
        is_estimate = name.startswith("estimated_")
        if isinstance(value, float) and name.endswith("_usd"):
            unknown = terminal.unknown_of(name, row)
            return Figure(terminal.money(value, *unknown, currency="", is_estimate=is_estimate))
        if isinstance(value, int) and name in _TOKENS:
            partial, _ = terminal.unknown_of(name, row)
            exact = not is_estimate
            return Figure(terminal.tokens(value, partial, is_exact=exact, is_estimate=is_estimate))
        if isinstance(value, int) and name in ("size", "bytes", "read"):
            return terminal.size(value)
        if isinstance(value, int) and name.startswith(("is_", "on_disk")):
            return "yes" if value else "no"
        return _cell(value)


def _header(name: str) -> str:
    if name in _HEADERS:
        return _HEADERS[name]
    if name.endswith("_count"):
        name = name.removesuffix("_count") + "s"
    return name.removesuffix("_at").removesuffix("_key").replace("_", " ")


def _fitting(
    names: Sequence[str], headers: Sequence[str], rows: Sequence[Row], width: int | None
) -> list[int]:
    """Return the columns that hold anything and, from the left, fit when texts are narrowed.

    Texts are narrowed further where the first time or the first cost needs that.
    """
    widest = [
        max((columns(str(row[at])) for row in rows if row[at] is not None), default=0)
        for at in range(len(headers))
    ]
    held = [at for at in range(len(headers)) if widest[at]]
    times = [at for at in held if _is_time(names[at]) and names[at] != "gone_at"]
    costs = [at for at in held if names[at].endswith("cost_usd")]
    needed = {*times[:1], *costs[:1]}

    def fitting(narrowest: int) -> list[int]:
        kept: list[int] = []
        used = -2
        for at in held:
            used += 2 + max(min(widest[at], narrowest), columns(headers[at]))
            if width is not None and used > width and kept:
                break
            kept.append(at)
        return kept or [0]

    ways = map(fitting, _NARROWEST)
    return next((kept for kept in ways if needed <= {*kept}), fitting(_NARROWEST[0]))


def _csv(names: Sequence[str], rows: Iterable[Row], is_safe: bool) -> Iterator[str]:
    buffer = io.StringIO()
    import csv

    writer = csv.writer(buffer, lineterminator="\n")
    guard: Callable[[object], object] = _guarded if is_safe else lambda value: value
    for row in chain([names], rows):
        writer.writerow([guard(_cell(value)) for value in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _cell(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _guarded(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value

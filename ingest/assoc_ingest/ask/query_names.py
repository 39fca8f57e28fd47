"""Which query a name means, and which names there are.

`query` runs reports and lists, `list` runs lists. A name that neither knows is answered with the
nearest one, or with the command that does what the name asks for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .. import sql
from ..errors import UsageError
from ..sql import Query
from ..terminal import Paint, table
from .answer import Answer
from .near_names import did_you_mean
from .output import Format, say, write, write_csv, write_objects

_INTERNAL = {
    "search": (("search/", "search_"), "assoc-ingest search"),
    "pages": (("pages/", "show_"), "assoc-ingest show or assoc-ingest serve"),
}
"""Queries that no one runs by name: how their names begin, or once did, and who runs them."""

_HINT = (
    "Run one: assoc-ingest query NAME. For descriptions and parameters: assoc-ingest query --table"
)


def find_query(name: str) -> Query:
    """Return the report or list called `name`.

    Raises UsageError with the nearest name, or the command to use instead.
    """
    known = sql.named_queries()
    if name in known:
        return known[name]
    if name in sql.queries("lists"):
        raise UsageError(f"{name!r} is a list, so run: assoc-ingest list {name}")
    for folder, (beginnings, command) in _INTERNAL.items():
        if name.startswith(beginnings) or name in sql.queries(folder):
            raise UsageError(f"{name!r} is not a query to run by name; use {command}.")
    hint = did_you_mean(_as_query(name), known) or " To see them all: assoc-ingest query"
    raise UsageError(f"No query named {name!r}.{hint}")


def find_list(what: str) -> Query:
    """Return the list called `what`; raise UsageError with the nearest, or all there are."""
    known = sql.queries("lists")
    if what in known:
        return known[what]
    if what in sql.queries("reports"):
        raise UsageError(f"{what!r} is a report, so run: assoc-ingest query {what}")
    hint = did_you_mean(_as_query(what), known) or f" There are: {', '.join(known)}."
    raise UsageError(f"No list named {what!r}.{hint}")


def write_query_names(form: Format) -> None:
    """Print the reports: name and title below a heading, or all there is to say of them."""
    headings = sql.reports_by_heading()
    described = [_described(report) for found in headings.values() for report in found]
    names = list(described[0])
    rows = [[_text(value) for value in item.values()] for item in described]
    if form.wanted is not None:
        answer = Answer(None, ["query"], form.wanted)
        write(answer.pieces(described[answer.start :], total=len(described)))
    elif form.name == "nl":
        write_objects(described)
    elif form.name == "csv":
        write_csv(names, rows, form)
    elif form.name == "whole":
        write(line + "\n" for line in table(names, rows))
    else:
        write(_listing(headings))
        say(f"\n{_HINT}")


def _described(report: Query) -> dict[str, object]:
    return {
        "name": report.name,
        "group": report.group,
        "title": report.title,
        "description": report.description,
        "parameters": list(report.parameters),
    }


def _text(value: object) -> object:
    return ", ".join(value) if isinstance(value, list) else value


def _listing(headings: dict[str, list[Query]]) -> Iterator[str]:
    paint = Paint.for_stream(sys.stdout)
    width = max(len(report.name) for found in headings.values() for report in found)
    for number, (heading, reports) in enumerate(headings.items()):
        yield "\n" * bool(number) + paint(heading, bold=True) + "\n"
        for report in reports:
            yield f"  {report.name:{width}}  {report.title}\n"


def _as_query(name: str) -> str:
    """Return a name as those of queries are written."""
    return name.casefold().replace("-", "_").removeprefix("ask_")

"""`query`: the rows of a report, or which reports there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from .question import Field, Reader, Size, Table, question

if TYPE_CHECKING:
    import sqlite3

    from ..ask.filters import Nothing
    from ..sql import Query
    from ..terminal import Paint

_INTERNAL = {
    "search": (("search/", "search_"), "assoc-ingest search"),
    "pages": (("pages/", "show_"), "assoc-ingest show or assoc-ingest serve"),
}
"""Queries that nobody runs by name: how their names begin, or once did, and who runs them."""

_NUMBERS = {"limit", "days"}
"""Parameters that take a number; SQLite would read any other text as 0."""

_HINT = (
    "Run one: assoc-ingest query NAME. For descriptions and parameters: assoc-ingest query --table"
)


@dataclass
class Rows:
    """The rows of a report; the reports, if none is named."""

    nothing: Annotated[dict[str, object] | None, "why there are no rows"]
    total: Annotated[int, "All rows."]
    items: Annotated[list[dict[str, object]], "Rows."]
    columns: list[str]
    _notes: list[str]
    _is_index: bool = False

    def table(self, limit: int = 0, *, is_exact: bool = False) -> Table:
        """Return the rows, which are limited already."""
        rows = [tuple(item.values()) for item in self.items]
        return Table(rows, self._notes, lines=_headings if self._is_index else None)


def _check(name: str | None, remote: bool, **_: object) -> None:
    from ..errors import UsageError
    from ..sql import OF_ONE_MACHINE

    if remote and name in OF_ONE_MACHINE:
        raise UsageError(f"{name} describes a single machine: run it there, without --remote.")


@question(
    "Reports",
    items="rows",
    about="",
    check=_check,
    is_static=lambda name, **_: name is None,
    terminal=Size(0), json=Size(100),
)  # fmt: skip
def query(
    reader: Reader,
    name: Annotated[
        str | None, Field("The name of the query.", completes="reports", is_argument=True)
    ] = None,
    parameters: Annotated[
        dict[str, str] | None,
        Field("Set a parameter of the query; parameters not given are NULL.", "NAME VALUE"),
    ] = None,
    remote: Annotated[
        bool, Field("Use the fleet server, with the data of all machines.", is_option=True)
    ] = False,
) -> Rows:
    """Run a built-in query.

    Without NAME, list the queries by subject, one line each.

    \b
    Examples:
      assoc-ingest query
      assoc-ingest query most_edited_files -p project shop --csv
      assoc-ingest query tool_use --remote
    """
    from .. import sql

    if name is None:
        headings = sql.reports_by_heading()
        described = [_described(report) for reports in headings.values() for report in reports]
        items, names = [*reader.page(described)], [*described[0]]
        return Rows(None, len(described), items, names, ["", _HINT], _is_index=True)
    report, given = find_query(name), parameters or {}
    bound = _bound(reader.db, report, given)
    limit = total = None
    if "limit" in bound and not bound["limit"]:  # the query limits itself
        limit = reader.start + reader.limit if reader.has_limit else None
        total = sql.count(reader.db, report, {**bound, "limit": -1})
    cursor = reader.db.execute(report.sql, {**bound, **({"limit": limit} if limit else {})})
    columns = [column[0] for column in cursor.description]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor]
    total = len(rows) if total is None else total
    why = None if total else _why_no_rows(reader.db, report, given)
    items = [*reader.page(rows)]
    notes = []
    if why is not None:
        others = f" {_parameters_of(report)}" if None in bound.values() else ""
        notes = [f"No rows.{others}", *why.lines("row")]
    elif total > len(items):
        notes = [f"Only the first {len(items)} of {total:,} rows are shown; --limit 0 shows all."]
    return Rows(why and why.as_json(), total, items, columns, notes)


def find_query(name: str) -> Query:
    """Return the report or list called `name`.

    Raises UsageError with the nearest name, or the command to use instead.
    """
    from .. import sql
    from ..errors import UsageError, did_you_mean

    queries = sql.named_queries()
    if name in queries:
        return queries[name]
    if name in sql.queries("lists"):
        raise UsageError(f"{name!r} is a list, so run: assoc-ingest list {name}")
    usage, _, by = sql.normalized(name).partition("_by_")
    if usage == "usage":
        by = f" --by {by.removesuffix('_type')}" if by else ""
        raise UsageError(f"{name!r} is answered by: assoc-ingest stats{by}")
    for folder, (beginnings, command) in _INTERNAL.items():
        if name.startswith(beginnings) or name in sql.queries(folder):
            raise UsageError(f"{name!r} cannot be run by name; use {command}.")
    hint = did_you_mean(sql.normalized(name), queries) or " To see them all: assoc-ingest query"
    raise UsageError(f"No query named {name!r}.{hint}")


def _bound(
    connection: sqlite3.Connection, report: Query, given: Mapping[str, str]
) -> dict[str, object]:
    """Return all parameters of a query as it takes them. Raises UsageError for what it does not."""
    from ..ask.filters import Filters, parameter_of
    from ..errors import UsageError

    unknown = [name for name in given if parameter_of(name) not in report.parameters]
    if unknown:
        raise UsageError(f"{report.name} has no parameter {unknown[0]!r}. {_parameters_of(report)}")
    for name in _NUMBERS & given.keys():
        if not _is_number(given[name]):
            raise UsageError(f"The parameter {name} takes a number, not {given[name]!r}.")
    filters = Filters.of(given).parameters(connection)
    limited = set(map(parameter_of, given))
    return {
        name: filters[name] if name in limited and name in filters else given.get(name)
        for name in report.parameters
    }


def _is_number(text: str) -> bool:
    """Is this a number, or nothing, which leaves the parameter out?"""
    digits = text.removeprefix("-").replace(".", "", 1)
    return not text or (digits.isascii() and digits.isdecimal())


def _why_no_rows(
    connection: sqlite3.Connection,
    report: Query,
    given: Mapping[str, str],
) -> Nothing:
    """Say how many rows a query has without each of its parameters, and without all of them."""
    from .. import sql
    from ..ask.filters import FILTERS, Filters, Nothing

    names = [name for name, value in given.items() if value and name != "limit"]
    if not names:
        return Nothing((), 0)

    def count(*without: str) -> int:
        left = {name: value for name, value in given.items() if name not in without}
        return sql.count(connection, report, {**_bound(connection, report, left), "limit": -1})

    filters = Filters.of(given)
    words = [filters.told(name) if name in FILTERS else f"{name} {given[name]}" for name in names]
    alone = [(name, told, count(name)) for name, told in zip(names, words, strict=True)]
    return Nothing(tuple(one for one in alone if one[2]), count(*names))


def _parameters_of(report: Query) -> str:
    from ..ask.filters import FILTERS

    if not report.parameters:
        return "It has no parameters."
    names = (one.name for one in FILTERS.values() if one.of in report.parameters)
    return f"Parameters: {', '.join([*report.parameters, *names])}."


# -- the reports there are -------------------------------------------------------------------------


def _described(report: Query) -> dict[str, object]:
    return {
        "name": report.name,
        "group": report.group,
        "title": report.title,
        "description": report.description,
        "parameters": list(report.parameters),
    }


def _headings(paint: Paint) -> Iterator[str]:
    """Yield the reports, one line each, below the heading of their group."""
    from .. import sql

    headings = sql.reports_by_heading()
    width = max(len(report.name) for reports in headings.values() for report in reports)
    for number, (heading, reports) in enumerate(headings.items()):
        if number:
            yield ""
        yield paint(heading, bold=True)
        yield from (f"  {report.name:{width}}  {report.title}" for report in reports)

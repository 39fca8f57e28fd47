"""The reports, lists and questions as pages: all by group, and a form for each."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import sql
from ..ask.filters import Filters
from ..questions import QUESTIONS
from ..questions.question import Answer, Parameter, Question, Reader, context, named
from ..questions.stats import Usage
from ..sql import Query
from . import pages, search_page, usage
from .forms import FIELDS, Field, chips, of_parameter
from .pages import PageError
from .urls import Paths, of_reference, with_query

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# The pages of questions: a form with the parameters, and the template of the question.
#
# A page reads only the database: anybody may ask, so no file or repository that they name is
# opened.


TABLES = (*search_page.TABLES, "tool_calls", "links")
_DUE_DAYS = 7
_LONGEST = 20_000  # letters of a value: a traceback is long


def views(names: Sequence[str] = ()) -> list[tuple[str, Callable[[Datasette, Request], Any]]]:
    """Return the path and the view of each page, or of those with these names."""
    names = names or [one.name for one in _questions()]
    return [(rf"^/(?P<database>[^/]+)/-/{name}/?$", partial(_view, name)) for name in names]


def _questions() -> list[Question]:
    return [one for one in map(named, QUESTIONS) if "web" in one.sizes]


def links(datasette: Datasette, database: str) -> list[tuple[str, str, str]]:
    """Return the title, the address and the first sentence of the help of each page."""
    base = datasette.urls.database(database)
    return [(one.title, f"{base}/-/{one.name}", one.help.split("\n")[0]) for one in _questions()]


async def _view(name: str, datasette: Datasette, request: Request) -> Response:
    question, database = named(name), pages.named(request, "database")
    here = f"{datasette.urls.database(database)}/-/{name}"
    fields = ((one, one.field) for one in question.parameters())
    parameters = [
        one
        for one, field in fields
        if not (field.is_option or field.is_for_agents or field.needs_disk)
    ]
    given = {one.name: (request.args.get(one.name) or "").strip() for one in parameters}
    if any(len(value) > _LONGEST for value in given.values()):
        raise PageError(400, f"A value is longer than {_LONGEST:,} characters.")
    is_asked = all(given[one.name] for one in parameters if one.is_required)
    number = pages.page_number(request.args.get("page"))
    size = question.sizes["web"]

    is_usage = name == "stats"

    def address(**changes: object) -> str:
        return with_query(here, {**given, **changes})

    def without(*names: str) -> str:
        return address(**dict.fromkeys(names))

    def read(connection: sqlite3.Connection) -> dict[str, object]:
        start = (number - 1) * size.items
        reader = Reader(connection, size.items, size.each, (start,), has_disk=False)
        if is_usage and not (given["when"] or given["since"] or given["until"]):
            given["when"] = usage.default_period(connection)
        values = question.arguments({one.name: _value(one, given[one.name]) for one in parameters})
        paths = Paths(datasette, database)

        def more(answer: Answer) -> dict[str, object]:
            if isinstance(answer, Usage):
                return usage.page(connection, answer, given, address, paths)
            return _due(connection, paths) if name == "status" else {}

        return answered(question, reader, values, paths.session, more)

    shown: dict[str, object] = {
        "title": question.title,
        "database": database,
        "about": question.help.split("\n\n")[0],
        "here": here,
        "fields": [*map(of_parameter, parameters)],
        "given": {one.name: given[one.name] or one.default or "" for one in parameters},
        "number": number,
        "is_folded": is_usage,
        "page_address": lambda page: address(page=page),
        "body": None,
        "chosen": [],
        "has_more": False,
    }
    tables = (*TABLES, *question.tables)
    await pages.read(datasette, request, database, tables, lambda connection: None)
    if is_asked:
        shown |= await pages.read(datasette, request, database, tables, read)
        filters = Filters.of({one.name: given[one.name] for one in parameters if one.filters})
        shown["chosen"] = list(chips(filters, without, {}))
        shown["without_all"] = without(*filters.given())
    return await pages.page(datasette, request, "question", shown)


def _value(parameter: Parameter, text: str) -> object:
    """Return the value of a field of the form, None if it is empty."""
    if parameter.choices and text and text not in parameter.choices:
        raise PageError(400, f"{parameter.name} is one of {', '.join(parameter.choices)}.")
    if parameter.type is list:
        return tuple(filter(None, [text]))
    if parameter.type is not int or not text:
        return text or None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= parameter.field.most):
        raise PageError(400, f"{parameter.name} is a number from 1 to {parameter.field.most:,}.")
    return int(text)


def answered(
    question: Question,
    reader: Reader,
    values: dict[str, object],
    path: Callable[[str], str],
    more: Callable[[Answer], dict[str, object]] = lambda answer: {},
) -> dict[str, object]:
    """Return the answer as a page shows it; `more` finds what its template knows besides."""
    from ..questions.view import page_table, rendered

    answer = question.ask(reader, **values)
    items = answer.items if question.items else None
    known = {
        **context(answer),
        "open": partial(of_reference, path),
        "table": partial(page_table, reader.db),
    }
    known |= more(answer)
    body = rendered(question.name, "html", "empty" if items == [] else "answer", known)
    has_more = items is not None and answer.total > reader.start + len(items)
    return {"body": body, "has_more": has_more}


def _due(connection: sqlite3.Connection, paths: Paths) -> dict[str, object]:
    """Return which files agents will delete soon."""
    # days_left is cut to whole days, so less than a day more counts.
    before = datetime.now(UTC) + timedelta(days=_DUE_DAYS + 1)
    return {
        "paths": paths,
        "due_days": _DUE_DAYS,
        "due_before": f"{before:%Y-%m-%dT%H:%M:%S.000Z}",
        "due": pages.ask(connection, "reports/retention_by_session", days=_DUE_DAYS, limit=20),
        "due_totals": sql.ask(connection, "reports/retention_totals", days=_DUE_DAYS).fetchone(),
    }


LISTS = "Lists"
"""The heading of the queries of `list`."""

_VALUES = 200  # of a field, to choose from
_LONGEST_VALUE = 200  # letters of one
_ALL = ("-1", str(2**63 - 1))
_parameter = re.compile(r":(\w+)")
_default = re.compile(r"nullif\(:(\w+), ''\), '?(-?\w+)")
_TABLES = ("sessions", "projects", "sources")


@dataclass(frozen=True, slots=True)
class Report:
    """A report or a list, as its page and the page of all reports show it."""

    name: str
    title: str
    description: str
    fields: Sequence[Field] = ()

    @property
    def line(self) -> str:
        return self.description.split(". ")[0].rstrip(".") + "."


SUMMED = frozenset({
    "calls", "cost_usd", "edits", "errors", "message_count", "prompt_count", "responses", "size",
    "tool_call_count", "unpriced", "partial", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens",
})  # fmt: skip
"""Columns whose sum over the rows of a report means something."""

_ALTERNATIVES = frozenset({"ask-usage-reconciliation"})
"""Reports whose rows count the same things."""


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the page with all reports and lists of a database."""
    from datasette.utils import tilde_decode

    database = tilde_decode(request.url_vars["database"])
    await pages.read(datasette, request, database, (), lambda connection: None)
    context: dict[str, object] = {
        "title": "Reports",
        "database": database,
        "questions": links(datasette, database),
        "groups": grouped(),
        "address": lambda name: datasette.urls.query(database, name),
    }
    return await pages.page(datasette, request, "reports", context)


def grouped() -> dict[str, list[Report]]:
    found: dict[str, list[Report]] = {heading: [] for heading in (*sql.GROUPS.values(), LISTS)}
    for name, query in pages.for_people().items():
        heading = LISTS if query.folder == "lists" else sql.GROUPS[query.group]
        found[heading].append(Report(name, query.title, _told(query)))
    return {heading: reports for heading, reports in found.items() if reports}


async def report_of(datasette: Any, request: Any, database: str, name: str | None) -> Report | None:
    """Return the report or list of this name with its form, None if there is none."""
    query = pages.for_people().get(name or "")
    if name is None or query is None:
        return None
    known = await _known(datasette, request, database)
    return Report(name, query.title, _told(query), list(_fields(query, known)))


def _told(query: Query) -> str:
    """Return a description with the parameters as the form calls them."""

    def called(match: re.Match[str]) -> str:
        return f"“{FIELDS[match[1]].label}”" if match[1] in FIELDS else match[0]

    # "The newest :limit files (default 30)" has what the field says already.
    text = query.description.replace(":limit ", "")
    return _parameter.sub(called, text)


def _fields(query: Query, known: Mapping[str, Sequence[str]]) -> Iterator[Field]:
    defaults = dict(_default.findall(query.sql))
    for name in query.parameters:
        field = FIELDS[name]
        default = defaults.get(name)
        given = "all" if default is None or default in _ALL else default
        example, values = field.example.format(default=given), tuple(known.get(name, ()))
        if example == "all" and values:
            example += f"; such as {values[0]}"
        yield field._replace(example=example, suggestions=values)


def totals(
    report: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> list[tuple[float, bool] | None]:
    """Return the sum of each column, and whether it is a lower bound; None where it has none.

    Datasette's rows hold text.
    """
    summed = SUMMED if len(rows) > 1 and report not in _ALTERNATIVES else ()
    return [
        _sum([str(row[place]) for row in rows]) if name in summed else None
        for place, name in enumerate(columns)
    ]


def _sum(cells: Sequence[str]) -> tuple[float, bool]:
    is_lower_bound = any(cell.startswith("≥") for cell in cells)
    return sum(_number(cell.removeprefix("≥")) for cell in cells), is_lower_bound


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:  # an empty cell
        return 0.0


async def _known(datasette: Any, request: Any, database: str) -> Mapping[str, Sequence[str]]:
    """Return the projects, models and sources to choose from; none if they may not be seen."""
    from datasette import Forbidden

    try:
        return await pages.read(datasette, request, database, _TABLES, _values)
    except (Forbidden, PageError):
        return {}


def _values(connection: sqlite3.Connection) -> dict[str, list[str]]:
    values: dict[str, list[str]] = defaultdict(list)
    for row in sql.ask(connection, "pages/conversation_values", limit=_VALUES):
        text = str(row["text"] or "")
        if 0 < len(text) <= _LONGEST_VALUE and text not in values[row["what"]]:
            values[row["what"]].append(text)
    return values

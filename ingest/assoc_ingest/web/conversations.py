"""The lists of conversations: the first page, and all of them, filtered, in one of three orders.

Filters are parameters of the address, so that other pages link to what they count. Months and days
are those of the local calendar, as all times on the pages are local.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from .. import sql, terminal
from ..ask import times
from ..ask.filters import Filters, nothing
from ..ask.usage import partial_responses, with_estimates
from ..terminal import one_line
from . import pages, serve
from . import usage as charts
from .forms import FIELDS, Field, chips, shown_name
from .pages import PageError, is_for_us, our_databases
from .urls import Paths, with_query

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


TABLES = (
    "sessions", "projects", "sources", "messages", "tool_calls", "files", "responses", "prices"
)  # fmt: skip
PAGE = 50
"""Conversations on a page."""

SORTS = {"": "Newest first", "cost": "Highest cost first", "messages": "Longest first"}
FILTERS = (
    "project", "branch", "model", "source", "status", "month", "day", "since", "until", "errors",
    "min_cost",
)  # fmt: skip
_HIDDEN = ("day", "since", "until", "status")  # in the form: other pages link with them
_VALUES = 100  # of a field of the form
_LONGEST_VALUE = 1_000  # letters of a value that a form or a link holds
_LONGEST_TITLE = 120
_MOST_MODELS = 2  # of a conversation


async def view(datasette: Datasette, request: Request) -> Response:
    database = pages.named(request, "database")
    asked = {name: request.args.get(name) or "" for name in (*FILTERS, "sort")}
    if asked["sort"] not in (*SORTS, "newest"):
        orders = ", ".join(["newest", *filter(None, SORTS)])
        raise PageError(400, f"Unknown order {asked['sort']!r}. Choose one of: {orders}.")
    number = pages.page_number(request.args.get("page"))
    here = Paths(datasette, database).list()
    context = await pages.read(
        datasette, request, database, TABLES,
        lambda connection: _read(connection, asked, number, here),
    )  # fmt: skip
    context |= {
        "title": "Conversations",
        "database": database,
        "asked": asked,
        "number": number,
        "here": here,
        "page_address": lambda page: with_query(here, {**asked, "page": str(page)}),
    }
    return await pages.page(datasette, request, "conversations", context)


def wanted(connection: sqlite3.Connection, asked: Mapping[str, str]) -> dict[str, object]:
    """Return the parameters of the query `pages/conversations` for those of an address.

    Raises PageError, UsageError or NotFoundError for a value that means nothing.
    """
    for name, value in asked.items():
        if len(value) > _LONGEST_VALUE:
            raise PageError(400, f"The value of {name} is too long.")
    parameters = Filters.of(asked).parameters(connection)
    query = sql.query("pages/conversations").parameters
    accepted = {name: value for name, value in parameters.items() if name in query}
    return {**accepted, "sort": asked.get("sort")}


def rows(
    connection: sqlite3.Connection, limit: int, **wanted: object
) -> tuple[list[pages.Row], int]:
    conversations = pages.ask(connection, "pages/conversations", "models", limit=limit, **wanted)
    ids = json.dumps([row["id"] for row in conversations])
    usage = {row["id"]: row for row in sql.ask(connection, "pages/sessions_usage", sessions=ids)}
    ends = dict(map(tuple, sql.ask(connection, "pages/session_ends", sessions=ids)))
    unsure = [row for row in conversations if usage[row["id"]]["partial"]]
    partial = partial_responses(connection, unsure, "session_id")
    costs = [{"cost_usd": usage[row["id"]]["cost_usd"]} for row in conversations]
    parts = [partial.get((row["id"],), []) for row in conversations]
    for row, costed in zip(conversations, with_estimates(connection, costs, parts), strict=True):
        title = one_line(row["title"] or "") or "(untitled)"
        models = json.loads(row["models"] or "[]")
        row["title"] = title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "…"
        row["models"] = [pages.cut(one_line(str(model))) for model in models[:_MOST_MODELS]]
        row["more_models"] = len(models) - len(row["models"])
        row["cost"] = _cost(usage[row["id"]])
        row["cost_usd"] = costed["cost_usd"]
        row["estimate"] = ""
        if (estimate := costed["estimated_cost_usd"]) is not None:
            unpriced = usage[row["id"]]["unpriced"]
            row["estimate"] = terminal.money(estimate, 0, unpriced, is_estimate=True)
        row["git_branch"] = terminal.branch_besides(row["project"], row["git_branch"])
        row["state"] = ends.get(row["id"])
    return conversations, conversations[0]["total"] if conversations else 0


def _read(
    connection: sqlite3.Connection, asked: Mapping[str, str], number: int, here: str
) -> dict[str, object]:
    parameters = wanted(connection, asked)
    project = _project(connection, parameters["project"])
    offset = (number - 1) * PAGE
    conversations, total = rows(connection, PAGE, offset=offset, **parameters)
    if number > 1 and not conversations:
        raise PageError(
            404, f"There is no page {number} of this list.",
            [("First page", with_query(here, asked))],
        )  # fmt: skip
    values = _values(connection, asked, project)
    left = []
    if not total:
        why = nothing(Filters.of(asked), lambda other: count_of(connection, _given(other)))
        left = [*why.lines("conversation")]
    return {
        "rows": conversations,
        "total": total,
        "left": left,
        "has_more": offset + len(conversations) < total,
        "chosen": list(
            chips(
                Filters.of(asked),
                lambda name: with_query(here, {**asked, name: ""}),
                {"project": project or ""},
            )
        ),
        "fields": [*_fields(values)],
        "hidden": _HIDDEN,
        "has_sources": len(values["source"]) > 1,
        "colour": charts.of_models(connection),
    }


def count_of(connection: sqlite3.Connection, asked: Mapping[str, str]) -> int:
    return rows(connection, 1, **wanted(connection, asked))[1]


def _given(filters: Filters) -> dict[str, str]:
    return {name: "1" if value is True else str(value) for name, value in filters.given().items()}


def _project(connection: sqlite3.Connection, ids: object) -> str | None:
    """Return the name of the first of the projects in a JSON array."""
    if not ids:
        return None
    row = sql.ask(connection, "pages/project", id=json.loads(str(ids))[0]).fetchone()
    return _name(row["name"] or row["key"])


def _values(
    connection: sqlite3.Connection, asked: Mapping[str, str], project: str | None
) -> dict[str, dict[str, str]]:
    """Return the values that the form offers, each with its text; those chosen are among them."""
    values: dict[str, dict[str, str]] = {"project": {}, "model": {}, "source": {}}
    for row in sql.ask(connection, "pages/conversation_values", limit=_VALUES):
        key = str(row["key"])
        if len(key) <= _LONGEST_VALUE:
            values[row["what"]][key] = _name(row["text"])
    for name, choices in values.items():
        if asked[name]:
            text = project if name == "project" else None
            choices.setdefault(asked[name], text or _name(asked[name]))
    return values


def _fields(values: Mapping[str, Mapping[str, str]]) -> Iterator[Field]:
    """Yield the fields of the form; a source can be chosen if there are several."""
    for name in (name for name in FILTERS if name not in _HIDDEN):
        field = FIELDS[name]
        if name in values:
            field = field._replace(choices={"": "all", **values[name]})
        if name == "errors":  # stands at the end
            yield Field("sort", "Order", choices=SORTS)
        if name != "source" or len(values[name]) > 1:
            yield field


def _name(text: object) -> str:
    return shown_name(text, "(unnamed)")


def _cost(usage: sqlite3.Row) -> str:
    cost, unpriced, partial = usage["cost_usd"], usage["unpriced"], usage["partial"]
    return "" if cost is None and not unpriced else terminal.money(cost, partial, unpriced)


# ------------------------------------------------------------------------------------------------
# The first page: a search, the newest conversations, projects, five weeks of days, and freshness.
#
# It is at `/-/assoc`, and also at `/` under `serve` and if the only database is one of ours.
# Datasette's own first page stays at `/-/`. The last seven days end today; the calendar ends with
# the newest activity, so that an old record can be read.


FRONT_TABLES = (*TABLES, "issues", "sync_runs")
NEWEST, PROJECTS, WEEKS = 20, 12, 5
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar: `day` as in 2026-01-31, and how dark it is."""

    day: str
    number: int
    conversations: int
    shade: int


@dataclass(frozen=True, slots=True)
class Span:
    """A common period as filters of the list, and the number of its conversations."""

    text: str
    asked: dict[str, str]
    conversations: int


async def home(datasette: Datasette, request: Request) -> Response:
    """Return the page at `/`: our first page if the server is ours, else Datasette's."""
    is_first = serve.is_switched_on() or len(await our_databases(datasette)) == 1
    is_ours = is_first and await is_for_us(datasette)
    if is_ours and await pages.databases(datasette, request, FRONT_TABLES):
        return await front(datasette, request)
    return await pages.index(datasette, request)


async def front(datasette: Datasette, request: Request) -> Response:
    """Return the first page of the database `?db=`, else of the first assoc-ingest database."""
    database, names = await pages.database_of(datasette, request, FRONT_TABLES)
    context = await pages.read(datasette, request, database, FRONT_TABLES, _read_front)
    context |= {
        "title": "Conversations",
        "database": database,
        "databases": names,
        "weekdays": _WEEKDAYS,
    }
    return await pages.page(datasette, request, "front", context)


def _read_front(connection: sqlite3.Connection) -> dict[str, object]:
    newest = sql.ask(connection, "pages/newest_session").fetchone()["ended_at"]
    conversations, total = rows(connection, NEWEST)
    projects = [pages.brief(row) for row in sql.ask(connection, "pages/dashboard_projects")]
    here = [row for row in projects if row["path"] is None or row["on_disk"] != 0]
    return {
        "rows": conversations,
        "total": total,
        "several": len({row["agent"] for row in conversations}) > 1,
        "projects": here[:PROJECTS],
        "has_more_projects": len(projects) > min(len(here), PROJECTS),
        "elsewhere": len(projects) - len(here),
        "weeks": _weeks(connection, newest) if newest else [],
        "spans": list(_spans(connection, newest)) if newest else [],
        "fresh": sql.ask(connection, "pages/fresh").fetchone(),
        "read": sql.ask(connection, "pages/indexed_files").fetchone(),
    }


def _spans(connection: sqlite3.Connection, newest: str) -> Iterator[Span]:
    """Yield the last seven days, and the month of the newest activity, with their lists.

    If nothing was done in the last seven days, there are those before the newest activity, too.
    """
    last = datetime.fromisoformat(newest).astimezone().date()
    week = _span(connection, "The last 7 days", times.present().date())
    yield week
    if not week.conversations:
        yield _span(connection, "The 7 days up to the latest activity", last)
    month = f"{last:%Y-%m}"
    asked = {"month": month}
    count = count_of(connection, asked)
    yield Span(f"{month}, the highest cost first", {**asked, "sort": "cost"}, count)


def _span(connection: sqlite3.Connection, text: str, last: date) -> Span:
    first = max(last - timedelta(days=6), date(2000, 1, 1))  # before all times that are stored
    asked = {"since": f"{first}", "until": f"{last}"}
    count = count_of(connection, asked)
    return Span(f"{text} ({terminal.days(first, last, times.present().date())})", asked, count)


def _weeks(connection: sqlite3.Connection, newest: str) -> list[list[Day | None]]:
    """Return the weeks up to the newest activity; None stands for the days after it."""
    last = datetime.fromisoformat(newest).astimezone().date()
    days = _days_before(last)
    spans = json.dumps([(_begin(day), _begin(day + timedelta(days=1))) for day in days])
    counts = [row["conversations"] for row in sql.ask(connection, "pages/days", days=spans)]
    top = max(counts)
    calendar: list[Day | None] = [
        Day(f"{day}", day.day, count, charts.shade(count, top))
        for day, count in zip(days, counts, strict=True)
    ]
    calendar += [None] * (-len(calendar) % 7)
    return [calendar[start : start + 7] for start in range(0, len(calendar), 7)]


def _days_before(last: date) -> list[date]:
    """Return the days from a Monday some weeks ago to the last one."""
    count = 7 * (WEEKS - 1) + last.weekday() + 1
    return [last - timedelta(days=ago) for ago in reversed(range(count))]


def _begin(day: date) -> str:
    """Return when a local day begins, as times are stored."""
    return f"{datetime.combine(day, time()).astimezone(UTC):%Y-%m-%dT%H:%M:%S.000Z}"

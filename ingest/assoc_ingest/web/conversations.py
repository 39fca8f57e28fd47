"""The lists of conversations: the first page, and all of them, filtered, in one of three orders.

Filters are parameters of the address, so that other pages link to what they count. Months and days
are those of the local calendar, as all times on the pages are local.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import sql, terminal
from ..ask import times
from ..ask.filters import Filters, nothing
from ..ask.projects import find_projects
from ..questions.list import count, find_list, parameters, with_costs
from ..questions.question import Reader, named
from ..questions.recap import is_short
from ..terminal import one_line
from . import pages, reports, serve
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

BESIDE = 30
"""Conversations in the list beside one of them."""

SORTS = {"": "Newest first", "cost": "Highest cost first", "messages": "Longest first"}
FILTERS = (
    "project", "repository", "branch", "model", "source", "status", "month", "day", "since",
    "until", "min_cost", "errors",
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
        "kept": with_query("", {name: asked[name] for name in FILTERS}),
        "number": number,
        "here": here,
        "page_address": lambda page: with_query(here, {**asked, "page": str(page)}),
    }
    return await pages.page(datasette, request, "conversations", context)


def _filters(asked: Mapping[str, str]) -> Filters:
    for name, value in asked.items():
        if len(value) > _LONGEST_VALUE:
            raise PageError(400, f"The value of {name} is too long.")
    return Filters.of(asked)


def rows(
    connection: sqlite3.Connection, filters: Filters, limit: int, start: int = 0, order: str = ""
) -> list[pages.Row]:
    """Return conversations of the list of sessions as a page shows them."""
    listed = find_list("sessions")
    given = parameters(connection, listed, filters)
    found = sql.ordered(connection, listed, given, order, limit, start)
    ends = sql.ask(connection, "pages/session_ends", sessions=json.dumps([r["id"] for r in found]))
    states = dict(map(tuple, ends))
    return [
        _shown(row, states.get(row["id"])) for row in with_costs(connection, [*map(dict, found)])
    ]


def _shown(row: Mapping[str, Any], state: str | None) -> pages.Row:
    models = row["models"]
    cost, unpriced, estimate = row["cost_usd"], row["unpriced"], row["estimated_cost_usd"]
    is_known = cost is not None or unpriced
    return pages.brief({
        **row,
        "title": _cut_title(row["title"]),
        "models": [pages.cut(one_line(str(model))) for model in models[:_MOST_MODELS]],
        "more_models": max(len(models) - _MOST_MODELS, 0),
        "cost": terminal.money(cost, row["partial"], unpriced) if is_known else "",
        "estimate": "" if estimate is None
        else terminal.money(estimate, 0, unpriced, is_estimate=True),
        "state": state,
    })  # fmt: skip


def beside(
    connection: sqlite3.Connection, asked: Mapping[str, str], current: Mapping[str, Any]
) -> list[pages.Row]:
    """Return the newest conversations with these filters; if need be, the current one is first."""
    listed = find_list("sessions")
    given = parameters(connection, listed, _filters(asked))
    sessions = sql.ordered(connection, listed, given, "", BESIDE, 0)
    newest: list[Mapping[str, Any]] = [*map(dict, sessions)]
    if all(row["session_key"] != current["session_key"] for row in newest):
        newest.insert(0, current)
    return [
        pages.brief({
            "session_key": row["session_key"],
            "title": _cut_title(row["title"]),
            "project": row["project"],
            "ended_at": row["ended_at"],
            "is_here": row["session_key"] == current["session_key"],
        })
        for row in newest
    ]  # fmt: skip


def _cut_title(title: str | None) -> str:
    text = one_line(title or "") or "(untitled)"
    return text if len(text) <= _LONGEST_TITLE else text[:_LONGEST_TITLE] + "…"


def count_of(connection: sqlite3.Connection, filters: Filters) -> int:
    return count(connection, find_list("sessions"), filters)


def _read(
    connection: sqlite3.Connection, asked: Mapping[str, str], number: int, here: str
) -> dict[str, object]:
    filters = _filters(asked)
    project = _project(connection, filters)
    start = (number - 1) * PAGE
    order = asked["sort"] if asked["sort"] in SORTS else ""
    conversations = rows(connection, filters, PAGE, start, order)
    total = len(conversations)
    if start or total == PAGE:
        total = count_of(connection, filters)
    if number > 1 and not conversations:
        raise PageError(
            404, f"There is no page {number} of this list.",
            [("First page", with_query(here, asked))],
        )  # fmt: skip
    values = _values(connection, asked, project)
    left = []
    if not total:
        why = nothing(filters, lambda other: count_of(connection, other))
        left = [*why.lines("conversation")]
    return {
        "rows": conversations,
        "total": total,
        "left": left,
        "has_more": start + len(conversations) < total,
        "chosen": list(
            chips(
                filters,
                lambda name: with_query(here, {**asked, name: ""}),
                {"project": project or ""},
            )
        ),
        "fields": [*_fields(values)],
        "hidden": _HIDDEN,
        "has_sources": len(values["source"]) > 1 or serve.remote() is not None,
        "colour": charts.of_models(connection),
    }


def _project(connection: sqlite3.Connection, filters: Filters) -> str | None:
    """Return the name of the first of the projects that are asked for."""
    if not filters.project:
        return None
    first = find_projects(connection, filters.project)[0]
    row = sql.ask(connection, "pages/project", id=first).fetchone()
    return _name(row["name"] or row["key"])


def _values(
    connection: sqlite3.Connection, asked: Mapping[str, str], project: str | None
) -> dict[str, dict[str, str]]:
    """Return the values that the form offers, each with its text; those chosen are among them."""
    values: dict[str, dict[str, str]] = {
        "project": {}, "repository": {}, "model": {}, "source": {}
    }  # fmt: skip
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


# ------------------------------------------------------------------------------------------------
# The first page: a search, a recap, the newest conversations, projects, five weeks of days, and
# freshness.
#
# It is at `/-/assoc`, and also at `/` under `serve` and if the only database is one of ours.
# Datasette's own first page stays at `/-/`. The last seven days end today; the calendar ends with
# the newest activity, so that an old record can be read.


FRONT_TABLES = (*TABLES, "issues", "sync_runs")
NEWEST, PROJECTS, WEEKS = 20, 12, 5
RECAPS = {"": "Week", "yesterday": "Yesterday", "today": "Today"}
RECAPPED = 20
"""Conversations of the recap."""
MOST_RECAPPED = 300
"""Conversations of its days, unless one day alone has more: it looks at all of them."""
_EARLIEST = date(2000, 1, 1)  # before all times that are stored
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Day:
    """A day of the calendar: `day` as in 2026-01-31, and how dark it is."""

    day: str
    number: int
    conversations: int
    shade: int


class Recap(NamedTuple):
    """What was done in some days: the HTML, and the address of all of it."""

    body: object
    address: str


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
    """Return the first page of the database `?db=`, else of the first assoc-ingest database.

    `?recap=` is one of `RECAPS`. Who may not see all that a recap is made of gets none.
    """
    database, names = await pages.database_of(datasette, request, FRONT_TABLES)
    asked = request.args.get("recap") or ""
    if asked not in RECAPS:
        raise PageError(400, f"Choose one of: {', '.join(filter(None, RECAPS))}.")
    paths = Paths(datasette, database)
    tables = (*reports.TABLES, *named("recap").tables)
    has_recap = await pages.may_view(datasette, request.actor, database, tables)

    def read(connection: sqlite3.Connection) -> dict[str, object]:
        recap = _recap(connection, asked, paths) if has_recap else None
        return {"recap": recap, **_read_front(connection)}

    context = await pages.read(datasette, request, database, FRONT_TABLES, read)
    here = datasette.urls.path("/-/assoc")
    context |= {
        "recaps": [
            (text, with_query(here, {"db": database if names[1:] else "", "recap": name}))
            for name, text in RECAPS.items()
        ],
        "asked": RECAPS[asked],
        "title": "Conversations",
        "database": database,
        "databases": names,
        "weekdays": _WEEKDAYS,
    }
    return await pages.page(datasette, request, "front", context)


def _read_front(connection: sqlite3.Connection) -> dict[str, object]:
    newest = sql.ask(connection, "pages/newest_session").fetchone()["ended_at"]
    conversations = rows(connection, Filters(), NEWEST)
    total = len(conversations)
    if total == NEWEST:
        total = count_of(connection, Filters())
    projects = [pages.brief(row) for row in sql.ask(connection, "pages/dashboard_projects")]
    here = [row for row in projects if row["path"] is None or row["on_disk"] != 0]
    short = [row for row in conversations if is_short(row)]
    short = [] if len(short) == len(conversations) else short
    return {
        "rows": [row for row in conversations if row not in short],
        "short": short,
        "total": total,
        "several": len({row["labels"] for row in conversations}) > 1 or serve.remote() is not None,
        "projects": here[:PROJECTS],
        "has_more_projects": len(projects) > min(len(here), PROJECTS),
        "elsewhere": len(projects) - len(here),
        "weeks": _weeks(connection, newest) if newest else [],
        "spans": list(_spans(connection, newest)) if newest else [],
        "fresh": sql.ask(connection, "pages/fresh").fetchone(),
        "read": sql.ask(connection, "pages/indexed_files").fetchone(),
    }


def _recap(connection: sqlite3.Connection, asked: str, paths: Paths) -> Recap | None:
    """Return what was done in the last days, in one day if that is asked for; None if never."""
    newest = sql.ask(connection, "pages/newest_session").fetchone()["ended_at"]
    if newest is None:
        return None
    today = times.present().date()
    if asked:
        first = last = today - timedelta(days=asked == "yesterday")
    else:
        latest = datetime.fromisoformat(newest).astimezone().date()
        first, last = next(filter(None, (_busy_days(connection, end) for end in (today, latest))))
    question, given = named("recap"), {"since": f"{first}", "until": f"{last}"}
    reader = Reader(connection, RECAPPED, has_disk=False)
    answer = reports.answered(question, reader, question.arguments(given), paths.session)
    return Recap(answer["body"], paths.question("recap", **given))


def _busy_days(connection: sqlite3.Connection, last: date) -> tuple[date, date] | None:
    """Return the first and the last of seven days, the newest of them if these are too many.

    None if there is nothing in any of them.
    """
    days = [max(last - timedelta(days=ago), _EARLIEST) for ago in range(7)]
    counts = dict(zip(days, _counts(connection, days), strict=True))
    first, together = last, 0
    for day, conversations in counts.items():
        together += conversations
        if together > MOST_RECAPPED and together > conversations:
            break
        first = day
    return (first, last) if together else None


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
    count = count_of(connection, Filters.of(asked))
    yield Span(f"{month}, the highest cost first", {**asked, "sort": "cost"}, count)


def _span(connection: sqlite3.Connection, text: str, last: date) -> Span:
    first = max(last - timedelta(days=6), _EARLIEST)
    asked = {"since": f"{first}", "until": f"{last}"}
    count = count_of(connection, Filters.of(asked))
    return Span(f"{text} ({terminal.days(first, last, times.present().date())})", asked, count)


def _weeks(connection: sqlite3.Connection, newest: str) -> list[list[Day | None]]:
    """Return the weeks up to the newest activity; None stands for the days after it."""
    last = datetime.fromisoformat(newest).astimezone().date()
    days = _days_before(last)
    counts = _counts(connection, days)
    top = max(counts)
    calendar: list[Day | None] = [
        Day(f"{day}", day.day, count, charts.shade(count, top))
        for day, count in zip(days, counts, strict=True)
    ]
    calendar += [None] * (-len(calendar) % 7)
    return [calendar[start : start + 7] for start in range(0, len(calendar), 7)]


def _counts(connection: sqlite3.Connection, days: Sequence[date]) -> list[int]:
    """Return the number of conversations on each day."""
    spans = json.dumps([(_begin(day), _begin(day + timedelta(days=1))) for day in days])
    return [row["conversations"] for row in sql.ask(connection, "pages/days", days=spans)]


def _days_before(last: date) -> list[date]:
    """Return the days from a Monday some weeks ago to the last one."""
    count = 7 * (WEEKS - 1) + last.weekday() + 1
    return [last - timedelta(days=ago) for ago in reversed(range(count))]


def _begin(day: date) -> str:
    """Return when a local day begins, as times are stored."""
    return f"{datetime.combine(day, time()).astimezone(UTC):%Y-%m-%dT%H:%M:%S.000Z}"

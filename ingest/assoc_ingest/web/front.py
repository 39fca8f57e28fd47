"""The first page: a search, the newest conversations, projects, five weeks of days, and freshness.

It is at `/-/assoc`, and at `/` where the server is there for assoc-ingest: under `serve`, and where
the only database is one of ours. Datasette's own first page stays at `/-/`. The last seven days are
those before today; the calendar ends with the newest activity, so that an old record can be read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from .. import sql, terminal
from ..ask import filters
from . import charts, conversations, pages, serve
from .pages import PageError, is_for_us, our_databases

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (*conversations.TABLES, "issues", "sync_runs")
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
    """Return what is at `/`: our first page where it belongs there, else Datasette's."""
    is_first = serve.is_switched_on() or len(await our_databases(datasette)) == 1
    is_ours = is_first and await is_for_us(datasette)
    if is_ours and await pages.databases(datasette, request, TABLES):
        return await view(datasette, request)
    return await pages.index(datasette, request)


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the first page of the database `?db=`, else of the first assoc-ingest database."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(
            404, "No assoc-ingest database is open here, or you have no permission to see it."
        )
    database = request.args.get("db") or names[0]
    context = await pages.read(datasette, request, database, TABLES, _read)
    context |= {
        "title": "Conversations",
        "database": database,
        "databases": names,
        "weekdays": _WEEKDAYS,
        "display": terminal,
        "table": lambda name: datasette.urls.table(database, name),
        **conversations.links(datasette, database),
    }
    return await pages.page(datasette, request, "front", context)


def _read(connection: sqlite3.Connection) -> dict[str, object]:
    newest = sql.ask(connection, "pages/newest_session").fetchone()["ended_at"]
    found, total = conversations.rows(connection, NEWEST)
    projects = [pages.brief(row) for row in sql.ask(connection, "pages/dashboard_projects")]
    here = [row for row in projects if row["path"] is None or row["on_disk"] != 0]
    return {
        "rows": found,
        "total": total,
        "several": len({row["agent"] for row in found}) > 1,
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
    week = _span(connection, "The last 7 days", filters.present().date())
    yield week
    if not week.conversations:
        yield _span(connection, "The last 7 days of the record", last)
    month = f"{last:%Y-%m}"
    asked = {"month": month}
    count = conversations.count(connection, asked)
    yield Span(f"{month}, the highest cost first", {**asked, "sort": "cost"}, count)


def _span(connection: sqlite3.Connection, text: str, last: date) -> Span:
    first = max(last - timedelta(days=6), date(2000, 1, 1))  # before all times that are stored
    asked = {"since": f"{first}", "until": f"{last}"}
    count = conversations.count(connection, asked)
    return Span(f"{text} ({terminal.days(first, last, filters.present().date())})", asked, count)


def _weeks(connection: sqlite3.Connection, newest: str) -> list[list[Day | None]]:
    """Return the weeks up to the one with the newest activity; None for the days after it."""
    last = datetime.fromisoformat(newest).astimezone().date()
    days = _days_before(last)
    spans = json.dumps([(_begin(day), _begin(day + timedelta(days=1))) for day in days])
    counts = [row["conversations"] for row in sql.ask(connection, "pages/days", days=spans)]
    top = max(counts)
    shown: list[Day | None] = [
        Day(f"{day}", day.day, count, charts.shade(count, top))
        for day, count in zip(days, counts, strict=True)
    ]
    shown += [None] * (-len(shown) % 7)
    return [shown[start : start + 7] for start in range(0, len(shown), 7)]


def _days_before(last: date) -> list[date]:
    """Return the days from a Monday some weeks ago up to the last one."""
    count = 7 * (WEEKS - 1) + last.weekday() + 1
    return [last - timedelta(days=ago) for ago in reversed(range(count))]


def _begin(day: date) -> str:
    """Return the stored form of the time at which a day of the local calendar begins."""
    return f"{datetime.combine(day, time()).astimezone(UTC):%Y-%m-%dT%H:%M:%S.000Z}"

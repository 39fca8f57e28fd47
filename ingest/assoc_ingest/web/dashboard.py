"""The dashboard of one database: what it cost, which tools failed, who worked when, what will go.

It shows the last days before the newest activity, not before today: the record of a machine that
nobody uses any more is as readable as ever. Days are UTC, as in `assoc-ingest stats`.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from .. import display, sql
from . import charts, pages
from .conversation import session_path
from .pages import PageError

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

TABLES = (
    "sessions", "projects", "responses", "prices", "tool_calls", "messages", "files", "teams",
    "hook_events",
)  # fmt: skip
PERIODS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year", "all": "all"}
_DEFAULT = "90"
_MOST_DAYS = 400  # more columns than that are months
_TOOLS, _PROJECTS, _TEAMS = 15, 15, 10
_DUE_DAYS = 7
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(slots=True)
class _Sums:
    """Tokens and cost of something."""

    cost: float = 0.0
    tokens: int = 0
    cached: int = 0
    output: int = 0
    responses: int = 0
    unpriced: int = 0

    def add(self, row: sqlite3.Row) -> None:
        self.cost += (row["cost_microusd"] or 0) / 1_000_000
        self.tokens += row["input_tokens"] + row["output_tokens"] + row["cache_write_tokens"]
        self.cached += row["cache_read_tokens"]
        self.output += row["output_tokens"]
        self.responses += row["responses"]
        self.unpriced += row["unpriced"]


@dataclass(slots=True)
class _Usage:
    """What one pass over the responses gives."""

    total: _Sums = field(default_factory=_Sums)
    days: dict[tuple[str, str], _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    projects: dict[int | None, _Sums] = field(default_factory=lambda: defaultdict(_Sums))
    hours: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def add(self, row: sqlite3.Row) -> None:
        model = row["model"] or "unknown"
        for sums in (
            self.total,
            self.days[row["hour"][:10], model],
            self.projects[row["project_id"]],
        ):
            sums.add(row)
        local = datetime.fromisoformat(f"{row['hour']}:00:00+00:00").astimezone()
        self.hours[local.weekday(), local.hour] += row["responses"]


async def view(datasette: Datasette, request: Request) -> Response:
    """Return the dashboard of the database `?db=`, else of the first that is ours."""
    names = await pages.databases(datasette, request, TABLES)
    if not names:
        raise PageError(404, "No database of assoc-ingest is open here, or you may not see it.")
    database = request.args.get("db") or names[0]
    period = request.args.get("days") or _DEFAULT
    if period not in PERIODS:
        raise PageError(400, f"{period!r} is no period. There are: {', '.join(PERIODS)}.")
    context = await pages.read(
        datasette, request, database, TABLES, lambda connection: _read(connection, period)
    )
    context |= {
        "title": "Dashboard",
        "database": database,
        "databases": names,
        "period": period,
        "periods": PERIODS,
        "display": display,
        "charts": charts,
        "weekdays": _WEEKDAYS,
        "due_days": _DUE_DAYS,
        "session_path": lambda key: session_path(datasette, database, key),
        "team_path": lambda team: f"{datasette.urls.database(database)}/-/team/{team}",
        "project_path": lambda project: f"{datasette.urls.database(database)}/-/project/{project}",
        "table": lambda name: datasette.urls.table(database, name),
    }
    return await pages.page(datasette, request, "dashboard", context)


def _read(connection: sqlite3.Connection, period: str) -> dict[str, object]:
    newest = sql.ask(connection, "newest_session", since=None).fetchone()["ended_at"]
    since = None
    if newest and period != "all":
        start = datetime.fromisoformat(newest) - timedelta(days=int(period) - 1)
        since = f"{start:%Y-%m-%d}T00:00:00.000Z"
    usage = _Usage()
    for row in sql.ask(connection, "dashboard_usage", since=since):
        usage.add(row)
    columns, of_day = _columns([day for day, _ in usage.days])
    costs: dict[tuple[str, str], float] = defaultdict(float)
    tokens: dict[tuple[str, str], float] = defaultdict(float)
    for (day, model), sums in usage.days.items():
        costs[of_day(day), model] += sums.cost
        tokens[of_day(day), model] += sums.tokens
    series = charts.ranked(tokens)  # the same colours in both charts
    tools = sql.ask(connection, "tool_use", since=since, project=None).fetchall()
    projects = sql.ask(connection, "dashboard_projects", since=since).fetchall()
    return {
        "newest": newest,
        "sessions": sql.ask(connection, "newest_session", since=since).fetchone()["sessions"] or 0,
        "total": usage.total,
        "cost_chart": charts.stacked(columns, costs, series, "${:,.2f}"),
        "token_chart": charts.stacked(columns, tokens, series),
        "days": sorted(usage.days.items(), reverse=True),
        "hours": usage.hours,
        "hours_top": max(usage.hours.values(), default=0),
        "tools": tools[:_TOOLS],
        "more_tools": max(len(tools) - _TOOLS, 0),
        "calls": sum(row["calls"] for row in tools),
        "errors": sum(row["errors"] or 0 for row in tools),
        "most_calls": max((row["calls"] for row in tools), default=0),
        "projects": [(row, usage.projects[row["id"]]) for row in projects[:_PROJECTS]],
        "more_projects": max(len(projects) - _PROJECTS, 0),
        "teams": sql.ask(connection, "teams_overview", limit=_TEAMS).fetchall(),
        "active": [row for row in sql.ask(connection, "active_sessions") if row["is_active"]],
        "due": sql.ask(connection, "retention_by_session", days=_DUE_DAYS, limit=20).fetchall(),
        "due_totals": sql.ask(connection, "retention_totals", days=_DUE_DAYS).fetchone(),
    }


def _columns(days: Iterable[str]) -> tuple[list[str], Callable[[str], str]]:
    """Return the columns of a chart, empty days included, and in which of them a day is."""
    known = sorted(set(days))
    if not known:
        return [], str
    first, last = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (known[0], known[-1]))
    count = (last - first).days + 1
    if count > _MOST_DAYS:
        return sorted({day[:7] for day in known}), lambda day: day[:7]
    return [f"{first + timedelta(days=number):%Y-%m-%d}" for number in range(count)], str

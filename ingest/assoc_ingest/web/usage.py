"""The dashboard, and what it and other pages show of usage: costs, bars, colours of models."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from .. import sql, terminal
from ..ask import times
from ..ask.usage import Estimate, Spent, estimate
from . import pages
from .pages import PageError
from .urls import EVER

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response


# ------------------------------------------------------------------------------------------------
# What responses used and cost together.


@dataclass(slots=True)
class Used:
    """What responses used and cost, some of them unpriced or partial. Its text is the cost."""

    cost: float = 0.0
    """Of those with a price, in dollars."""
    responses: int = 0
    unpriced: int = 0
    partial: int = 0
    tokens: int = 0
    cached: int = 0
    output: int = 0

    def __str__(self) -> str:
        if self.responses and self.unpriced == self.responses:
            return terminal.money(None)
        return terminal.money(self.cost, self.partial, self.unpriced)

    def __add__(self, other: Used) -> Used:
        return Used(
            self.cost + other.cost, self.responses + other.responses,
            self.unpriced + other.unpriced, self.partial + other.partial,
            self.tokens + other.tokens, self.cached + other.cached, self.output + other.output,
        )  # fmt: skip


# ------------------------------------------------------------------------------------------------
# The colour of each model: the same on all pages.
#
# It follows from the name. If two names have the same colour, the model that was used later gets
# the next free one; when all are taken, one with stripes. So a new model changes no other.


COLOURS = 12
"""Colours of assoc.css, `--c0` and so on. Their numbers plus 12 are the same with stripes."""

_MOST = 200  # models that are compared; their colours are all taken long before


class Colours:
    """Numbers colours; the models come in the order of their first use."""

    def __init__(self, models: Iterable[str]) -> None:
        self._known: dict[str, int] = {}
        free = set(range(2 * COLOURS))
        for model in models:
            own = _own(model)
            plain = [(own + step) % COLOURS for step in range(COLOURS)]
            order = (*plain, *(COLOURS + one for one in plain))
            colour = next((one for one in order if one in free), own)
            free.discard(colour)
            self._known[model] = colour

    def __call__(self, model: str) -> int:
        return self._known.get(model, _own(model))


def of_models(connection: sqlite3.Connection) -> Colours:
    return Colours(row["model"] for row in sql.ask(connection, "pages/models", limit=_MOST))


def _own(model: str) -> int:
    return crc32(model.encode("utf-8", "replace")) % COLOURS


# ------------------------------------------------------------------------------------------------
# Numbers as stacked bars and shades, which the pages draw with charts.css.
#
# It draws an HTML table, without a script, so that the page has the content of a chart as text,
# too. A bar has one of a hundred heights, each a class of assoc.css: our pages allow no inline
# styles.


SERIES = 12
"""Series of a chart; the smallest of more are one."""

OTHERS = "others"
SIZES = 100
SHADES = 5


class Bar(NamedTuple):
    """A part of a column: its series, its value, and its height in percent of the chart."""

    name: str
    value: float
    size: int
    unknown: int = 0
    """How many of the counted things make the value a lower bound."""


@dataclass(frozen=True, slots=True)
class Column:
    """Stacked bars, the largest series at the bottom."""

    label: str
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class Chart:
    columns: list[Column]
    series: list[str]
    top: float
    """The value of the highest column."""
    unknown: int
    """As that of a bar, of the highest column."""
    labels: list[str]
    """Of the first, the middle and the last column."""


def stacked(
    columns: Sequence[str],
    values: Mapping[tuple[str, str], float],
    series: Sequence[str],
    unknown: Mapping[tuple[str, str], int] | None = None,
) -> Chart:
    """Return bars for values by (column, series); other series are summed as others.

    `unknown` counts, by the same keys, what makes a value a lower bound.
    """
    stacks = {column: dict.fromkeys(series, 0.0) for column in columns}
    rest: dict[tuple[str, str], int] = defaultdict(int)
    for (column, name), value in values.items():
        if column in stacks and value:
            series_name = name if name in stacks[column] else OTHERS
            stacks[column][series_name] += value
            rest[column, series_name] += (unknown or {}).get((column, name), 0)
    sums = {column: sum(stack.values()) for column, stack in stacks.items()}
    highest = max(sums, key=sums.__getitem__, default="")
    top = sums.get(highest, 0)
    drawn = [
        Column(column, [bar._replace(unknown=rest[column, bar.name]) for bar in _bars(stack, top)])
        for column, stack in stacks.items()
        if top
    ]
    of_top = sum(count for (column, _), count in rest.items() if column == highest)
    return Chart(drawn, list(series), top, of_top, _labels(columns))


def ranked(values: Mapping[tuple[str, str], float]) -> list[str]:
    """Return the series by size, the largest first; the small ones are one, others."""
    sums: dict[str, float] = defaultdict(float)
    for (_, name), value in values.items():
        sums[name] += value
    names = sorted((name for name in sums if sums[name]), key=lambda name: (-sums[name], name))
    return names if len(names) <= SERIES else [*names[: SERIES - 1], OTHERS]


def size(value: float, top: float) -> int:
    """Return the length of a bar in percent of the longest: at least 1 unless it is empty."""
    return max(1, round(SIZES * value / top)) if value and top else 0


def shade(value: float, top: float) -> int:
    """Return the shade of a cell: 0 for nothing, SHADES for the highest value."""
    if not value or not top:
        return 0
    return max(1, min(SHADES, round(value / top * SHADES)))


def _bars(stack: Mapping[str, float], top: float) -> list[Bar]:
    """Return the parts of a column without those too low to be seen: the table has them."""
    bars, total, drawn = [], 0.0, 0
    for name, value in stack.items():
        total += value
        height = size(total, top) - drawn
        if value and height:
            bars.append(Bar(name, value, height))
            drawn += height
    return bars


def _labels(columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    places = dict.fromkeys((0, len(columns) // 2, len(columns) - 1))
    return [columns[place] for place in places]


# ------------------------------------------------------------------------------------------------
# The dashboard of one database: costs, failing tools, hours of work, files about to be deleted.
#
# Its days are local ones, and the last of them is today. If nothing was done in the default period,
# a longer one is shown, so that the record of an unused machine can be read, too.


TABLES = (
    "sessions", "projects", "responses", "prices", "tool_calls", "messages", "files", "teams",
    "hook_events",
)  # fmt: skip
PERIODS = {"7": "7 days", "30": "30 days", "90": "90 days", "365": "a year", "all": "all"}
_DEFAULT = "90"
_MOST_DAYS = 400  # more columns than that are months
_TOOLS, _PROJECTS, _TEAMS, _ACTIVE = 15, 15, 10, 50
MOST_GROUPS = 50_000
"""Hours of a model in a project that are counted; of more, the newest."""

MOST_DAYS = 1_000
"""Rows of the table of days and models."""

_DUE_DAYS = 7
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(slots=True)
class _Usage:
    """The sums that one pass over the responses collects."""

    is_cut: bool = False

    total: Used = field(default_factory=Used)
    days: dict[tuple[str, str], Used] = field(default_factory=lambda: defaultdict(Used))
    projects: dict[int | None, Used] = field(default_factory=lambda: defaultdict(Used))
    hours: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    partial: list[sqlite3.Row] = field(default_factory=list)

    def add_all(self, rows: Iterator[sqlite3.Row]) -> None:
        for row in islice(rows, MOST_GROUPS):
            self.add(row)
        self.is_cut = next(rows, None) is not None

    def add(self, row: sqlite3.Row) -> None:
        model = pages.cut(row["model"] or "unknown")
        day, project = (row["hour"][:10], model), row["project_id"]
        used = Used(
            (row["cost_microusd"] or 0) / 1_000_000, row["responses"], row["unpriced"],
            row["partial"], row["input_tokens"] + row["output_tokens"] + row["cache_write_tokens"],
            row["cache_read_tokens"], row["output_tokens"],
        )  # fmt: skip
        self.total += used
        self.days[day] += used
        self.projects[project] += used
        local = datetime.fromisoformat(f"{row['hour']}:00:00")
        self.hours[local.weekday(), local.hour] += row["responses"]
        if row["partial"]:
            self.partial.append(row)

    def estimate(self, connection: sqlite3.Connection) -> Estimate | None:
        """Return an estimate of the total, None if the total is exact."""
        cost = None if self.total.unpriced == self.total.responses else self.total.cost
        spent = Spent(self.total.output, cost, partial=self.total.partial)
        return estimate(connection, spent, self.partial) if self.partial else None

    def together(self, project: sqlite3.Row) -> Used | None:
        """Return what a repository used with its worktrees, None if it has none."""
        if project["worktrees"] is None:
            return None
        all_of_it = [project["id"], *json.loads(project["worktrees"])]
        return sum((self.projects[one] for one in all_of_it), Used())


class _Calls:
    """The most used tools, and the number of all calls."""

    def __init__(self, rows: Iterable[sqlite3.Row]) -> None:
        self.first: list[pages.Row] = []
        self.more = self.calls = self.errors = 0
        for row in rows:  # those with the most calls come first
            if len(self.first) < _TOOLS:
                self.first.append(pages.brief(row))
            else:
                self.more += 1
            self.calls += row["calls"]
            self.errors += row["errors"] or 0


async def dashboard(datasette: Datasette, request: Request) -> Response:
    """Return the dashboard of the database `?db=`, else of the first assoc-ingest database."""
    database, names = await pages.database_of(datasette, request, TABLES)
    period = request.args.get("days")
    if period is not None and period not in PERIODS:
        raise PageError(400, f"Unknown period {period!r}. Choose one of: {', '.join(PERIODS)}.")
    context = await pages.read(
        datasette, request, database, TABLES, lambda connection: _read(connection, period)
    )
    context |= {
        "title": "Dashboard",
        "database": database,
        "databases": names,
        "periods": PERIODS,
        "others": OTHERS,
        "size": size,
        "shade": shade,
        "ever": EVER,
        "weekdays": _WEEKDAYS,
        "due_days": _DUE_DAYS,
        # days_left is cut to whole days, so less than a day more counts.
        "due_before": f"{datetime.now(UTC) + timedelta(days=_DUE_DAYS + 1):%Y-%m-%dT%H:%M:%S.000Z}",
    }
    return await pages.page(datasette, request, "dashboard", context)


def _read(connection: sqlite3.Connection, period: str | None) -> dict[str, object]:
    newest = sql.ask(connection, "pages/newest_session", since=None).fetchone()["ended_at"]
    if period is None:
        longer = [*PERIODS][[*PERIODS].index(_DEFAULT) : -1]
        period = next(
            (days for days in longer if not newest or newest >= times.since(f"{days}d")), "all"
        )
    since = None if period == "all" else times.since(f"{period}d")
    today = times.present().date()
    first = since and datetime.fromisoformat(since).astimezone().date()
    recent = sql.ask(connection, "pages/newest_session", since=since).fetchone()
    usage = _Usage()
    groups = sql.ask(connection, "pages/dashboard_usage", since=since, limit=MOST_GROUPS + 1)
    usage.add_all(iter(groups))
    columns, of_day = _columns([day for day, _ in usage.days])
    costs: dict[tuple[str, str], float] = defaultdict(float)
    tokens: dict[tuple[str, str], float] = defaultdict(float)
    unpriced: dict[tuple[str, str], int] = defaultdict(int)
    partial: dict[tuple[str, str], int] = defaultdict(int)
    for (day, model), sums in usage.days.items():
        costs[of_day(day), model] += sums.cost
        tokens[of_day(day), model] += sums.tokens
        unpriced[of_day(day), model] += sums.unpriced + sums.partial
        partial[of_day(day), model] += sums.partial
    series = ranked(tokens)  # in the same order in both charts
    tools = _Calls(sql.ask(connection, "reports/tool_use", since=since, project=None))
    projects = iter(sql.ask(connection, "pages/dashboard_projects", since=since))
    shown_projects = [
        (pages.brief(row), usage.projects[row["id"]], usage.together(row))
        for row in islice(projects, _PROJECTS)
    ]
    active = [
        row
        for row in pages.ask(connection, "reports/active_sessions", limit=_ACTIVE + 1)
        if row["is_active"]
    ]
    return {
        "newest": newest,
        "period": period,
        "dates": terminal.days(first, today, today) if first else None,
        "columns_are_days": of_day is str,
        "since": since,
        "sessions": recent["sessions"] or 0,
        "total": usage.total,
        "estimate": usage.estimate(connection),
        "cost_chart": stacked(columns, costs, series, unpriced),
        "token_chart": stacked(columns, tokens, series, partial),
        "colour": of_models(connection),
        "is_cut": usage.is_cut,
        "days": sorted(usage.days.items(), reverse=True)[:MOST_DAYS],
        "more_days": max(len(usage.days) - MOST_DAYS, 0),
        "hours": usage.hours,
        "hours_top": max(usage.hours.values(), default=0),
        "tools": tools.first,
        "more_tools": tools.more,
        "calls": tools.calls,
        "errors": tools.errors,
        "most_calls": max((row["calls"] for row in tools.first), default=0),
        "projects": shown_projects,
        "has_more_projects": next(projects, None) is not None,
        "teams": pages.ask(connection, "reports/teams_overview", limit=_TEAMS),
        "active": active[:_ACTIVE],
        "has_more_active": len(active) > _ACTIVE,
        "due": pages.ask(connection, "reports/retention_by_session", days=_DUE_DAYS, limit=20),
        "due_totals": sql.ask(connection, "reports/retention_totals", days=_DUE_DAYS).fetchone(),
    }


def _columns(days: Iterable[str]) -> tuple[list[str], Callable[[str], str]]:
    """Return the columns of a chart, including empty days, and what maps a day to its column."""
    used_days = sorted(set(days))
    if not used_days:
        return [], str
    first, last = (
        datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (used_days[0], used_days[-1])
    )
    count = (last - first).days + 1
    if count > _MOST_DAYS:
        return sorted({day[:7] for day in used_days}), lambda day: day[:7]
    return [f"{first + timedelta(days=number):%Y-%m-%d}" for number in range(count)], str

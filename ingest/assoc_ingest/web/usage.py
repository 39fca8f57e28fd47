"""What pages show of usage: costs, colours of models, and the chart and the table of `stats`."""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from .. import sql, terminal
from ..ask import times
from ..questions.stats import GROUPS, PERIODS, Cells, Group, Sums, Usage, grouped, plural
from . import pages

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request, Response

    from .urls import Paths


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
# A chart of stacked bars, drawn as SVG: it needs no script, and scales to the width of the page.
#
# The texts around it are HTML, which keeps its size. Screen readers get a sentence; the table below
# has the numbers.


SERIES = 12
"""Series of a chart; the smallest of more are one."""

OTHERS = "others"
SIZES = 100
SHADES = 5
_STEP = 10  # width of a column
_LOWEST = 0.6  # percent of the height: less could not be seen
_LABELS = 5
_MOST_DAYS, _MOST_WEEKS = 62, 400  # columns of longer stretches are weeks, or months


class Bar(NamedTuple):
    """A part of a column, as an SVG rectangle: sizes in percent of the height of the chart."""

    x: int
    y: float
    height: float
    colour: int | str
    text: str


class Mark(NamedTuple):
    """A text at an axis, and its distance from where the axis begins, in percent."""

    size: int
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    about: str
    """What somebody hears who does not see it."""
    width: int
    bars: list[Bar]
    series: list[tuple[str, int | str]]
    """Names and colours, the largest first."""
    marks: list[Mark]
    labels: list[Mark]
    is_long: bool
    """Are there more columns than labels?"""

    @property
    def step(self) -> int:
        return _STEP

    @property
    def stripes(self) -> list[int]:
        """The colours that are drawn with stripes."""
        colours = {colour for _, colour in self.series if isinstance(colour, int)}
        return sorted(colour for colour in colours if colour >= COLOURS)


def chart(
    cells: Cells, days: tuple[str, str], by: Group, unit: str, colour: Callable[[str], int]
) -> Chart | None:
    """Return the costs of each day, week or month by a group; of what has no cost, the tokens."""
    has_cost = any(cell["cost_usd"] for cell in cells)
    shown: Callable[[float, int], str] = terminal.money if has_cost else _tokens
    values: dict[tuple[str, str], float] = defaultdict(float)
    unknown: dict[tuple[str, str], int] = defaultdict(int)
    for cell in cells:
        if cell["day"] is not None and days[0] <= cell["day"] <= days[1]:
            key = cell[GROUPS[unit].key], _name(cell[by.name])
            values[key] += (cell["cost_usd"] or 0) if has_cost else cell["output_tokens"]
            unknown[key] += cell["partial"] + (cell["unpriced"] if has_cost else 0)
    names = ranked(values)
    if not names:
        return None
    known = set(names)
    columns = columns_of(days, unit)
    stacks: dict[str, dict[str, list[float]]] = {column: {} for column in columns}
    for (column, name), value in values.items():
        part = stacks[column].setdefault(name if name in known else OTHERS, [0, 0])
        part[0] += value
        part[1] += unknown[column, name]
    sums = {
        column: (sum(value for value, _ in stack.values()), sum(int(n) for _, n in stack.values()))
        for column, stack in stacks.items()
    }
    top = nice(max(value for value, _ in sums.values()))
    colours: dict[str, int | str] = {
        name: colour(name) if by == GROUPS["model"] else number % COLOURS
        for number, name in enumerate(names)
    }
    if len(values) and names[-1] == OTHERS:
        colours[OTHERS] = "-others"
    bars = []
    for number, (column, stack) in enumerate(stacks.items()):
        under = 0.0
        for name in names:
            value, lacking = stack.get(name, (0, 0))
            height = max(100 * value / top, _LOWEST if value else 0)
            if value:
                text = f"{column}: {name} {shown(value, int(lacking))}"
                y = max(0, 100 - under - height)
                bars.append(Bar(number * _STEP, round(y, 2), round(height, 2), colours[name], text))
            under += height
    highest = max(sums, key=lambda column: sums[column][0])
    what = "Cost" if has_cost else "Output tokens"
    whole = sum(value for value, _ in sums.values()), sum(n for _, n in sums.values())
    return Chart(
        f"{what} per {unit} by {_word(by)}{', in US dollars' * has_cost}",
        f"{what} per {unit} from {columns[0]} to {columns[-1]}: {shown(*whole)} in all, "
        f"the most {shown(*sums[highest])} ({highest}).",
        _STEP * len(columns),
        bars,
        [(name, colours[name]) for name in names],
        [Mark(size, shown(top * size / 100, 0) if size else "0") for size in (100, 50, 0)],
        _labels(columns),
        len(columns) > _LABELS,
    )


def _tokens(count: float, partial: int) -> str:
    return terminal.tokens(round(count), partial)


def columns_of(days: tuple[str, str], unit: str) -> list[str]:
    """Return all days, weeks or months of a stretch, used or not."""
    first, last = map(date.fromisoformat, days)
    if unit == "week":
        first -= timedelta(days=first.weekday())
    step = 7 if unit == "week" else 1
    every = (first + timedelta(days=n) for n in range(0, (last - first).days + 1, step))
    return [*dict.fromkeys(f"{day}"[: 7 if unit == "month" else 10] for day in every)]


def nice(value: float) -> float:
    """Return a round number that is at least as large."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(
        power * step
        for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
        if power * step >= value * (1 - 1e-9)
    )


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


def _labels(columns: Sequence[str]) -> list[Mark]:
    """Return the names of the first column, the last, and some between, below their middle."""
    count, between = len(columns), _LABELS - 1
    places = {round(n * (count - 1) / between) for n in range(_LABELS)}
    some = sorted(places) if count > _LABELS else range(count)
    return [Mark(round(100 * (n + 0.5) / count), columns[n]) for n in some]


# ------------------------------------------------------------------------------------------------
# The page of `stats`: the chart, where the money went, and the table with links that narrow it.


_DEFAULT = "30d"
_EVER = "all"
PRESETS = {
    "today": "Today", "yesterday": "Yesterday", "this week": "This week", "last week": "Last week",
    "this month": "This month", "last month": "Last month", "7d": "Last 7 days",
    "30d": "Last 30 days", _EVER: "All",
}  # fmt: skip
_WORDS = {"session": "conversation", "subagent": "type of subagent"}
_FILTERED = {
    "repository": ("repository", "repository"), "project": ("project", "project_id"),
    "model": ("model", "model"), "agent": ("source", "agent"), "branch": ("branch", "git_branch"),
}  # fmt: skip
"""The filter that keeps the rows of a group, and the column with its value."""
_BESIDE = ("model", "repository", "agent")
_MOST_BESIDE = 6

Address = Callable[..., str]


class Line(NamedTuple):
    """A row of the table, or of a list beside it."""

    name: str
    title: str
    """Where it is, if that is a directory."""
    colour: int | None
    """That of a model."""
    address: str
    cost: str
    estimate: str
    share: int
    """Of the highest cost, in percent."""
    row: Mapping[str, Any]
    is_part: bool = False


class Beside(NamedTuple):
    """The largest rows of another group."""

    title: str
    address: str
    lines: list[Line]
    more: int


def default_period(connection: sqlite3.Connection) -> str:
    """Return the period of a page that names none: a month, or all if nothing was done in it."""
    newest = sql.ask(connection, "pages/newest_session").fetchone()["ended_at"]
    return _DEFAULT if newest and newest >= times.since(_DEFAULT) else _EVER


def page(
    connection: sqlite3.Connection,
    answer: Usage,
    given: Mapping[str, str],
    address: Address,
    paths: Paths,
) -> dict[str, object]:
    """Return what the template of `stats` shows besides the answer."""
    by, split = given["by"] or "day", given["split"]
    context: dict[str, object] = {
        "presets": [
            (text, address(when=when, since="", until=""), given["when"] == when)
            for when, text in PRESETS.items()
        ],
        "groups": [
            (
                _word(GROUPS[name]) if name in GROUPS else name,
                address(by=name, split=""),
                name == by,
            )
            for name in (*GROUPS, "tool")
        ],
        "hours": paths.report("activity-by-hour"),
        "chart": None,
        "beside": [],
        "is_of_tools": by == "tool",
        "word": _WORDS.get(by, by),
    }
    if by == "tool" or answer._days is None:
        return context
    group = GROUPS[by]
    unit = max(by if by in PERIODS else "day", _unit(answer._days), key=PERIODS.index)
    shown_by = GROUPS[split] if split else GROUPS["model"] if by in PERIODS else group
    if split in PERIODS:
        shown_by = group if by not in PERIODS else GROUPS["model"]
    sums, colour = Sums(connection), of_models(connection)
    names = Names(answer._cells, colour)
    lines = [*_lines(sums, answer, names, given, address, paths)]
    filters = answer._filters
    asked = filters.given() if filters else {}
    report = "" if "branch" in asked else paths.report("usage-by-session", **asked)
    return context | {
        "chart": chart(answer._cells, answer._days, shown_by, unit, colour),
        "lines": lines,
        "has_estimates": any(line.estimate for line in lines),
        "is_dated": by in PERIODS,
        "report": report,
        "sessions": address(by="session", split="", page=""),
        "subagents": address(by="subagent", split="", page=""),
        "beside": [*_beside(sums, answer._cells, names, by, address, paths)],
        "spent": answer._spent,
        "display": terminal,
    }


def _unit(days: tuple[str, str]) -> str:
    first, last = map(date.fromisoformat, days)
    count = (last - first).days
    return "day" if count < _MOST_DAYS else "week" if count < _MOST_WEEKS else "month"


def _lines(
    sums: Sums,
    answer: Usage,
    names: Names,
    given: Mapping[str, str],
    address: Address,
    paths: Paths,
) -> Iterator[Line]:
    """Yield the rows of this page; where they are split, each group begins with its sum."""
    groups = [GROUPS[name] for name in (given["by"] or "day", given["split"]) if name]
    wanted = {tuple(row[group.name] for group in groups) for row in answer.items}
    blocks = []
    for together, parts in grouped(answer._cells, groups):
        kept = [p for p in parts if tuple(p[0][group.name] for group in groups) in wanted]
        if kept:
            blocks.append((together, kept if len(groups) > 1 else []))
    heads = [sums.row(groups[:1], together) for together, _ in blocks]
    top = _top(heads)
    for head, (together, parts) in zip(heads, blocks, strict=True):
        yield _line(groups[0], together[0], head, top, names, address, paths)
        for part in parts:
            line = _line(groups[1], part[0], sums.row(groups, part), top, names, address, paths)
            yield line._replace(is_part=True)


def _beside(
    sums: Sums, cells: Cells, names: Names, by: str, address: Address, paths: Paths
) -> Iterator[Beside]:
    for name in _BESIDE:
        group = GROUPS[name]
        every = [together for together, _ in grouped(cells, [group])] if name != by else []
        if len(every) < 2:
            continue
        shown = [(together[0], sums.row([group], together)) for together in every[:_MOST_BESIDE]]
        top = _top(row for _, row in shown)
        yield Beside(
            plural(name).capitalize(),
            address(by=name, split="", page=""),
            [_line(group, cell, row, top, names, address, paths) for cell, row in shown],
            len(every) - len(shown),
        )


def _top(rows: Iterable[Mapping[str, Any]]) -> float:
    return max((row["cost_usd"] or 0 for row in rows), default=0)


class Names:
    """The names of groups, of several projects with one name their paths; colours of models."""

    def __init__(self, cells: Cells, colour: Colours) -> None:
        self._colour = colour
        self._paths: dict[object, set[object]] = defaultdict(set)
        for cell in cells:
            self._paths[cell["project"]].add(cell["path"])

    def of(self, group: Group, cell: sqlite3.Row) -> tuple[str, str, int | None]:
        """Return the name of a group, its path, and its colour, as far as it has these."""
        name = cell[group.name]
        if group == GROUPS["session"]:
            return _name(cell["title"] or name), "", None
        if group == GROUPS["project"]:
            path = cell["path"]
            return _name(path if len(self._paths[name]) > 1 else name), pages.cut(path or ""), None
        return _name(name), "", self._colour(name) if group == GROUPS["model"] and name else None


def _line(
    group: Group,
    cell: sqlite3.Row,
    row: Mapping[str, Any],
    top: float,
    names: Names,
    address: Address,
    paths: Paths,
) -> Line:
    cost, estimate = row["cost_usd"], row["estimated_cost_usd"]
    return Line(
        *names.of(group, cell),
        _narrowed(group, cell, address, paths),
        terminal.money(cost, row["partial"], row["unpriced"]),
        "" if estimate is None else terminal.money(estimate, 0, row["unpriced"], is_estimate=True),
        size(cost or 0, top),
        row,
    )


def _narrowed(group: Group, cell: sqlite3.Row, address: Address, paths: Paths) -> str:
    """Return the address of the same page, of one row alone; '' if it has no name."""
    key, more = cell[group.key], {"split": "", "page": ""}
    if key is None:
        return ""
    if group == GROUPS["session"]:
        return paths.session(cell["session_key"])
    if group == GROUPS["week"]:
        last = f"{date.fromisoformat(key) + timedelta(days=6)}"
        return address(when="", by="day", since=key, until=last, **more)
    if group in (GROUPS["day"], GROUPS["month"]):
        by = "session" if group == GROUPS["day"] else "day"
        return address(when=key, by=by, since="", until="", **more)
    by = next(name for name, known in GROUPS.items() if known == group)
    if by not in _FILTERED:
        return ""
    name, column = _FILTERED[by]
    return address(**{name: cell[column], "by": "day"}, **more)


def _word(group: Group) -> str:
    name = next(name for name, known in GROUPS.items() if known == group)
    return _WORDS.get(name, name)


def _name(value: object) -> str:
    return terminal.one_line(pages.cut(str(value or ""))) or "unknown"


async def first(datasette: Datasette, request: Request) -> Response:
    """Lead to the page of the database `?db=`, else of the first one; `?days=7` is its period."""
    from datasette.utils.asgi import Response

    from .urls import Paths

    database, _ = await pages.database_of(datasette, request, ("responses", "prices"))
    days = request.args.get("days") or ""
    when = f"{days}d" if days.isdecimal() else days
    return Response.redirect(Paths(datasette, database).question("stats", when=when))

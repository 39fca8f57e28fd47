"""Numbers as stacked bars and shades, the colour of each model, and what responses cost."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from .. import sql, terminal

# ------------------------------------------------------------------------------------------------
# What responses cost together, as pages show it.


class Cost(NamedTuple):
    """The cost of responses, some of which may be unpriced or partial. Its text is for people."""

    dollars: float = 0.0
    """Of those with a price."""
    responses: int = 0
    unpriced: int = 0
    partial: int = 0

    def __str__(self) -> str:
        if self.responses and self.unpriced == self.responses:
            return terminal.money(None)
        return terminal.money(self.dollars, self.partial, self.unpriced)


def together(costs: Iterable[Cost]) -> Cost:
    return Cost(*map(sum, zip(*costs, strict=True)))


# ------------------------------------------------------------------------------------------------
# The colour of each model: the same on all pages, whatever else is shown.
#
# It follows from the name. Where two names have the same colour, the model that was used later
# takes the next one that is free; when all are taken, one with stripes. So a model that is new
# changes none.


COLOURS = 12
"""Colours of assoc.css, `--c0` and so on. Their numbers plus 12 are the same with stripes."""

_MOST = 200  # models that are compared; their colours are all taken long before


class Colours:
    """The numbers of the colours of models, which are given in the order of their first use."""

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
        """Return the colour of a model, whether or not it is known."""
        return self._known.get(model, _own(model))


def of_models(connection: sqlite3.Connection) -> Colours:
    return Colours(row["model"] for row in sql.ask(connection, "pages/models", limit=_MOST))


def _own(model: str) -> int:
    return crc32(model.encode("utf-8", "replace")) % COLOURS


# ------------------------------------------------------------------------------------------------
# Numbers as stacked bars and shades, which the pages draw with charts.css.
#
# It draws a table of HTML, without a script, so what a chart says is in the page as text, too. A
# bar has one of a hundred heights, each a class of assoc.css: our pages allow no styles in their
# HTML.


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
    """How many of what is counted make the value a lower bound."""


@dataclass(frozen=True, slots=True)
class Column:
    """Bars that stand on each other, the largest series at the bottom."""

    label: str
    bars: list[Bar]


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns of stacked bars."""

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
    """Return bars for values by (column, series); what is not in `series` is its last, others.

    `unknown` counts, by the same keys, what makes a value a lower bound.
    """
    stacks = {column: dict.fromkeys(series, 0.0) for column in columns}
    rest: dict[tuple[str, str], int] = defaultdict(int)
    for (column, name), value in values.items():
        if column in stacks and value:
            shown = name if name in stacks[column] else OTHERS
            stacks[column][shown] += value
            rest[column, shown] += (unknown or {}).get((column, name), 0)
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
    """Return the series of values by (column, series), the largest first, the small ones as one."""
    sums: dict[str, float] = defaultdict(float)
    for (_, name), value in values.items():
        sums[name] += value
    names = sorted((name for name in sums if sums[name]), key=lambda name: (-sums[name], name))
    return names if len(names) <= SERIES else [*names[: SERIES - 1], OTHERS]


def size(value: float, top: float) -> int:
    """Return how long a bar is in percent of the longest: at least 1 if there is anything."""
    return max(1, round(SIZES * value / top)) if value and top else 0


def shade(value: float, top: float) -> int:
    """Return how dark a cell is: 0 for nothing, SHADES for the highest value."""
    if not value or not top:
        return 0
    return max(1, min(SHADES, round(value / top * SHADES)))


def _bars(stack: Mapping[str, float], top: float) -> list[Bar]:
    """Return the parts of a column; what is too low to be seen is left to the table."""
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

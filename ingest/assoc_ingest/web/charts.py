"""Numbers as stacked bars and shades: geometry only, the template draws it as SVG or a table.

No script and no library draws: the server does, so a chart needs nothing that is loaded, and what
it says is in the page as text too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1000, 200
COLOURS = 6
OTHERS = "others"
SHADES = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of a chart, in units of its view box; `text` says what it shows."""

    x: float
    y: float
    width: float
    height: float
    colour: int
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Stacked bars."""

    bars: list[Bar]
    series: list[str]
    """What the colours mean, in their order."""
    top: float
    """The value of the highest bar."""
    labels: list[str]
    """Of the first, the middle and the last column."""


def stacked(
    columns: Sequence[str],
    values: Mapping[tuple[str, str], float],
    series: Sequence[str],
    form: str = "{:,.0f}",
) -> Chart:
    """Return bars for values by (column, series); what is not in `series` is its last, others."""
    stacks = {column: dict.fromkeys(series, 0.0) for column in columns}
    for (column, name), value in values.items():
        if column in stacks and value:
            stacks[column][name if name in stacks[column] else OTHERS] += value
    top = max((sum(stack.values()) for stack in stacks.values()), default=0)
    step = WIDTH / max(len(columns), 1)
    bars = [
        bar
        for number, column in enumerate(columns)
        for bar in _stack(column, stacks[column], number * step, step, top, form)
    ]
    return Chart(bars, list(series), top, _labels(columns))


def ranked(values: Mapping[tuple[str, str], float]) -> list[str]:
    """Return the series of values by (column, series), the largest first, the small ones as one."""
    sums: dict[str, float] = defaultdict(float)
    for (_, name), value in values.items():
        sums[name] += value
    names = sorted((name for name in sums if sums[name]), key=lambda name: (-sums[name], name))
    return names if len(names) <= COLOURS else [*names[: COLOURS - 1], OTHERS]


def _stack(
    column: str, stack: Mapping[str, float], x: float, step: float, top: float, form: str
) -> Iterable[Bar]:
    y = float(HEIGHT)
    for colour, (name, value) in enumerate(stack.items()):
        if value:
            height = value / top * HEIGHT
            y -= height
            text = f"{column}: {name} {form.format(value)}"
            yield Bar(
                round(x + step * 0.1, 2), round(y, 2), round(step * 0.8, 2), round(height, 2),
                colour, text,
            )  # fmt: skip


def _labels(columns: Sequence[str]) -> list[str]:
    if not columns:
        return []
    places = dict.fromkeys((0, len(columns) // 2, len(columns) - 1))
    return [columns[place] for place in places]


def shade(value: float, top: float) -> int:
    """Return how dark a cell is: 0 for nothing, SHADES for the highest value."""
    if not value or not top:
        return 0
    return max(1, min(SHADES, round(value / top * SHADES)))

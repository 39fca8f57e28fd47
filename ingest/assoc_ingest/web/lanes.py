"""Lays spans of time out as bars in lanes, one beside the other, on one axis.

The axis shows the time in which something ran: of a pause only a narrow gap is left. Bars that
would be too close to be told apart are one, so that a lane has an end however many spans it has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

WIDTH = 1_000
"""Units of the axis."""

_NARROWEST = 3.0  # units of a bar
_GAP = 6.0  # units of a pause


class Span(NamedTuple):
    """Something that ran from one second to another."""

    start: float
    end: float
    text: str
    address: str
    is_bad: bool = False


class Bar(NamedTuple):
    """A bar of a lane, in units of the axis; `others` of its spans are not named."""

    x: float
    width: float
    text: str
    address: str
    is_bad: bool
    others: int


class Axis:
    """Where on the axis a second is."""

    def __init__(self, spans: Iterable[Span]) -> None:
        """Remember when anything ran."""
        self._runs: list[tuple[float, float]] = []
        for start, end in sorted((span.start, span.end) for span in spans):
            if self._runs and start <= self._runs[-1][1]:
                self._runs[-1] = self._runs[-1][0], max(end, self._runs[-1][1])
            else:
                self._runs.append((start, end))
        lengths = [end - start for start, end in self._runs]
        gap = min(_GAP, WIDTH / 4 / max(len(self._runs), 1))
        self.seconds = sum(lengths)
        """How long something ran."""
        scale = (WIDTH - gap * max(len(self._runs) - 1, 0)) / (self.seconds or 1.0)
        self._scale = scale
        self._places = [0.0]
        for length in lengths:
            self._places.append(self._places[-1] + length * scale + gap)

    def x(self, second: float) -> float:
        """Return the place of a second; of one in a pause that of the gap."""
        run = max(bisect_right(self._runs, (second, float("inf"))) - 1, 0)
        start, end = self._runs[run]
        return self._places[run] + (min(max(second, start), end) - start) * self._scale


def lane(axis: Axis, spans: Iterable[Span], *, merges: bool = True) -> list[Bar]:
    """Return the bars of a lane, those of what went wrong last, on top of the others.

    Where one `merges`, bars that touch each other are one, which leads to the first of them.
    """
    every = sorted(spans)
    return [
        bar
        for is_bad in (False, True)
        for bar in _bars(axis, (one for one in every if one.is_bad == is_bad), merges)
    ]


def _bars(axis: Axis, spans: Iterable[Span], merges: bool) -> Iterator[Bar]:
    last: Bar | None = None
    for span in spans:
        x = min(axis.x(span.start), WIDTH - _NARROWEST)
        width = max(axis.x(span.end) - x, _NARROWEST)
        if merges and last is not None and x < last.x + last.width:
            end = max(x + width, last.x + last.width)
            last = last._replace(width=end - last.x, others=last.others + 1)
            continue
        if last is not None:
            yield last
        last = Bar(x, width, span.text, span.address, span.is_bad, 0)
    if last is not None:
        yield last


def packed(spans: Iterable[Span], most: int) -> tuple[list[list[Span]], int]:
    """Return spans in at most so many rows without overlap, and how many have no room."""
    rows: list[list[Span]] = []
    left = 0
    for span in sorted(spans):
        row = next((row for row in rows if row[-1].end <= span.start), None)
        if row is not None:
            row.append(span)
        elif len(rows) < most:
            rows.append([span])
        else:
            left += 1
    return rows, left

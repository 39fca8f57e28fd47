"""Formats times, sizes, counts and durations for people. Times are local times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime


def moment(text: str | None) -> str:
    """Return a stored time as local date and minute."""
    return f"{_local(text):%Y-%m-%d %H:%M}" if text else ""


def day(text: str) -> str:
    """Return the local date of a stored time."""
    if not text:
        return ""
    local = _local(text)
    return f"{local:%A}, {local.day} {local:%B %Y}"


def days(first: date, last: date, today: date) -> str:
    """Return a stretch of days as a phrase: 18–24 Nov, 28 Oct – 3 Nov; a year unless it is this."""
    year = f" {last:%Y}" if first.year != last.year or last.year != today.year else ""
    end = f"{last.day} {last:%b}{year}"
    if (first.year, first.month) == (last.year, last.month):
        return end if first == last else f"{first.day}–{end}"
    return f"{first.day} {first:%b}{f' {first:%Y}' if first.year != last.year else ''} – {end}"


def clock(text: str | None) -> str:
    """Return the local time of day of a stored time."""
    return f"{_local(text):%H:%M}" if text else ""


def span(start: str | None, end: str | None) -> str:
    """Return two stored times as one phrase; the date of the second only if it differs."""
    if not start or not end or moment(start) == moment(end):
        return moment(start or end)
    is_same_day = moment(start)[:10] == moment(end)[:10]
    return f"{moment(start)} – {clock(end) if is_same_day else moment(end)}"


def size(count: int) -> str:
    """Return a number of bytes."""
    if count < 1000:
        return f"{count} bytes"
    return _scaled(count, ("kB", "MB", "GB", "TB"))


def tokens(
    count: int, partial: int = 0, *, is_exact: bool = False, is_estimate: bool = False
) -> str:
    """Return a number of tokens, in thousands or millions once it is long unless `is_exact`.

    `partial` counts the responses among them that never stated their final count: with these it is
    a lower bound.
    """
    sign = _sign(is_at_least=partial > 0, is_estimate=is_estimate)
    if is_exact or count < 1000:
        return f"{sign}{count:,}"
    return sign + _scaled(count, ("k", "M", "G"), is_cut=partial > 0)


def money(
    amount: float | None,
    partial: int = 0,
    unpriced: int = 0,
    *,
    currency: str = "$",
    is_estimate: bool = False,
) -> str:
    """Return dollars to the cent, `unknown` for None.

    It is a lower bound, and cut to the cent, where some responses are partial, see `tokens`, or
    unpriced: their model has no known price.
    """
    if amount is None:
        return "unknown"
    sign = _sign(is_at_least=partial + unpriced > 0, is_estimate=is_estimate)
    if partial or unpriced:  # 0.004 is at least 0.00, not at least 0.01
        return f"{sign}{currency}{math.floor(amount * 100 + 1e-6) / 100:,.2f}"
    return f"<{currency}0.01" if 0 < amount < 0.005 else f"{sign}{currency}{amount:,.2f}"


def unknown_of(column: str, row: Mapping[str, object]) -> tuple[int, int]:
    """Return the partial and the unpriced responses behind a number in a row of a query.

    They have columns of their own, or else is_lower_bound says that there are some. Tokens of a
    response without a price are known.
    """
    if column.startswith("stated_"):
        return 0, 0
    if "partial" in row and "with_worktrees" not in column:
        unpriced = int(str(row.get("unpriced") or 0)) if "cost" in column else 0
        return int(str(row["partial"] or 0)), unpriced
    return int(str(row.get("is_lower_bound") or 0)), 0


def branch_besides(project: str | None, branch: str | None) -> str | None:
    """Return the branch, None if the name of the project ends in it, as that of a worktree does."""
    return None if branch and (project or "").endswith(f"· {branch}") else branch


def many(count: int, word: str, plural: str | None = None) -> str:
    """Return a count with its noun."""
    return f"{count:,} {word if count == 1 else plural or word + 's'}"


def duration(milliseconds: int | None) -> str:
    """Return a duration, '' for less than a second."""
    if milliseconds is None or milliseconds < 1000:
        return ""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def _sign(*, is_at_least: bool, is_estimate: bool) -> str:
    return "≥" * is_at_least + "~" * is_estimate


def _scaled(count: int, units: tuple[str, ...], *, is_cut: bool = False) -> str:
    """Return a count in the unit that fits it, rounded, or cut to the digits that are shown."""
    value, unit = count / 1000, units[0]
    for larger in units[1:]:
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    if is_cut:
        value = math.floor(value * 10) / 10 if value < 99.95 else math.floor(value)
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()

"""Formats times, sizes, counts and durations for people. Times are local times."""

from __future__ import annotations

from datetime import datetime


def moment(text: str | None) -> str:
    """Return a stored time as local date and minute."""
    return f"{_local(text):%Y-%m-%d %H:%M}" if text else ""


def day(text: str) -> str:
    """Return the local date of a stored time."""
    if not text:
        return ""
    local = _local(text)
    return f"{local:%A}, {local.day} {local:%B %Y}"


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


def tokens(count: int) -> str:
    """Return a number of tokens, in thousands or millions once it is long."""
    return str(count) if count < 1000 else _scaled(count, ("k", "M", "G"))


def dollars(amount: float, *, at_least: bool = False) -> str:
    """Return an amount of money to the cent; `at_least` marks it as a lower bound."""
    cents = "<0.01" if 0 < amount < 0.005 else f"{amount:,.2f}"
    return f"≥{cents.removeprefix('<')}" if at_least else cents


def money(amount: float | None, *, at_least: bool = False) -> str:
    """Return dollars to the cent with their sign, `unknown` for None; see `dollars`."""
    if amount is None:
        return "unknown"
    cents = dollars(amount)
    if at_least:
        return f"≥ ${cents.removeprefix('<')}"
    return f"<${cents[1:]}" if cents.startswith("<") else f"${cents}"


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


def _scaled(count: int, units: tuple[str, ...]) -> str:
    value, unit = count / 1000, units[0]
    for larger in units[1:]:
        if value < 999.95:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def _local(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()

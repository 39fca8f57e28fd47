"""Times as people write them. `since` and `until` mean the same wherever they can be given.

    30m, 12h                 that long ago, to the second
    7d, 2w, last 7 days      the last 7 days, of which today is one: from the day 6 days ago on
    3 days ago, 2 weeks ago  that day; also months and years
    today, yesterday, monday ... sunday (the last one, which may be today)
    this week, last week, this month, last month, this year, last year
    2026-01-31, 2026-01, 2026, 2026-01-31T12:00

For a period, `since` is its start and `until` its end. Days, weeks and months are those of the
local calendar; weeks begin on Monday.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from .. import terminal
from ..errors import UsageError

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ago = re.compile(
    r"(?:last )?(\d{1,6})\s*([mhdw]|(?:minute|hour|day|week)s?)", re.IGNORECASE | re.ASCII
).fullmatch
_long_ago = re.compile(r"(\d{1,6}) (minute|hour|day|week|month|year)s? ago", re.ASCII).fullmatch
_date = re.compile(r"\d{4}(-\d\d(-\d\d)?)?", re.ASCII).fullmatch
_moment = re.compile(r"\d{4}-\d\d-\d\d[T ].+", re.ASCII).fullmatch
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FIRST = 2000  # year of the first time that is stored


class Period(NamedTuple):
    """The stored times at which a period begins and ends; for a moment, these are the same."""

    start: str
    end: str


def ago(text: str) -> timedelta | None:
    """Return a span of time such as `90d`; None if the text is none."""
    match = _ago(text.strip())
    return timedelta(**{_UNITS[match[2][0].lower()]: int(match[1])}) if match else None


def since(text: str, now: datetime | None = None) -> str:
    """Return the stored time at which a period begins."""
    return period(text, now).start


def until(text: str, now: datetime | None = None) -> str:
    """Return the stored time at which a period ends."""
    return period(text, now).end


def period(text: str, now: datetime | None = None) -> Period:
    """Return the period that a text names, see the table above. Raises UsageError."""
    try:
        start, end = _span(text.strip(), (now or present()).astimezone())
        return Period(_stored(start), _stored(end))
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"Invalid time {text!r}. Use 30m, 12h, 7d, today, yesterday, monday, 'last week', "
            "'3 weeks ago' or a date such as 2026-01-31."
        ) from None


def whole(text: str) -> Period:
    """Return the period that a text names. Raises UsageError for a moment."""
    named = period(text)
    if named.start == named.end:
        raise UsageError(
            f"{text!r} is neither a day nor a month. Use yesterday, 'last month', 2026-01-31 or "
            "2026-01."
        )
    return named


def present() -> datetime:
    """Return the time to which spans such as `7d` are relative."""
    return datetime.now().astimezone()


def _span(text: str, now: datetime) -> tuple[date, date]:
    """Return the first day of a period and the day after it, or a moment twice."""
    today = now.date()
    if _date(text):
        first = date.fromisoformat((text + "-01-01")[:10])
        return first, _after(first, ("year", "month", "day")[text.count("-")])
    if _moment(text):
        return (moment := datetime.fromisoformat(text).astimezone()), moment
    words = " ".join(text.lower().replace("-", " ").replace("_", " ").split())
    span = ago(words)
    if span is not None:
        if span % timedelta(days=1) or words.rstrip("s").endswith(("m", "minute", "h", "hour")):
            return now - span, now - span
        return (first := today - span + timedelta(days=1)), first
    if match := _long_ago(words):
        return _back(now, int(match[1]), match[2])
    if words in ("today", "yesterday"):
        return _back(now, ("today", "yesterday").index(words), "day")
    if words in _DAYS:
        return _back(now, (today.weekday() - _DAYS.index(words)) % 7, "day")
    which, _, unit = words.partition(" ")
    if which in ("this", "last") and unit in ("week", "month", "year"):
        first = _beginning(today, unit)
        if which == "last":
            first = _beginning(first - timedelta(days=1), unit)
        return first, _after(first, unit)
    raise ValueError(text)


def _back(now: datetime, count: int, unit: str) -> tuple[date, date]:
    """Return the moment so many minutes or hours ago, or the day so many days, weeks ... ago."""
    if unit in ("minute", "hour"):
        moment = now - timedelta(**{f"{unit}s": count})
        return moment, moment
    day = now.date()
    if unit in ("day", "week"):
        day -= timedelta(**{f"{unit}s": count})
    else:
        months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
        first = date(months // 12, months % 12 + 1, 1)
        length = (_after(first, "month") - first).days
        day = first.replace(day=min(day.day, length))
    return day, _after(day, "day")


def _beginning(day: date, unit: str) -> date:
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)


def _after(first: date, unit: str) -> date:
    """Return the first day after the day, week, month or year that begins on `first`."""
    if first.year == date.max.year:
        return date.max
    days = {"day": 1, "week": 7, "month": 31, "year": 366}[unit]
    after = first + timedelta(days=days)
    return after if unit in ("day", "week") else _beginning(after, unit)


def _stored(moment: date) -> str:
    """Return the stored form of a moment, or of the start of a day."""
    if not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if moment.year < _FIRST:
        raise ValueError(moment)
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def shown(name: str, text: str) -> str:
    """Return a time of a filter as the user typed it, and the day or moment that it means."""
    if name in ("month", "day") and _date(text):
        return text
    start, end = period(text)
    at = start if name != "until" or start == end else _before(end)
    meant = terminal.moment(at)
    if meant.endswith("00:00") and ":" not in text:
        meant = meant[:10]
    if name == "until" and start == end:
        meant = f"before {meant}"
    return meant if _moment(text) or text == meant else f"{text} ({meant})"


def as_given(name: str, stored: str) -> str:
    """Return a stored time of a filter as a person types it: as a day if it is its start or end."""
    shown = terminal.moment(stored)
    if not shown.endswith(" 00:00"):
        return shown
    return terminal.moment(_before(stored) if name == "until" else stored)[:10]


def between(since: str | None, until: str | None, *, is_until_now: bool = False) -> str:
    """Return stored times, either of which may be missing, as a phrase: in days if they are whole.

    `is_until_now`: without an end, today is the last day.
    """
    first = as_given("since", since) if since else ""
    last = as_given("until", until) if until else ""
    if is_until_now and not last and first <= f"{present():%Y-%m-%d}":
        last = f"{present():%Y-%m-%d}" if " " not in first else "now"
    if first == last:
        return first
    if last:
        return f"{first} to {last}" if first else f"up to {last}"
    return f"since {first}"


def _before(end: str) -> str:
    """Return the start of the day that ends at a stored time."""
    return _stored(datetime.fromisoformat(end).astimezone().date() - timedelta(days=1))

"""Parses a point in the past: `7d`, `12h`, `2w`, or a date."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ..errors import UsageError
from ..when import utc

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_date = re.compile(r"\d{4}-\d\d-\d\d").fullmatch
_ago = re.compile(r"(\d{1,6})\s*([mhdw])", re.IGNORECASE).fullmatch


def ago(text: str) -> timedelta | None:
    """Return the span of time that `text` names, None if it names none."""
    match = _ago(text.strip())
    return timedelta(**{_UNITS[match[2].lower()]: int(match[1])}) if match else None


def until(text: str, now: datetime | None = None) -> str:
    """Return the stored form of the time that `text` names; of a date, its end."""
    start = since(text, now)
    if not _date(text.strip()):
        return start
    following = datetime.fromisoformat(text.strip()) + timedelta(days=1)
    return utc(following.astimezone().isoformat()) or start


def since(text: str, now: datetime | None = None) -> str:
    """Return the stored form of the time that `text` names; a date is one of the local calendar."""
    now = now or datetime.now(UTC)
    moment = None
    try:
        span = ago(text)
        if span is not None:
            moment = now - span
        else:
            moment = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError):
        pass
    stored = utc(moment.isoformat()) if moment else None
    if stored is None:
        raise UsageError(
            f"Invalid time {text!r}. Use 30m, 12h, 7d, 2w or a date such as 2026-01-31."
        )
    return stored

"""Converts every date format that agents write to one UTC text: `YYYY-MM-DDTHH:MM:SS.mmmZ`.

Agents write ISO 8601 with `Z`, with an offset or without one, with and without fractions, and
integers in seconds or milliseconds. Any other value, or a time outside the years 2000 to 2100,
becomes None, never "now": a wrong time is worse than none.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, timezone, tzinfo

Zone = tzinfo
"""The time zone in which times without a zone are read."""


class _MachineZone(tzinfo):
    """The time zone of this machine, with its past daylight saving rules."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "local"


MACHINE: Zone = _MachineZone()
"""The time zone of this machine."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_START = _EPOCH.replace(tzinfo=None)
_FIRST = 946_684_800_000  # 2000-01-01, in milliseconds
_LAST = 4_102_444_800_000  # 2100-01-01
_MILLISECONDS_FROM = 10**11  # a larger integer counts milliseconds, a smaller one seconds

# 99 % of all timestamps have exactly the stored form. Days after the 28th are parsed, because the
# month decides whether they exist.
_stored_form = re.compile(
    r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z",
    re.ASCII,
).fullmatch


def utc(value: object, zone: tzinfo = UTC) -> str | None:
    """Return `value` as UTC text with milliseconds, or None if it is not a time.

    `value` may be ISO text or a number of seconds or milliseconds since 1970. `zone` is used
    for ISO text without a zone.
    """
    if value.__class__ is str:
        if _stored_form(value):
            return value
        return _from_iso(value, zone)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value != value or abs(value) > _LAST:
        return None
    return from_milliseconds(round(value if value >= _MILLISECONDS_FROM else value * 1000))


def is_without_zone(value: object) -> bool:
    """Is `value` ISO text without a time zone?"""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is None
    except ValueError:
        return False


def from_milliseconds(milliseconds: int) -> str | None:
    """Return the UTC text of `milliseconds` since 1970, or None outside 2000 to 2100."""
    if not _FIRST <= milliseconds < _LAST:
        return None
    moment = _START + timedelta(milliseconds=milliseconds)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def now() -> str:
    """Return the current time as UTC text, or the nearest valid one if the clock is wrong."""
    present = max(_FIRST, min(time.time_ns() // 1_000_000, _LAST - 1))
    return from_milliseconds(present) or ""


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of a stored time."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _from_iso(text: str, zone: tzinfo) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        elapsed = moment.astimezone(timezone.utc) - _EPOCH  # noqa: UP017
    except (ValueError, OverflowError, OSError):  # Windows has no local times before 1970
        return None
    return from_milliseconds(elapsed // timedelta(milliseconds=1))

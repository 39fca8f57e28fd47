"""When files went missing, and whether that time is plausible: for `prune --gone --before`.

What is removed cannot be recovered, so a clock that was wrong during one sync must not decide:

- a time before the file was seen, read or written, or before the first sync, is not plausible. Such
  files are kept and listed (`Kept`);
- an age is counted from sync to sync. The time between two syncs counts for at most half of it, so
  that one wrong clock, or one long pause, does not make anything old enough. A user who knows
  better can give a date.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from ..ask.since import ago, since
from ..store.clock import Clock, later
from ..when import milliseconds

_SURE = """coalesce(
    gone_at > '2'
    and gone_at >= (select min(first_synced_at) from sources)
    and gone_at >= first_seen_at
    and gone_at >= last_synced_at
    and (mtime is null or julianday(gone_at) >= julianday(mtime) - 1), 0)"""
"""Is `gone_at` of a row of `files` plausible? A network disk may have a clock of its own."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What may be removed: files that went missing before `before`."""

    before: str
    asked: str
    """The limit that was asked for, by the clock alone; `before` is never later."""
    since: str
    """The time of the first sync: no file can have been seen to go before."""


EVER = Limit("9999", "9999", "")
"""Everything that is gone, at any time."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that is kept although its date says that it has been gone for long enough."""

    path: str
    session_key: str | None
    gone_at: str
    is_date_possible: bool
    """Its date is plausible, but too few syncs show that the time has passed."""


def limit_of(connection: sqlite3.Connection, text: str | None) -> Limit:
    """Return the limit for `90d`, a date, or nothing. Raises UsageError."""
    if text is None:
        return EVER
    (first,) = connection.execute("select min(first_synced_at) from sources").fetchone()
    span = ago(text)
    if span is None:
        date = since(text)
        return Limit(date, date, first or "")
    present = Clock(connection).now()
    asked = later(present, -span)
    return Limit(min(asked, _shown(connection, present, span)), asked, first or "")


def _shown(connection: sqlite3.Connection, present: str, span: timedelta) -> str:
    """Return the time since which, according to the syncs, the span has passed; '' if none."""
    wanted = span // timedelta(milliseconds=1)
    passed, newer = 0, milliseconds(present)
    for moment in _moments(connection):
        older = milliseconds(moment)
        passed += min(max(newer - older, 0), wanted // 2)
        if passed >= wanted:
            return later(moment, timedelta(milliseconds=passed - wanted))
        newer = older
    return "" if wanted else present


def _moments(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the times at which runs ended and began, the newest run first."""
    for run in connection.execute("select finished_at, started_at from sync_runs order by id desc"):
        yield from filter(None, run)


def gone_files(connection: sqlite3.Connection, limit: Limit) -> list[int]:
    """Return the ids of the files that have surely been gone since before the limit, by path."""
    where = "gone_at is not null" if limit is EVER else f"gone_at < :before and {_SURE}"
    rows = connection.execute(
        f"select id from files where {where} order by path, generation", {"before": limit.before}
    )
    return [file_id for (file_id,) in rows]


def kept_files(connection: sqlite3.Connection, limit: Limit) -> list[Kept]:
    """Return the files that may not have been gone for long enough, although their date says so."""
    if limit is EVER:
        return []
    rows = connection.execute(
        f"select path, session_key, gone_at, {_SURE} from files"
        f" where gone_at < :asked and not (gone_at < :before and {_SURE})"
        " order by path, generation",
        {"asked": limit.asked, "before": limit.before},
    )
    return [Kept(path, key, gone_at, bool(is_sure)) for path, key, gone_at, is_sure in rows]

"""The time of a sync, which does not go back when the clock of the machine does.

A machine whose battery is empty starts in 1970, and one may say 2099 for a minute. What a sync
records then stays, and since when a file is gone decides what `prune --before` removes. So:

- no time that is recorded is before the newest that the database holds: while the clock is behind,
  time stands still;
- a sync that is more than a year ahead, while no file that was ever read was written after now, had
  a clock that was wrong: its time is not believed, or all that follow would have it.

Nothing here can tell a clock that is right from one that is ahead: what was gone for 90 days
according to it alone, `prune` does not remove (`gone_since`).
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from ..when import from_milliseconds, milliseconds, now

_STEP = timedelta(minutes=1)  # a clock may be set right by so much, and nobody has to hear of it
_FAR = timedelta(days=366)
_DAY = timedelta(days=1)
_LAST_RUNS = 100
_BEFORE_ALL, _BEHIND_ALL = "", "9999"


class Clock:
    """The clock of the machine, as far as the database believes it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.behind: str | None = None
        """The newest time in the database, if the clock says an earlier one."""
        self.ahead: str | None = None
        """The newest time in the database, if it is one that the clock said wrongly."""
        self._reached = present = now()
        newest = _newest(connection)
        if newest > later(present, _FAR) and not _is_witnessed(connection, later(present, _DAY)):
            self.ahead = newest
        elif newest > present:
            self._reached = newest
            self.behind = newest if newest > later(present, _STEP) else None

    def now(self) -> str:
        """Return the time to record: never empty, and never before one that was recorded."""
        self._reached = max(self._reached, now())
        return self._reached


def later(moment: str, span: timedelta) -> str:
    """Return the stored form of the time that is so much later, or a text beyond all of them."""
    stored = from_milliseconds(milliseconds(moment) + span // timedelta(milliseconds=1))
    return stored or (_BEHIND_ALL if span > timedelta(0) else _BEFORE_ALL)


def said(moment: str) -> str:
    """Return a stored time for a sentence, with the zone, since the clock is in question."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def of_clock_behind(newest: str) -> str:
    """Return what to tell about a clock that is behind."""
    return (
        f"The system clock is behind the time of the last sync ({said(newest)}). "
        "Syncs record that time until the clock has caught up."
    )


def _newest(connection: sqlite3.Connection) -> str:
    """Return the newest time of a sync; an older program may have recorded any, or none."""
    rows = connection.execute(
        "select max(started_at, coalesce(finished_at, '')) from"
        f" (select * from sync_runs order by id desc limit {_LAST_RUNS})"
        " union all select last_synced_at from sources"
    )
    return max((moment for (moment,) in rows), default="")


def _is_witnessed(connection: sqlite3.Connection, after: str) -> bool:
    """Was any file written after this time?"""
    row = connection.execute("select 1 from files where mtime > ? limit 1", (after,)).fetchone()
    return row is not None

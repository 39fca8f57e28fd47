"""Transactions, and the time of a sync, which does not go back when the system clock does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from ..when import from_milliseconds, milliseconds, now
from . import changes

# ------------------------------------------------------------------------------------------------
# The time of a sync, which does not go back when the system clock does.
#
# A machine with an empty battery starts in 1970, and a clock may say 2099 for a minute. What a
# sync records at that moment stays, and `prune --before` decides by the time since which a file
# is gone. So:
#
# - no recorded time is earlier than the newest one in the database: while the system clock is
#   behind,
#   time stands still;
# - if a recorded time is more than a year ahead, and no file was modified after now, the clock was
#   wrong when it was recorded. That time is ignored, or all later syncs would have to repeat it.
#
# A clock that is slightly ahead cannot be told from a correct one. So `prune` does not remove
# what has been gone for 90 days by such a clock alone (`gone_since`).


_STEP = timedelta(minutes=1)  # a clock may be corrected by this much without a warning
_FAR = timedelta(days=366)
_DAY = timedelta(days=1)
_LAST_RUNS = 100
_BEFORE_ALL, _AFTER_ALL = "", "9999"


class Clock:
    """The system clock, corrected by the times in the database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.behind: str | None = None
        """The newest time in the database, if the system clock is behind it."""
        self.ahead: str | None = None
        """The newest time in the database, if a wrong clock recorded it."""
        self._reached = present = now()
        newest = _newest(connection)
        if newest > later(present, _FAR) and not _is_witnessed(connection, later(present, _DAY)):
            self.ahead = newest
        elif newest > present:
            self._reached = newest
            self.behind = newest if newest > later(present, _STEP) else None

    def now(self) -> str:
        """Return the time to record: never empty, and never earlier than a recorded one."""
        self._reached = max(self._reached, now())
        return self._reached


def later(moment: str, span: timedelta) -> str:
    """Return the stored form of a time plus `span`, or a text that sorts beyond all times."""
    stored = from_milliseconds(milliseconds(moment) + span // timedelta(milliseconds=1))
    return stored or (_AFTER_ALL if span > timedelta(0) else _BEFORE_ALL)


def said(moment: str) -> str:
    """Return a stored time as messages show it: with the zone, since the clock is in question."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def of_clock_behind(newest: str) -> str:
    return (
        f"The system clock is behind the time of the last sync ({said(newest)}). "
        "Syncs record that time until the clock has caught up."
    )


def _newest(connection: sqlite3.Connection) -> str:
    """Return the newest time of a sync. Older versions may have recorded any time, or none."""
    rows = connection.execute(
        "select max(started_at, coalesce(finished_at, '')) from"
        f" (select * from sync_runs order by id desc limit {_LAST_RUNS})"
        " union all select last_synced_at from sources"
    )
    return max((moment for (moment,) in rows), default="")


def _is_witnessed(connection: sqlite3.Connection, after: str) -> bool:
    """Was any file modified after this time?"""
    row = connection.execute("select 1 from files where mtime > ? limit 1", (after,)).fetchone()
    return row is not None


# ------------------------------------------------------------------------------------------------
# Transactions: begin, commit, and roll back after an error.
#
# Connections that write are in autocommit mode: a statement outside these transactions commits by
# itself. If an error left a transaction open, it would include whatever is written later. What is
# written outside is not noted (`changes`), so no table that `changes` watches is written there.


@contextmanager
def transaction(connection: sqlite3.Connection, *, is_noted: bool = True) -> Iterator[None]:
    """Commit everything that is written within, or nothing after an error.

    Not noted is what changes the schema: the triggers of `changes` know the tables as they were.
    """
    begin(connection, is_noted=is_noted)
    try:
        yield
        commit(connection)
    except BaseException:
        roll_back(connection)
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let many statements read one state of the database; what is written within is rolled back."""
    connection.execute("begin")
    try:
        yield
    finally:
        roll_back(connection)


def begin(connection: sqlite3.Connection, *, is_noted: bool = True) -> None:
    """Begin to write: a deferred transaction that reads first can fail when it comes to write."""
    connection.execute("begin immediate")
    try:
        if is_noted:
            changes.start(connection)
    except BaseException:
        roll_back(connection)
        raise


def commit(connection: sqlite3.Connection) -> None:
    """Make what was written permanent, and note what it changed. Raises sqlite3.Error if that
    fails."""
    changes.settle(connection)
    connection.execute("commit")


def roll_back(connection: sqlite3.Connection) -> None:
    """Undo what was not committed. SQLite may already have done so, as it does on a full disk."""
    if connection.in_transaction:
        connection.execute("rollback")

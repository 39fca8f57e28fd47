"""What a sync did: its report, and its row in `sync_runs`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .database import Clock

if TYPE_CHECKING:
    from ..files.steps import Work
    from .rows import Written


# ------------------------------------------------------------------------------------------------
# What a sync did, for the command line and for `sync_runs`.


Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the bytes in total."""


@dataclass(slots=True)
class Report:
    """What a sync did. The first eight fields are the columns of `sync_runs`."""

    started_at: str
    id: int | None = None
    finished_at: str | None = None
    files_read: int = 0
    bytes_read: int = 0
    rows: int = 0
    issues: int = 0
    error: str | None = None
    is_running: bool = False
    """The row `id` exists and has no end."""
    is_continued: bool = False
    """The row `id` has the counts of passes before; those of this one are added."""
    unfinished: int | None = None
    """The id of a file that is only partly read so far: it counts once."""
    clock_behind: str | None = None
    """The newest time in the database, if the system clock is behind it."""
    files_seen: int = 0
    files_gone: int = 0
    files_rebuilt: int = 0
    quarantined: int = 0
    symlinks: int = 0
    seconds: float = 0.0
    roots: list[str] = field(default_factory=list)
    missing_roots: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    refused: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    """Files that may not be opened, with their stat and the reason. Whoever syncs again and again
    keeps it: a file is tried again when its stat changes."""

    def may_be_read(self, work: Work) -> bool:
        """May a file be tried? If not, it is reported as before."""
        stat, reason = self.refused.get(work.found.location, (None, ""))
        if stat != work.found[2:]:
            return True
        self.unreadable.append((work.found.location, reason))
        return False

    def add(self, written: Written) -> None:
        """Add the counts of a committed batch."""
        self.rows += written.rows
        self.issues += written.issues
        self.quarantined += written.quarantined


# ------------------------------------------------------------------------------------------------
# The rows of `sync_runs`: what each run did, and which runs were cut off.
#
# A run inserts its row, without an end, before it commits anything else. Whoever holds the
# writer's lock and finds such a row knows that its run was cut off, and records that.


CUT_OFF = "cut off: its process was killed, or the disk failed"
"""Error of a run that could not record its end."""

_COUNTS = ("files_read", "bytes_read", "rows", "issues")
_COLUMNS = ("started_at", "finished_at", *_COUNTS, "error")


def record_start(connection: sqlite3.Connection, report: Report) -> None:
    """Insert a row without an end, which shows that the process was killed, should that happen.

    A run that continues the row of earlier passes removes the end of that row.
    """
    report.is_running = True
    _note_cut_off(connection, report)
    if report.id is None:
        report.id = connection.execute(
            "insert into sync_runs (started_at, files_read, bytes_read, rows, issues)"
            " values (?, 0, 0, 0, 0)",
            (report.started_at,),
        ).lastrowid
    else:
        connection.execute("update sync_runs set finished_at = null where id = ?", (report.id,))


def record_end(
    connection: sqlite3.Connection, report: Report, clock: Clock, *, is_over: bool = True
) -> None:
    """Record what the run did, and its end if it `is_over`.

    Raises sqlite3.Error, unless the run itself ended with an error: that one is to be reported.
    """
    report.is_running = False
    report.finished_at = clock.now() if is_over else None
    values = {column: getattr(report, column) for column in ("id", *_COLUMNS)}
    try:
        if report.id is None:
            _note_cut_off(connection, report)
            statement = (
                f"insert into sync_runs ({', '.join(_COLUMNS)})"
                f" values ({', '.join(f':{column}' for column in _COLUMNS)}) returning id"
            )
        elif report.is_continued:
            added = ", ".join(f"{column} = {column} + :{column}" for column in _COUNTS)
            statement = (
                f"update sync_runs set finished_at = :finished_at, error = :error, {added}"
                " where id = :id returning id"
            )
        else:
            assignments = ", ".join(f"{column} = :{column}" for column in _COLUMNS)
            statement = f"update sync_runs set {assignments} where id = :id returning id"
        (report.id,) = connection.execute(statement, values).fetchone()
    except sqlite3.Error:
        if report.error is None:
            raise


def _note_cut_off(connection: sqlite3.Connection, report: Report) -> None:
    connection.execute(
        "update sync_runs set error = ?"
        " where finished_at is null and error is null and id is not ?",
        (CUT_OFF, report.id),
    )

"""The rows of `sync_runs`: what each run did, and which runs were cut off.

A run inserts its row, without an end, before it commits anything else. Whoever holds the writer's
lock and finds such a row knows that its run was cut off, and records that.
"""

from __future__ import annotations

import sqlite3

from .clock import Clock
from .report import Report

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
